/* test_vit_posembed.c - position embeddings for another image size are those of scipy.ndimage.zoom. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/training/npz.h"
#include "train/model/vit/vit.h"

static void resize_as_scipys(void **state)
{
    const char *verbose = getenv("MILLRACE_VERBOSE");
    char *path = support_parity("posembed.npz");
    double worst = 0;
    size_t met = 0;
    (void)state;
    if (!path) {
        print_message("skipped: no parity fixture posembed.npz (MILLRACE_PARITY)\n");
        skip();
    }
    support_npz *z = support_npz_open(path);
    for (size_t i = 0; support_npz_at(z, i); i++) {
        const char *name = support_npz_at(z, i)->name;
        uint64_t from_shape[MR_NPZ_DIMS], shape[MR_NPZ_DIMS];
        unsigned from, to;
        char from_name[32];
        if (sscanf(name, "scipy_%u_to_%u", &from, &to) != 2)
            continue;
        snprintf(from_name, sizeof from_name, "in_%u", from);
        const float *in = support_npz_get(z, from_name, MR_NPZ_F32, from_shape);
        const float *want = support_npz_get(z, name, MR_NPZ_F32, shape);
        assert_true(from_shape[1] == 1 + (uint64_t)from * from && shape[1] == 1 + (uint64_t)to * to);
        float *got = mr_alloc(shape[1] * shape[2], sizeof *got);
        assert_non_null(got);
        mr_vit_resize_positions(in, from, got, to, shape[2]);
        for (size_t k = 0; k < shape[1] * shape[2]; k++) {
            double error = fabs((double)got[k] - want[k]);
            if (!(error <= 1e-6))
                fail_msg("%s, element %zu: off by %.3g, accepted 1e-6", name, k, error);
            worst = fmax(worst, error);
        }
        free(got);
        met++;
    }
    assert_true(met > 0);
    if (verbose && *verbose)
        print_message("%-28s %9.2e of %7.1e = %6.3f\n", "position embeddings", worst, 1e-6, worst / 1e-6);
    support_npz_close(z);
    free(path);
}

/* A plane a + b x + c y stays that plane when corners are aligned. */
static void planes_stay_planes(void **state)
{
    static const uint32_t sizes[][2] = {{14, 10}, {14, 24}, {2, 9}, {16, 11}, {7, 7}, {5, 1}, {1, 4}, {1, 1}};
    (void)state;
    for (size_t s = 0; s < MR_COUNT(sizes); s++) {
        uint32_t from = sizes[s][0], to = sizes[s][1];
        float *in = mr_alloc((1 + (size_t)from * from) * 2, sizeof *in);
        float *out = mr_alloc((1 + (size_t)to * to) * 2, sizeof *out);
        assert_true(in && out);
        in[0] = 5;
        in[1] = -6;
        for (uint32_t i = 0; i < from * from; i++) {
            in[2 + 2 * i] = 1 + 0.5F * (float)(i % from);
            in[3 + 2 * i] = -2 + 0.25F * (float)(i / from);
        }
        mr_vit_resize_positions(in, from, out, to, 2);
        assert_true(out[0] == 5 && out[1] == -6);
        for (uint32_t i = 0; i < to * to; i++) {
            double step = to > 1 ? (double)(from - 1) / (to - 1) : 0;
            assert_true(fabs(out[2 + 2 * i] - (1 + 0.5 * (i % to * step))) < 1e-6);
            assert_true(fabs(out[3 + 2 * i] - (-2 + 0.25 * (i / to * step))) < 1e-6);
        }
        free(in);
        free(out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resize_as_scipys),
        cmocka_unit_test(planes_stay_planes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
