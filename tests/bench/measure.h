/* measure.h - what benchmarks share: the middle of what was measured, and the end where a call fails.
 * Invariant: measurements are sorted where they lie, the smallest first. */
#ifndef MEASURE_H
#define MEASURE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"

static inline void must(mr_status status, const mr_error *err)
{
    if (status == MR_OK)
        return;
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, err->text);
    exit(3);
}

static inline int median_order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of at least one value; the upper one if their number is even. */
static inline double median(double *measured, size_t count)
{
    qsort(measured, count, sizeof *measured, median_order);
    return measured[count / 2];
}

#endif
