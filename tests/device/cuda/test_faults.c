/* test_faults.c - faults that are planted in the text of the kernels, for the device without hardware
 * (support/preload/cuda).  Invariant tested: tests of operations notice each of them there, and fail. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/error.h"
#include "tests/support/support.h"

typedef struct planted {
    const char *what, *test, *fault; /* PLACE|OLD|NEW, see fake.h */
} planted;

static const char layers[] = "device/test_device_layers", basics[] = "device/test_device",
                  tiles[] = "device/launch/test_attention_mma", lanes[] = "device/cpu/test_attention",
                  decoding[] = "loader/test_cmd_decoding", both[] = "device/cpu/test_bf16";

static const planted faults[] = {
    {"no barrier before sums of a group are added", layers, "mr_group_sum(|MR_BARRIER();|"},
    {"no barrier before the memory of such a sum is used again", layers, "sum = part[0];|MR_BARRIER();|"},
    {"a lane that leaves before a barrier", layers, "MR_KERNEL(mr_norm,|if (!has_y)|if (!has_y || lane == 63)"},
    {"a lane that only half of its warp waits for", tiles,
     "x of lane ^ away|return __shfl|if (MR_LANE() % 2) return x; return __shfl"},
    {"tiles used before they are there", tiles, "mr_forward(|MR_AWAIT(0); /* v|MR_BARRIER(); /* v"},
    {"tiles used before a later batch is there", tiles, "mr_back_q(|MR_AWAIT(0); /* k|MR_AWAIT(1); /* k"},
    {"no barrier after lanes have their own copies", tiles, "define MR_AWAIT|\\\n    MR_BARRIER()|"},
    {"tiles copied while they are used", tiles, "mr_back_kv(|MR_BARRIER(); /* q is free|/* q is free"},
    {"squares not turned", tiles, "mr_get_turned(|x4.trans|x4"},
    {"squares in another order", tiles, "mr_multiply(|lane / 16 * 8 + lane % 8|lane % 16"},
    {"a copy of bytes that are not there", tiles, "mr_fetch(|2 * count|16"},
    {"words 1 and 2 of a fragment exchanged", tiles,
     "mma.sync.aligned|\"r\"(a[1]), \"r\"(a[2])|\"r\"(a[2]), \"r\"(a[1])"},
    {"words of the other operand exchanged", tiles, "mma.sync.aligned|{%8, %9}|{%9, %8}"},
    {"a maximum of half a row", tiles, "mr_row_top(|away <= 2|away <= 1"},
    {"memory of the group that nobody has set", lanes, "MR_KERNEL(mr_attention_forward|all[lane] = 0;|;"},
    {"elements past the end", basics, "MR_KERNEL(mr_add,|at >= count|at >= count + 64"},
    {"eight elements of a row that has fewer", both, "MR_KERNEL(mr_drop,|left, whole|left, 1"},
    {"two elements exchanged", both, "mr_put_halves(|(v[i], v[i + 1])|(v[i + 1], v[i])"},
    {"fewer lanes than are launched", basics, "MR_KERNEL(mr_adamw|MR_WIDTH|32"},
    {"no barrier in the inverse transform", decoding, "mr_jpeg_idct|MR_BARRIER();|"},
    {"bytes in another order", decoding, "__CUDACC__|0x0123|0x0132"},
    {"sixteen bytes from an address that is not theirs", tiles, "mr_matrix(|stride, plain|stride, 1 + plain"},
};

/* The exit code of the test program `name`, whose output goes to `dir`; 0: it passed.  It ends at the first failure. */
static int run(const char *name, const char *dir, const char *fault)
{
    char *command = support_path("mkdir -p '%s' && XDG_CACHE_HOME='%s' TMPDIR='%s' CMOCKA_TEST_ABORT=1 "
                                 "MILLRACE_TEST_DEVICE=cuda '%s/tests/%s' >'%s/log' 2>&1",
                                 dir, dir, dir, BUILD_DIR, name, dir);
    setenv("MILLRACE_FAKE_FAULT", fault, 1);
    int status = system(command);
    free(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : status;
}

/* The text goes through the same replacement without a change: what fails below fails for its fault.  That the other
 * programs pass is what the variants @cuda of their tests show. */
static void none_is_seen_where_none_is(void **state)
{
    assert_int_equal(run(layers, *state, "none"), 0);
}

static void all_are_noticed(void **state)
{
    unsigned unnoticed = 0;
    for (size_t i = 0; i < MR_COUNT(faults); i++) {
        char *dir = support_path("%s/%zu", (const char *)*state, i), *log = support_path("%s/log", dir);
        int status = run(faults[i].test, dir, faults[i].fault);
        char *text = (char *)support_read(log, NULL);
        if (status == 0 || status == 77 || strstr(text, "cannot be compiled")) {
            print_message("%s: not noticed by %s: %s\n", faults[i].what, faults[i].test, text);
            unnoticed++;
        }
        free(text);
        free(log);
        free(dir);
    }
    assert_int_equal(unnoticed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {IN_TMPDIR(none_is_seen_where_none_is), IN_TMPDIR(all_are_noticed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
