/* test_cuda_kernels.c - all kernels, for both types of activations, through NVRTC; no GPU is needed.  Prints the
 * registers of each.  With MILLRACE_CUDA_KERNELS=all, which scripts/cuda-kernels sets, for GPUs of three generations
 * instead of one.  Skipped where there is no NVRTC (scripts/venv cuda installs it).
 * Invariant tested: the text compiles as CUDA C++, no kernel spills registers into memory, and its arrays are in
 * registers, too.
 * Covers cuda/compile.c. */
#include <stdlib.h>
#include <string.h>

#include "device/cuda/cuda.h"
#include "device/launch/text.h"
#include "tests/support/support.h"

static const struct {
    int major, minor;
} generations[] = {{8, 0}, {9, 0}, {10, 0}};

enum { GENERATIONS = MR_COUNT(generations), HOPPER = 1, STACK_MAX = 16 }; /* bytes: a few numbers of jpeg_entropy */

typedef struct usage {
    int registers, spilled, stack; /* -1: not compiled; bytes */
} usage;

static usage table[MR_KERNEL_COUNT][MR_LAUNCH_TYPES][GENERATIONS];

/* The number before `what`, which begins at or after `at` and before `end`, NULL: the end of the text; -1: none. */
static int number_before(const char *what, const char *at, const char *end)
{
    const char *found = strstr(at, what), *first = found;
    if (!found || (end && found > end))
        return -1;
    while (first > at && first[-1] >= '0' && first[-1] <= '9')
        first--;
    return (int)strtol(first, NULL, 10);
}

/* Parses "... Compiling entry function 'mr_norm' for 'sm_80' ... 0 bytes stack frame, 4 bytes spill stores ... Used 32
 * registers". */
static usage usage_of(const char *log, mr_kernel_id id)
{
    char *entry = support_path("'mr_%s'", mr_kernel_word(id));
    const char *at = strstr(log, entry), *end = at ? strstr(at, "Compiling entry") : NULL;
    usage u = {-1, -1, -1};
    free(entry);
    if (at)
        u = (usage){number_before(" registers", at, end), number_before(" bytes spill stores", at, end),
                    number_before(" bytes stack frame", at, end)};
    return u;
}

/* For scripts/cuda-kernels: FOLDER/bf16-sm_90.cubin, of FOLDER/bf16.cu. */
static void keep_code(const mr_cuda *d, const mr_cuda_target *t, mr_type type, const char *text,
                      mr_nvrtc_program program)
{
    const char *folder = getenv("MILLRACE_CUDA_CODE");
    size_t size = 0;
    if (!folder)
        return;
    assert_int_equal(d->api.nvrtc.cubin_size(program, &size), 0);
    char *source = support_path("%s/%s.cu", folder, mr_type_word(type)), *code = calloc(1, size),
         *path = support_path("%s/%s-%s.cubin", folder, mr_type_word(type), strchr(t->arch, '=') + 1);
    assert_non_null(code);
    assert_int_equal(d->api.nvrtc.cubin(program, code), 0);
    support_write(path, code, size);
    support_write(source, text, strlen(text));
    free(source);
    free(code);
    free(path);
}

/* With the options of the device, and that ptxas tells what it did. */
static char *compile_verbosely(const mr_cuda *d, const mr_cuda_target *t, mr_type type)
{
    const char *options[MR_CUDA_OPTIONS + 1];
    size_t size = 0;
    mr_nvrtc_program program = NULL;
    char *text = support_path("%.*s", (int)t->text_size, (const char *)mr_launch_text);
    memcpy(options, t->options, sizeof t->options);
    options[t->count] = "--ptxas-options=-v";
    assert_int_equal(d->api.nvrtc.create(&program, text, "millrace.cu", 0, NULL, NULL), 0);
    int code = d->api.nvrtc.compile(program, t->count + 1, options);
    assert_int_equal(d->api.nvrtc.log_size(program, &size), 0);
    char *log = calloc(1, size + 1);
    assert_non_null(log);
    assert_int_equal(d->api.nvrtc.log(program, log), 0);
    if (code)
        fail_msg("%s: code %d: %s", t->text, code, log);
    keep_code(d, t, type, text, program);
    d->api.nvrtc.destroy(&program);
    free(text);
    return log;
}

static void print_table(void)
{
    print_message("registers:            f32 sm_80  sm_90 sm_100 | bf16 sm_80  sm_90 sm_100\n");
    for (mr_kernel_id id = 0; id < MR_KERNEL_COUNT; id++) {
        print_message("  mr_%-20s", mr_kernel_word(id));
        for (size_t type = 0; type < MR_LAUNCH_TYPES; type++)
            for (size_t g = 0; g < GENERATIONS; g++) {
                if (table[id][type][g].registers >= 0)
                    print_message("%7d", table[id][type][g].registers);
                else
                    print_message("      -");
            }
        print_message("\n");
    }
}

static void no_kernel_spills(void **state)
{
    mr_cuda *d = *state;
    const char *which = getenv("MILLRACE_CUDA_KERNELS");
    bool all = which && strcmp(which, "all") == 0;
    int spilling = 0;
    memset(table, 0xff, sizeof table);
    for (mr_type type = MR_F32; type <= MR_BF16; type++)
        for (size_t g = 0; g < GENERATIONS; g++) {
            mr_cuda_target t;
            mr_error err;
            if (!all && g != HOPPER)
                continue;
            d->major = generations[g].major;
            d->minor = generations[g].minor;
            if (mr_cuda_target_of(d, type, &t, &err) != MR_OK)
                fail_msg("%s", err.text);
            char *log = compile_verbosely(d, &t, type);
            for (mr_kernel_id id = 0; id < MR_KERNEL_COUNT; id++) {
                usage u = usage_of(log, id);
                table[id][type][g] = u;
                if (mr_kernel_exists(id, type, true))
                    assert_true(u.registers > 0 && u.spilled >= 0 && u.stack >= 0);
                if (u.spilled > 0 || u.stack > STACK_MAX)
                    print_message("mr_%s spills %d bytes and has %d of stack with %s\n", mr_kernel_word(id), u.spilled,
                                  u.stack, t.text);
                spilling += u.spilled > 0 || u.stack > STACK_MAX;
            }
            free(log);
        }
    print_table();
    assert_int_equal(spilling, 0);
}

/* The product's own way gives code for a device that NVRTC knows, and PTX for one that is newer. */
static void code_is_for_the_device(void **state)
{
    mr_cuda *d = *state;
    const char *text = (const char *)mr_launch_text, *end = strstr(text, "/* rows.cl");
    mr_cuda_target t;
    mr_error err;
    mr_buf made = {0};
    assert_non_null(end);
    d->major = 8;
    d->minor = 0;
    assert_int_equal(mr_cuda_target_of(d, MR_BF16, &t, &err), MR_OK);
    assert_non_null(strstr(t.text, "sm_80 "));
    t.text_size = (size_t)(end - text); /* a part of it is enough */
    if (mr_cuda_compile(d, &t, &made, &err) != MR_OK)
        fail_msg("%s", err.text);
    assert_true(made.len > 1000 && memcmp(made.data, "\177ELF", 4) == 0);
    mr_buf_clear(&made);
    d->major = 99;
    assert_int_equal(mr_cuda_target_of(d, MR_F32, &t, &err), MR_OK);
    assert_true(t.ptx);
    t.text_size = (size_t)(end - text); /* a part of it is enough */
    if (mr_cuda_compile(d, &t, &made, &err) != MR_OK)
        fail_msg("%s", err.text);
    assert_non_null(strstr((const char *)made.data, ".target"));
    assert_true(made.data[made.len - 1] == '\0');
    mr_buf_free(&made);
    d->major = 3;
    assert_int_equal(mr_cuda_target_of(d, MR_F32, &t, &err), MR_SYSTEM);
}

int main(void)
{
    static mr_cuda d = {.name = "a test"};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(code_is_for_the_device, &d),
        cmocka_unit_test_prestate(no_kernel_spills, &d),
    };
    mr_error err;
    if (mr_cuda_compiler_open(&d.api, &err) != MR_OK) {
        support_cannot("NVRTC", err.text);
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
