/* fuzz_jpeg_device.c - the kernels that decode JPEGs, as plain C, with the file's own entries, bent ones, and damage
 * after they were made. Promises: the host's tensor, or the picture is left to the host or flagged; what the host
 * refuses is never taken. */
#include "base/hash.h"
#include "tests/fuzz/pictures.h"
#include "image/jpeg/seek.h"
#include "tests/support/images/coded.h"

enum { SIZE = 8 };

static const float mean[3] = {0, 0, 0}, std[3] = {1, 1, 1};

static bool on_host(const mr_coded_picture *d, const mr_image_facts *f, float *out)
{
    mr_error err;
    mr_pixels_scratch *s = mr_pixels_scratch_new();
    mr_resizer *resizer = mr_resizer_new();
    FUZZ_MUST(s && resizer);
    mr_pixels_scratch_seek(s, d->seek, d->seek_len);
    fuzz_judgement j = fuzz_decode(s, d->bytes, d->len, f, &d->region);
    mr_resize_job job = d->resize;
    if (j.status == MR_OK) {
        FUZZ_MUST(mr_orient_pixels(s, d->orientation, j.rgb, &d->region, &job.rgb, &err) == MR_OK);
        FUZZ_MUST(mr_resize_f32(resizer, &job, mean, std, out, &err) == MR_OK);
    }
    mr_resizer_free(resizer);
    mr_pixels_scratch_free(s);
    return j.status == MR_OK;
}

/* False: left to the host, or flagged. */
static bool on_device(const mr_coded_picture *d, float *out)
{
    mr_error err;
    bool taken;
    uint32_t failed = 0;
    coded_batch batch = {.count = 0};
    FUZZ_MUST(coded_begin(&batch, SIZE, &err) == MR_OK);
    FUZZ_MUST(coded_add(&batch, d, &taken, &err) == MR_OK);
    FUZZ_MUST(coded_end(&batch, mean, std, &err) == MR_OK);
    FUZZ_MUST(coded_run_plain(batch.slab.data, out, &failed));
    coded_free(&batch);
    return taken && !failed;
}

static void both(const mr_coded_picture *d, const mr_image_facts *f)
{
    float *want = malloc(3 * SIZE * SIZE * sizeof *want), *got = malloc(3 * SIZE * SIZE * sizeof *got);
    FUZZ_MUST(want && got);
    if (on_device(d, got))
        FUZZ_MUST(on_host(d, f, want) && memcmp(want, got, 3 * SIZE * SIZE * sizeof *want) == 0);
    free(want);
    free(got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const unsigned spacings[] = {MR_JPEG_SEEK_ROWS, 1, 2, 4, 16};
    mr_image_facts f;
    mr_random draw;
    mr_buf seek = {0};
    if (!fuzz_jpeg_facts(data, size, &f))
        return 0;
    mr_random_seed(&draw, mr_hash64(data, size));
    mr_jpeg_decoder *jpeg = mr_jpeg_decoder_new();
    uint8_t *copy = malloc(size);
    FUZZ_MUST(jpeg && copy);
    memcpy(copy, data, size);
    mr_jpeg_seek_make(jpeg, data, size, spacings[mr_random_below(&draw, MR_COUNT(spacings))], &seek);
    mr_coded_picture d = {.bytes = copy, .len = size, .seek = seek.data, .seek_len = seek.len};
    d.width = f.width;
    d.height = f.height;
    d.region = fuzz_region(&draw, f.width, f.height);
    d.orientation = (uint8_t)mr_random_below(&draw, 9);
    d.resize = (mr_resize_job){.in_width = d.region.width, .in_height = d.region.height};
    mr_orient_size(d.orientation, &d.resize.in_width, &d.resize.in_height);
    d.resize.out_width = d.resize.out_height = d.resize.crop_width = d.resize.crop_height = SIZE;
    d.resize.flip = mr_random_below(&draw, 2);
    d.resize.bicubic = mr_random_below(&draw, 2);
    both(&d, &f);
    for (int i = 0; i < 3 && seek.len; i++) {
        uint8_t *bent = i ? copy : seek.data;
        bent[mr_random_below(&draw, i ? size : seek.len)] ^= (uint8_t)(1 << mr_random_below(&draw, 8));
        both(&d, &f);
    }
    free(copy);
    mr_buf_free(&seek);
    mr_jpeg_decoder_free(jpeg);
    return 0;
}
