/* bf16.h - one operation on bf16 beside the same on float32.
 * Invariant: inputs are numbers of bf16, so both see the same; a result of bf16 is that of float32, rounded, within one
 * unit of its last digit (sums may be in another order).
 *
 *      static void op(support_trial *t, mr_type type, bf16_results *all)
 *      {
 *          ...
 *          bf16_keep(t, all, type, "y", type, y, n);
 *      }
 *      static void on_both(support_trial *t) { bf16_both(t, op); } */
#ifndef MR_SUPPORT_BF16_H
#define MR_SUPPORT_BF16_H

#include "tests/support/device/device.h"

/* What an operation wrote, in both types. */
typedef struct bf16_result {
    const char *name;
    double *got[2]; /* by type */
    size_t count;
    bool exact; /* float32 in both */
    bool loose; /* computed from a result of bf16: its rounding is one of the largest element's */
} bf16_result;

typedef struct bf16_results {
    bf16_result items[8];
    size_t count;
} bf16_results;

/* As their namesakes in support/device.h, of elements of `type`; what is drawn is a number of bf16 in either. */
double *bf16_draw(support_trial *t, size_t count, double low, double high);
void *bf16_give(support_trial *t, mr_type type, const double *x, size_t count);
void *bf16_blank(support_trial *t, mr_type type, size_t count);
double *bf16_take(support_trial *t, mr_type type, const void *x, size_t count);

/* Keeps x[count], of the type `stored`, as the result `name` of the operation on `type`. */
void bf16_keep(support_trial *t, bf16_results *all, mr_type type, const char *name, mr_type stored, const void *x,
               size_t count);
/* The same, and the result is `loose`. */
void bf16_keep_loose(support_trial *t, bf16_results *all, mr_type type, const char *name, const void *x, size_t count);

/* Runs `op` for both types with the same chance, and compares what it kept.  Nothing on a device without bf16. */
void bf16_both(support_trial *t, void (*op)(support_trial *t, mr_type type, bf16_results *all));

#endif
