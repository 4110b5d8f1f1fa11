/* test_profile.c - a measured device gives the same results, and counts its operations.
 * Covers profile/limits.c. */
#include <stdlib.h>
#include <string.h>

#include "device/profile/limits.h"
#include "device/profile/profile.h"
#include "tests/support/training/model.h"

enum { BATCH = 3, IMAGE = 8 };

static const mr_model_config config = {.iface = &mr_model_vit,
                                       .name = "vit",
                                       .image = IMAGE,
                                       .patch = 4,
                                       .hidden = 16,
                                       .layers = 2,
                                       .heads = 2,
                                       .mlp = 24,
                                       .classes = 5,
                                       .dropout = 0.1};

/* The gradients of one pass, on the heap; with `profile` set it is counted. */
static float *gradients(mr_device *d, mr_profile *profile, uint64_t *total)
{
    float images[BATCH * 3 * IMAGE * IMAGE];
    const int32_t labels[BATCH] = {1, 4, 0};
    const uint64_t keys[BATCH] = {7, 8, 9};
    mr_params p = {0};
    mr_model *m = NULL;
    mr_model_output out;
    mr_error err;
    assert_int_equal(config.iface->params(&config, &p, &err), MR_OK);
    assert_int_equal(config.iface->open(&config, &p, d, BATCH, true, &m, &err), MR_OK);
    float *values = calloc(p.total, sizeof *values), *g = calloc(p.total, sizeof *g);
    assert_true(values && g);
    config.iface->start(&config, &p, 3, values);
    for (uint64_t i = mr_params_find(&p, "head/kernel")->offset; i < p.total; i++)
        values[i] = 0.01F * (float)(i % 13);
    for (size_t i = 0; i < MR_COUNT(images); i++)
        images[i] = (float)(i % 11) / 11;
    const mr_model_input in = {.count = BATCH, .training = true, .images = images, .labels = labels, .keys = keys};
    if (profile)
        mr_profile_count(profile, true);
    config.iface->forward(m, values, &in, &out);
    config.iface->backward(m, values, g, NULL, NULL);
    if (profile)
        mr_profile_count(profile, false);
    assert_int_equal(d->iface->wait(d, &err), MR_OK);
    config.iface->forward(m, values, &in, &out); /* not counted */
    *total = p.total;
    config.iface->close(m);
    mr_params_release(&p);
    free(values);
    return g;
}

static mr_device *open_cpu(void)
{
    mr_device *d = NULL;
    mr_error err;
    if (mr_device_open("cpu", &(mr_device_options){.threads = 2}, &d, &err))
        fail_msg("%s", err.text);
    return d;
}

static void it_computes_the_same_and_counts(void **state)
{
    mr_device *plain = open_cpu();
    mr_profile *profile = NULL;
    mr_error err;
    uint64_t total;
    (void)state;
    mr_device *measured = open_cpu();
    assert_int_equal(mr_profile_open(measured, &profile, &err), MR_OK);
    assert_string_equal(measured->iface->describe(measured), plain->iface->describe(plain));
    assert_int_equal(measured->iface->types, plain->iface->types);
    float *a = gradients(plain, NULL, &total), *b = gradients(measured, profile, &total);
    assert_memory_equal(a, b, total * sizeof *a);
    /* Forward: patches, q, k, v, out and two of the MLP in each of two blocks, head; backward: twice as many, less the
     * gradient of the pixels. */
    const mr_family_sums *matrix = mr_profile_sums(profile, MR_FAMILY_matrix);
    assert_int_equal(matrix->calls, 14 + 2 * 14 - 1);
    assert_int_equal(mr_profile_sums(profile, MR_FAMILY_attention)->calls, 4);
    assert_int_equal(mr_profile_sums(profile, MR_FAMILY_loss)->calls, 1);
    assert_int_equal(mr_profile_sums(profile, MR_FAMILY_update)->calls, 0);
    assert_true(matrix->flops > 0 && matrix->bytes > 0 && matrix->seconds > 0);
    free(a);
    free(b);
    mr_device_close(measured);
    mr_device_close(plain);
}

/* One product of known size. */
static void products_are_counted_to_the_operation(void **state)
{
    enum { M = 5, N = 7, K = 11 };
    float a[M * K] = {0}, b[K * N] = {0}, c[M * N] = {0};
    mr_profile *profile = NULL;
    mr_error err;
    (void)state;
    mr_device *d = open_cpu();
    assert_int_equal(mr_profile_open(d, &profile, &err), MR_OK);
    const mr_gemm g = {.m = M, .n = N, .k = K, .a = a, .b = b, .c = c, .accumulate = true};
    mr_run_gemm(d, &g);
    mr_profile_count(profile, true);
    mr_run_gemm(d, &g);
    const mr_family_sums *s = mr_profile_sums(profile, MR_FAMILY_matrix);
    assert_true(s->calls == 1 && s->flops == 2.0 * M * N * K);
    assert_true(s->bytes == 4.0 * (M * K + K * N + 2 * M * N));
    mr_device_close(d);
}

static void limits_are_found(void **state)
{
    mr_device *d = open_cpu();
    (void)state;
    assert_true(mr_limit_flops(d, MR_F32).rate > 0);
    assert_true(mr_limit_flops(d, MR_BF16).rate > 0);
    assert_true(mr_limit_bytes(d).rate > 0);
    mr_device_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_computes_the_same_and_counts),
        cmocka_unit_test(products_are_counted_to_the_operation),
        cmocka_unit_test(limits_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
