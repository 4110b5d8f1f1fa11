/* bench_stages.h - what each step of millrace's own JPEG decoder costs, on some images.
 * Invariant: runs between the passes, so it never adds to their times. */
#ifndef MR_BENCH_STAGES_H
#define MR_BENCH_STAGES_H

#include "loader/bench/bench.h"
#include "loader/bench/bench_limits.h"

/* Measures the first images that the decoder supports, up to 200 or as many as can be decoded in `seconds`, with
 * their seek index if there is one.  Images that cannot be read or decoded are left out. */
mr_status mr_bench_stages_measure(mr_work *w, const mr_bench_record *records, size_t count, double seconds,
                                  mr_bench_stages *out, mr_error *err);

#endif
