/* cost.c - what commands and pieces of work cost beside each other.
 * Invariant: as in support/cost.h; seconds are only ever divided by seconds of the same process. */
#include "tests/support/cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    TRIES = 7,            /* of a bound that is missed */
    MOST_YARDSTICKS = 20, /* that a cheap command costs: most cost less than one */
    MOST_LIKE = 4,        /* of a command beside one like it */
    MOST_MEMORY = 256 << 20,
};

double support_cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* CPU seconds that the program under test takes, here and now, to start, to draw and encode 50 pictures, and to write
 * them to files. */
static double yardstick(void)
{
    char *dir = support_tmpdir(), *drawn = support_path("%s/drawn", dir);
    support_result r =
        support_millrace("sample", drawn, "--layout", "imagenette", "--images", "50", "--quiet", (char *)NULL);
    support_assert_status(&r, 0);
    double cpu = r.cpu;
    support_result_free(&r);
    free(drawn);
    support_tmpdir_remove(dir);
    return cpu;
}

/* How many yardsticks a command has cost.  It has run already, so it is the yardstick that is measured again where that
 * is too many: other programs may have slowed the command down. */
static double yardsticks(double cpu)
{
    static double longest; /* of this test program */
    for (int i = 0; i < TRIES && cpu > MOST_YARDSTICKS * longest; i++) {
        double again = yardstick();
        longest = again > longest ? again : longest;
    }
    return cpu > 0 ? cpu / longest : 0;
}

/* Whether all is well but for what it cost. */
static void check_end(const support_result *r)
{
    const uint64_t memory = (uint64_t)MOST_MEMORY * (support_sanitized() ? 8 : 1);
    const char *wrong = r->timed_out                                              ? "hung"
                        : r->signal || r->status < 0                              ? "was ended by a signal"
                        : r->status > 3                                           ? "has no exit status of millrace"
                        : r->peak_memory > memory                                 ? "took too much memory"
                        : r->status && !strstr(r->err, "millrace") && !r->out_len ? "did not say why"
                                                                                  : NULL;
    if (wrong)
        fail_msg("%s: status %d, signal %d, %llu MiB\n--- stdout\n%.2000s\n--- stderr\n%.2000s", wrong, r->status,
                 r->signal, (unsigned long long)(r->peak_memory >> 20), r->out, r->err);
}

void support_assert_cheap_like(const support_result *r, const support_result *like)
{
    check_end(r);
    double cost = like && r->cpu <= MOST_LIKE * like->cpu ? 0 : yardsticks(r->cpu);
    if (cost > MOST_YARDSTICKS)
        fail_msg("took too much of the processor: %.3f CPU s, %.1f times the yardstick; at most %d times is fine\n"
                 "--- stdout\n%.2000s\n--- stderr\n%.2000s",
                 r->cpu, cost, MOST_YARDSTICKS, r->out, r->err);
}

void support_assert_cheap(const support_result *r)
{
    support_assert_cheap_like(r, NULL);
}

double support_refusal_cost(support_result r, const char *words)
{
    double cpu = r.cpu;
    check_end(&r);
    if (r.status == 0 || (!strstr(r.err, words) && !strstr(r.out, words)))
        fail_msg("expected a failure and \"%s\", got status %d\n--- stdout\n%.2000s\n--- stderr\n%.2000s", words,
                 r.status, r.out, r.err);
    support_result_free(&r);
    return cpu;
}

void support_expect_refusal(support_result r, const char *words)
{
    support_assert_cheap(&r);
    support_refusal_cost(r, words);
}

void support_assert_ratio(const char *what, support_cost *cost, void *ctx, size_t n, size_t base, double times)
{
    double large = HUGE_VAL, small = HUGE_VAL;
    bool fine = false, plain = false; /* plainly not fine: what grows with the square takes its time */
    for (int i = 0; i < TRIES && !fine && !plain; i++) {
        large = fmin(large, cost(n, ctx));
        small = fmin(small, cost(base, ctx));
        fine = large <= times * small;
        plain = i > 1 && large > 1.5 * times * small;
    }
    if (!fine)
        fail_msg("%s: size %zu costs %.4f CPU s, %.1f times the %.4f of size %zu; at most %.2f times is fine", what, n,
                 large, large / small, small, base, times);
}

void support_assert_linear(const char *what, support_cost *cost, void *ctx, size_t n)
{
    support_assert_ratio(what, cost, ctx, n, n / 4, 8);
}
