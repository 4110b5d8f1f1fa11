/* bench_stages.h - what the steps of millrace's own JPEG decoder cost, of some pictures, one by one.
 * Invariant: nothing of it is in the time of any pass. */
#ifndef MR_BENCH_STAGES_H
#define MR_BENCH_STAGES_H

#include "bench/bench.h"
#include "bench/bench_limits.h"

/* Of the first pictures that the decoder takes, some hundred or as many as can be decoded in `seconds`, with their seek
 * index if there is one.  Those that cannot be read or decoded are left out. */
mr_status mr_bench_stages_measure(mr_work *w, const mr_bench_record *records, size_t count, double seconds,
                                  mr_bench_stages *out, mr_error *err);

#endif
