/* order.c - which sample is at which position: keyed permutations instead of arrays.
 *
 *   n -> [left | right] -> rounds: left, right = right, left ^ F(key, round, right) -> n'      (Feistel: a bijection)
 *   n' outside 0..count-1: repeat with n'                                          (cycle walking: still a bijection)
 *   if one bit of the key is set: swap 0 and 1                        (rounds alone reach only even permutations)
 *
 * The network's width is the next even number of bits, so its range is less than four times count, and a walk takes
 * fewer than four steps on average.  Each round multiplies the bias by about 2^-half, so small counts get more rounds:
 * enough to make all n! orders of a tiny split equally likely (tests/loader/order/test_order_fair.c). */
#include "loader/order/order.h"

#include "base/error.h"
#include "loader/order/mix.h"

enum { MAX_ROUNDS = 24 };

static const uint64_t max_samples = (uint64_t)1 << 40;

typedef struct network {
    unsigned half; /* bits of a half */
    unsigned rounds;
    uint64_t mask, swap;
    uint64_t keys[MAX_ROUNDS];
} network;

static network network_make(uint64_t count, uint64_t key, uint64_t tweak)
{
    network n;
    n.half = 1;
    while (n.half < 31 && count > (uint64_t)1 << 2 * n.half)
        n.half++;
    n.mask = ((uint64_t)1 << n.half) - 1;
    n.rounds = 8 + 16 / n.half;
    uint64_t state = mr_mix(mr_mix(key) ^ tweak);
    for (unsigned i = 0; i < n.rounds; i++)
        n.keys[i] = state = mr_mix(state + count);
    n.swap = mr_mix(state + count) & 1;
    return n;
}

static uint64_t forward(const network *n, uint64_t x)
{
    uint64_t left = x >> n->half, right = x & n->mask;
    for (unsigned i = 0; i < n->rounds; i++) {
        uint64_t next = left ^ (mr_mix(right ^ n->keys[i]) & n->mask);
        left = right;
        right = next;
    }
    return left << n->half | right;
}

static uint64_t backward(const network *n, uint64_t x)
{
    uint64_t left = x >> n->half, right = x & n->mask;
    for (unsigned i = n->rounds; i-- > 0;) {
        uint64_t before = right ^ (mr_mix(left ^ n->keys[i]) & n->mask);
        right = left;
        left = before;
    }
    return left << n->half | right;
}

uint64_t mr_permute(uint64_t count, uint64_t key, uint64_t tweak, uint64_t n)
{
    if (count < 2)
        return n;
    network net = network_make(count, key, tweak);
    do
        n = forward(&net, n);
    while (n >= count);
    return n < 2 ? n ^ net.swap : n;
}

uint64_t mr_unpermute(uint64_t count, uint64_t key, uint64_t tweak, uint64_t n)
{
    if (count < 2)
        return n;
    network net = network_make(count, key, tweak);
    if (n < 2)
        n ^= net.swap;
    do
        n = backward(&net, n);
    while (n >= count);
    return n;
}

mr_status mr_order_make(mr_shuffle kind, uint64_t samples, uint64_t seed, uint64_t window_bytes, uint64_t mean_bytes,
                        mr_order *out, mr_error *err)
{
    mr_order o = {.kind = kind, .samples = samples, .seed = seed, .block = 1, .window = 1};
    if (samples > max_samples)
        return mr_fail(err, MR_MISUSE, "a split of %llu samples; the maximum is 2^40", (unsigned long long)samples);
    if (kind == MR_SHUFFLE_WINDOW) {
        if (window_bytes == 0)
            return mr_fail(err, MR_MISUSE, "a shuffle window of 0 bytes; give its size, for example window:1GiB");
        o.window = window_bytes / (mean_bytes ? mean_bytes : 1);
        if (o.window < 1)
            o.window = 1;
        /* Sixteen blocks per window: long enough runs for the disk, enough blocks for the shuffle. */
        o.block = o.window / 16 ? o.window / 16 : 1;
    }
    *out = o;
    return MR_OK;
}

/* Position in the order of shuffled blocks -> sample.  Only the last block may be short: wherever the shuffle puts it,
 * all others are full, so positions can be computed. */
static uint64_t block_order(const mr_order *o, uint64_t epoch, uint64_t position)
{
    uint64_t blocks = (o->samples + o->block - 1) / o->block, short_len = o->samples - (blocks - 1) * o->block;
    uint64_t short_at = mr_unpermute(blocks, o->seed, epoch * 2, blocks - 1) * o->block;
    uint64_t slot, inside;
    if (position < short_at) {
        slot = position / o->block;
        inside = position % o->block;
    } else if (position < short_at + short_len) {
        return (blocks - 1) * o->block + position - short_at;
    } else {
        slot = (position - short_len) / o->block + 1;
        inside = (position - short_len) % o->block;
    }
    return mr_permute(blocks, o->seed, epoch * 2, slot) * o->block + inside;
}

uint64_t mr_order_at(const mr_order *o, uint64_t epoch, uint64_t position)
{
    switch (o->kind) {
    case MR_SHUFFLE_NONE:
        return position;
    case MR_SHUFFLE_FULL:
        return mr_permute(o->samples, o->seed, epoch * 2, position);
    case MR_SHUFFLE_WINDOW:
        break;
    }
    uint64_t number = position / o->window, begin = number * o->window;
    uint64_t len = o->samples - begin < o->window ? o->samples - begin : o->window;
    /* Each window has its own key; the seed is mixed first, so that windows of neighbouring seeds do not share keys. */
    uint64_t key = mr_mix(o->seed) + number;
    return block_order(o, epoch, begin + mr_permute(len, key, epoch * 2 + 1, position - begin));
}
