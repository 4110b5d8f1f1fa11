/* test_bridgetower_around.c - BridgeTower and its surroundings: dropout and memory of the device, negatives of other
 * ranks, texts of every length. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "train/model/contrast.h"
#include "tests/support/sources/pairs.h"

enum { BATCH = SUPPORT_PAIRS };

/* ---- dropout --------------------------------------------------------------------------------------------------- */

/* A device that notes what is dropped where, and counts what is asked for. */
static struct notes {
    const mr_device_iface *device;
    mr_device_iface iface;
    uint32_t sites[64];
    float rates[64];
    size_t count, allocs;
} notes;

static void take_note(const mr_dropout *d)
{
    assert_true(notes.count < MR_COUNT(notes.sites));
    if (d->rate > 0) {
        notes.sites[notes.count] = d->site;
        notes.rates[notes.count++] = d->rate;
    }
}

static void noted_run(mr_device *d, const mr_op *op)
{
    if (op->kind == MR_OP_norm)
        take_note(&((const mr_norm *)op->arguments)->dropout);
    else if (op->kind == MR_OP_drop)
        take_note(&((const mr_drop *)op->arguments)->dropout);
    else if (op->kind == MR_OP_attention)
        take_note(&((const mr_attention *)op->arguments)->dropout);
    notes.device->run(d, op);
}

static mr_status noted_alloc(mr_device *d, size_t bytes, const char *purpose, void **out, mr_error *err)
{
    notes.allocs++;
    return notes.device->alloc(d, bytes, purpose, out, err);
}

static void listen(mr_device *d)
{
    notes = (struct notes){.device = d->iface, .iface = *d->iface};
    notes.iface.run = noted_run;
    notes.iface.alloc = noted_alloc;
    d->iface = &notes.iface;
}

/* The text's embedding; probabilities, output and MLP of each text layer; a second attention in cross layers. */
static void every_place_drops_with_chance_of_its_own(void **state)
{
    mr_model_config c = support_pairs_small();
    c.dropout = 0.25;
    c.attention_dropout = 0.5;
    support_pairs *s = support_pairs_model(&c, BATCH, true, 2);
    support_pairs_batch b = support_pairs_draw(&c, 1);
    const support_pairs_input in = support_pairs_of(&b, 0, BATCH);
    size_t attentions = 0;
    (void)state;
    listen(s->model->device);
    support_pairs_forward(s, &in);
    assert_int_equal(notes.count, 1 + 3 * c.layers + 2 * 5 * c.cross_layers);
    for (size_t i = 0; i < notes.count; i++) {
        attentions += notes.rates[i] == 0.5F;
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(notes.sites[i], notes.sites[k]);
    }
    assert_int_equal(attentions, c.layers + 2 * 2 * c.cross_layers);
    support_model_back(s->model, NULL, NULL);
    assert_int_equal(notes.allocs, 0);
    support_pairs_batch_free(&b);
    support_pairs_close(s);
}

/* ---- other ranks ----------------------------------------------------------------------------------------------- */

/* Ranks as threads: each hands over its own and takes the sum. */
typedef struct meeting {
    pthread_barrier_t all_here, all_added;
    float *sum;
    size_t count;
} meeting;

typedef struct member {
    support_pairs *pairs;
    const support_pairs_input *in;
    mr_peers peers;
    double loss;
    float *g;
} member;

static void sum_of_threads(mr_peers *p)
{
    meeting *m = p->ctx;
    for (unsigned turn = 0; turn < p->world; turn++) { /* one after another, always in the same order */
        pthread_barrier_wait(&m->all_here);
        for (size_t i = 0; turn == p->rank && i < m->count; i++)
            m->sum[i] = (turn ? m->sum[i] : 0) + p->all[i];
        pthread_barrier_wait(&m->all_added);
    }
    memcpy(p->all, m->sum, m->count * sizeof *m->sum);
}

static void *run_member(void *arg)
{
    member *m = arg;
    m->loss = support_pairs_forward(m->pairs, m->in);
    support_model_back(m->pairs->model, NULL, NULL);
    m->g = support_model_gradients(m->pairs->model);
    return NULL;
}

static void ranks_are_one_batch(void **state)
{
    mr_model_config c = support_pairs_small();
    support_pairs *whole = support_pairs_model(&c, BATCH, true, 1);
    support_pairs_batch b = support_pairs_draw(&c, 1);
    const support_pairs_input in = support_pairs_of(&b, 0, BATCH);
    const size_t counts[] = {3, 1}, capacity = 3 * mr_contrast_row(c.embed);
    meeting meet = {.count = 2 * capacity, .sum = mr_alloc(2 * capacity, sizeof(float))};
    support_pairs_input parts[] = {support_pairs_of(&b, 0, counts[0]), support_pairs_of(&b, counts[0], counts[1])};
    member members[2];
    pthread_t threads[2];
    (void)state;
    assert_true(meet.sum && !pthread_barrier_init(&meet.all_here, NULL, 2) &&
                !pthread_barrier_init(&meet.all_added, NULL, 2));
    for (unsigned i = 0; i < 2; i++) {
        members[i] = (member){.pairs = support_pairs_model(&c, 3, true, 1),
                              .in = &parts[i],
                              .peers = {.rank = i,
                                        .world = 2,
                                        .samples = 3,
                                        .capacity = capacity,
                                        .sum = sum_of_threads,
                                        .ctx = &meet,
                                        .all = mr_alloc(2 * capacity, sizeof(float))}};
        parts[i].peers = &members[i].peers;
        assert_non_null(members[i].peers.all);
        assert_int_equal(pthread_create(&threads[i], NULL, run_member, &members[i]), 0);
    }
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    float *g = support_pairs_gradients(whole, &in);
    assert_true(fabs(members[0].loss + members[1].loss - support_pairs_forward(whole, &in)) < 1e-5);
    double most = 0, off = 0;
    for (uint64_t k = 0; k < whole->model->params.total; k++) {
        most = fmax(most, fabs((double)g[k]));
        off = fmax(off, fabs((double)members[0].g[k] + (double)members[1].g[k] - (double)g[k]));
    }
    assert_true(off < 1e-5 * most);
    for (unsigned i = 0; i < 2; i++) {
        support_pairs_close(members[i].pairs);
        free(members[i].peers.all);
        free(members[i].g);
    }
    pthread_barrier_destroy(&meet.all_here);
    pthread_barrier_destroy(&meet.all_added);
    free(meet.sum);
    free(g);
    support_pairs_batch_free(&b);
    support_pairs_close(whole);
}

/* ---- lengths --------------------------------------------------------------------------------------------------- */

/* A device may need more for a shorter text than for a longer one. */
static void long_texts_may_be_shorter(void **state)
{
    mr_model_config c = support_pairs_small();
    (void)state;
    c.layers = c.cross_layers = 1;
    c.text = 300;
    c.positions = 302;
    support_pairs *s = support_pairs_model(&c, BATCH, true, 1);
    support_pairs_batch b = support_pairs_draw(&c, 0);
    support_pairs_input in = support_pairs_of(&b, 0, 2);
    for (size_t length = 300; length > 0; length = length == 300 ? 256 : length == 256 ? 1 : 0) {
        in.length = length;
        float *g = support_pairs_gradients(s, &in);
        for (uint64_t i = 0; i < s->model->params.total; i++)
            assert_true(isfinite(g[i]));
        free(g);
    }
    support_pairs_batch_free(&b);
    support_pairs_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_place_drops_with_chance_of_its_own),
        cmocka_unit_test(ranks_are_one_batch),
        cmocka_unit_test(long_texts_may_be_shorter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
