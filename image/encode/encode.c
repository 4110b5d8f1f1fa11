/* encode.c - pixels become JPEG and PNG files as cameras and sites write them.
 * Invariant: whatever a library reports, its memory is released before the call returns. */
#include "image/encode/encode.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>
#include <spng.h>

/* libjpeg reports a failure by a call that must not return; the only one left to it here is a lack of memory. */
typedef struct trouble {
    struct jpeg_error_mgr base;
    jmp_buf back;
    char text[JMSG_LENGTH_MAX];
} trouble;

static void give_up(j_common_ptr info)
{
    trouble *t = (trouble *)info->err;
    info->err->format_message(info, t->text);
    longjmp(t->back, 1);
}

static void say_nothing(j_common_ptr info)
{
    (void)info;
}

static void set_style(struct jpeg_compress_struct *jpeg, const mr_picture *p, const mr_jpeg_style *style)
{
    jpeg->image_width = p->width;
    jpeg->image_height = p->height;
    jpeg->input_components = (int)p->channels;
    jpeg->in_color_space = p->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(jpeg);
    jpeg_set_quality(jpeg, style->quality, TRUE);
    jpeg->restart_in_rows = (int)style->restart_rows;
    if (p->channels == 3 && style->full_chroma)
        jpeg->comp_info[0].h_samp_factor = jpeg->comp_info[0].v_samp_factor = 1;
    if (style->progressive)
        jpeg_simple_progression(jpeg);
}

/* Everything that libjpeg may jump out of: it owns no memory but what the caller gave it by pointer. */
static bool compress(struct jpeg_compress_struct *jpeg, trouble *t, const mr_picture *p, const mr_jpeg_style *style,
                     unsigned char **bytes, unsigned long *len)
{
    if (setjmp(t->back))
        return false;
    jpeg_create_compress(jpeg);
    jpeg_mem_dest(jpeg, bytes, len);
    set_style(jpeg, p, style);
    jpeg_start_compress(jpeg, TRUE);
    while (jpeg->next_scanline < p->height) {
        JSAMPROW row = p->pixels + (size_t)jpeg->next_scanline * p->width * p->channels;
        jpeg_write_scanlines(jpeg, &row, 1);
    }
    jpeg_finish_compress(jpeg);
    return true;
}

mr_status mr_picture_jpeg(const mr_picture *p, const mr_jpeg_style *style, mr_buf *out, mr_error *err)
{
    struct jpeg_compress_struct jpeg = {0};
    trouble t = {.text = ""};
    unsigned char *bytes = NULL;
    unsigned long len = 0;
    jpeg.err = jpeg_std_error(&t.base);
    t.base.error_exit = give_up;
    t.base.output_message = say_nothing;
    bool done = compress(&jpeg, &t, p, style, &bytes, &len);
    if (done)
        mr_buf_add(out, bytes, len);
    jpeg_destroy_compress(&jpeg);
    free(bytes);
    return done ? mr_buf_status(out, err, "encoding a JPEG") : mr_fail(err, MR_SYSTEM, "encoding a JPEG: %s", t.text);
}

mr_status mr_picture_png(const mr_picture *p, mr_buf *out, mr_error *err)
{
    int code = 0;
    size_t len = 0;
    void *bytes = NULL;
    spng_ctx *png = spng_ctx_new(SPNG_CTX_ENCODER);
    if (!png)
        return mr_fail_memory(err, "encoding a PNG");
    struct spng_ihdr head = {.width = p->width, .height = p->height, .bit_depth = 8};
    head.color_type = p->channels == 1 ? SPNG_COLOR_TYPE_GRAYSCALE : SPNG_COLOR_TYPE_TRUECOLOR;
    code = spng_set_option(png, SPNG_ENCODE_TO_BUFFER, 1);
    if (!code)
        code = spng_set_ihdr(png, &head);
    if (!code)
        code = spng_encode_image(png, p->pixels, (size_t)p->width * p->height * p->channels, SPNG_FMT_PNG,
                                 SPNG_ENCODE_FINALIZE);
    if (!code)
        bytes = spng_get_png_buffer(png, &len, &code);
    if (!code)
        mr_buf_add(out, bytes, len);
    free(bytes);
    spng_ctx_free(png);
    return code ? mr_fail(err, MR_SYSTEM, "encoding a PNG: %s", spng_strerror(code))
                : mr_buf_status(out, err, "encoding a PNG");
}

void mr_picture_free(mr_picture *p)
{
    free(p->pixels);
    p->pixels = NULL;
}
