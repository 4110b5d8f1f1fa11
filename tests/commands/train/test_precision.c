/* test_precision.c - `--precision` of train, eval and predict through the program.
 * Invariant tested: a precision that no device has is refused before anything is read; what a run learned in
 * bf16 is evaluated in bf16 unless another precision is asked for.
 * Covers run/trainer_prepare.c, run/model_session.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tests/support/training/train.h"

static int set_up(void **state)
{
    char *dir = support_tmpdir();
    train_make_dataset(dir, 120);
    *state = dir;
    return 0;
}

static double loss_of(const char *dir, const char *precision)
{
    support_result r = train_command(0, dir, 0, "eval", "data", "run", "--json", "--split", "train",
                                     precision ? "--precision" : (char *)NULL, precision, (char *)NULL);
    json_t *doc = json_loads(r.out, 0, NULL);
    double loss = json_number_value(json_object_get(doc, "loss"));
    assert_true(loss > 0);
    json_decref(doc);
    support_result_free(&r);
    return loss;
}

static void a_run_in_bf16_is_evaluated_in_it(void **state)
{
    const char *dir = *state;
    support_result r = train_run(dir, 0, "--steps", "6", "--eval-every", "0", "--lr", "0.01", "--precision", "bf16",
                                 "--output", "run", (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, "\nbf16: products by "));
    support_result_free(&r);
    double as_trained = loss_of(dir, NULL), bf16 = loss_of(dir, "bf16"), float32 = loss_of(dir, "float32");
    assert_true(memcmp(&as_trained, &bf16, sizeof bf16) == 0);
    assert_true(memcmp(&float32, &bf16, sizeof bf16) != 0);
    assert_true(fabs(float32 - bf16) < 0.02 * float32);
    r = train_command(0, dir, 0, "predict", "data", "run", "--precision", "float32", (char *)NULL);
    support_result_free(&r);
    /* Resumed as it was; or in the other, as parameters are float32 in both. */
    r = train_command(0, dir, 0, "train", "data", "--resume", "--output", "run", (char *)NULL);
    assert_non_null(strstr(r.out, "\nbf16: products by "));
    support_result_free(&r);
    r = train_command(0, dir, 0, "train", "data", "--resume", "--output", "run", "--precision", "float32",
                      (char *)NULL);
    assert_null(strstr(r.out, "bf16"));
    support_result_free(&r);
}

/* The same bits with recomputation, different ones from those in float32. */
static void bf16_recomputes_the_same(void **state)
{
    const char *dir = *state;
    train_expect(0, dir, 0, "--steps", "4", "--eval-every", "0", "--layers", "3", "--precision", "bf16", "--output",
                 "kept", (char *)NULL);
    train_expect(0, dir, 0, "--steps", "4", "--eval-every", "0", "--layers", "3", "--precision", "bf16", "--output",
                 "again", "--recompute", (char *)NULL);
    char *a = support_path("%s/kept/step-00000004/weights.npz", dir);
    char *b = support_path("%s/again/step-00000004/weights.npz", dir);
    support_assert_same_file(a, b);
    free(a);
    free(b);
}

/* Before the dataset is opened: there is none. */
static void what_no_device_has_is_refused(void **state)
{
    const char *dir = *state;
    support_result r = train_command(2, dir, 0, "train", "nowhere", "--precision", "float16", (char *)NULL);
    assert_non_null(strstr(r.err, "float32"));
    support_result_free(&r);
    r = train_command(2, dir, 0, "train", "nowhere", "--precision", "bf16", "--device", "opencp", (char *)NULL);
    assert_string_equal(r.err, "millrace: --device: unknown device 'opencp'; try 'opencl'\n");
    support_result_free(&r);
}

static void activations_take_half_the_memory(void **state)
{
    double bytes[2];
    for (int i = 0; i < 2; i++) {
        support_result r = train_run(*state, 0, "--plan=json", "--precision", i ? "bf16" : "float32", (char *)NULL);
        json_t *doc = json_loads(r.out, 0, NULL);
        bytes[i] = json_number_value(json_object_get(doc, "activations"));
        json_decref(doc);
        support_result_free(&r);
    }
    assert_true(bytes[1] > 0.45 * bytes[0] && bytes[1] < 0.65 * bytes[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_in_bf16_is_evaluated_in_it),
        cmocka_unit_test(bf16_recomputes_the_same),
        cmocka_unit_test(what_no_device_has_is_refused),
        cmocka_unit_test(activations_take_half_the_memory),
    };
    return cmocka_run_group_tests(tests, set_up, support_tmpdir_tear_down);
}
