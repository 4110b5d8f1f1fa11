/* limits.c - a large product, and a large sum.
 * Invariant: operands are zeros, as rates do not depend on the numbers. */
#include "device/profile/limits.h"

#include "base/cli/term.h"

enum { ROUNDS = 4 };

typedef struct operands {
    void *a, *b, *c;
} operands;

static void release(mr_device *d, const operands *o)
{
    d->card->free(d, o->a);
    d->card->free(d, o->b);
    d->card->free(d, o->c);
}

static bool take(mr_device *d, size_t bytes, operands *o)
{
    *o = (operands){0};
    return d->card->alloc(d, bytes, "measuring", &o->a, NULL) == MR_OK &&
           d->card->alloc(d, bytes, "measuring", &o->b, NULL) == MR_OK &&
           d->card->alloc(d, bytes, "measuring", &o->c, NULL) == MR_OK;
}

static void fill(mr_device *d, size_t bytes, const operands *o)
{
    void *const all[] = {o->a, o->b, o->c};
    for (size_t i = 0; i < MR_COUNT(all); i++)
        mr_run_add(d, &(mr_add){MR_F32, bytes / sizeof(float), all[i], all[i], all[i]});
}

static void multiply(mr_device *d, mr_type type, const operands *o)
{
    const mr_gemm g = {.a_type = type,
                       .b_type = type,
                       .c_type = type,
                       .m = MR_LIMIT_SIDE,
                       .n = MR_LIMIT_SIDE,
                       .k = MR_LIMIT_SIDE,
                       .a = o->a,
                       .b = o->b,
                       .c = o->c};
    mr_run_gemm(d, &g);
}

static void sum(mr_device *d, mr_type type, const operands *o)
{
    mr_run_add(d, &(mr_add){type, MR_LIMIT_BYTES / mr_type_size(type), o->a, o->b, o->c});
}

/* Rounds of `work` a second, at best; the first round warms up. */
static double rate(mr_device *d, mr_type type, size_t bytes, void (*work)(mr_device *, mr_type, const operands *))
{
    operands o;
    double best = 0;
    bool works = take(d, bytes, &o);
    if (works) /* memory that was never written may all be one page of zeros */
        fill(d, bytes, &o);
    for (int i = 0; i <= ROUNDS && works; i++) {
        double since = mr_seconds();
        work(d, type, &o);
        works = d->card->wait(d, NULL) == MR_OK;
        double seconds = mr_seconds() - since;
        if (i > 0 && works && seconds > 0 && 1 / seconds > best)
            best = 1 / seconds;
    }
    release(d, &o);
    return works ? best : 0;
}

double mr_limit_flops(mr_device *d, mr_type type)
{
    size_t side = MR_LIMIT_SIDE;
    return 2.0 * (double)side * (double)side * (double)side * rate(d, type, side * side * mr_type_size(type), multiply);
}

double mr_limit_bytes(mr_device *d)
{
    return 3.0 * MR_LIMIT_BYTES * rate(d, MR_F32, MR_LIMIT_BYTES, sum);
}
