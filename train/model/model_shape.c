/* model_shape.c - what every model needs to become numbers.
 * Invariant: nothing here knows a model; names and shapes are the caller's. */
#include "model/model_shape.h"

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

uint32_t mr_nearest_multiple(uint32_t value, uint32_t of)
{
    uint32_t below = value / of * of;
    bool down = below && value - below <= of / 2;
    return down ? below : below + of;
}

uint64_t mr_adder_add(mr_adder *a, const char *prefix, const char *name, bool decays, unsigned dims,
                      const uint64_t *shape)
{
    char full[2 * MR_PARAM_NAME]; /* what is too long is refused, not cut */
    uint64_t offset = 0;
    snprintf(full, sizeof full, "%s%s", prefix, name);
    if (!a->status)
        a->status = mr_params_add(a->params, full, dims, shape, decays, &offset, a->err);
    return offset;
}

bool mr_param_ends(const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);
    return n >= k && strcmp(name + n - k, end) == 0;
}

/* Marsaglia's polar method; what lies beyond two deviations is drawn again. */
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
