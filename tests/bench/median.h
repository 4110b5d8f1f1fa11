/* median.h - the middle of what benchmarks measured.
 * Invariant: measurements are sorted where they lie, the smallest first. */
#ifndef MEDIAN_H
#define MEDIAN_H

#include <stdlib.h>

static inline int median_order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of at least one; of an even number the upper one. */
static inline double median(double *measured, size_t count)
{
    qsort(measured, count, sizeof *measured, median_order);
    return measured[count / 2];
}

#endif
