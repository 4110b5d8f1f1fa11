/* test_cuda.c - runs on a CUDA device, on the one without hardware (support/preload/cuda): what the program does
 * around it, and that a run learns as on the CPU, up to rounding.  On a real device (scripts/gpu) what only the other
 * one can do is left out.
 * Invariant tested: the same run gives the same bits; a device that is lost, or that lacks memory, ends it with exit
 * status 3 and one sentence.
 * Covers cuda/program.c, cuda/cuda.c, cuda/sums.c, cuda/recorder.c, run/gradients.c. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/training/model.h"
#include "tests/support/training/train.h"

static int set_up(void **state)
{
    char *dir = support_tmpdir();
    train_make_dataset(dir, 40);
    *state = dir;
    return 0;
}

static int tear_down(void **state)
{
    support_tmpdir_remove(*state);
    return 0;
}

static double log_distance(const char *dir, const char *a, const char *b)
{
    char *one = support_path("%s/%s.log", dir, a), *other = support_path("%s/%s.log", dir, b);
    double distance = train_log_distance(one, other, "loss");
    free(one);
    free(other);
    return distance;
}

static void train(const char *dir, const char *name, const char *device, const char *precision)
{
    char *log = support_path("%s.log", name);
    train_expect(0, dir, 0, "--steps", "4", "--output", name, "--device", device, "--dropout", "0.1", "--precision",
                 precision, "--grad-accum", "2", "--log", log, (char *)NULL);
    free(log);
}

static void runs_learn_as_on_the_cpu(void **state)
{
    const char *dir = *state;
    train(dir, "cpu", "cpu", "float32");
    train(dir, "cuda", "cuda", "float32");
    train(dir, "again", "cuda:0", "float32");
    TRAIN_PATH(one, dir, "cuda/step-00000004/weights.npz");
    TRAIN_PATH(other, dir, "again/step-00000004/weights.npz");
    TRAIN_PATH(cpu, dir, "cpu/step-00000004/weights.npz");
    support_assert_same_file(one, other);
    assert_true(train_weights_distance(one, cpu) < 2e-4);
    assert_true(log_distance(dir, "cpu", "cuda") < 1e-4);
    train(dir, "cpu-16", "cpu", "bf16");
    train(dir, "cuda-16", "cuda", "bf16");
    assert_true(log_distance(dir, "cpu-16", "cuda-16") < 0.02);
}

/* Without cuBLASLt, and compiled on by the driver as the compiler does not know the device. */
static void other_ways_give_the_same(void **state)
{
    const char *dir = *state;
    setenv("MILLRACE_FAKE_NO_LT", "1", 1);
    support_result r = train_run(dir, 0, "--steps", "2", "--eval-every", "0", "--precision", "bf16", "--device", "cuda",
                                 "--output", "kernels", (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(
        strstr(r.out, "millrace's own kernels, which are slower than cuBLASLt (cublasLtCreate fails with code"));
    support_result_free(&r);
    unsetenv("MILLRACE_FAKE_NO_LT");
    setenv("MILLRACE_FAKE_DECLINES", "1", 1);
    r = train_run(dir, 0, "--steps", "2", "--eval-every", "0", "--precision", "bf16", "--device", "cuda", "--output",
                  "declined", (char *)NULL);
    unsetenv("MILLRACE_FAKE_DECLINES");
    support_assert_status(&r, 0);
    const char *declined = strstr(r.out, "cuBLASLt declined ");
    assert_non_null(declined);
    assert_non_null(strstr(declined, " in bf16; millrace's own kernels, which are slower, computed them\n"));
    TRAIN_PATH(results, dir, "declined/train_results.json");
    char *text = (char *)support_read(results, NULL);
    assert_non_null(strstr(text, "\"declined_products\": \"cuBLASLt declined "));
    free(text);
    support_result_free(&r);
    TRAIN_PATH(of_kernels, dir, "kernels/step-00000002/weights.npz");
    TRAIN_PATH(of_declined, dir, "declined/step-00000002/weights.npz");
    support_assert_same_file(of_kernels, of_declined);
    setenv("MILLRACE_FAKE_CAPABILITY", "120", 1);
    train(dir, "newer", "cuda", "float32");
    setenv("MILLRACE_FAKE_CAPABILITY", "86", 1);
    train(dir, "older", "cuda", "float32");
    TRAIN_PATH(newer, dir, "newer/step-00000004/weights.npz");
    TRAIN_PATH(older, dir, "older/step-00000004/weights.npz");
    support_assert_same_file(newer, older);
    setenv("MILLRACE_FAKE_CAPABILITY", "75", 1);
    r = train_run(dir, 0, "--steps", "1", "--device", "cuda", (char *)NULL);
    unsetenv("MILLRACE_FAKE_CAPABILITY");
    support_assert_status(&r, 3);
    assert_non_null(strstr(r.err, "Fake GPU has compute capability 7.5, for which NVRTC no longer compiles"));
    support_result_free(&r);
}

/* "CALLS calls, GRAPHS graphs" of a run. */
static void read_counts(const char *path, unsigned long long *calls, unsigned long long *graphs)
{
    char *text = (char *)support_read(path, NULL), *end;
    *calls = strtoull(text, &end, 10);
    assert_int_equal(strncmp(end, " calls, ", 8), 0);
    *graphs = strtoull(end + 8, NULL, 10);
    free(text);
}

static void recorded_passes_give_the_same(void **state)
{
    const char *dir = *state;
    unsigned long long calls[2], graphs[2];
    TRAIN_PATH(on, dir, "graphs.txt");
    TRAIN_PATH(off, dir, "queued.txt");
    setenv("MILLRACE_FAKE_COUNTS", on, 1);
    train(dir, "graphs", "cuda", "bf16");
    setenv("MILLRACE_FAKE_COUNTS", off, 1);
    setenv("MILLRACE_CUDA_GRAPHS", "0", 1);
    train(dir, "queued", "cuda", "bf16");
    unsetenv("MILLRACE_CUDA_GRAPHS");
    unsetenv("MILLRACE_FAKE_COUNTS");
    TRAIN_PATH(one, dir, "graphs/step-00000004/weights.npz");
    TRAIN_PATH(other, dir, "queued/step-00000004/weights.npz");
    support_assert_same_file(one, other);
    read_counts(on, &calls[0], &graphs[0]);
    read_counts(off, &calls[1], &graphs[1]);
    print_message("%llu calls, %llu of them of graphs, instead of %llu\n", calls[0], graphs[0], calls[1]);
    assert_true(graphs[0] > 4 && graphs[1] == 0 && calls[0] < calls[1]);
}

static void pictures_are_decoded_on_it(void **state)
{
    support_result r = train_run(*state, 0, "--steps", "2", "--eval-every", "0", "--device", "cuda", "--decode-on",
                                 "device", "--output", "decoded", (char *)NULL);
    support_assert_status(&r, 0);
    support_result_free(&r);
    train_expect(0, *state, 0, "--steps", "2", "--eval-every", "0", "--device", "cuda", "--decode-on", "host",
                 "--output", "on-host", (char *)NULL);
    TRAIN_PATH(one, *state, "decoded/step-00000002/weights.npz");
    TRAIN_PATH(other, *state, "on-host/step-00000002/weights.npz");
    support_assert_same_file(one, other);
}

/* Each rank takes a device of its own. */
static void ranks_take_turns_at_devices(void **state)
{
    const char *dir = *state;
    setenv("MILLRACE_FAKE_DEVICES", "2", 1);
    train_expect(0, dir, 2, "--steps", "3", "--eval-every", "0", "--output", "two", "--exchange", "buckets", "--device",
                 "cuda", (char *)NULL);
    unsetenv("MILLRACE_FAKE_DEVICES");
    train_expect(0, dir, 2, "--steps", "3", "--eval-every", "0", "--output", "two-cpu", "--exchange", "buckets",
                 (char *)NULL);
    TRAIN_PATH(one, dir, "two/step-00000003/weights.npz");
    TRAIN_PATH(other, dir, "two-cpu/step-00000003/weights.npz");
    assert_true(train_weights_distance(one, other) < 2e-4);
}

/* Two ranks, and what the program says about their sums; the gradients are more than one piece if hidden is 512. */
static void train_two(const char *dir, const char *output, const char *hidden, const char *exchange, const char *says)
{
    support_result r =
        train_run(dir, 2, "--steps", "2", "--eval-every", "0", "--batch", "2", "--hidden", hidden, "--mlp", "2048",
                  "--layers", "3", "--exchange", exchange, "--output", output, "--device", "cuda", (char *)NULL);
    support_assert_status(&r, 0);
    if (!strstr(r.out, says))
        fail_msg("'%s' instead of '%s'", r.out, says);
    support_result_free(&r);
}

static void devices_sum_themselves(void **state)
{
    const char *dir = *state;
    unsigned long long calls[2], graphs[2];
    TRAIN_PATH(flat, dir, "flat.txt");
    TRAIN_PATH(pieces, dir, "pieces.txt");
    setenv("MILLRACE_FAKE_DEVICES", "2", 1);
    setenv("MILLRACE_FAKE_COUNTS", flat, 1);
    train_two(dir, "flat", "512", "flat", "Gradients are summed on the devices by NCCL 2.28.9\n");
    setenv("MILLRACE_FAKE_COUNTS", pieces, 1);
    train_two(dir, "pieces", "512", "buckets", "Gradients are summed on the devices by NCCL 2.28.9\n");
    unsetenv("MILLRACE_FAKE_COUNTS");
    setenv("MILLRACE_CUDA_NCCL", "0", 1);
    train_two(dir, "summed-on-host", "512", "flat",
              "Gradients are summed on the host (rank 0: MILLRACE_CUDA_NCCL is 0)\n");
    unsetenv("MILLRACE_CUDA_NCCL");
    setenv("MILLRACE_FAKE_NCCL", "21704", 1);
    setenv("MILLRACE_FAKE_RANK", "1", 1);
    train_two(dir, "too-old", "16", "flat", "Gradients are summed on the host (rank 1: NCCL is older than 2.18)\n");
    unsetenv("MILLRACE_FAKE_NCCL");
    unsetenv("MILLRACE_FAKE_RANK");
    setenv("MILLRACE_FAKE_DEVICES", "1", 1);
    train_two(dir, "shared", "16", "flat",
              "Gradients are summed on the host (rank 1: it shares its device with another rank)");
    unsetenv("MILLRACE_FAKE_DEVICES");
    TRAIN_PATH(one, dir, "flat/step-00000002/weights.npz");
    static const char *const others[] = {"pieces", "summed-on-host"};
    for (size_t i = 0; i < MR_COUNT(others); i++) {
        char *other = support_path("%s/%s/step-00000002/weights.npz", dir, others[i]);
        support_assert_same_file(one, other);
        free(other);
    }
    /* The backward pass ends its graph where a sum begins. */
    read_counts(flat, &calls[0], &graphs[0]);
    read_counts(pieces, &calls[1], &graphs[1]);
    assert_true(graphs[0] == 2 && graphs[1] > graphs[0]);
}

/* Two ranks, of which the second fails during sums. */
static support_result fail_second(const char *dir, const char *variable, const char *value, const char *exchange)
{
    setenv("MILLRACE_FAKE_DEVICES", "2", 1);
    setenv("MILLRACE_FAKE_RANK", "1", 1);
    setenv(variable, value, 1);
    support_result r = train_run(dir, 2, "--steps", "9", "--eval-every", "0", "--exchange", exchange, "--device",
                                 "cuda", (char *)NULL);
    unsetenv(variable);
    unsetenv("MILLRACE_FAKE_RANK");
    unsetenv("MILLRACE_FAKE_DEVICES");
    return r;
}

static void expect_end(const char *dir, const char *variable, const char *value, const char *exchange, const char *text)
{
    support_result r = fail_second(dir, variable, value, exchange);
    support_assert_status(&r, 3);
    if (!strstr(r.err, text))
        fail_msg("'%s' instead of '%s'", r.err, text);
    assert_int_equal(support_occurrences(r.err, "millrace: "), 1);
    support_result_free(&r);
}

static void ranks_end_together(void **state)
{
    const char *dir = *state;
    expect_end(dir, "MILLRACE_FAKE_LAUNCHES", "400", "buckets", "millrace: rank 1: cuda: Fake GPU: ");
    expect_end(dir, "MILLRACE_FAKE_LAUNCHES", "420", "flat", "millrace: rank 1: cuda: Fake GPU: ");
    expect_end(dir, "MILLRACE_FAKE_SUMS", "2", "flat",
               "millrace: rank 1: cuda: Fake GPU: sum: NCCL: remote process exited or there was a network error, code "
               "6: it is a test\n");
    /* mpirun, too, notices that a process was killed, and may end the other one before it says so. */
    support_result r = fail_second(dir, "MILLRACE_FAKE_KILL", "2", "flat");
    assert_int_not_equal(r.status, 0);
    if (!strstr(r.err, "millrace: rank 1 was killed") && !strstr(r.err, "exited on signal 9"))
        fail_msg("%s", r.err);
    support_result_free(&r);
}

static void all_devices_are_listed(void **state)
{
    (void)state;
    setenv("MILLRACE_FAKE_DEVICES", "2", 1);
    support_result r = support_millrace("devices", (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out,
                           "\n  cuda    yes   an NVIDIA GPU\n                Fake GPU, 1.0 GiB, "
                           "3 multiprocessors of compute capability 9.0, driver 13.1,\n                NVRTC 13.0\n"));
    assert_non_null(strstr(r.out, "\n  cuda:1  yes"));
    assert_null(strstr(r.out, "cuda:2"));
    support_result_free(&r);
    r = train_run(*state, 0, "--steps", "1", "--device", "cuda:2", (char *)NULL);
    support_assert_status(&r, 2);
    assert_non_null(strstr(r.err, "there is no cuda:2; the last is cuda:1"));
    support_result_free(&r);
    setenv("MILLRACE_FAKE_DEVICES", "0", 1);
    r = support_millrace("devices", (char *)NULL);
    unsetenv("MILLRACE_FAKE_DEVICES");
    assert_non_null(strstr(r.out, "cuda: no CUDA device can be used ("));
    support_result_free(&r);
}

static void expect_failure(const char *dir, const char *output, const char *text)
{
    support_result r = train_run(dir, 0, "--steps", "9", "--checkpoint-every", "2", "--eval-every", "0", "--device",
                                 "cuda", "--output", output, (char *)NULL);
    support_assert_status(&r, 3);
    if (!strstr(r.err, text))
        fail_msg("'%s' instead of '%s'", r.err, text);
    assert_int_equal(support_occurrences(r.err, "millrace: "), 1);
    support_result_free(&r);
}

static void a_lost_device_ends_the_run(void **state)
{
    const char *dir = *state;
    TRAIN_PATH(second, dir, "one/step-00000002");
    setenv("MILLRACE_FAKE_LAUNCHES", "400", 1);
    expect_failure(dir, "one", "CUDA_ERROR_LAUNCH_FAILED, code 719: unspecified launch failure");
    assert_true(support_exists(second));
    unsetenv("MILLRACE_FAKE_LAUNCHES");
    setenv("MILLRACE_FAKE_MEMORY", "5000000", 1);
    expect_failure(dir, "small", "cuda: no memory on Fake GPU for ");
    unsetenv("MILLRACE_FAKE_MEMORY");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_learn_as_on_the_cpu),
        cmocka_unit_test(pictures_are_decoded_on_it),
        cmocka_unit_test(ranks_take_turns_at_devices),
        cmocka_unit_test(other_ways_give_the_same),
        cmocka_unit_test(all_devices_are_listed),
        cmocka_unit_test(a_lost_device_ends_the_run),
        cmocka_unit_test(recorded_passes_give_the_same),
        cmocka_unit_test(devices_sum_themselves),
        cmocka_unit_test(ranks_end_together),
    };
    const struct CMUnitTest anywhere[] = {tests[0], tests[1], tests[2]};
    unsetenv("MILLRACE_FAKE_MEMORY"); /* its size is part of what is printed */
    setenv("MILLRACE_TEST_DEVICE", "cuda", 1);
    mr_device *d = support_device(1); /* where there is none, the test ends here */
    bool fake = strncmp(d->iface->describe(d), "Fake GPU", 8) == 0;
    mr_device_close(d);
    unsetenv("MILLRACE_TEST_DEVICE");
    return fake ? cmocka_run_group_tests(tests, set_up, tear_down)
                : cmocka_run_group_tests(anywhere, set_up, tear_down);
}
