/* decode.c - JPEGs of a coded batch: the kernels jpeg_*.cl in their order.
 * Invariant: what a step reads has been queued before it. */
#include "launch/launch.h"

enum { GROUP_BLOCKS = 8 }; /* of mr_jpeg_idct */

static mr_call begin(mr_device *device, mr_kernel_id id, const mr_decode *x)
{
    mr_call c = mr_call_of(device, id, MR_F32);
    mr_call_tensor(&c, (const mr_coded_image *)x->images + x->piece.first_image, 1);
    return c;
}

static void run_entropy(mr_device *device, const mr_decode *x)
{
    mr_call c = mr_call_of(device, MR_KERNEL_jpeg_entropy, MR_F32);
    mr_call_tensor(&c, x->records, 1);
    mr_call_tensor(&c, x->images, 1);
    mr_call_tensor(&c, (const mr_coded_part *)x->parts + x->piece.first_part, 1);
    mr_call_u32(&c, x->piece.parts);
    mr_call_tensor(&c, x->codes, 1);
    mr_call_tensor(&c, x->coef, sizeof(int16_t));
    mr_call_tensor(&c, x->failed, sizeof *x->failed);
    mr_call_run_flat(&c, x->piece.parts);
}

static void run_samples(mr_device *device, const mr_decode *x)
{
    mr_call c = begin(device, MR_KERNEL_jpeg_idct, x);
    mr_call_tensor(&c, x->quants, sizeof(int16_t));
    mr_call_tensor(&c, x->coef, sizeof(int16_t));
    mr_call_tensor(&c, x->samples, 1);
    mr_call_run_images(&c, (size_t)(x->piece.most_blocks + GROUP_BLOCKS - 1) / GROUP_BLOCKS * MR_LAUNCH_WIDTH,
                       x->piece.images);
    c = begin(device, MR_KERNEL_jpeg_pixels, x);
    mr_call_tensor(&c, x->samples, 1);
    mr_call_tensor(&c, x->rgb, 1);
    mr_call_run_images(&c, x->piece.most_pixels, x->piece.images);
}

static void run_resizing(mr_device *device, const mr_decode *x)
{
    mr_call c = begin(device, MR_KERNEL_jpeg_across, x);
    mr_call_tensor(&c, x->weights, sizeof(int32_t));
    mr_call_tensor(&c, x->starts, sizeof(uint32_t));
    mr_call_tensor(&c, x->rgb, 1);
    mr_call_tensor(&c, x->lines, 1);
    mr_call_u32(&c, x->size);
    mr_call_run_images(&c, x->piece.most_lines, x->piece.images);
    c = begin(device, MR_KERNEL_jpeg_down, x);
    mr_call_tensor(&c, x->weights, sizeof(int32_t));
    mr_call_tensor(&c, x->starts, sizeof(uint32_t));
    mr_call_tensor(&c, x->lines, 1);
    mr_call_floats(&c, x->norm);
    mr_call_floats(&c, x->out);
    mr_call_u32(&c, x->size);
    mr_call_run_images(&c, (size_t)x->size * x->size, x->piece.images);
}

void mr_launch_decode(mr_device *device, const mr_decode *x)
{
    run_entropy(device, x);
    run_samples(device, x);
    run_resizing(device, x);
}
