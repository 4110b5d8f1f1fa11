/* test_resize.c - resized pixels: Pillow's, byte for byte, whatever part is kept and however it is delivered. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/training/npz.h"
#include "tests/support/images/resize.h"

static uint8_t *noise(mr_random *r, size_t pixels) /* no byte longer: a sanitizer sees reads after it */
{
    uint8_t *p = malloc(pixels * 3);
    assert_non_null(p);
    mr_random_bytes(r, p, pixels * 3);
    for (size_t i = 0; i < pixels * 3; i++) /* extremes often: sums beyond 0 and 255 are to be clipped */
        p[i] = p[i] < 60 ? 0 : p[i] > 195 ? 255 : p[i];
    return p;
}

static uint8_t *resized(mr_resizer *r, const mr_resize_job *j)
{
    mr_error err;
    size_t len = (size_t)j->crop_width * j->crop_height * 3;
    uint8_t *out = support_guarded(len);
    if (mr_resize_u8(r, j, out, &err) != MR_OK)
        fail_msg("%s", err.text);
    support_check_guard(out, len);
    return out;
}

static mr_resize_job whole(const uint8_t *rgb, uint32_t in_w, uint32_t in_h, uint32_t out_w, uint32_t out_h)
{
    return (mr_resize_job){.rgb = rgb,
                           .in_width = in_w,
                           .in_height = in_h,
                           .out_width = out_w,
                           .out_height = out_h,
                           .crop_width = out_w,
                           .crop_height = out_h};
}

/* The definition in resize.h, word for word, one pass at a time, in 64 bits. */
static double weight(bool bicubic, double x)
{
    x = fabs(x);
    if (!bicubic)
        return x < 1 ? 1 - x : 0;
    if (x < 1)
        return ((-0.5 + 2.0) * x - (-0.5 + 3.0)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * -0.5 : 0;
}

static uint8_t *pass(const uint8_t *in, size_t lines, size_t line, size_t step, uint32_t n, uint32_t out_n,
                     bool bicubic)
{
    double scale = (double)n / out_n, fs = scale > 1 ? scale : 1, support = (bicubic ? 2 : 1) * fs;
    uint8_t *out = malloc(lines * out_n * 3);
    bool across = step == 3;
    assert_non_null(out);
    for (uint32_t o = 0; o < out_n; o++) {
        double centre = (o + 0.5) * scale, sum = 0;
        int64_t low = (int64_t)(centre - support + 0.5), high = (int64_t)(centre + support + 0.5);
        low = low < 0 ? 0 : low;
        high = high > n ? n : high;
        for (int64_t j = low; j < high; j++)
            sum += weight(bicubic, ((double)(j - low) + (double)low - centre + 0.5) * (1 / fs));
        for (size_t l = 0; l < lines; l++) {
            for (size_t c = 0; c < 3; c++) {
                int64_t v = 1 << 21;
                for (int64_t j = low; j < high; j++) {
                    double k = weight(bicubic, ((double)(j - low) + (double)low - centre + 0.5) * (1 / fs)) / sum;
                    v += (int64_t)(k * (1 << 22) + (k < 0 ? -0.5 : 0.5)) * in[l * line + (size_t)j * step + c];
                }
                v >>= 22;
                out[across ? (l * out_n + o) * 3 + c : (o * lines + l) * 3 + c] = (uint8_t)(v < 0     ? 0
                                                                                            : v > 255 ? 255
                                                                                                      : v);
            }
        }
    }
    return out;
}

static uint8_t *by_the_book(const mr_resize_job *j)
{
    uint8_t *a = (uint8_t *)j->rgb, *b;
    if (j->in_width != j->out_width)
        a = pass(j->rgb, j->in_height, (size_t)j->in_width * 3, 3, j->in_width, j->out_width, j->bicubic);
    b = a;
    if (j->in_height != j->out_height)
        b = pass(a, j->out_width, 3, (size_t)j->out_width * 3, j->in_height, j->out_height, j->bicubic);
    uint8_t *kept = malloc((size_t)j->crop_width * j->crop_height * 3);
    assert_non_null(kept);
    for (size_t y = 0; y < j->crop_height; y++) {
        for (size_t x = 0; x < j->crop_width; x++) {
            size_t from = j->crop_left + (j->flip ? j->crop_width - 1 - x : x);
            memcpy(kept + (y * j->crop_width + x) * 3, b + ((j->crop_top + y) * j->out_width + from) * 3, 3);
        }
    }
    if (b != a)
        free(b);
    if (a != j->rgb)
        free(a);
    return kept;
}

static mr_resize_job draw(mr_random *r, uint32_t most)
{
    mr_resize_job j = {0};
    j.in_width = 1 + (uint32_t)mr_random_below(r, most);
    j.in_height = 1 + (uint32_t)mr_random_below(r, most);
    j.out_width = mr_random_below(r, 5) ? 1 + (uint32_t)mr_random_below(r, 40) : j.in_width;
    j.out_height = mr_random_below(r, 5) ? 1 + (uint32_t)mr_random_below(r, 40) : j.in_height;
    j.crop_width = 1 + (uint32_t)mr_random_below(r, j.out_width);
    j.crop_height = 1 + (uint32_t)mr_random_below(r, j.out_height);
    j.crop_left = (uint32_t)mr_random_below(r, j.out_width - j.crop_width + 1);
    j.crop_top = (uint32_t)mr_random_below(r, j.out_height - j.crop_height + 1);
    j.flip = mr_random_below(r, 2);
    j.bicubic = mr_random_below(r, 2);
    return j;
}

static void the_best_set_is_the_first_that_runs(void **state)
{
    support_resizers all = support_resizers_new();
    (void)state;
    assert_true(all.count > 0);
    for (size_t i = 0; i < all.count; i++)
        print_message("inner loops: %s\n", all.set[i]->name);
    assert_ptr_equal(all.set[0], mr_resize_kernels_best());
    assert_ptr_equal(all.set[all.count - 1], &mr_resize_plain);
    support_resizers_free(&all);
}

static void any_job_equals_the_definition(void **state)
{
    mr_random r = support_random();
    support_resizers all = support_resizers_new();
    (void)state;
    for (int i = 0; i < 600; i++) {
        mr_resize_job j = draw(&r, i % 50 ? 70 : 900);
        uint8_t *in = noise(&r, (size_t)j.in_width * j.in_height);
        j.rgb = in;
        uint8_t *want = by_the_book(&j);
        for (size_t k = 0; k < all.count; k++) {
            uint8_t *got = resized(all.of[k], &j);
            if (memcmp(want, got, (size_t)j.crop_width * j.crop_height * 3))
                fail_msg("%u x %u to %u x %u, kept %u x %u at %u, %u, flip %d, bicubic %d: %s differs", j.in_width,
                         j.in_height, j.out_width, j.out_height, j.crop_width, j.crop_height, j.crop_left, j.crop_top,
                         j.flip, j.bicubic, all.set[k]->name);
            free(got);
        }
        free(want);
        free(in);
    }
    support_resizers_free(&all);
}

static uint16_t rounded(float v) /* to 8 significant bits, ties to even */
{
    int e;
    frexp((double)v, &e);
    e = e - 8 < -133 ? -133 : e - 8; /* of the last bit; smallest numbers have fewer */
    float out = (float)ldexp(nearbyint(ldexp((double)v, -e)), e);
    uint32_t bits;
    memcpy(&bits, &out, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static void check_planes(mr_resizer *z, const char *set, const mr_resize_job *j, const float mean[3],
                         const float std[3])
{
    size_t n = (size_t)j->crop_width * j->crop_height;
    uint8_t *want = resized(z, j);
    float *f = support_guarded(n * 3 * sizeof *f);
    uint16_t *b = support_guarded(n * 3 * sizeof *b);
    mr_error err;
    assert_int_equal(mr_resize_f32(z, j, mean, std, f, &err), MR_OK);
    assert_int_equal(mr_resize_bf16(z, j, mean, std, b, &err), MR_OK);
    support_check_guard(f, n * 3 * sizeof *f);
    support_check_guard(b, n * 3 * sizeof *b);
    for (size_t k = 0; k < n * 3; k++) {
        size_t c = k / n;
        volatile float unit = (float)want[k % n * 3 + c] / 255.0f, centred = unit - mean[c], v = centred / std[c];
        if (f[k] != v || b[k] != rounded(v))
            fail_msg("%s: pixel %zu of %zu, channel %zu: %.9g and 0x%04x instead of %.9g", set, k % n, n, c,
                     (double)f[k], b[k], (double)v);
    }
    free(f);
    free(b);
    free(want);
}

static void normalised_planes_hold_the_same_pixels(void **state)
{
    /* the third: numbers so small that multiplying by 1 / std would not give the same; the last: ties */
    static const float means[4][3] = {{0.5f, 0.5f, 0.5f}, {0.48145466f, 0.4578275f, 0.40821073f}, {0, 0, 0}, {0, 0, 0}};
    static const float stds[4][3] = {{0.5f, 0.5f, 0.5f},
                                     {0.26862954f, 0.26130258f, 0.27577711f},
                                     {3e38f, 2.9e38f, 1},
                                     {1 / 382.5f, 1 / 637.5f, 1 / 892.5f}};
    mr_random r = support_random();
    support_resizers all = support_resizers_new();
    (void)state;
    for (int i = 0; i < 240; i++) {
        mr_resize_job j = draw(&r, 60);
        if (i % 8 == 0) /* all 256 values in each channel, untouched */
            j = whole(NULL, 256, 3, 256, 3);
        uint8_t *in = noise(&r, (size_t)j.in_width * j.in_height);
        for (size_t k = 0; i % 8 == 0 && k < 256 * 3 * 3; k++)
            in[k] = (uint8_t)(k / 3);
        j.rgb = in;
        for (size_t k = 0; k < all.count; k++)
            check_planes(all.of[k], all.set[k]->name, &j, means[i / 8 % 4], stds[i / 8 % 4]);
        free(in);
    }
    support_resizers_free(&all);
}

static void extreme_shapes(void **state)
{
    static const uint32_t sides[][4] = {{65500, 1, 1, 1},   {1, 65500, 3, 7}, {1, 1, 500, 400},
                                        {4000, 3, 3, 4000}, {2, 2, 1, 1},     {9000, 2, 224, 2}};
    mr_random r = support_random();
    support_resizers all = support_resizers_new();
    (void)state;
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        uint8_t *in = noise(&r, (size_t)sides[i][0] * sides[i][1]);
        mr_resize_job j = whole(in, sides[i][0], sides[i][1], sides[i][2], sides[i][3]);
        for (int bicubic = 0; bicubic < 2; bicubic++) {
            j.bicubic = bicubic;
            uint8_t *want = by_the_book(&j);
            for (size_t k = 0; k < all.count; k++) {
                uint8_t *got = resized(all.of[k], &j);
                assert_memory_equal(want, got, (size_t)sides[i][2] * sides[i][3] * 3);
                free(got);
            }
            free(want);
        }
        free(in);
    }
    support_resizers_free(&all);
}

static void refuses_what_does_not_fit(void **state)
{
    static const float half[3] = {0.5f, 0.5f, 0.5f}, none[3] = {0.5f, 0, 0.5f}, nan[3] = {0.5f, NAN, 0.5f};
    uint8_t in[12] = {0}, out[64];
    float f[64];
    mr_error err;
    mr_resizer *z = mr_resizer_new();
    mr_resize_job good = whole(in, 2, 2, 3, 3), j;
    (void)state;
    assert_int_equal(mr_resize_u8(z, &good, out, &err), MR_OK);
    for (int i = 0; i < 8; i++) {
        j = good;
        uint32_t *fields[] = {&j.in_width,   &j.in_height,   &j.out_width, &j.out_height,
                              &j.crop_width, &j.crop_height, &j.crop_left, &j.crop_top};
        *fields[i] = i < 6 ? 0 : 1;
        assert_int_equal(mr_resize_u8(z, &j, out, &err), MR_MISUSE);
        *fields[i] = UINT32_MAX;
        assert_int_equal(mr_resize_u8(z, &j, out, &err), MR_MISUSE);
    }
    assert_int_equal(mr_resize_f32(z, &good, half, half, f, &err), MR_OK);
    assert_int_equal(mr_resize_f32(z, &good, half, none, f, &err), MR_MISUSE);
    assert_int_equal(mr_resize_f32(z, &good, nan, half, f, &err), MR_MISUSE);
    mr_resizer_free(z);
}

/* NAME is PIL's result for in_I, the size in its shape; box NULL: of all of it. */
static void check_fixture(mr_resizer *z, const support_npz *npz, int i, const char *name, const uint32_t *box)
{
    uint64_t from[MR_NPZ_DIMS], to[MR_NPZ_DIMS];
    char in_name[16];
    snprintf(in_name, sizeof in_name, "in_%d", i);
    const uint8_t *in = support_npz_get(npz, in_name, MR_NPZ_U8, from);
    const uint8_t *want = support_npz_get(npz, name, MR_NPZ_U8, to);
    uint32_t left = box ? box[0] : 0, top = box ? box[1] : 0, w = box ? box[2] : (uint32_t)from[1];
    uint32_t h = box ? box[3] : (uint32_t)from[0];
    uint8_t *cut = malloc((size_t)w * h * 3);
    assert_non_null(cut);
    for (size_t y = 0; y < h; y++)
        memcpy(cut + y * w * 3, in + ((top + y) * from[1] + left) * 3, (size_t)w * 3);
    mr_resize_job j = whole(cut, w, h, (uint32_t)to[1], (uint32_t)to[0]);
    j.bicubic = !strncmp(name, "bicubic", 7);
    uint8_t *got = resized(z, &j);
    if (memcmp(got, want, to[0] * to[1] * 3))
        fail_msg("%s differs from Pillow's", name);
    free(got);
    free(cut);
}

static void equals_pillows_fixtures(void **state)
{
    static const char *const sizes[3][4] = {{"20x20", "64x48", "37x31", "160x160"},
                                            {"20x20", "64x48", "64x31", "50x96"},
                                            {"20x20", "64x48", "200x31", "50x96"}};
    static const uint32_t boxes[3][4] = {{3, 5, 26, 12}, {3, 5, 32, 21}, {3, 5, 45, 66}};
    char *path = support_parity("images/resize.npz");
    (void)state;
    if (!path) {
        print_message("skipped: no parity fixtures (MILLRACE_PARITY)\n");
        skip();
    }
    support_npz *npz = support_npz_open(path);
    support_resizers all = support_resizers_new();
    for (size_t k = 0; k < all.count; k++) {
        for (int i = 0; i < 3; i++) {
            char name[64];
            for (int s = 0; s < 4; s++) {
                snprintf(name, sizeof name, "bilinear_%d_%s", i, sizes[i][s]);
                check_fixture(all.of[k], npz, i, name, NULL);
                snprintf(name, sizeof name, "bicubic_%d_%s", i, sizes[i][s]);
                check_fixture(all.of[k], npz, i, name, NULL);
            }
            snprintf(name, sizeof name, "crop_bilinear_%d_32x32", i);
            check_fixture(all.of[k], npz, i, name, boxes[i]);
        }
    }
    support_resizers_free(&all);
    support_npz_close(npz);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_set_is_the_first_that_runs),
        cmocka_unit_test(any_job_equals_the_definition),
        cmocka_unit_test(normalised_planes_hold_the_same_pixels),
        cmocka_unit_test(extreme_shapes),
        cmocka_unit_test(refuses_what_does_not_fit),
        cmocka_unit_test(equals_pillows_fixtures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
