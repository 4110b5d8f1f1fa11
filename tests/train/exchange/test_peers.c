/* test_peers.c - the buffer that all ranks fill together: alone, under mpirun, and with the losses that it is for.
 * Invariant: the ranks are this program itself, which mpirun starts with the word "rank"; each draws the same samples
 * and so knows what the others must have given.
 *
 *      test_peers rank slots       every rank's slot reaches all; idle ranks take part; a failure is kept
 *      test_peers rank losses      losses and gradients of all ranks are those of one that has all rows */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train/model/contrast.h"
#include "tests/support/support.h"

#define MUST(what)                                                                                                     \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "test_peers:%d: rank %u: not so: %s\n", __LINE__, mr_ranks_rank(ranks), #what);            \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* ---- a rank: slots -------------------------------------------------------------------------------------------- */

static float value(unsigned rank, size_t at)
{
    return (float)(rank + 1) * 0.3F + (float)at;
}

static void fill(mr_peers *p)
{
    memset(p->all, 0, p->world * p->capacity * sizeof *p->all);
    for (size_t i = 0; i < p->capacity; i++)
        p->all[p->rank * p->capacity + i] = value(p->rank, i);
}

static void slots(mr_ranks *ranks)
{
    mr_peers p = {0};
    mr_error err;
    MUST(mr_peers_open(ranks, 5, 1027, &p, &err) == MR_OK);
    MUST(p.world == mr_ranks_world(ranks) && p.rank == mr_ranks_rank(ranks) && p.samples == 5 &&
         p.capacity == 5 * 1027);
    for (unsigned idle = 0; idle <= p.world; idle++) { /* last with nobody idle */
        for (int sums = 0; sums < 2 && p.rank != idle; sums++) {
            fill(&p);
            p.sum(&p);
            for (size_t i = 0; i < p.world * p.capacity; i++)
                MUST(p.all[i] == (i / p.capacity == idle ? 0 : value((unsigned)(i / p.capacity), i % p.capacity)));
        }
        if (p.rank == idle)
            mr_peers_idle(&p, true);
        MUST(p.status == MR_OK);
    }
    if (p.rank == 0) {
        for (size_t i = 0; i < p.capacity; i++)
            p.all[i] = 1;
        p.sum(&p);
    } else {
        mr_peers_idle(&p, false);
    }
    MUST(p.all[0] == 1 && p.all[p.capacity - 1] == 1);
    p.status = MR_SYSTEM; /* nobody sums any more, so that nobody waits */
    fill(&p);
    p.sum(&p);
    MUST(p.all[p.rank * p.capacity] == value(p.rank, 0) && p.all[(p.rank + 1) % p.world * p.capacity] == 0);
    mr_peers_close(&p);
    MUST(!p.all);
}

/* ---- a rank: losses ------------------------------------------------------------------------------------------- */

enum { BATCH = 4, EMBED = 16, MAX = 4 * BATCH, FLOATS = 3 * MAX * EMBED + MAX + 1 };

typedef struct gradients { /* of all rows, then their losses, then of log_scale: summed at once */
    float x[3][MAX * EMBED], losses[MAX], log_scale;
} gradients;

typedef struct samples {
    size_t count;
    float x[3][MAX * EMBED], weights[MAX], log_scale;
    int32_t groups[MAX];
} samples;

static samples draw_samples(size_t count)
{
    samples s = {.count = count, .log_scale = 2};
    mr_random r = support_random();
    for (size_t i = 0; i < 3 * MAX * EMBED; i++)
        s.x[i / (MAX * EMBED)][i % (MAX * EMBED)] = (float)mr_random_real(&r, -1, 1);
    for (size_t i = 0; i < MAX; i++) {
        s.weights[i] = i % 5 == 3 ? 0 : 0.5F + (float)(i % 3);
        s.groups[i] = (int32_t)mr_random_below(&r, 5) - 2 + (1 << 24);
    }
    return s;
}

/* Rows first .. first + count - 1; on the CPU, which works in host memory. */
static void run(mr_ranks *ranks, mr_contrast *c, const samples *s, size_t first, size_t count, mr_peers *peers,
                gradients *to)
{
    mr_contrast_input in = {.count = count,
                            .training = true,
                            .log_scale = &s->log_scale,
                            .weights = s->weights + first,
                            .groups = s->groups + first,
                            .peers = peers,
                            .d_log_scale = &to->log_scale};
    mr_contrast_output out;
    for (size_t k = 0; k < 3; k++) {
        in.x[k] = s->x[k] + first * EMBED;
        in.d_x[k] = to->x[k] + first * EMBED;
    }
    mr_contrast_run(c, &in, &out);
    MUST(!peers || peers->status == MR_OK);
    memcpy(to->losses + first, out.losses, count * sizeof *out.losses);
}

static void losses(mr_ranks *ranks)
{
    const size_t counts[] = {3, 0, BATCH, 1};
    unsigned world = mr_ranks_world(ranks), rank = mr_ranks_rank(ranks);
    mr_device *d = NULL;
    mr_contrast *c = NULL, *one = NULL;
    mr_peers p = {0};
    mr_error err;
    gradients *got = calloc(1, sizeof *got), *want = calloc(1, sizeof *want);
    size_t first = 0, all = 0;
    MUST(world <= MR_COUNT(counts) && got && want && sizeof *got == FLOATS * sizeof(float));
    for (unsigned i = 0; i < world; i++) {
        first += i < rank ? counts[i] : 0;
        all += counts[i];
    }
    samples s = draw_samples(all);
    MUST(mr_device_open("cpu", &(mr_device_options){.threads = 1}, &d, &err) == MR_OK);
    MUST(mr_contrast_open(d, BATCH, EMBED, world, true, &c, &err) == MR_OK);
    MUST(mr_contrast_open(d, MAX, EMBED, 1, true, &one, &err) == MR_OK);
    MUST(mr_peers_open(ranks, BATCH, mr_contrast_row(EMBED), &p, &err) == MR_OK);
    if (counts[rank])
        run(ranks, c, &s, first, counts[rank], &p, got);
    else
        mr_peers_idle(&p, true);
    MUST(mr_ranks_reduce(ranks, MR_RANKS_SUM, got, FLOATS, &err) == MR_OK);
    run(ranks, one, &s, 0, all, NULL, want);
    float a[FLOATS], b[FLOATS];
    memcpy(a, got, sizeof a);
    memcpy(b, want, sizeof b);
    for (size_t i = 0; i < FLOATS; i++)
        MUST(fabs((double)a[i] - (double)b[i]) < 2e-6);
    MUST(want->losses[0] > 0 && want->log_scale != 0);
    mr_peers_close(&p);
    mr_contrast_close(c);
    mr_contrast_close(one);
    mr_device_close(d);
    free(got);
    free(want);
}

static int be_a_rank(const char *what)
{
    mr_ranks *ranks = NULL;
    mr_error err;
    if (mr_ranks_begin(&ranks, &err) != MR_OK) {
        fprintf(stderr, "test_peers: %s\n", err.text);
        return 3;
    }
    if (strcmp(what, "slots") == 0)
        slots(ranks);
    else
        losses(ranks);
    if (mr_ranks_rank(ranks) == 0)
        printf("well\n");
    mr_ranks_end(ranks);
    return 0;
}

/* ---- tests ---------------------------------------------------------------------------------------------------- */

static void start_ranks(unsigned count, const char *what)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(n > 0);
    self[n] = '\0';
    support_result r = support_mpirun(count, (const char *const[]){self, "rank", what, NULL});
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, "well"));
    support_result_free(&r);
}

static void test_slots_reach_all_ranks(void **state)
{
    (void)state;
    start_ranks(2, "slots");
    start_ranks(4, "slots");
}

static void test_losses_of_ranks_are_those_of_one(void **state)
{
    (void)state;
    start_ranks(2, "losses");
    start_ranks(4, "losses");
}

static void test_alone(void **state)
{
    (void)state;
    mr_ranks *ranks = NULL;
    mr_peers p = {0};
    mr_error err;
    assert_int_equal(mr_ranks_begin(&ranks, &err), MR_OK);
    mr_peers_close(&p);
    assert_int_equal(mr_peers_open(ranks, 3, 7, &p, &err), MR_OK);
    assert_true(p.world == 1 && p.rank == 0 && p.samples == 3 && p.capacity == 21);
    fill(&p);
    p.sum(&p);
    for (size_t i = 0; i < p.capacity; i++)
        assert_true(p.all[i] == value(0, i));
    mr_peers_idle(&p, true);
    assert_true(p.all[0] == 0 && p.status == MR_OK);
    mr_peers_close(&p);
    mr_ranks_end(ranks);
}

static void test_impossible_sizes(void **state)
{
    (void)state;
    mr_ranks *ranks = NULL;
    mr_peers p = {0};
    mr_error err;
    assert_int_equal(mr_ranks_begin(&ranks, &err), MR_OK);
    assert_int_equal(mr_peers_open(ranks, SIZE_MAX / 2, 3, &p, &err), MR_MISUSE);
    assert_int_equal(mr_peers_open(ranks, SIZE_MAX / 4, 2, &p, &err), MR_MISUSE);
    assert_non_null(strstr(err.text, "smaller batch"));
    assert_null(p.all);
    mr_ranks_end(ranks);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "rank") == 0)
        return be_a_rank(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_impossible_sizes),
        cmocka_unit_test(test_slots_reach_all_ranks),
        cmocka_unit_test(test_losses_of_ranks_are_those_of_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
