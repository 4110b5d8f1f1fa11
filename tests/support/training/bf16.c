/* bf16.c - results in both types, kept by name.
 * Invariant: the tolerance is that of one rounding to bf16, of the element itself or of the largest. */
#include "tests/support/training/bf16.h"

#include <math.h>
#include <string.h>

#include "base/bf16.h"

double *bf16_draw(support_trial *t, size_t count, double low, double high)
{
    double *x = support_draw(t, count, low, high);
    for (size_t i = 0; i < count; i++)
        x[i] = (double)mr_bf16_float(mr_bf16_of((float)x[i]));
    return x;
}

void *bf16_give(support_trial *t, mr_type type, const double *x, size_t count)
{
    uint16_t *half = support_zeroed(t, count * sizeof *half);
    for (size_t i = 0; i < count; i++)
        half[i] = mr_bf16_of((float)x[i]);
    return type == MR_F32 ? support_give(t, x, count) : support_give_bytes(t, half, count * sizeof *half);
}

void *bf16_blank(support_trial *t, mr_type type, size_t count)
{
    double *x = support_doubles(t, count);
    for (size_t i = 0; i < count; i++)
        x[i] = NAN;
    return bf16_give(t, type, x, count);
}

double *bf16_take(support_trial *t, mr_type type, const void *x, size_t count)
{
    if (type == MR_F32)
        return support_take(t, x, count);
    uint16_t *half = support_zeroed(t, count * sizeof *half);
    double *out = support_doubles(t, count);
    support_take_bytes(t, half, x, count * sizeof *half);
    for (size_t i = 0; i < count; i++)
        out[i] = (double)mr_bf16_float(half[i]);
    return out;
}

void bf16_keep(support_trial *t, bf16_results *all, mr_type type, const char *name, mr_type stored, const void *x,
               size_t count)
{
    size_t i = 0;
    while (i < all->count && strcmp(all->items[i].name, name) != 0)
        i++;
    assert_true(i < MR_COUNT(all->items));
    all->count = i < all->count ? all->count : i + 1;
    bf16_result *r = &all->items[i];
    r->name = name;
    r->count = count;
    r->exact = stored == MR_F32;
    r->got[type] = bf16_take(t, stored, x, count);
}

void bf16_keep_loose(support_trial *t, bf16_results *all, mr_type type, const char *name, const void *x, size_t count)
{
    bf16_keep(t, all, type, name, type, x, count);
    for (size_t i = 0; i < all->count; i++)
        all->items[i].loose |= strcmp(all->items[i].name, name) == 0;
}

static void compare(const support_trial *t, const bf16_results *all)
{
    assert_true(all->count > 0);
    for (size_t k = 0; k < all->count; k++) {
        const bf16_result *r = &all->items[k];
        double most = 0.25;
        for (size_t i = 0; i < r->count; i++)
            most = fmax(most, fabs(r->got[MR_F32][i]));
        for (size_t i = 0; i < r->count; i++) {
            double want = r->got[MR_F32][i], off = fabs(r->got[MR_BF16][i] - want);
            if (!(off <= (r->exact ? 0 : fabs(want) * 0x1.01p-8) + (r->loose ? 0x1p-8 : 3e-6) * most))
                fail_msg("%s, %s loops, round %u: element %zu of %zu is %.9g in bf16, %.9g in float32", r->name,
                         t->loops, t->round, i, r->count, r->got[MR_BF16][i], want);
        }
    }
}

void bf16_both(support_trial *t, void (*op)(support_trial *t, mr_type type, bf16_results *all))
{
    const mr_random start = t->r;
    bf16_results all = {.count = 0};
    if (!(t->iface->types & 1U << MR_BF16))
        return;
    for (mr_type type = MR_F32; type <= MR_BF16; type++) {
        t->r = start;
        op(t, type, &all);
    }
    compare(t, &all);
}
