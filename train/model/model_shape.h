/* model_shape.h - what every model needs to become numbers: ranges of its options, its parameters one behind the other,
 * random start values.
 * Invariant: the same seed and shape give the same values on every run and device. */
#ifndef MR_MODEL_SHAPE_H
#define MR_MODEL_SHAPE_H

#include "base/random.h"
#include "model/params.h"

/* One option's range; MR_MISUSE: "OPTION VALUE: give a number from LEAST to MAX". */
typedef struct mr_range {
    const char *option;
    uint64_t value, least, most;
} mr_range;
mr_status mr_range_check(const mr_range *ranges, size_t count, mr_error *err);
/* What to name to those who gave no multiple of `of`: the nearest that is, and not 0. */
uint32_t mr_nearest_multiple(uint32_t value, uint32_t of);

/* Adds parameters as long as all is well; whoever is through asks for the status. */
typedef struct mr_adder {
    mr_params *params;
    mr_status status;
    mr_error *err;
} mr_adder;
/* PREFIXNAME; returns its offset, 0 after a failure. */
uint64_t mr_adder_add(mr_adder *a, const char *prefix, const char *name, bool decays, unsigned dims,
                      const uint64_t *shape);

bool mr_param_ends(const char *name, const char *end);
/* Normal with this deviation, cut off at two of them. */
void mr_fill_normal(mr_random *r, double deviation, float *out, uint64_t count);
/* Glorot and Bengio 2010: outputs and gradients keep their size from layer to layer at any width. */
double mr_glorot(uint64_t in, uint64_t out);

#endif
