/* plain.c - the kernels as plain C, one item or group after another; see decode.h.
 * Invariant: what runs here is the text that devices compile. */
#include "device/decode/decode.h"
#include "device/decode/job.h"

#include "device/kernels/jpeg_entropy.cl"
#include "device/kernels/jpeg_idct.cl"
#include "device/kernels/jpeg_pixels.cl"
#include "device/kernels/jpeg_resize.cl"

enum { PARTS_PER_TASK = 16, GROUP_BLOCKS = 8 };

size_t mr_decode_tasks(const mr_decode *x, mr_decode_step step)
{
    return step == MR_DECODE_ENTROPY ? (x->piece.parts + PARTS_PER_TASK - 1) / PARTS_PER_TASK : x->piece.images;
}

static void entropy(const mr_decode *x, size_t task)
{
    size_t from = task * PARTS_PER_TASK, to = from + PARTS_PER_TASK;
    for (size_t i = from; i < to && i < x->piece.parts; i++)
        mr_jpeg_entropy((mr_spot){(uint32_t)i, 0}, x->records, 0, x->images, 0, x->parts,
                        x->piece.first_part * sizeof(mr_jpeg_part), x->piece.parts, x->codes, 0, x->coef, 0, x->failed,
                        0);
}

/* Task: image. */
void mr_decode_task(const mr_decode *x, mr_decode_step step, size_t task)
{
    const mr_coded_piece *p = &x->piece;
    uint64_t at = p->first_image * sizeof(mr_jpeg_image);
    mr_spot s = {.row = (uint32_t)task};
    switch (step) {
    case MR_DECODE_ENTROPY:
        entropy(x, task);
        break;
    case MR_DECODE_IDCT:
        for (; s.item < (p->most_blocks + GROUP_BLOCKS - 1) / GROUP_BLOCKS; s.item++)
            mr_jpeg_idct(s, x->images, at, x->quants, 0, x->coef, 0, x->samples, 0);
        break;
    case MR_DECODE_PIXELS:
        for (; s.item < p->most_pixels; s.item++)
            mr_jpeg_pixels(s, x->images, at, x->samples, 0, x->rgb, 0);
        break;
    case MR_DECODE_ACROSS:
        for (; s.item < p->most_lines; s.item++)
            mr_jpeg_across(s, x->images, at, x->weights, 0, x->starts, 0, x->rgb, 0, x->lines, 0, x->size);
        break;
    case MR_DECODE_DOWN:
        for (; s.item < x->size * x->size; s.item++)
            mr_jpeg_down(s, x->images, at, x->weights, 0, x->starts, 0, x->lines, 0, x->norm, 0, x->out, 0, x->size);
        break;
    case MR_DECODE_STEPS:
        break;
    }
}

uint32_t mr_decode_symbols(const mr_coded *batch, uint32_t part)
{
    const uint8_t *slab = (const uint8_t *)batch;
    const mr_jpeg_part *p = (const mr_jpeg_part *)(const void *)(slab + batch->parts_at) + part;
    mr_jpeg_image nothing = ((const mr_jpeg_image *)(const void *)(slab + batch->images_at))[p->image];
    int16_t coefficients[1]; /* none are kept */
    uint32_t steps = 0;
    nothing.mcu_right = nothing.mcu_left;
    (void)mr_jpeg_part_run(slab + batch->records_at, &nothing, p,
                           (const mr_jpeg_lut *)(const void *)(slab + batch->codes_at), coefficients, &steps);
    return steps;
}
