/* processor.h - the instruction sets that inner loops are written for.
 * Invariant: mr_processor_has() checks every extension that the compiler may use. */
#ifndef MR_PROCESSOR_H
#define MR_PROCESSOR_H

#include <stdbool.h>

#include "base/error.h"

typedef enum mr_processor_set {
    MR_PLAIN_C,     /* any processor */
    MR_NEON,        /* aarch64: every processor; the sets below are of x86-64 */
    MR_AVX2,        /* Haswell, Zen: avx2, fma, bmi, bmi2 */
    MR_AVX512,      /* Skylake servers: MR_AVX2 and avx512 f, bw, dq, vl */
    MR_AVX512_VNNI, /* Ice Lake, Zen 4: MR_AVX512 and avx512 vbmi, vnni */
    MR_AVX512_BF16, /* Sapphire Rapids, Zen 4: products of bf16 */
} mr_processor_set;

/* To compile a function for a set: __attribute__((target(MR_AVX2_TARGET))). */
#define MR_AVX2_TARGET        "avx2,fma,bmi,bmi2"
#define MR_AVX512_TARGET      MR_AVX2_TARGET ",avx512f,avx512bw,avx512dq,avx512vl"
#define MR_AVX512_VNNI_TARGET MR_AVX512_TARGET ",avx512vbmi,avx512vnni"

/* Whether the processor and the operating system support the set, and MILLRACE_CPU (plain, neon, avx2 or avx512), which
 * is for tests and comparisons, does not exclude it. */
bool mr_processor_has(mr_processor_set set);

/* MR_MISUSE if MILLRACE_CPU names no set, or one that this processor lacks. */
mr_status mr_processor_check(mr_error *err);

#endif
