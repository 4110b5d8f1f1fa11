/* alike.c - drawn photographs and their copies; see support/alike.h.
 * Invariant: a picture is RGB, 8 bits, rows without padding. */
#include "tests/support/images/alike.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <webp/encode.h>

enum { PATCHES = 70 };

static mr_picture blank(uint32_t width, uint32_t height)
{
    mr_picture p = {width, height, 3, calloc((size_t)width * height, 3)};
    assert_non_null(p.pixels);
    return p;
}

mr_picture alike_photo(uint64_t seed, uint32_t width, uint32_t height)
{
    mr_picture p = blank(width, height);
    mr_random r;
    mr_random_seed(&r, seed);
    for (int i = 0; i < PATCHES; i++) { /* large ones first, small ones over them */
        double size = (i ? 0.04 : 2) + 0.3 * (1 - (double)i / PATCHES) * mr_random_unit(&r);
        double slim = mr_random_real(&r, 0.4, 1);
        double cx = mr_random_unit(&r), cy = mr_random_unit(&r), angle = mr_random_real(&r, 0, 3.14159);
        const double colour[3] = {mr_random_real(&r, 20, 220), mr_random_real(&r, 20, 220),
                                  mr_random_real(&r, 20, 220)};
        bool round = mr_random_below(&r, 2);
        double low_y = (cy - 1.5 * size) * height, high_y = (cy + 1.5 * size) * height;
        double low_x = (cx - 1.5 * size) * width, high_x = (cx + 1.5 * size) * width;
        for (uint32_t y = low_y > 0 ? (uint32_t)low_y : 0; y < height && y <= high_y; y++)
            for (uint32_t x = low_x > 0 ? (uint32_t)low_x : 0; x < width && x <= high_x; x++) {
                double dx = (x + 0.5) / width - cx, dy = (y + 0.5) / height - cy;
                double u = (dx * cos(angle) + dy * sin(angle)) / size;
                double v = (dy * cos(angle) - dx * sin(angle)) / size / slim;
                bool inside = round ? u * u + v * v < 1 : fabs(u) < 1 && fabs(v) < 1;
                for (int c = 0; inside && c < 3; c++)
                    p.pixels[((size_t)y * width + x) * 3 + (size_t)c] = (uint8_t)(colour[c] + 20 * u);
            }
    }
    return p;
}

mr_picture alike_tone(uint8_t red, uint8_t green, uint8_t blue)
{
    mr_picture p = blank(160, 120);
    for (size_t i = 0; i < (size_t)p.width * p.height; i++) {
        p.pixels[3 * i] = red;
        p.pixels[3 * i + 1] = green;
        p.pixels[3 * i + 2] = blue;
    }
    return p;
}

/* Between four pixels; black outside. */
static double value(const mr_picture *p, double x, double y, unsigned c)
{
    double sum = 0;
    long left = (long)floor(x), top = (long)floor(y);
    for (long dy = 0; dy < 2; dy++)
        for (long dx = 0; dx < 2; dx++) {
            long column = left + dx, row = top + dy;
            double share = (1 - fabs(x - (double)column)) * (1 - fabs(y - (double)row));
            if (column >= 0 && row >= 0 && column < (long)p->width && row < (long)p->height)
                sum += share * p->pixels[((size_t)row * p->width + (size_t)column) * 3 + c];
        }
    return sum;
}

static uint8_t clamp(double v)
{
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v + 0.5);
}

static bool moves(const alike_edit *e)
{
    return e->quarters || e->mirror || e->degrees != 0 || e->zoom != 0 || e->shear != 0;
}

/* The place in the original that pixel (x, y) of the copy shows. */
static void place(const mr_picture *p, const mr_picture *copy, const alike_edit *e, double *x, double *y)
{
    double dx = (*x + 0.5) / copy->width - 0.5, dy = (*y + 0.5) / copy->height - 0.5;
    if (e->mirror)
        dx = -dx;
    for (unsigned i = 0; i < e->quarters % 4; i++) {
        double before = dx;
        dx = dy;
        dy = -before;
    }
    double angle = e->degrees * 3.14159265 / 180, c = cos(angle) * (1 - e->zoom), s = sin(angle) * (1 - e->zoom);
    double turned_x = c * dx - s * dy + e->shear * dy, turned_y = s * dx + c * dy;
    *x = (turned_x + 0.5) * p->width - 0.5;
    *y = (turned_y + 0.5) * p->height - 0.5;
}

mr_picture alike_copy(const mr_picture *p, alike_edit e)
{
    mr_picture copy = blank(e.quarters % 2 ? p->height : p->width, e.quarters % 2 ? p->width : p->height);
    mr_random r;
    mr_random_seed(&r, 99);
    for (uint32_t row = 0; row < copy.height; row++)
        for (uint32_t column = 0; column < copy.width; column++) {
            double x = column, y = row;
            if (moves(&e))
                place(p, &copy, &e, &x, &y);
            for (unsigned c = 0; c < 3; c++) {
                double v = moves(&e) ? value(p, x, y, c) : p->pixels[((size_t)row * p->width + column) * 3 + c];
                v = v * (e.gain ? e.gain : 1) + e.offset;
                v += e.noise ? mr_random_real(&r, -(double)e.noise, e.noise) : 0;
                copy.pixels[((size_t)row * copy.width + column) * 3 + c] = clamp(e.invert ? 255 - v : v);
            }
        }
    for (unsigned i = 0; i < e.cut; i++) {
        uint32_t width = copy.width / 8, height = copy.height / 8;
        uint64_t left = mr_random_below(&r, copy.width - width), top = mr_random_below(&r, copy.height - height);
        for (uint64_t y = top; y < top + height; y++)
            memset(copy.pixels + (y * copy.width + left) * 3, 0, (size_t)width * 3);
    }
    return copy;
}

mr_picture alike_resized(const mr_picture *p, uint32_t width, uint32_t height)
{
    mr_picture to = blank(width, height);
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++)
            for (unsigned c = 0; c < 3; c++) {
                double sum = 0;
                for (int i = 0; i < 16; i++)
                    sum += value(p, (x + (i % 4 + 0.5) / 4) * p->width / width - 0.5,
                                 (y + (i / 4 + 0.5) / 4) * p->height / height - 0.5, c);
                to.pixels[((size_t)y * width + x) * 3 + c] = clamp(sum / 16);
            }
    return to;
}

picture alike_file(const mr_picture *p, enum alike_codec codec)
{
    mr_buf bytes = {0};
    mr_error err;
    mr_status status = MR_OK;
    if (codec == ALIKE_WEBP) {
        uint8_t *webp = NULL;
        size_t len = WebPEncodeRGB(p->pixels, (int)p->width, (int)p->height, (int)p->width * 3, 75, &webp);
        mr_buf_add(&bytes, webp, len);
        WebPFree(webp);
    } else if (codec == ALIKE_PNG) {
        status = mr_picture_png(p, &bytes, &err);
    } else {
        status = mr_picture_jpeg(p, &(mr_jpeg_style){.quality = codec == ALIKE_JPEG ? 85 : 30}, &bytes, &err);
    }
    assert_int_equal(status, MR_OK);
    picture file = picture_copy(bytes.data, bytes.len);
    mr_buf_free(&bytes);
    return file;
}

void alike_write(uint64_t seed, alike_edit edit, enum alike_codec codec, const char *path)
{
    mr_picture photo = alike_photo(seed, 200, 150), copy = alike_copy(&photo, edit);
    picture file = alike_file(&copy, codec);
    support_write(path, file.bytes, file.len);
    picture_free(&file);
    mr_picture_free(&copy);
    mr_picture_free(&photo);
}
