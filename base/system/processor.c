/* processor.c - asks the compiler's run-time library, which checks both the processor and the operating system.
 * Invariant: each set includes those before it. */
#include "base/system/processor.h"

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
    case MR_PLAIN_C:
        break;
    }
    return true;
}

#else

static bool adds(mr_processor_set set)
{
    return set == MR_PLAIN_C;
}

#endif

bool mr_processor_has(mr_processor_set set)
{
    for (mr_processor_set s = MR_PLAIN_C; s <= set; s++)
        if (!adds(s))
            return false;
    return true;
}
