/* plain.c - the kernels as plain C, one item or group after another: for machines without a device, and for tests.
 * Invariant: what runs here is the text that devices compile. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "decode/decode.h"
#include "decode/job.h"

#include "kernels/jpeg_entropy.cl"
#include "kernels/jpeg_idct.cl"
#include "kernels/jpeg_pixels.cl"
#include "kernels/jpeg_resize.cl"

typedef struct between { /* memory between the kernels: blocks of their exact size, so that sanitizers see their ends */
    int16_t *coef;
    uint8_t *samples, *rgb, *lines;
} between;

static void between_free(between *b)
{
    free(b->coef);
    free(b->samples);
    free(b->rgb);
    free(b->lines);
}

static const void *section(const mr_decode_slab *s, mr_decode_section i)
{
    return s->memory.data + s->at[i];
}

static void run_decoding(const mr_decode_slab *s, const between *b, uint32_t *failed)
{
    const mr_jpeg_image *images = section(s, MR_DECODE_IMAGES);
    for (uint32_t i = 0; i < s->parts; i++)
        mr_jpeg_entropy((mr_spot){i, 0}, section(s, MR_DECODE_BYTES), images, section(s, MR_DECODE_PARTS), s->parts,
                        section(s, MR_DECODE_LUTS), b->coef, failed);
    for (uint32_t row = 0; row < s->images; row++) {
        for (uint32_t i = 0; i < (s->most_blocks + 7) / 8; i++)
            mr_jpeg_idct((mr_spot){i, row}, images, section(s, MR_DECODE_QUANTS), b->coef, b->samples);
        for (uint32_t i = 0; i < s->most_pixels; i++)
            mr_jpeg_pixels((mr_spot){i, row}, images, b->samples, b->rgb);
    }
}

static void run_resizing(const mr_decode_slab *s, const between *b, float *values)
{
    const mr_jpeg_image *images = section(s, MR_DECODE_IMAGES);
    const int32_t *weights = section(s, MR_DECODE_WEIGHTS);
    const uint32_t *starts = section(s, MR_DECODE_STARTS);
    for (uint32_t row = 0; row < s->images; row++) {
        for (uint32_t i = 0; i < s->most_lines; i++)
            mr_jpeg_across((mr_spot){i, row}, images, weights, starts, b->rgb, b->lines, s->size);
        for (uint32_t i = 0; i < s->size * s->size; i++)
            mr_jpeg_down((mr_spot){i, row}, images, weights, starts, b->lines, section(s, MR_DECODE_NORM), values,
                         s->size);
    }
}

mr_status mr_decode_run_plain(const mr_decode_slab *s, float *values, uint32_t *failed, mr_error *err)
{
    if (!s->images)
        return MR_OK;
    MR_AUTO(between_free)
    between b = {mr_alloc(1, s->coef), mr_alloc(1, s->samples), mr_alloc(1, s->rgb), mr_alloc(1, s->lines)};
    if (!b.coef || !b.samples || !b.rgb || !b.lines)
        return mr_fail_memory(err, "decoding a batch");
    memset(failed, 0, s->images * sizeof *failed);
    run_decoding(s, &b, failed);
    run_resizing(s, &b, values);
    return MR_OK;
}
