/* seeds_pictures.c - the first inputs of the targets that read pictures: OUT/image, OUT/pixels, OUT/jpeg,
 * OUT/jpeg_device, OUT/jpeg_entries. */
#include "image/jpeg/seek.h"
#include "tests/fuzz/seeds.h"
#include "tests/support/images/jpeg.h"
#include "tests/support/images/pixels.h"

/* To be examined, and to be shown. */
static void seed_picture(const char *name, picture p)
{
    seed("image", name, p.bytes, p.len);
    seed("pixels", name, p.bytes, p.len);
    picture_free(&p);
}

static void seed_pngs(void)
{
    static const uint8_t kinds[][2] = {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {2, 8}, {2, 16}, {3, 1},
                                       {3, 2}, {3, 4}, {3, 8}, {4, 8}, {4, 16}, {6, 8}, {6, 16}};
    for (size_t i = 0; i < 2 * MR_COUNT(kinds); i++) {
        const uint8_t *k = kinds[i / 2];
        char name[32];
        snprintf(name, sizeof name, "%u-%u%s.png", k[0], k[1], i % 2 ? "-interlaced" : "");
        seed_picture(name, make_png(5, 4, k[0], k[1], i % 2));
    }
}

static void seed_images(void)
{
    picture exif = make_exif(false, 3, 1, 6), exif_be = make_exif(true, 3, 1, 8);
    seed("image", "exif-le", exif.bytes, exif.len);
    seed("image", "exif-be", exif_be.bytes, exif_be.len);
    seed_picture("gray.jpg", make_jpeg((jpeg_kind){.width = 9, .height = 7, .components = 1}));
    seed_picture("exif.jpg", make_jpeg((jpeg_kind){.width = 16, .height = 16, .components = 3, .exif = &exif_be}));
    seed_picture("progressive.jpg",
                 make_jpeg((jpeg_kind){.width = 24, .height = 8, .components = 3, .progressive = true, .restart = 1}));
    seed_picture("arithmetic.jpg",
                 make_jpeg((jpeg_kind){.width = 8, .height = 8, .components = 4, .arithmetic = true}));
    seed_pngs();
    seed_picture("lossy.webp", make_webp(9, 7, false, false));
    seed_picture("lossy-alpha.webp", make_webp(9, 7, false, true));
    seed_picture("lossless.webp", make_webp(9, 7, true, true));
    seed_picture("still.webp", make_webp_extended(9, 7, 0, &exif_be));
    seed_picture("animated.webp", make_webp_extended(9, 7, 2, &exif));
    picture_free(&exif);
    picture_free(&exif_be);
}

/* A picture and, after its end, where it can be entered. */
static void seed_with_entries(const char *name, picture p, unsigned every)
{
    mr_buf all = {0};
    mr_jpeg_decoder *d = mr_jpeg_decoder_new();
    mr_buf_add(&all, p.bytes, p.len);
    if (d)
        mr_jpeg_seek_make(d, p.bytes, p.len, every, &all);
    seed("jpeg", name, p.bytes, p.len);
    seed("jpeg_device", name, p.bytes, p.len);
    seed("jpeg_entries", name, all.data, all.len);
    mr_jpeg_decoder_free(d);
    mr_buf_free(&all);
}

/* What millrace's own JPEG decoder takes, and a progressive file, which it leaves. */
static void seed_jpegs(void)
{
    static const uint8_t factors[][2] = {{1, 1}, {2, 1}, {2, 2}, {1, 2}};
    mr_random r;
    mr_random_seed(&r, 1);
    for (unsigned i = 0; i < 20; i++) {
        const uint8_t *f = factors[i / 2 % 4];
        jpeg_coded coded = {.width = 9 + i,
                            .height = 25 - i,
                            .components = i < 16 ? 3 : 1,
                            .h = f[0],
                            .v = f[1],
                            .restart = i & 1 ? 2 : 0,
                            .ladder = 1 + i % 8,
                            .dc_bits = 6 + i % 9,
                            .ac_bits = 1 + i % 9,
                            .density = i * 5,
                            .quant = i % 3 ? 9 : 300};
        jpeg_make encoded = {.width = 20 - i,
                             .height = 9 + i,
                             .components = coded.components,
                             .h = {f[0], 1, 1},
                             .v = {f[1], 1, 1},
                             .restart = coded.restart,
                             .progressive = i == 19,
                             .optimized = true};
        if (i >= 16)
            coded.h = coded.v = 1;
        picture pictures[2] = {jpeg_coded_make(&r, &coded), pixels_jpeg_make(&r, &encoded)};
        for (unsigned k = 0; k < 2; k++) {
            char name[32];
            snprintf(name, sizeof name, "%s-%u.jpg", k ? "encoded" : "coded", i);
            seed_with_entries(name, pictures[k], i % 3);
            picture_free(&pictures[k]);
        }
    }
}

void seed_pictures(void)
{
    seed_images();
    seed_jpegs();
}
