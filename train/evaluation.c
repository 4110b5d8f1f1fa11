/* evaluation.c - a whole split judged by all ranks together.
 *
 *      global batch k:  | rank 0's samples | rank 1's samples | ...        each rank: forward, losses to the host
 *      after the last:  every rank's sums of every batch, gathered, added in the order of the samples            */
#include "evaluation.h"

#include <stdlib.h>
#include <string.h>

#include "dataset.h"
#include "term.h"

typedef struct judged {             /* one sample, as it travels between ranks */
    uint64_t position;              /* in the split */
    float loss, weight;
    uint32_t right;
    uint32_t padding;
} judged;

typedef struct evaluation {
    const mr_evaluator *e;
    mr_feed feed;
    size_t classes;
    float *losses, *logits;         /* [batch], [batch, classes], host */
    int32_t *best;
    mr_buf mine, told;
    uint64_t steps;
} evaluation;

static mr_status begin(evaluation *v, mr_error *err)
{
    const mr_evaluator *e = v->e;
    mr_loader_options o = e->loader;
    o.rank = mr_ranks_rank(e->ranks);
    o.world = mr_ranks_world(e->ranks);
    o.global_batch = (uint64_t)e->batch * o.world;
    o.shuffle = MR_SHUFFLE_NONE;
    o.tail = MR_TAIL_PARTIAL;
    o.epochs = 1;
    o.with_meta = e->tell != NULL;
    v->classes = e->config->classes;
    v->losses = mr_alloc(e->batch, sizeof *v->losses);
    v->best = mr_alloc(e->batch, sizeof *v->best);
    v->logits = mr_alloc(e->batch * v->classes, sizeof *v->logits);
    if (!v->losses || !v->best || !v->logits)
        return mr_fail_memory(err, "evaluating");
    mr_status status = mr_feed_open(e->ds, &o, e->batch, e->device, &v->feed, err);
    if (status == MR_OK) {
        v->feed.unlabelled = e->unlabelled;
        v->feed.classes = e->classes;
        v->steps = mr_loader_steps(v->feed.loader);
    }
    return status;
}

static mr_status keep(evaluation *v, size_t i, mr_error *err)
{
    const mr_sample_facts *f = &v->feed.batch->samples[i];
    int32_t label = v->feed.host.labels[i];
    judged j = {.position = f->sample, .loss = v->losses[i], .weight = label < 0 ? 0 : f->weight,
                .right = v->best[i] == label};
    mr_buf_add(&v->mine, &j, sizeof j);
    if (!v->e->tell)
        return MR_OK;
    mr_verdict verdict = {.facts = f, .label = label, .best = v->best[i], .loss = v->losses[i],
                          .logits = v->logits + i * v->classes};
    return v->e->tell(v->e->ctx, &verdict, &v->told, err);
}

static mr_status judge(evaluation *v, const float *values, mr_error *err)
{
    const mr_device_card *c = v->e->device->card;
    mr_model_input in;
    mr_model_output out;
    double weight;
    mr_status status = mr_feed_next(&v->feed, &in, &weight, err);
    if (status != MR_OK || in.count == 0)
        return status;
    v->e->config->card->forward(v->e->model, values, &in, &out);
    c->download(v->e->device, v->losses, out.losses, in.count * sizeof *v->losses);
    c->download(v->e->device, v->best, out.best, in.count * sizeof *v->best);
    if (v->e->tell)
        c->download(v->e->device, v->logits, out.logits, in.count * v->classes * sizeof *v->logits);
    status = c->wait(v->e->device, err);
    for (size_t i = 0; i < in.count && status == MR_OK; i++)
        status = keep(v, i, err);
    return status;
}

/* Rank 0 gets what all said of this step, in rank order, which is the order of the samples. */
static mr_status hand_on(evaluation *v, mr_error *err)
{
    mr_buf all = {0};
    mr_status status = mr_ranks_gather(v->e->ranks, &v->told, &all, NULL, err);
    if (status == MR_OK && mr_ranks_rank(v->e->ranks) == 0)
        status = v->e->take(v->e->ctx, (const char *)all.data, all.len, err);
    mr_buf_clear(&v->told);
    mr_buf_free(&all);
    return status;
}

static int by_position(const void *a, const void *b)
{
    const judged *x = a, *y = b;
    return (x->position > y->position) - (x->position < y->position);
}

static mr_status add_up(evaluation *v, mr_evaluation *out, mr_error *err)
{
    mr_buf all = {0};
    mr_status status = mr_buf_status(&v->mine, err, "evaluating");
    status = mr_ranks_agree(v->e->ranks, status, err);
    if (status == MR_OK)
        status = mr_ranks_gather(v->e->ranks, &v->mine, &all, NULL, err);
    if (status == MR_OK && all.len) {
        size_t count = all.len / sizeof(judged);
        judged *items = (judged *)(void *)all.data;
        qsort(items, count, sizeof *items, by_position);
        double loss = 0, weight = 0;
        for (size_t i = 0; i < count; i++) {
            if (!(items[i].weight > 0))
                continue;
            loss += (double)items[i].loss;
            weight += (double)items[i].weight;
            out->samples++;
            out->right += items[i].right;
        }
        out->loss = weight > 0 ? loss / weight : 0;
        out->accuracy = out->samples ? (double)out->right / (double)out->samples : 0;
    }
    mr_buf_free(&all);
    return status;
}

mr_status mr_evaluate(const mr_evaluator *e, const float *values, mr_evaluation *out, mr_error *err)
{
    evaluation v = {.e = e};
    mr_evaluation result = {0};
    double start = mr_seconds();
    mr_status status = mr_ranks_agree(e->ranks, begin(&v, err), err);
    for (uint64_t step = 0; step < v.steps && status == MR_OK; step++) {
        status = mr_ranks_agree(e->ranks, judge(&v, values, err), err);
        if (status == MR_OK && e->tell)
            status = mr_ranks_agree(e->ranks, hand_on(&v, err), err);
    }
    if (status == MR_OK)
        status = add_up(&v, &result, err);
    if (status == MR_OK) {
        result.seconds = mr_seconds() - start;
        *out = result;
    }
    mr_feed_close(&v.feed);
    free(v.losses);
    free(v.best);
    free(v.logits);
    mr_buf_free(&v.mine);
    mr_buf_free(&v.told);
    return status;
}
