/* test_float.c - pictures resized without rounding, as tensors are.
 * Invariant tested: the values are those of the definition in double precision, and torch's, to float32's accuracy. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <archive.h>
#include <archive_entry.h>
#include <jansson.h>

#include "tests/support/shards/dataset_maker.h"
#include "image/resize/resize.h"
#include "tests/support/shards/loader.h"
#include "tests/support/training/npz.h"

static const float no_mean[3] = {0, 0, 0}, unit_std[3] = {1, 1, 1};

static uint8_t *noise(mr_random *r, size_t pixels)
{
    uint8_t *p = malloc(pixels * 3);
    assert_non_null(p);
    mr_random_bytes(r, p, pixels * 3);
    for (size_t i = 0; i < pixels * 3; i++) /* extremes often: bicubic values leave 0 and 1 */
        p[i] = p[i] < 60 ? 0 : p[i] > 195 ? 255 : p[i];
    return p;
}

static float *resized(mr_resizer *z, const mr_resize_job *j, const float mean[3], const float std[3])
{
    mr_error err;
    float *out = malloc((size_t)j->crop_width * j->crop_height * 3 * sizeof *out);
    assert_non_null(out);
    if (mr_resize_f32(z, j, mean, std, out, &err) != MR_OK)
        fail_msg("%s", err.text);
    return out;
}

/* ---- the definition ---------------------------------------------------------------------------------------------- */

static double weight(bool bicubic, double x)
{
    x = fabs(x);
    if (!bicubic)
        return x < 1 ? 1 - x : 0;
    if (x < 1)
        return (1.5 * x - 2.5) * x * x + 1;
    return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

/* One output of `n` inputs `step` doubles apart. */
static double resample(const double *in, size_t step, uint32_t n, uint32_t out_n, uint32_t o, bool bicubic)
{
    double scale = (double)n / out_n, fs = scale > 1 ? scale : 1, centre = (o + 0.5) * scale, sum = 0, all = 0;
    if (n == out_n)
        return in[o * step];
    for (uint32_t i = 0; i < n; i++) {
        double k = weight(bicubic, (i + 0.5 - centre) / fs);
        all += k;
        sum += k * in[i * step];
    }
    return sum / all;
}

/* Plane c of a job; heap. */
static double *by_the_book(const mr_resize_job *j, size_t c)
{
    double *in = calloc((size_t)j->in_width * j->in_height, sizeof *in);
    double *rows = malloc((size_t)j->crop_width * j->in_height * sizeof *rows);
    double *out = malloc((size_t)j->crop_width * j->crop_height * sizeof *out);
    assert_true(in && rows && out);
    for (size_t i = 0; i < (size_t)j->in_width * j->in_height; i++)
        in[i] = j->rgb[i * 3 + c] / 255.0;
    for (uint32_t x = 0; x < j->crop_width; x++) {
        uint32_t o = j->crop_left + (j->flip ? j->crop_width - 1 - x : x);
        for (uint32_t y = 0; y < j->in_height; y++)
            rows[(size_t)y * j->crop_width + x] =
                resample(in + (size_t)y * j->in_width, 1, j->in_width, j->out_width, o, j->bicubic);
        for (uint32_t y = 0; y < j->crop_height; y++)
            out[(size_t)y * j->crop_width + x] =
                resample(rows + x, j->crop_width, j->in_height, j->out_height, j->crop_top + y, j->bicubic);
    }
    free(in);
    free(rows);
    return out;
}

static mr_resize_job random_job(mr_random *r, const uint8_t *rgb, uint32_t in_w, uint32_t in_h)
{
    mr_resize_job j = {.rgb = rgb, .in_width = in_w, .in_height = in_h, .unrounded = true};
    j.out_width = mr_random_below(r, 6) ? 1 + (uint32_t)mr_random_below(r, 70) : in_w;
    j.out_height = mr_random_below(r, 6) ? 1 + (uint32_t)mr_random_below(r, 70) : in_h;
    j.crop_left = (uint32_t)mr_random_below(r, j.out_width);
    j.crop_top = (uint32_t)mr_random_below(r, j.out_height);
    j.crop_width = 1 + (uint32_t)mr_random_below(r, j.out_width - j.crop_left);
    j.crop_height = 1 + (uint32_t)mr_random_below(r, j.out_height - j.crop_top);
    j.flip = mr_random_below(r, 2);
    j.bicubic = mr_random_below(r, 2);
    return j;
}

static void any_job_equals_the_definition(void **state)
{
    (void)state;
    mr_random r = support_random();
    mr_resizer *z = mr_resizer_new();
    double worst = 0, low = 0, high = 1;
    for (int i = 0; i < 150; i++) {
        uint32_t w = 1 + (uint32_t)mr_random_below(&r, i % 10 ? 60 : 700), h = 1 + (uint32_t)mr_random_below(&r, 60);
        uint8_t *rgb = noise(&r, (size_t)w * h);
        mr_resize_job j = random_job(&r, rgb, w, h);
        float *got = resized(z, &j, no_mean, unit_std);
        size_t plane = (size_t)j.crop_width * j.crop_height;
        for (size_t c = 0; c < 3; c++) {
            double *want = by_the_book(&j, c);
            for (size_t k = 0; k < plane; k++) {
                worst = fmax(worst, fabs((double)got[c * plane + k] - want[k]));
                low = fmin(low, want[k]);
                high = fmax(high, want[k]);
            }
            free(want);
        }
        free(got);
        free(rgb);
    }
    mr_resizer_free(z);
    assert_true(low < -0.05 && high > 1.05); /* neither end was clamped */
    if (!(worst < 2e-6))
        fail_msg("off by %g", worst);
}

/* Bit for bit: a part is a part of the whole, a mirrored one is mirrored, and normalising is three operations. */
static void parts_and_deliveries_agree(void **state)
{
    (void)state;
    static const float mean[3] = {0.48145466f, 0.4578275f, 0.40821073f};
    static const float std[3] = {0.26862954f, 0.26130258f, 0.27577711f};
    mr_random r = support_random();
    mr_resizer *z = mr_resizer_new();
    for (int i = 0; i < 60; i++) {
        uint32_t w = 1 + (uint32_t)mr_random_below(&r, 90), h = 1 + (uint32_t)mr_random_below(&r, 90);
        uint8_t *rgb = noise(&r, (size_t)w * h);
        mr_resize_job part = random_job(&r, rgb, w, h), all = part;
        all.crop_left = all.crop_top = 0;
        all.crop_width = all.out_width;
        all.crop_height = all.out_height;
        all.flip = false;
        float *a = resized(z, &all, no_mean, unit_std), *b = resized(z, &part, mean, std);
        size_t plane = (size_t)part.crop_width * part.crop_height, whole = (size_t)all.out_width * all.out_height;
        uint16_t *half = malloc(plane * 3 * sizeof *half);
        assert_int_equal(mr_resize_bf16(z, &part, mean, std, half, NULL), MR_OK);
        for (size_t k = 0; k < plane * 3; k++) {
            uint32_t x = (uint32_t)(k % part.crop_width), y = (uint32_t)(k % plane / part.crop_width), bits;
            x = part.crop_left + (part.flip ? part.crop_width - 1 - x : x);
            size_t c = k / plane;
            float want = (a[c * whole + (size_t)(part.crop_top + y) * all.out_width + x] - mean[c]) / std[c];
            assert_memory_equal(&b[k], &want, sizeof want);
            memcpy(&bits, &want, sizeof bits);
            assert_int_equal(half[k], (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
        }
        free(half);
        free(a);
        free(b);
        free(rgb);
    }
    mr_resizer_free(z);
}

static void refusals(void **state)
{
    (void)state;
    uint8_t rgb[12] = {0}, out[12];
    mr_error err;
    mr_resizer *z = mr_resizer_new();
    mr_resize_job j = {.rgb = rgb,
                       .in_width = 2,
                       .in_height = 2,
                       .out_width = 2,
                       .out_height = 2,
                       .crop_width = 2,
                       .crop_height = 2,
                       .unrounded = true};
    assert_int_equal(mr_resize_u8(z, &j, out, &err), MR_MISUSE);
    float f[12];
    j.crop_left = 1;
    assert_int_equal(mr_resize_f32(z, &j, no_mean, unit_std, f, &err), MR_MISUSE);
    j.crop_left = 0;
    assert_int_equal(mr_resize_f32(z, &j, no_mean, no_mean, f, &err), MR_MISUSE);
    _Atomic bool stop = true;
    mr_resizer_stop(z, &stop);
    assert_int_equal(mr_resize_f32(z, &j, no_mean, unit_std, f, &err), MR_END);
    mr_resizer_free(z);
}

/* ---- through the loader ------------------------------------------------------------------------------------------ */

static void every_kind_by_any_thread(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    make_pictures(dir, 24, 9, NULL);
    mr_dataset *ds = open_dataset_at(dir);
    for (int kind = MR_TRANSFORM_TRAIN; kind <= MR_TRANSFORM_CENTER; kind++)
        for (int bicubic = 0; bicubic < 2; bicubic++) {
            mr_loader_options o = usual_options(MR_DELIVER_F32_NCHW, MR_TAIL_PAD);
            o.transform.kind = (mr_transform_kind)kind;
            o.transform.bicubic = bicubic;
            seen_list rounded = run_ranks(ds, o, 1, 0, 0);
            o.transform.unrounded = 1;
            seen_list one = run_ranks(ds, o, 1, 0, 0), many = run_ranks(ds, o, 2, 3, 0);
            size_t equal = 0;
            assert_int_equal(one.status, MR_END);
            assert_same_seen(&one, 0, &many);
            for (size_t i = 0; i < one.count; i++) {
                assert_int_equal(one.items[i].sample, rounded.items[i].sample);
                assert_int_equal(one.items[i].facts, rounded.items[i].facts);
                equal += one.items[i].bytes == rounded.items[i].bytes;
            }
            assert_true(equal < one.count / 4); /* where no size changes there is nothing to round */
            seen_free(&rounded);
            seen_free(&one);
            seen_free(&many);
        }
    mr_loader_options o = usual_options(MR_DELIVER_U8_NHWC, MR_TAIL_DROP);
    o.transform.unrounded = 1;
    expect_no_loader(ds, &o, MR_MISUSE, "unrounded");
    o.deliver = MR_DELIVER_ENCODED;
    mr_loader_free(open_loader(ds, &o));
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

/* Unrounded values are within what rounding twice can do of the rounded ones. */
static void near_the_rounded(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    make_pictures(dir, 16, 16, NULL);
    mr_dataset *ds = open_dataset_at(dir);
    mr_loader_options o = usual_options(MR_DELIVER_F32_NCHW, MR_TAIL_DROP);
    mr_loader *a = open_loader(ds, &o);
    o.transform.unrounded = 1;
    mr_loader *b = open_loader(ds, &o);
    const mr_batch *x, *y;
    assert_int_equal(mr_loader_next(a, &x, NULL), MR_OK);
    assert_int_equal(mr_loader_next(b, &y, NULL), MR_OK);
    assert_true(x->data_bytes == y->data_bytes);
    for (size_t i = 0; i < x->data_bytes / sizeof(float); i++)
        assert_true(fabsf(((const float *)x->data)[i] - ((const float *)y->data)[i]) < 2.1f * 2 / 255);
    mr_loader_free(a);
    mr_loader_free(b);
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

/* ---- torch ------------------------------------------------------------------------------------------------------- */

static void equals_torchs_resize(void **state)
{
    (void)state;
    char *path = support_parity("images/resize.npz");
    if (!path) {
        print_message("skipped: no parity fixtures (MILLRACE_PARITY)\n");
        skip();
    }
    support_npz *npz = support_npz_open(path);
    mr_resizer *z = mr_resizer_new();
    for (int i = 0; i < 3; i++) {
        char name[64];
        uint64_t in[MR_NPZ_DIMS], out[MR_NPZ_DIMS];
        snprintf(name, sizeof name, "in_%d", i);
        const uint8_t *rgb = support_npz_get(npz, name, MR_NPZ_U8, in);
        snprintf(name, sizeof name, "float_bicubic_antialias_%d_40x40", i);
        const float *want = support_npz_get(npz, name, MR_NPZ_F32, out);
        mr_resize_job j = {.rgb = rgb,
                           .in_width = (uint32_t)in[1],
                           .in_height = (uint32_t)in[0],
                           .out_width = 40,
                           .out_height = 40,
                           .crop_width = 40,
                           .crop_height = 40,
                           .bicubic = true,
                           .unrounded = true};
        float *got = resized(z, &j, no_mean, unit_std);
        double worst = 0;
        assert_true(out[0] == 3 && out[1] == 40 && out[2] == 40);
        for (size_t k = 0; k < 4800; k++)
            worst = fmax(worst, fabs((double)got[k] - (double)want[k]));
        print_message("picture %d: off by %.2g\n", i, worst);
        assert_true(worst < 1e-5);
        free(got);
    }
    mr_resizer_free(z);
    support_npz_close(npz);
    free(path);
}

static mr_dataset *dataset_of(const char *dir, const char *const *files, size_t count)
{
    made samples[3] = {{0}};
    assert_true(count <= MR_COUNT(samples));
    for (size_t i = 0; i < count; i++) {
        samples[i].source = files[i];
        samples[i].image.bytes = support_read(files[i], &samples[i].image.len);
    }
    made_split split = {.name = "train", .samples = samples, .count = count, .per_shard = count};
    dataset_make(dir, &split, 1);
    for (size_t i = 0; i < count; i++)
        picture_free(&samples[i].image);
    return open_dataset_at(dir);
}

/* An array of float32, by libarchive: the file has others of types that npz.h does not know. */
static float *array_of(const char *npz, const char *name, size_t count)
{
    struct archive *a = archive_read_new();
    struct archive_entry *e;
    float *values = NULL;
    archive_read_support_format_zip(a);
    assert_int_equal(archive_read_open_filename(a, npz, 1 << 16), ARCHIVE_OK);
    while (!values && archive_read_next_header(a, &e) == ARCHIVE_OK) {
        if (strcmp(archive_entry_pathname(e), name) != 0)
            continue;
        size_t len = 4096 + count * sizeof *values, head;
        uint8_t *npy = calloc(len, 1);
        la_ssize_t got = archive_read_data(a, npy, len);
        head = 10 + (size_t)npy[8] + 256 * (size_t)npy[9];
        assert_true(memcmp(npy, "\x93NUMPY\1", 7) == 0 && got == (la_ssize_t)(head + count * sizeof *values));
        assert_non_null(strstr((char *)npy + 10, "'<f4'"));
        assert_non_null(values = malloc(count * sizeof *values));
        memcpy(values, npy + head, count * sizeof *values);
        free(npy);
    }
    assert_non_null(values);
    archive_read_free(a);
    return values;
}

/* What the reference script of BridgeTower gives the model, every seventh pixel of it. */
static void equals_the_script(void **state)
{
    (void)state;
    static const char *const names[] = {"script_0.npy", "script_3.npy", "script_5.npy"};
    static const size_t numbers[] = {0, 3, 5};
    char *dir = support_parity("images");
    if (!dir) {
        print_message("skipped: no parity fixtures (MILLRACE_PARITY)\n");
        skip();
    }
    char *index = support_path("%s/images.json", dir), *arrays = support_path("%s/bridgetower.npz", dir), *files[3];
    size_t len;
    uint8_t *text = support_read(index, &len);
    json_t *doc = json_loadb((const char *)text, len, 0, NULL);
    for (size_t i = 0; i < 3; i++)
        files[i] = support_path(
            "%s/jpeg/%s", dir,
            json_string_value(json_object_get(json_array_get(json_object_get(doc, "images"), numbers[i]), "file")));
    char *tmp = support_tmpdir();
    mr_dataset *ds = dataset_of(tmp, (const char *const *)files, 3);
    mr_loader_options o = {.split = "train",
                           .global_batch = 3,
                           .deliver = MR_DELIVER_F32_NCHW,
                           .shuffle = MR_SHUFFLE_NONE,
                           .transform = {.kind = MR_TRANSFORM_CENTER,
                                         .size = 294,
                                         .resize = 294,
                                         .bicubic = 1,
                                         .unrounded = 1,
                                         .mean = {0.48145466f, 0.4578275f, 0.40821073f},
                                         .std = {0.26862954f, 0.26130258f, 0.27577711f}}};
    mr_loader *l = open_loader(ds, &o);
    const mr_batch *b;
    assert_int_equal(mr_loader_next(l, &b, NULL), MR_OK);
    for (size_t i = 0; i < 3; i++) {
        float *want = array_of(arrays, names[i], 3 * 42 * 42);
        const float *got = b->data;
        double worst = 0;
        for (size_t k = 0; k < 3 * 42 * 42; k++) {
            size_t c = k / (42 * 42), y = 2 + 7 * (k / 42 % 42), x = 2 + 7 * (k % 42);
            worst = fmax(worst, fabs((double)got[((i * 3 + c) * 294 + y) * 294 + x] - (double)want[k]));
        }
        print_message("%s: off by %.2g\n", names[i], worst);
        assert_true(worst < 1e-4);
        free(want);
        free(files[i]);
    }
    mr_loader_free(l);
    mr_dataset_free(ds);
    support_tmpdir_remove(tmp);
    json_decref(doc);
    free(text);
    free(index);
    free(arrays);
    free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_job_equals_the_definition),
        cmocka_unit_test(parts_and_deliveries_agree),
        cmocka_unit_test(refusals),
        cmocka_unit_test(every_kind_by_any_thread),
        cmocka_unit_test(near_the_rounded),
        cmocka_unit_test(equals_torchs_resize),
        cmocka_unit_test(equals_the_script),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
