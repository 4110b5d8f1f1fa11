/* fuzz_image.c - headers, structure, EXIF and pixels of an image.
 * Promises: facts within their ranges and limits, the same on a second look; what decodes was examined as good, and can
 * be shrunk. */
#include "image/similar/alike.h"
#include "image/codec/image.h"
#include "tests/fuzz/fuzz.h"

static void check_facts(const mr_image_facts *f, const mr_image_limits *limits)
{
    FUZZ_MUST(f->width > 0 && f->height > 0 && (uint64_t)f->width * f->height <= limits->max_pixels);
    FUZZ_MUST(mr_codec_by_id(f->codec) != NULL);
    FUZZ_MUST(f->orientation >= 1 && f->orientation <= 8);
    FUZZ_MUST(f->components >= 1 && f->components <= 4);
    FUZZ_MUST(f->bits >= 1 && f->bits <= 16);
    FUZZ_MUST((f->flags & (MR_FLAG_SAME_BYTES | MR_FLAG_MULTI_LABEL | MR_FLAG_UNANNOTATED)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const mr_image_limits limits = {.max_pixels = 1 << 18, .max_scans = 32, .max_segments = 1000};
    mr_image_facts facts, again;
    mr_error err;
    const char *what = NULL;

    uint8_t orientation = mr_exif_orientation(data, size);
    FUZZ_MUST(orientation >= 1 && orientation <= 8);
    const mr_codec *codec = mr_codec_find(data, size, &what);
    FUZZ_MUST(what ? *what : !codec);

    memset(&facts, 0, sizeof facts);
    memset(&again, 0, sizeof again);
    mr_status examined = mr_image_examine(data, size, &limits, &facts, &err);
    if (examined == MR_OK) {
        check_facts(&facts, &limits);
        FUZZ_MUST(codec && codec->id == facts.codec);
        FUZZ_MUST(mr_image_examine(data, size, &limits, &again, &err) == MR_OK);
        FUZZ_MUST(memcmp(&facts, &again, sizeof facts) == 0);
    } else {
        FUZZ_MUST(examined == MR_BAD_SAMPLE);
        fuzz_refused(examined, &err);
    }
    mr_status decoded = mr_image_decode(data, size, &limits, &err);
    if (decoded != MR_OK) {
        FUZZ_MUST(decoded == MR_BAD_SAMPLE);
        fuzz_refused(decoded, &err);
    }
    mr_alike look;
    mr_status shrunk = mr_image_shrink(data, size, &limits, &look, &err);
    if (shrunk != MR_OK) {
        FUZZ_MUST(shrunk == MR_BAD_SAMPLE && decoded != MR_OK);
        fuzz_refused(shrunk, &err);
    } else if (!mr_alike_plain(&look)) {
        const mr_alike grey = {.grey = {0, 255}};
        mr_alike_compare(&look, &grey);
    }
    return 0;
}
