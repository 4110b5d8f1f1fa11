/* model_shape.c - ranges of options, parameters of layers, start values.
 * Invariant: nothing here knows a model; names and shapes are the caller's. */
#include "train/model/model_shape.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

mr_status mr_range_check(const mr_range *ranges, size_t count, mr_error *err)
{
    for (const mr_range *r = ranges; r < ranges + count; r++)
        if (r->value < r->least || r->value > r->most)
            return mr_fail(err, MR_MISUSE, "%s %llu: give a number from %llu to %llu", r->option,
                           (unsigned long long)r->value, (unsigned long long)r->least, (unsigned long long)r->most);
    return MR_OK;
}

mr_status mr_rate_check(const char *option, double value, mr_error *err)
{
    if (!(value >= 0 && value < 1))
        return mr_fail(err, MR_MISUSE, "%s %g: give a number of at least 0 and below 1", option, value);
    return MR_OK;
}

uint32_t mr_nearest_multiple(uint32_t value, uint32_t of)
{
    uint32_t below = value / of * of;
    bool down = below && value - below <= of / 2;
    return down ? below : below + of;
}

uint64_t mr_adder_add(mr_adder *a, const char *prefix, const char *name, bool decays, unsigned dims,
                      const uint64_t *shape)
{
    char full[2 * MR_PARAM_NAME]; /* a name that is too long is rejected, not cut off */
    uint64_t offset = 0;
    snprintf(full, sizeof full, "%s%s", prefix, name);
    if (a->status == MR_OK)
        a->status = mr_params_add(a->params, full, dims, shape, decays && !a->frozen, &offset, a->err);
    return offset;
}

mr_norm_at mr_adder_norm(mr_adder *a, const char *prefix, const char *name, uint64_t width)
{
    char full[MR_PARAM_NAME];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    uint64_t gain = mr_adder_add(a, full, a->style->gain, !a->style->spares_vectors, 1, &width);
    return (mr_norm_at){.gain = gain,
                        .bias = mr_adder_add(a, full, a->style->bias, !a->style->spares_vectors, 1, &width)};
}

mr_dense mr_adder_dense(mr_adder *a, const char *prefix, const char *name, uint64_t in, uint64_t out)
{
    char full[MR_PARAM_NAME];
    const uint64_t shape[2] = {a->style->out_first ? out : in, a->style->out_first ? in : out};
    snprintf(full, sizeof full, "%s%s", prefix, name);
    mr_dense dense = {.in = in, .out = out, .out_first = a->style->out_first};
    dense.kernel = mr_adder_add(a, full, a->style->kernel, true, 2, shape);
    dense.bias = mr_adder_add(a, full, a->style->bias, !a->style->spares_vectors, 1, &out);
    return dense;
}

bool mr_param_ends(const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);
    return n >= k && strcmp(name + n - k, end) == 0;
}

/* Marsaglia's polar method; values beyond two deviations are drawn again. */
void mr_fill_normal(mr_random *r, double deviation, float *out, uint64_t count)
{
    for (uint64_t i = 0; i < count;) {
        double x = mr_random_real(r, -1, 1), y = mr_random_real(r, -1, 1), s = x * x + y * y;
        if (s >= 1 || s == 0)
            continue;
        double f = sqrt(-2 * log(s) / s);
        if (fabs(x * f) <= 2)
            out[i++] = (float)(x * f * deviation);
        if (i < count && fabs(y * f) <= 2)
            out[i++] = (float)(y * f * deviation);
    }
}

double mr_glorot(uint64_t in, uint64_t out)
{
    return sqrt(2.0 / (double)(in + out));
}
