/* shrink_jpeg.c - a JPEG as a small grey image, decoded by libjpeg-turbo at a fraction of its size.
 * Invariant: only one row of the image is in memory, and the coefficients of a file of several scans. */
#include "image/similar/shrink.h"
#include "image/codec/codec.h"
#include "image/codec/jpeg_trap.h"

typedef struct jpeg_run {
    mr_jpeg_trap trap;
    struct jpeg_decompress_struct cinfo;
    mr_shrink shrink;
} jpeg_run;

/* The fewest eighths of the image's size that leave two pixels per cell. */
static unsigned eighths(uint32_t width, uint32_t height)
{
    uint64_t shorter = width < height ? width : height;
    unsigned n = 1;
    while (n < 8 && shorter * n < (uint64_t)8 * 2 * MR_ALIKE_SIDE)
        n *= 2;
    return n;
}

/* From the inverted CMYK that all programs write: each colour times black. */
static uint8_t grey_of_cmyk(const uint8_t *p)
{
    return (uint8_t)(mr_grey_of(p[0], p[1], p[2]) * p[3] / 255);
}

/* Everything that may jump. */
static void shrink_rows(jpeg_run *run, const uint8_t *bytes, size_t len)
{
    struct jpeg_decompress_struct *c = &run->cinfo;
    if (setjmp(run->trap.out))
        return;
    mr_jpeg_trap_create(&run->trap, c);
    jpeg_mem_src(c, bytes, len);
    jpeg_read_header(c, TRUE);
    run->trap.status = mr_image_check_size("JPEG", c->image_width, c->image_height, &run->trap.limits, run->trap.err);
    if (run->trap.status != MR_OK)
        return;
    bool cmyk = c->num_components == 4;
    c->out_color_space = cmyk ? JCS_CMYK : JCS_GRAYSCALE; /* libjpeg fails for other component counts */
    c->do_block_smoothing = FALSE;
    c->scale_num = eighths(c->image_width, c->image_height);
    c->scale_denom = 8;
    jpeg_start_decompress(c);
    run->shrink.width = c->output_width;
    run->shrink.height = c->output_height;
    JDIMENSION row_bytes = c->output_width * (JDIMENSION)c->output_components;
    JSAMPARRAY row = c->mem->alloc_sarray((j_common_ptr)c, JPOOL_IMAGE, row_bytes, 1);
    while (c->output_scanline < c->output_height) {
        JDIMENSION y = c->output_scanline;
        jpeg_read_scanlines(c, row, 1);
        for (JDIMENSION x = 0; cmyk && x < c->output_width; x++)
            row[0][x] = grey_of_cmyk(row[0] + 4 * (size_t)x);
        mr_shrink_row(&run->shrink, y, row[0]);
    }
    jpeg_finish_decompress(c);
}

mr_status mr_jpeg_shrink(const uint8_t *bytes, size_t len, const mr_image_limits *limits, mr_alike *out, mr_error *err)
{
    mr_image_limits l = mr_image_limits_fill(limits);
    jpeg_run run = {0};
    mr_jpeg_trap_set(&run.trap, &run.cinfo, &l, err);
    shrink_rows(&run, bytes, len);
    jpeg_destroy_decompress(&run.cinfo);
    if (run.trap.status == MR_OK)
        mr_shrink_end(&run.shrink, out);
    return run.trap.status;
}
