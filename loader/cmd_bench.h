/* cmd_bench.h - `millrace bench`: what was asked, and printing what was measured.
 * Invariant: what is printed are figures of the result, or follows from them. */
#ifndef MR_CMD_BENCH_H
#define MR_CMD_BENCH_H

#include "loader/bench/bench.h"
#include "loader/cmd_decoding.h"
#include "loader/cmd_local.h"

typedef struct mr_bench_request {
    const char *dir;
    mr_bench_options bench;
    mr_decoding decoding;
    mr_local_request local;
    bool json;
} mr_bench_request;

/* ---- cmd_bench_print.c ----------------------------------------------------------------------------------------- */

extern const char *const mr_bench_stage_words[]; /* by MR_BENCH_*; ends with NULL */

/* The result of all ranks as one JSON object or as text. */
mr_status mr_bench_print(const mr_bench_request *q, const mr_bench_result *r, unsigned world, mr_error *err);

#endif
