/* decode.c - JPEGs of a coded batch: the kernels jpeg_*.cl in their order.
 * Invariant: what a step reads has been queued before it. */
#include "device/launch/launch.h"

enum { GROUP_BLOCKS = 8 }; /* blocks of a group of mr_jpeg_idct */

/* Those of the piece. */
static const void *images_of(const mr_decode *x)
{
    return (const mr_coded_image *)x->images + x->piece.first_image;
}

static void run_entropy(mr_device *device, const mr_decode *x)
{
    MR_LAUNCH(device, jpeg_entropy, MR_F32, mr_grid_flat(x->piece.parts), MR_TENSOR_OF(x->records, 1),
              MR_TENSOR_OF(x->images, 1), MR_TENSOR_OF((const mr_coded_part *)x->parts + x->piece.first_part, 1),
              MR_U32(x->piece.parts), MR_TENSOR_OF(x->codes, 1), MR_TENSOR_OF(x->coef, sizeof(int16_t)),
              MR_TENSOR_OF(x->failed, sizeof *x->failed));
}

static void run_samples(mr_device *device, const mr_decode *x)
{
    size_t groups = (size_t)(x->piece.most_blocks + GROUP_BLOCKS - 1) / GROUP_BLOCKS;
    MR_LAUNCH(device, jpeg_idct, MR_F32, mr_grid_images(groups * MR_LAUNCH_WIDTH, x->piece.images),
              MR_TENSOR_OF(images_of(x), 1), MR_TENSOR_OF(x->quants, sizeof(int16_t)),
              MR_TENSOR_OF(x->coef, sizeof(int16_t)), MR_TENSOR_OF(x->samples, 1));
    MR_LAUNCH(device, jpeg_pixels, MR_F32, mr_grid_images(x->piece.most_pixels, x->piece.images),
              MR_TENSOR_OF(images_of(x), 1), MR_TENSOR_OF(x->samples, 1), MR_TENSOR_OF(x->rgb, 1));
}

static void run_resizing(mr_device *device, const mr_decode *x)
{
    MR_LAUNCH(device, jpeg_across, MR_F32, mr_grid_images(x->piece.most_lines, x->piece.images),
              MR_TENSOR_OF(images_of(x), 1), MR_TENSOR_OF(x->weights, sizeof(int32_t)),
              MR_TENSOR_OF(x->starts, sizeof(uint32_t)), MR_TENSOR_OF(x->rgb, 1), MR_TENSOR_OF(x->lines, 1),
              MR_U32(x->size));
    MR_LAUNCH(device, jpeg_down, MR_F32, mr_grid_images((size_t)x->size * x->size, x->piece.images),
              MR_TENSOR_OF(images_of(x), 1), MR_TENSOR_OF(x->weights, sizeof(int32_t)),
              MR_TENSOR_OF(x->starts, sizeof(uint32_t)), MR_TENSOR_OF(x->lines, 1), MR_FLOATS(x->norm),
              MR_FLOATS(x->out), MR_U32(x->size));
}

void mr_launch_decode(mr_device *device, const mr_decode *x)
{
    run_entropy(device, x);
    run_samples(device, x);
    run_resizing(device, x);
}
