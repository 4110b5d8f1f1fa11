/* image.c - finds the codec of the bytes, and the limits that all codecs obey.
 * Invariant: content alone decides, never a file's name. */
#include <string.h>
#include <strings.h>

#include "base/scope.h"
#include "base/text.h"
#include "image/codec/codec.h"

static const mr_codec *const codecs[] = {
#define X(word) &mr_codec_##word,
    MR_CODECS(X)
#undef X
};

const char *const mr_oddity_words[MR_ODDITY_COUNT] = {
#define X(name, words) words,
    MR_ODDITIES(X)
#undef X
};

/* Files often found among photographs: recognised only to be rejected by name. */
typedef struct magic {
    const char *name;
    const char *bytes;
    uint8_t at, len;
} magic;

static const magic others[] = {
    {"GIF", "GIF8", 0, 4},
    {"TIFF", "II*\0", 0, 4},
    {"TIFF", "MM\0*", 0, 4},
    {"TIFF", "II+\0", 0, 4},
    {"TIFF", "MM\0+", 0, 4},
    {"BMP", "BM", 0, 2},
    {"ICO", "\0\0\1\0", 0, 4},
    {"AVIF", "ftypavif", 4, 8},
    {"AVIF", "ftypavis", 4, 8},
    {"HEIC", "ftyphei", 4, 7},
    {"HEIC", "ftyphev", 4, 7},
    {"HEIC", "ftypmif1", 4, 8},
    {"JPEG XL", "\xff\x0a", 0, 2},
    {"JPEG XL", "\0\0\0\x0cJXL ", 0, 8},
    {"JPEG 2000", "\0\0\0\x0cjP  ", 0, 8},
    {"JPEG 2000", "\xff\x4f\xff\x51", 0, 4},
    {"PSD", "8BPS", 0, 4},
    {"OpenEXR", "\x76\x2f\x31\x01", 0, 4},
    {"PDF", "%PDF-", 0, 5},
    {"ZIP", "PK\3\4", 0, 4},
    {"gzip", "\x1f\x8b", 0, 2},
    {"NumPy", "\x93NUMPY", 0, 6},
    {"a video (MP4)", "ftyp", 4, 4},
    {"a video (Matroska)", "\x1a\x45\xdf\xa3", 0, 4},
};

static bool starts(const uint8_t *bytes, size_t len, const char *word)
{
    size_t n = strlen(word);
    return len >= n && !strncasecmp((const char *)bytes, word, n);
}

/* Text formats, after a byte order mark and white space. */
static const char *name_text(const uint8_t *bytes, size_t len)
{
    size_t mark = mr_utf8_mark(bytes, len);
    bytes += mark;
    len -= mark;
    while (len && (*bytes == ' ' || *bytes == '\n' || *bytes == '\r' || *bytes == '\t')) {
        bytes++;
        len--;
    }
    if (starts(bytes, len, "<!doctype html") || starts(bytes, len, "<html") || starts(bytes, len, "<head"))
        return "HTML";
    if (mr_text_is_lfs_pointer(bytes, len))
        return "a Git LFS pointer (git lfs pull fetches the file)";
    if (starts(bytes, len, "<svg"))
        return "SVG";
    if (starts(bytes, len, "<?xml"))
        return "XML";
    if (starts(bytes, len, "{") || starts(bytes, len, "[{"))
        return "JSON";
    return NULL;
}

static const char *name_other(const uint8_t *bytes, size_t len)
{
    if (!len)
        return "an empty file";
    for (size_t i = 0; i < MR_COUNT(others); i++) {
        const magic *m = &others[i];
        if (len >= (size_t)m->at + m->len && !memcmp(bytes + m->at, m->bytes, m->len))
            return m->name;
    }
    if (len >= 3 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '6' && strchr(" \t\r\n", bytes[2]) && bytes[2])
        return "PNM";
    /* A photograph with a few bytes in front: decoders disagree on those, so the user has to fix it. */
    for (size_t i = 1; i + 2 < len && i <= 64; i++)
        if (mr_codec_jpeg.claims(bytes + i, len - i))
            return "JPEG preceded by other bytes";
    return name_text(bytes, len < 256 ? len : 256);
}

const mr_codec *mr_codec_find(const uint8_t *bytes, size_t len, const char **what)
{
    for (size_t i = 0; i < MR_COUNT(codecs); i++) {
        if (codecs[i]->claims(bytes, len)) {
            if (what)
                *what = codecs[i]->name;
            return codecs[i];
        }
    }
    if (what)
        *what = name_other(bytes, len);
    return NULL;
}

const mr_codec *mr_codec_by_id(unsigned id)
{
    for (size_t i = 0; i < MR_COUNT(codecs); i++)
        if (codecs[i]->id == id)
            return codecs[i];
    return NULL;
}

static mr_status find(const uint8_t *bytes, size_t len, const mr_codec **out, mr_error *err)
{
    const char *what;
    const mr_codec *codec = mr_codec_find(bytes, len, &what);
    if (!codec)
        return mr_fail(err, MR_BAD_SAMPLE, "%s: millrace stores JPEG, PNG and WebP", what ? what : "unknown content");
    if (len > MR_RECORD_MAX)
        return mr_fail(err, MR_BAD_SAMPLE, "%s of %zu bytes: a record holds at most 4 GiB", codec->name, len);
    *out = codec;
    return MR_OK;
}

mr_status mr_image_examine(const uint8_t *bytes, size_t len, const mr_image_limits *limits, mr_image_facts *facts,
                           mr_error *err)
{
    const mr_codec *codec = NULL;
    MR_TRY(find(bytes, len, &codec, err));
    return codec->examine(bytes, len, limits, facts, err);
}

mr_status mr_image_decode_look(const uint8_t *bytes, size_t len, const mr_image_limits *limits, uint32_t *oddities,
                               mr_alike *look, mr_error *err)
{
    const mr_codec *codec = NULL;
    *oddities = 0;
    MR_TRY(find(bytes, len, &codec, err));
    return codec->decode(bytes, len, limits, oddities, look, err);
}

mr_status mr_image_decode_oddities(const uint8_t *bytes, size_t len, const mr_image_limits *limits, uint32_t *oddities,
                                   mr_error *err)
{
    return mr_image_decode_look(bytes, len, limits, oddities, NULL, err);
}

mr_status mr_image_decode(const uint8_t *bytes, size_t len, const mr_image_limits *limits, mr_error *err)
{
    uint32_t oddities;
    return mr_image_decode_oddities(bytes, len, limits, &oddities, err);
}

mr_status mr_image_shrink(const uint8_t *bytes, size_t len, const mr_image_limits *limits, mr_alike *out, mr_error *err)
{
    const mr_codec *codec = NULL;
    MR_TRY(find(bytes, len, &codec, err));
    return codec->shrink(bytes, len, limits, out, err);
}
