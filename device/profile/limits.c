/* limits.c - a large product, and a large sum.
 * Invariant: operands are random numbers: a GPU that multiplies zeros takes less power, and is faster than it is on any
 * others. */
#include "device/profile/limits.h"

#include <stdlib.h>
#include <string.h>

#include "base/cli/term.h"
#include "base/random.h"

enum { ROUNDS = 4, PIECE = 4 << 20 };
static const double enough = 5e-3; /* seconds, beside which a launch and a wait are nothing */

typedef struct operands {
    void *a, *b, *c;
} operands;

/* An operation whose operands are arrays of `type`. */
typedef struct work {
    mr_type type;
    size_t smallest, largest;
    size_t (*bytes)(size_t size, mr_type type); /* bytes of each operand */
    void (*queue)(mr_device *d, mr_type type, size_t size, const operands *o);
} work;

static void release(mr_device *d, const operands *o)
{
    d->iface->free(d, o->a);
    d->iface->free(d, o->b);
    d->iface->free(d, o->c);
}

static bool take(mr_device *d, size_t bytes, operands *o)
{
    *o = (operands){0};
    return d->iface->alloc(d, bytes, "measuring", &o->a, NULL) == MR_OK &&
           d->iface->alloc(d, bytes, "measuring", &o->b, NULL) == MR_OK &&
           d->iface->alloc(d, bytes, "measuring", &o->c, NULL) == MR_OK;
}

/* Random numbers from -1 to 1, PIECE bytes on the heap; NULL: out of memory. */
static void *draw(mr_type type)
{
    size_t count = PIECE / mr_type_size(type);
    char *piece = malloc(PIECE);
    mr_random r;
    mr_random_seed(&r, 1);
    for (size_t i = 0; piece && i < count; i++) {
        float x = (float)mr_random_real(&r, -1, 1);
        /* The upper half of a float32 is a bf16. */
        memcpy(piece + i * mr_type_size(type), (char *)&x + sizeof x - mr_type_size(type), mr_type_size(type));
    }
    return piece;
}

static bool fill(mr_device *d, mr_type type, size_t bytes, const operands *o)
{
    void *piece = draw(type);
    char *const all[] = {o->a, o->b, o->c};
    for (size_t i = 0; piece && i < MR_COUNT(all); i++)
        for (size_t at = 0; at < bytes; at += PIECE)
            d->iface->upload(d, all[i] + at, piece, bytes - at < PIECE ? bytes - at : PIECE);
    bool filled = piece && d->iface->wait(d, NULL) == MR_OK;
    free(piece);
    return filled;
}

/* Seconds of one at best; the first round warms up.  0: it cannot be measured. */
static double seconds_of(mr_device *d, const work *w, size_t size)
{
    operands o;
    double best = 0;
    size_t bytes = w->bytes(size, w->type);
    bool works = take(d, bytes, &o) && fill(d, w->type, bytes, &o);
    for (int i = 0; i <= ROUNDS && works; i++) {
        double since = mr_seconds();
        w->queue(d, w->type, size, &o);
        works = d->iface->wait(d, NULL) == MR_OK;
        double seconds = mr_seconds() - since;
        if (i > 0 && (best <= 0 || seconds < best))
            best = seconds;
    }
    release(d, &o);
    return works ? best : 0;
}

/* How often per second, for the largest size that was measured. */
static mr_limit find(mr_device *d, const work *w)
{
    mr_limit limit = {0};
    double seconds = 0;
    for (size_t size = w->smallest; size <= w->largest && seconds < enough; size *= 2) {
        seconds = seconds_of(d, w, size);
        if (seconds <= 0)
            break;
        limit = (mr_limit){1 / seconds, size};
    }
    return limit;
}

static size_t matrix_bytes(size_t side, mr_type type)
{
    return side * side * mr_type_size(type);
}

static void multiply(mr_device *d, mr_type type, size_t side, const operands *o)
{
    const mr_gemm g = {.a_type = type,
                       .b_type = type,
                       .c_type = type,
                       .m = side,
                       .n = side,
                       .k = side,
                       .a = o->a,
                       .b = o->b,
                       .c = o->c};
    mr_run_gemm(d, &g);
}

mr_limit mr_limit_flops(mr_device *d, mr_type type)
{
    mr_limit limit = find(d, &(work){type, 1024, 8192, matrix_bytes, multiply});
    limit.rate *= 2.0 * (double)limit.size * (double)limit.size * (double)limit.size;
    return limit;
}

static size_t array_bytes(size_t bytes, mr_type type)
{
    (void)type;
    return bytes;
}

static void sum(mr_device *d, mr_type type, size_t bytes, const operands *o)
{
    mr_run_add(d, &(mr_add){type, bytes / mr_type_size(type), o->a, o->b, o->c});
}

mr_limit mr_limit_bytes(mr_device *d)
{
    mr_limit limit = find(d, &(work){MR_F32, 64 << 20, 512 << 20, array_bytes, sum});
    limit.rate *= 3.0 * (double)limit.size;
    return limit;
}
