/* test_order_fair.c - the order is a fair one.
 * Invariant tested: each statistic that the order passes is one that a permutation known to be weak fails, so a bias
 * would be seen.  Seeds are fixed: the outcome is the same on every run. */
#include "loader/order/order.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdlib.h>

#include "loader/order/mix.h"

typedef uint64_t permutation(uint64_t count, uint64_t key, uint64_t tweak, uint64_t n);

enum { FAIR = 5, BIASED = 20 }; /* |z| below and above; a fair one is beyond FAIR once in a million */

/* ---- permutations that are not good enough ---------------------------------------------------------------------- */

static uint64_t feistel(unsigned rounds, uint64_t count, uint64_t key, uint64_t tweak, uint64_t x)
{
    unsigned half = 1;
    while (count > (uint64_t)1 << 2 * half)
        half++;
    uint64_t mask = ((uint64_t)1 << half) - 1;
    do {
        uint64_t left = x >> half, right = x & mask, round_key = mr_mix(mr_mix(key) ^ tweak);
        for (unsigned i = 0; i < rounds; i++) {
            uint64_t next = left ^ (mr_mix(right ^ (round_key = mr_mix(round_key))) & mask);
            left = right;
            right = next;
        }
        x = left << half | right;
    } while (x >= count);
    return x;
}

static uint64_t one_round(uint64_t count, uint64_t key, uint64_t tweak, uint64_t n)
{
    return feistel(1, count, key, tweak, n);
}

static uint64_t two_rounds(uint64_t count, uint64_t key, uint64_t tweak, uint64_t n)
{
    return feistel(2, count, key, tweak, n);
}

static uint64_t six_rounds(uint64_t count, uint64_t key, uint64_t tweak, uint64_t n)
{
    return feistel(6, count, key, tweak, n);
}

static uint64_t rotation(uint64_t count, uint64_t key, uint64_t tweak, uint64_t n)
{
    return (n + key * 7 + tweak) % count;
}

/* ---- statistics: how many standard deviations from chance ------------------------------------------------------- */

static double chi_square(const unsigned *seen, size_t cells, double expected, double freedom)
{
    double sum = 0;
    for (size_t i = 0; i < cells; i++)
        sum += (seen[i] - expected) * (seen[i] - expected) / expected;
    return (sum - freedom) / sqrt(2 * freedom);
}

/* Which sample stands where. */
static double places(permutation *p, unsigned n, unsigned seeds)
{
    unsigned *seen = calloc((size_t)n * n, sizeof *seen);
    for (unsigned s = 0; s < seeds; s++)
        for (unsigned i = 0; i < n; i++)
            seen[i * n + p(n, s, 0, i)]++;
    double z = chi_square(seen, (size_t)n * n, (double)seeds / n, (n - 1.0) * (n - 1.0));
    free(seen);
    return z;
}

/* Which sample comes first, of many. */
static double firsts(permutation *p, unsigned n, unsigned seeds)
{
    unsigned *seen = calloc(n, sizeof *seen);
    for (unsigned s = 0; s < seeds; s++)
        seen[p(n, s, 2, 0)]++;
    double z = chi_square(seen, n, (double)seeds / n, n - 1.0);
    free(seen);
    return z;
}

/* How far apart two samples are that follow one another. */
static double neighbours(permutation *p, unsigned n, unsigned seeds)
{
    unsigned *seen = calloc((size_t)(n - 1) * (n - 1), sizeof *seen);
    for (unsigned s = 0; s < seeds; s++)
        for (unsigned i = 0; i + 1 < n; i++)
            seen[i * (n - 1) + (p(n, s, 0, i + 1) + n - p(n, s, 0, i)) % n - 1]++;
    double z = chi_square(seen, (size_t)(n - 1) * (n - 1), seeds / (n - 1.0), (n - 1.0) * (n - 2.0));
    free(seen);
    return z;
}

/* How far a sample moves from one epoch, or one seed, to another that differs in one bit. */
static double moves(permutation *p, unsigned n, unsigned seeds, unsigned bit, bool of_seed)
{
    unsigned *seen = calloc((size_t)n * n, sizeof *seen);
    for (unsigned s = 0; s < seeds; s++) {
        uint64_t key = (uint64_t)s * 1000003, other = (uint64_t)1 << bit;
        for (unsigned i = 0; i < n; i++) {
            uint64_t a = p(n, key, 2, i), b = of_seed ? p(n, key ^ other, 2, i) : p(n, key, 2 ^ other, i);
            seen[i * n + (b + n - a) % n]++;
        }
    }
    double z = chi_square(seen, (size_t)n * n, (double)seeds / n, n * (n - 1.0));
    free(seen);
    return z;
}

/* Each of the n! orders. */
static double orders(permutation *p, unsigned n, unsigned seeds)
{
    unsigned cells = 1;
    for (unsigned i = 2; i <= n; i++)
        cells *= i;
    unsigned *seen = calloc(cells, sizeof *seen);
    for (unsigned s = 0; s < seeds * cells; s++) {
        uint64_t at[8];
        unsigned number = 0;
        for (unsigned i = 0; i < n; i++)
            at[i] = p(n, s, 0, i);
        for (unsigned i = 0; i < n; i++) {
            unsigned less = 0;
            for (unsigned k = i + 1; k < n; k++)
                less += at[k] < at[i];
            number = number * (n - i) + less;
        }
        seen[number]++;
    }
    double z = chi_square(seen, cells, seeds, cells - 1.0);
    free(seen);
    return z;
}

/* Odd permutations, of which half should be. */
static double parity(permutation *p, unsigned n, unsigned seeds)
{
    unsigned odd = 0;
    for (unsigned s = 0; s < seeds; s++) {
        bool was[256] = {false};
        unsigned swaps = 0;
        for (unsigned i = 0; i < n; i++)
            for (uint64_t k = i; !was[k]; k = p(n, s, 0, k)) {
                was[k] = true;
                swaps += p(n, s, 0, k) != i;
            }
        odd += swaps & 1;
    }
    return (odd - seeds / 2.0) / sqrt(seeds / 4.0);
}

static void expect(const char *what, unsigned n, double fair, double biased)
{
    if (!(fabs(fair) < FAIR))
        fail_msg("%s of %u: %.1f standard deviations from chance", what, n, fair);
    if (!(fabs(biased) > BIASED))
        fail_msg("%s of %u: sees only %.1f standard deviations in a permutation that is biased", what, n, biased);
}

static void places_are_even(void **state)
{
    (void)state;
    static const unsigned counts[] = {16, 17, 33, 64};
    for (size_t i = 0; i < 4; i++) {
        unsigned n = counts[i], seeds = n * 60;
        expect("places", n, places(mr_permute, n, seeds), places(one_round, n, seeds));
        expect("neighbours", n, neighbours(mr_permute, n, seeds), neighbours(two_rounds, n, seeds));
    }
    expect("places", 48, places(mr_permute, 48, 4000), places(two_rounds, 48, 4000));
    expect("firsts", 1000, firsts(mr_permute, 1000, 50000), firsts(one_round, 1000, 50000));
}

static void every_order_of_few_is_as_likely(void **state)
{
    (void)state;
    for (unsigned n = 2; n <= 6; n++) {
        double z = orders(mr_permute, n, 100);
        if (!(fabs(z) < FAIR))
            fail_msg("orders of %u: %.1f standard deviations from chance", n, z);
    }
    expect("orders", 4, 0, orders(two_rounds, 4, 100));
    expect("orders", 5, 0, orders(six_rounds, 5, 100));
    expect("orders", 6, 0, orders(six_rounds, 6, 100));
}

static void half_of_the_orders_are_odd_permutations(void **state)
{
    (void)state;
    expect("parity", 16, parity(mr_permute, 16, 2000), parity(six_rounds, 16, 2000));
    expect("parity", 64, parity(mr_permute, 64, 1000), parity(six_rounds, 64, 1000));
    assert_true(fabs(parity(mr_permute, 37, 1000)) < FAIR);
}

static void epochs_and_seeds_are_independent(void **state)
{
    (void)state;
    static const unsigned bits[] = {0, 1, 2, 7, 31, 32, 62, 63};
    for (size_t i = 0; i < 8; i++) {
        expect("moves between seeds", 40, moves(mr_permute, 40, 1500, bits[i], true),
               moves(rotation, 40, 1500, bits[i], true));
        expect("moves between epochs", 40, moves(mr_permute, 40, 1500, bits[i], false),
               moves(rotation, 40, 1500, bits[i], false));
    }
}

/* One bit of the seed or of the epoch turns half of the bits of where each sample goes. */
static void one_bit_changes_half(void **state)
{
    (void)state;
    enum { BITS = 40, TRIES = 20000 };
    for (int of_seed = 0; of_seed < 2; of_seed++) {
        uint64_t turned = 0;
        for (uint64_t i = 0; i < TRIES; i++) {
            uint64_t count = (uint64_t)1 << BITS, n = mr_mix(i) >> 24, bit = (uint64_t)1 << i % 64;
            uint64_t a = mr_permute(count, i, i, n);
            uint64_t b = mr_permute(count, of_seed ? i ^ bit : i, of_seed ? i : i ^ bit, n);
            turned += (unsigned)__builtin_popcountll(a ^ b);
        }
        double z = ((double)turned - TRIES * BITS / 2.0) / sqrt(TRIES * BITS / 4.0);
        assert_true(fabs(z) < FAIR);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_are_even),
        cmocka_unit_test(every_order_of_few_is_as_likely),
        cmocka_unit_test(half_of_the_orders_are_odd_permutations),
        cmocka_unit_test(epochs_and_seeds_are_independent),
        cmocka_unit_test(one_bit_changes_half),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
