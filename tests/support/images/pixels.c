/* pixels.c - JPEGs of every sampling and their regions; see support/pixels.h. */
#include "tests/support/images/pixels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

void *pixels_take(size_t n)
{
    void *p = calloc(n ? n : 1, 1);
    assert_non_null(p);
    return p;
}

/* Waves with noise on them, the channels unlike each other: a chroma sample differs from its neighbours. */
static void paint(mr_random *r, uint8_t *row, unsigned width, unsigned channels, unsigned y)
{
    for (unsigned x = 0; x < width; x++)
        for (unsigned c = 0; c < channels; c++)
            row[x * channels + c] = (uint8_t)(120 + 60 * sin(x * (0.3 + 0.2 * c) + y * 0.5 * (c + 1)) +
                                              (double)mr_random_below(r, 60) + ((x / 5 + y / 7 + c) % 2 ? 15 : 0));
}

picture pixels_jpeg_make(mr_random *r, const jpeg_make *k)
{
    static const jpeg_scan_info one_each[] = {{1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    unsigned char *bytes = NULL;
    unsigned long len = 0;
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &bytes, &len);
    c.image_width = k->width;
    c.image_height = k->height;
    c.input_components = (int)k->components;
    c.in_color_space = k->components == 1 ? JCS_GRAYSCALE : k->components == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&c);
    if (k->components == 4 && k->restart)
        jpeg_set_colorspace(&c, JCS_YCCK);
    jpeg_set_quality(&c, k->quality ? (int)k->quality : 85, TRUE);
    c.optimize_coding = k->optimized;
    for (unsigned i = 0; i < k->components && k->h[0]; i++) {
        c.comp_info[i].h_samp_factor = k->h[i] ? k->h[i] : 1;
        c.comp_info[i].v_samp_factor = k->v[i] ? k->v[i] : 1;
    }
    c.restart_interval = k->restart;
    c.arith_code = k->arithmetic;
    if (k->progressive)
        jpeg_simple_progression(&c);
    if (k->scans) {
        c.scan_info = one_each;
        c.num_scans = 3;
    }
    jpeg_start_compress(&c, TRUE);
    uint8_t *row = pixels_take((size_t)k->width * k->components);
    while (c.next_scanline < c.image_height) {
        paint(r, row, k->width, k->components, c.next_scanline);
        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    picture p = picture_copy(bytes, len);
    free(row);
    free(bytes);
    return p;
}

/* libjpeg-turbo's full decode; CMYK as it comes. */
uint8_t *pixels_jpeg_whole(picture p, unsigned *channels)
{
    struct jpeg_decompress_struct c;
    struct jpeg_error_mgr errors;
    c.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&c);
    jpeg_mem_src(&c, p.bytes, p.len);
    jpeg_read_header(&c, TRUE);
    c.out_color_space = c.num_components == 4 ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&c);
    *channels = (unsigned)c.output_components;
    size_t stride = (size_t)c.output_width * *channels;
    uint8_t *out = pixels_take(stride * c.output_height);
    while (c.output_scanline < c.output_height) {
        JSAMPROW row = out + stride * c.output_scanline;
        jpeg_read_scanlines(&c, &row, 1);
    }
    jpeg_destroy_decompress(&c);
    return out;
}

mr_image_facts pixels_facts(picture p)
{
    mr_image_facts f;
    mr_error err;
    if (mr_image_examine(p.bytes, p.len, NULL, &f, &err) != MR_OK)
        fail_msg("refused: %s", err.text);
    return f;
}

const uint8_t *pixels_decoded(mr_pixels_scratch *s, picture p, const mr_image_facts *f, mr_region r)
{
    const uint8_t *rgb = NULL;
    mr_error err;
    if (mr_pixels_decode(s, p.bytes, p.len, f, &r, &rgb, &err) != MR_OK)
        fail_msg("%u x %u at %u, %u of %u x %u: %s", r.width, r.height, r.left, r.top, f->width, f->height, err.text);
    return rgb;
}

mr_region pixels_region(mr_random *r, uint32_t width, uint32_t height)
{
    mr_region g;
    uint32_t most_w = mr_random_below(r, 3) ? width : width < 9 ? width : 9; /* small ones often */
    uint32_t most_h = mr_random_below(r, 3) ? height : height < 9 ? height : 9;
    g.width = 1 + (uint32_t)mr_random_below(r, most_w);
    g.height = 1 + (uint32_t)mr_random_below(r, most_h);
    g.left = (uint32_t)mr_random_below(r, width - g.width + 1);
    g.top = (uint32_t)mr_random_below(r, height - g.height + 1);
    return g;
}

static void check_region(mr_pixels_scratch *s, picture p, const mr_image_facts *f, const uint8_t *want, mr_region r,
                         const char *what)
{
    const uint8_t *got = pixels_decoded(s, p, f, r);
    for (uint32_t y = 0; y < r.height; y++)
        if (memcmp(got + (size_t)r.width * 3 * y, want + ((size_t)f->width * (r.top + y) + r.left) * 3,
                   (size_t)r.width * 3))
            fail_msg("%s, %u x %u: region %u x %u at %u, %u differs in row %u", what, f->width, f->height, r.width,
                     r.height, r.left, r.top, y);
}

void pixels_check_regions(mr_random *rnd, mr_pixels_scratch *s, picture p, const uint8_t *want, int times,
                          const char *what)
{
    mr_image_facts f = pixels_facts(p);
    check_region(s, p, &f, want, (mr_region){0, 0, f.width, f.height}, what);
    check_region(s, p, &f, want, (mr_region){f.width - 1, f.height - 1, 1, 1}, what);
    for (int i = 0; i < times; i++)
        check_region(s, p, &f, want, pixels_region(rnd, f.width, f.height), what);
}
