/* format_files.c - binary formats: images, archives, shards, arrays.
 * Invariant: the first bytes decide, or the ending where a format has no mark of its own.
 * Sources: MXNet's recordio.h, NEP 1, pickletools, the documents of the other formats. */
#include "ingest/layout/format_files.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"
#include "ingest/source/names.h"

bool mr_head_is_image(const mr_head *h)
{
    static const struct {
        const char *bytes;
        size_t len;
    } magic[] = {
        {"\xFF\xD8\xFF", 3}, {"\0\0\0\x0CjP  ", 8}, {"\0\0\0\x0CJXL ", 8}, {"\x89PNG\r\n\x1A\n", 8},
        {"GIF87a", 6},       {"GIF89a", 6},         {"II*\0", 4},          {"MM\0*", 4},
    };
    for (size_t i = 0; i < MR_COUNT(magic); i++)
        if (h->len >= magic[i].len && !memcmp(h->bytes, magic[i].bytes, magic[i].len))
            return true;
    if (h->len >= 12 && !memcmp(h->bytes + 4, "ftyp", 4)) /* HEIF and AVIF, not films */
        return !memcmp(h->bytes + 8, "hei", 3) || !memcmp(h->bytes + 8, "avif", 4) || !memcmp(h->bytes + 8, "mif1", 4);
    if (h->len >= 26 && !memcmp(h->bytes, "BM", 2)) /* its reserved bytes are 0 */
        return !memcmp(h->bytes + 6, "\0\0\0\0", 4);
    return h->len >= 12 && !memcmp(h->bytes, "RIFF", 4) && !memcmp(h->bytes + 8, "WEBP", 4);
}

bool mr_head_is_tfrecord(const mr_head *h)
{
    return memmem(h->name, h->name_len, ".tfrec", 6) != NULL;
}

/* An Arrow stream, as save_to_disk() of the library datasets writes it, or an Arrow file. */
bool mr_head_is_arrow(const mr_head *h)
{
    return h->len >= 8 &&
           (!memcmp(h->bytes, "ARROW1", 6) || (mr_head_ends(h, ".arrow") && !memcmp(h->bytes, "\xff\xff\xff\xff", 4)));
}

/* Shards of MosaicML Streaming and LitData, or the index.json beside them. */
bool mr_head_is_streamed(const mr_head *h)
{
    return mr_head_ends(h, ".mds") || memmem(h->name, h->name_len, ".mds.", 5) ||
           (mr_head_ends(h, ".json") && (mr_head_has(h, "\"column_encodings\"") ||
                                         (mr_head_has(h, "\"chunks\"") && mr_head_has(h, "\"chunk_bytes\""))));
}

bool mr_head_is_packed(const mr_head *h)
{
    return mr_head_ends(h, ".beton") || (h->len >= 8 && !memcmp(h->bytes, "\x0a\x23\xd7\xce", 4));
}

/* A pickle begins with its protocol, then a frame or its first object; CIFAR's have no ending. */
static bool is_pickle(const mr_head *h)
{
    return h->len >= 4 && h->bytes[0] == '\x80' && h->bytes[1] >= 2 && h->bytes[1] <= 5 &&
           memchr("\x95}](c", h->bytes[2], 5);
}

/* Those of single images hold embeddings or depths rather than labels. */
bool mr_head_is_arrays(const mr_head *h)
{
    bool idx = memmem(h->name, h->name_len, "idx", 3) && memmem(h->name, h->name_len, "ubyte", 5);
    bool magic = h->len >= 8 && (!memcmp(h->bytes, "\x89HDF\r\n\x1a\n", 8) || !memcmp(h->bytes, "\x93NUMPY", 6));
    return (idx || magic || is_pickle(h) || mr_head_ends(h, ".npz")) && !mr_head_is_beside_image(h);
}

bool mr_head_is_matlab(const mr_head *h)
{
    return mr_head_ends(h, ".mat") && h->len >= 10 && !memcmp(h->bytes, "MATLAB 5.0", 10);
}

bool mr_head_is_parquet(const mr_head *h)
{
    return h->len >= 4 && !memcmp(h->bytes, "PAR1", 4);
}

bool mr_head_is_archive(const mr_head *h)
{
    static const char *const ends[] = {".tar",     ".tgz", ".tar.gz", ".tar.zst", ".tar.xz",
                                       ".tar.bz2", ".zip", ".7z",     ".rar"};
    for (size_t i = 0; i < MR_COUNT(ends); i++)
        if (mr_head_ends(h, ends[i]))
            return h->len > 0;
    return false;
}

/* data.zip.001, data.tar.gz.aa, data.z01 */
bool mr_head_is_part(const mr_head *h)
{
    static const char *const ends[] = {".zip", ".7z", ".tar", ".gz", ".tgz", ".xz", ".zst", ".bz2", NULL};
    const char *dot = memrchr(h->name, '.', h->name_len), *end = h->name + h->name_len;
    if (!dot || end - dot < 3)
        return false;
    size_t digits = strspn(dot + 1, "0123456789"), letters = strspn(dot + 1, "abcdefghijklmnopqrstuvwxyz");
    bool numbered = dot + 1 + digits == end || (dot + 1 + letters == end && letters == 2);
    bool zipped = (dot[1] == 'z' || dot[1] == 'Z') && isdigit((unsigned char)dot[2]) && end - dot == 4;
    return h->len && (zipped || (numbered && mr_name_ends_in(h->name, (size_t)(dot - h->name), ends)));
}

bool mr_head_is_spreadsheet(const mr_head *h)
{
    return mr_head_ends(h, ".xlsx") || mr_head_ends(h, ".xls") || mr_head_ends(h, ".ods");
}

bool mr_head_is_database(const mr_head *h)
{
    return h->len >= 13 && !memcmp(h->bytes, "SQLite format", 13);
}
