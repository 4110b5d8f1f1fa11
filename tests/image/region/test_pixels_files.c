/* test_pixels_files.c - real photographs: regions, and the parity fixtures made by Pillow and torchvision. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json/json.h"
#include "image/resize/resize.h"
#include "tests/support/training/npz.h"
#include "tests/support/images/pixels.h"

static void regions_of_real_files(void **state)
{
    static const char *const folders[] = {"images", "coco"};
    mr_random rnd = support_random();
    mr_pixels_scratch *s = mr_pixels_scratch_new();
    size_t files = 0;
    (void)state;
    for (size_t i = 0; i < MR_COUNT(folders); i++) {
        char *dir = support_data(folders[i]);
        if (!dir)
            continue;
        char *list = support_list(dir), *next = list, *name;
        while ((name = strsep(&next, "\n")) && *name && files < 400) {
            size_t len;
            char *path = support_path("%s/%s", dir, name);
            uint8_t *bytes = support_size(path) < 1 << 20 ? support_read(path, &len) : NULL;
            mr_image_facts f;
            mr_error err;
            if (bytes && mr_image_examine(bytes, len, NULL, &f, &err) == MR_OK && f.codec == MR_CODEC_JPEG &&
                f.components != 4 && (uint64_t)f.width * f.height < 700000 &&
                mr_image_decode(bytes, len, NULL, &err) == MR_OK) {
                unsigned channels;
                picture p = {bytes, len};
                uint8_t *want = pixels_jpeg_whole(p, &channels);
                pixels_check_regions(&rnd, s, p, want, 4, name);
                free(want);
                files++;
            }
            free(bytes);
            free(path);
        }
        free(list);
        free(dir);
    }
    mr_pixels_scratch_free(s);
    if (!files)
        skip();
    print_message("%zu files\n", files);
}

static void expect_sha256(const json_t *image, const char *key, const uint8_t *bytes, size_t len)
{
    uint8_t sum[32];
    char hex[65];
    mr_sha256(bytes, len, sum);
    mr_hex(sum, 32, hex);
    const char *want = json_string_value(json_object_get(image, key));
    if (!want || strcmp(hex, want))
        fail_msg("%s: %s differs", json_string_value(json_object_get(image, "file")), key);
}

static void expect_array(const support_npz *npz, const char *kind, size_t i, int box, const uint8_t *got)
{
    char name[64];
    uint64_t shape[MR_NPZ_DIMS];
    snprintf(name, sizeof name, box < 0 ? "%s_%zu" : "%s_%zu_%d", kind, i, box);
    const uint8_t *want = support_npz_get(npz, name, MR_NPZ_U8, shape);
    if (memcmp(want, got, shape[0] * shape[1] * shape[2]))
        fail_msg("%s differs", name);
}

static uint32_t half_even(uint32_t n) /* round(n / 2.0) */
{
    return n / 2 + (n % 4 == 3);
}

static void check_parity_image(size_t i, const json_t *image, const support_npz *eval, const support_npz *rrc,
                               picture p, mr_pixels_scratch *s, mr_resizer *z)
{
    mr_image_facts f = pixels_facts(p);
    mr_error err;
    uint8_t *out = pixels_take(224 * 224 * 3);
    const uint8_t *rgb = pixels_decoded(s, p, &f, (mr_region){0, 0, f.width, f.height});
    expect_sha256(image, "decoded_rgb_sha256", rgb, (size_t)f.width * f.height * 3);
    mr_resize_job sq = {.rgb = rgb,
                        .in_width = f.width,
                        .in_height = f.height,
                        .out_width = 224,
                        .out_height = 224,
                        .crop_width = 224,
                        .crop_height = 224},
                  j = sq;
    assert_int_equal(mr_resize_u8(z, &sq, out, &err), MR_OK);
    expect_sha256(image, "eval_sq224_sha256", out, 224 * 224 * 3);
    sq.out_width = sq.out_height = sq.crop_width = sq.crop_height = 160;
    assert_int_equal(mr_resize_u8(z, &sq, out, &err), MR_OK);
    expect_array(eval, "eval_sq160", i, -1, out);
    j.out_width = f.width < f.height ? 256 : (uint32_t)((uint64_t)256 * f.width / f.height);
    j.out_height = f.width < f.height ? (uint32_t)((uint64_t)256 * f.height / f.width) : 256;
    j.crop_left = half_even(j.out_width - 224);
    j.crop_top = half_even(j.out_height - 224);
    assert_int_equal(mr_resize_u8(z, &j, out, &err), MR_OK);
    expect_array(eval, "eval_r256c224", i, -1, out);
    for (int b = 0; b < 2; b++) {
        uint32_t at[4];
        char key[32];
        for (size_t k = 0; k < 4; k++)
            at[k] = (uint32_t)json_integer_value(
                json_array_get(json_array_get(json_object_get(image, "rrc_boxes_top_left_h_w"), (size_t)b), k));
        sq.rgb = pixels_decoded(s, p, &f, (mr_region){at[1], at[0], at[3], at[2]});
        sq.in_width = at[3];
        sq.in_height = at[2];
        assert_int_equal(mr_resize_u8(z, &sq, out, &err), MR_OK);
        snprintf(key, sizeof key, "rrc160_%d_sha256", b);
        expect_sha256(image, key, out, 160 * 160 * 3);
        if (i < 4)
            expect_array(rrc, "rrc160", i, b, out);
    }
    rgb = pixels_decoded(s, p, &f, (mr_region){0, 0, 48, 48});
    expect_array(eval, "decoded", i, -1, rgb);
    free(out);
}

static void equals_the_parity_fixtures(void **state)
{
    char *dir = support_parity("images");
    mr_error err;
    (void)state;
    if (!dir) {
        print_message("skipped: no parity fixtures (MILLRACE_PARITY)\n");
        skip();
    }
    char *index = support_path("%s/images.json", dir), *eval_path = support_path("%s/eval.npz", dir);
    char *rrc_path = support_path("%s/rrc.npz", dir);
    size_t len;
    uint8_t *text = support_read(index, &len);
    json_t *doc;
    assert_int_equal(mr_json_parse(text, len, "images.json", &doc, &err), MR_OK);
    support_npz *eval = support_npz_open(eval_path), *rrc = support_npz_open(rrc_path);
    mr_pixels_scratch *s = mr_pixels_scratch_new();
    mr_resizer *z = mr_resizer_new();
    json_t *images = json_object_get(doc, "images");
    assert_int_equal(json_array_size(images), 8);
    for (size_t i = 0; i < json_array_size(images); i++) {
        const json_t *image = json_array_get(images, i);
        char *path = support_path("%s/jpeg/%s", dir, json_string_value(json_object_get(image, "file")));
        picture p;
        p.bytes = support_read(path, &p.len);
        check_parity_image(i, image, eval, rrc, p, s, z);
        picture_free(&p);
        free(path);
    }
    mr_pixels_scratch_free(s);
    mr_resizer_free(z);
    support_npz_close(eval);
    support_npz_close(rrc);
    json_decref(doc);
    free(text);
    free(index);
    free(eval_path);
    free(rrc_path);
    free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_of_real_files),
        cmocka_unit_test(equals_the_parity_fixtures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
