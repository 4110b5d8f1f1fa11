/* processor.c - asks the compiler's run-time library, which checks both the processor and the operating system.
 * Invariant: each set of x86-64 includes those before it. */
#include "base/system/processor.h"

#include <string.h>

#include "base/environment.h"

#if defined(__x86_64__)

static bool adds(mr_processor_set set)
{
    switch (set) {
    case MR_AVX2:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
               __builtin_cpu_supports("bmi2");
    case MR_AVX512:
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    case MR_AVX512_VNNI:
        return __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni");
    case MR_AVX512_BF16:
        return __builtin_cpu_supports("avx512bf16");
    case MR_NEON:
        return false;
    case MR_PLAIN_C:
        break;
    }
    return true;
}

#elif defined(__aarch64__)

static bool adds(mr_processor_set set)
{
    return set == MR_PLAIN_C || set == MR_NEON;
}

#else

static bool adds(mr_processor_set set)
{
    return set == MR_PLAIN_C;
}

#endif

typedef struct limit {
    const char *name;
    mr_processor_set last;
} limit;

static const limit limits[] = {{"plain", MR_PLAIN_C}, {"neon", MR_NEON}, {"avx2", MR_AVX2}, {"avx512", MR_AVX512_BF16}};

/* The limit named by MILLRACE_CPU; NULL without one, or with an unknown name. */
static const limit *wanted(const char **name)
{
    *name = mr_env("MILLRACE_CPU");
    for (size_t i = 0; *name && i < MR_COUNT(limits); i++)
        if (strcmp(*name, limits[i].name) == 0)
            return &limits[i];
    return NULL;
}

bool mr_processor_has(mr_processor_set set)
{
    const char *name;
    const limit *most = wanted(&name);
    if (most && set > most->last)
        return false;
    for (mr_processor_set s = MR_AVX2; s < set; s++)
        if (!adds(s))
            return false;
    return adds(set);
}

mr_status mr_processor_check(mr_error *err)
{
    const char *name;
    const limit *most = wanted(&name);
    if (!name || !*name)
        return MR_OK;
    if (!most)
        return mr_fail(err, MR_MISUSE, "MILLRACE_CPU=%s: not an instruction set; try plain, neon, avx2 or avx512",
                       name);
    if (!mr_processor_has(most->last == MR_AVX512_BF16 ? MR_AVX512 : most->last))
        return mr_fail(err, MR_MISUSE, "MILLRACE_CPU=%s: this processor lacks these instructions", name);
    return MR_OK;
}
