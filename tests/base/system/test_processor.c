/* test_processor.c - the sets of instructions that this machine is said to have are those that its kernel lists. */
#include "tests/support/support.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/processor.h"

/* The flags of the first processor, a space before and after each; empty where the system does not list them. */
static void read_flags(char *flags, size_t capacity)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[8192];
    *flags = 0;
    while (f && !*flags && fgets(line, sizeof line, f))
        if (strncmp(line, "flags", 5) == 0 && strchr(line, ':'))
            snprintf(flags, capacity, "%.*s ", (int)strcspn(strchr(line, ':') + 1, "\n"), strchr(line, ':') + 1);
    if (f)
        fclose(f);
}

static bool lists(const char *flags, const char *const *wanted)
{
    char word[32];
    for (; *wanted; wanted++) {
        snprintf(word, sizeof word, " %s ", *wanted);
        if (!strstr(flags, word))
            return false;
    }
    return true;
}

static void as_the_system_says(void **state)
{
    static const char *const avx2[] = {"avx2", "fma", "bmi1", "bmi2", NULL};
    static const char *const avx512[] = {"avx512f", "avx512bw", "avx512dq", "avx512vl", NULL};
    static const char *const vnni[] = {"avx512vbmi", "avx512_vnni", NULL};
    char flags[8192];
    (void)state;
    assert_true(mr_processor_has(MR_PLAIN_C));
#if defined(__aarch64__)
    assert_true(mr_processor_has(MR_NEON)); /* the architecture demands it */
#else
    assert_false(mr_processor_has(MR_NEON));
#endif
    read_flags(flags, sizeof flags); /* under an emulator they are those of another processor */
    if (!*flags || mr_processor_has(MR_NEON))
        skip();
    bool has = lists(flags, avx2);
    assert_int_equal(mr_processor_has(MR_AVX2), has);
    has = has && lists(flags, avx512);
    assert_int_equal(mr_processor_has(MR_AVX512), has);
    has = has && lists(flags, vnni);
    assert_int_equal(mr_processor_has(MR_AVX512_VNNI), has);
}

static void no_more_than_the_environment_says(void **state)
{
    static const mr_processor_set last[] = {MR_PLAIN_C, MR_NEON, MR_AVX2, MR_AVX512_BF16};
    static const char *const names[] = {"plain", "neon", "avx2", "avx512"};
    (void)state;
    bool has[MR_AVX512_BF16 + 1];
    for (mr_processor_set s = MR_PLAIN_C; s <= MR_AVX512_BF16; s++)
        has[s] = mr_processor_has(s);
    for (size_t i = 0; i < MR_COUNT(names); i++) {
        mr_error err;
        setenv("MILLRACE_CPU", names[i], 1);
        for (mr_processor_set s = MR_PLAIN_C; s <= MR_AVX512_BF16; s++)
            assert_int_equal(mr_processor_has(s), s <= last[i] && has[s]);
        bool runs = has[last[i] == MR_AVX512_BF16 ? MR_AVX512 : last[i]];
        assert_int_equal(mr_processor_check(&err), runs ? MR_OK : MR_MISUSE);
        if (!runs)
            assert_non_null(strstr(err.text, "this processor lacks"));
    }
    unsetenv("MILLRACE_CPU");
}

static void an_unknown_set_is_refused(void **state)
{
    mr_error err;
    (void)state;
    setenv("MILLRACE_CPU", "avx1024", 1);
    assert_int_equal(mr_processor_check(&err), MR_MISUSE);
    assert_string_equal(err.text, "MILLRACE_CPU=avx1024: not an instruction set; try plain, neon, avx2 or avx512");
    setenv("MILLRACE_CPU", "", 1);
    assert_int_equal(mr_processor_check(&err), MR_OK);
    unsetenv("MILLRACE_CPU");
    assert_int_equal(mr_processor_check(&err), MR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_more_than_the_environment_says),
        cmocka_unit_test(an_unknown_set_is_refused),
        cmocka_unit_test(as_the_system_says),
    };
    return cmocka_run_group_tests_name("processor", tests, NULL, NULL);
}
