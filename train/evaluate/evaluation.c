/* evaluation.c - a whole split evaluated by all ranks together.
 *
 *      global batch k:  | rank 0's samples | rank 1's samples | ...        each rank: forward, losses to the host
 *      after the last:  every rank's sums of every batch, gathered, added in the order of the samples            */
#include "train/evaluate/evaluation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/cli/term.h"
#include "base/scope.h"
#include "shards/dataset/dataset.h"

typedef struct scored {              /* one sample, as sent between ranks */
    uint64_t position;               /* in the split */
    float loss, weight, probability; /* for what was predicted; 0 if outcomes are not wanted */
    int32_t label, predicted;
    uint32_t padding;
} scored;

typedef struct evaluation {
    const mr_evaluator *e;
    mr_feed feed;
    bool pairs;       /* the model is one of images and text */
    mr_buf logits_of; /* with several labels: logits of the samples in `mine`, [classes] each */
    unsigned kinds;   /* kinds of embeddings that are kept */
    size_t classes;
    float *losses, *logits; /* [batch], [batch, classes], host */
    int32_t *best;
    float *embeddings[MR_EMBEDDINGS]; /* [batch, embed], host */
    mr_buf mine, text;
    mr_progress *progress;
    uint64_t steps, samples; /* to be evaluated */
} evaluation;

static bool reserve(evaluation *v)
{
    const mr_evaluator *e = v->e;
    bool ok = true;
    v->pairs = e->config->iface->text;
    v->kinds = !v->pairs ? 0 : e->gallery ? MR_EMBEDDINGS : MR_OF_IMAGE + 1;
    v->classes = e->config->classes;
    v->losses = mr_alloc(e->batch, sizeof *v->losses);
    for (unsigned k = 0; k < v->kinds; k++) {
        v->embeddings[k] = mr_alloc(e->batch * e->config->embed, sizeof **v->embeddings);
        ok = ok && v->embeddings[k];
    }
    if (!v->pairs) {
        v->best = mr_alloc(e->batch, sizeof *v->best);
        v->logits = mr_alloc(e->batch * v->classes, sizeof *v->logits);
        ok = v->best && v->logits;
    }
    return ok && v->losses;
}

static mr_status begin(evaluation *v, mr_error *err)
{
    const mr_evaluator *e = v->e;
    mr_loader_options o = e->loader;
    o.rank = mr_ranks_rank(e->ranks);
    o.world = mr_ranks_world(e->ranks);
    o.global_batch = (uint64_t)e->batch * o.world;
    o.shuffle = MR_SHUFFLE_NONE;
    v->samples = o.items ? o.item_count : mr_dataset_samples(e->ds, o.split);
    /* A batch's negatives are its own, so the last one is divided as for one rank, and padding is skipped. */
    o.tail = e->config->iface->text && o.world > 1 ? MR_TAIL_PAD : MR_TAIL_PARTIAL;
    o.epochs = 1;
    o.with_meta = e->tell != NULL;
    if (!reserve(v))
        return mr_fail_memory(err, "evaluating");
    mr_status status = mr_feed_open(e->ds, &o, v->pairs ? e->text : NULL, e->batch, e->device, &v->feed, err);
    if (status == MR_OK) {
        v->feed.unlabelled = e->unlabelled;
        v->feed.classes = e->classes;
        const mr_feed_labels labels = {.targets = e->targets, .classes = v->classes};
        if (e->targets)
            status = mr_feed_learn(&v->feed, &labels, err);
        v->steps = mr_loader_steps(v->feed.loader);
        bool shows = e->shows && o.rank == 0;
        v->progress = mr_progress_begin("evaluating", v->samples, shows ? MR_PROGRESS_LINE : MR_PROGRESS_QUIET);
        mr_progress_add(v->progress, 0, 0);
    }
    return status;
}

/* Softmax of the logits, of one class. */
static float probability_of(const float *logits, size_t classes, int32_t class)
{
    double sum = 0;
    for (size_t i = 0; i < classes; i++)
        sum += exp((double)logits[i] - (double)logits[class]);
    return (float)(1 / sum);
}

static mr_status keep(evaluation *v, size_t i, mr_error *err)
{
    const mr_sample_facts *f = &v->feed.batch->samples[i];
    int32_t label = v->feed.host.labels[i];
    const float *logits = v->logits + i * v->classes;
    scored j = {.position = f->sample,
                .loss = v->losses[i],
                .weight = label < 0 && !v->e->targets ? 0 : f->weight,
                .label = label,
                .predicted = v->best[i]};
    if (v->e->outcomes)
        j.probability = probability_of(logits, v->classes, v->best[i]);
    mr_buf_add(&v->mine, &j, sizeof j);
    if (v->e->targets && j.weight > 0)
        mr_buf_add(&v->logits_of, logits, v->classes * sizeof *logits);
    if (!v->e->tell)
        return MR_OK;
    mr_verdict verdict = {.facts = f, .label = label, .best = v->best[i], .loss = v->losses[i], .logits = logits};
    return v->e->tell(v->e->ctx, &verdict, &v->text, err);
}

static void keep_pair(evaluation *v, size_t i, size_t length)
{
    const mr_sample_facts *f = &v->feed.batch->samples[i];
    size_t embed = v->e->config->embed, tokens = 0;
    const float *rows[MR_EMBEDDINGS];
    const uint8_t *seen = v->feed.host.seen + i * length;
    while (tokens < length && seen[tokens])
        tokens++;
    mr_embeddings_sample s = {
        .sample = f->sample, .item = f->item, .image = f->hash, .loss = v->losses[i], .weight = f->weight};
    s.text = XXH3_64bits(v->feed.host.tokens + i * length, tokens * sizeof *v->feed.host.tokens);
    for (unsigned k = 0; k < v->kinds; k++)
        rows[k] = v->embeddings[k] + i * embed;
    mr_embeddings_add(&v->mine, &s, rows, v->kinds, embed);
}

/* How many of this rank's samples in this batch are not padding; these come first. */
static size_t unpadded(const evaluation *v, size_t count)
{
    uint64_t world = mr_ranks_world(v->e->ranks), rank = mr_ranks_rank(v->e->ranks);
    uint64_t first = (v->feed.batch->step * world + rank) * v->e->batch;
    uint64_t rest = first < v->samples ? v->samples - first : 0;
    return rest < count ? (size_t)rest : count;
}

static mr_status evaluate_pairs(evaluation *v, const mr_model_input *in, const mr_model_output *out, mr_error *err)
{
    const mr_device_iface *c = v->e->device->iface;
    for (unsigned k = 0; k < v->kinds; k++)
        c->download(v->e->device, v->embeddings[k], out->embeddings[k],
                    in->count * v->e->config->embed * sizeof **v->embeddings);
    mr_status status = c->wait(v->e->device, err);
    for (size_t i = 0; i < in->count && status == MR_OK; i++)
        keep_pair(v, i, in->length);
    return status;
}

static mr_status evaluate_step(evaluation *v, const float *values, mr_error *err)
{
    const mr_device_iface *c = v->e->device->iface;
    mr_model_input in;
    mr_model_output out;
    double weight;
    MR_TRY(mr_feed_next(&v->feed, &in, &weight, err));
    if (v->pairs)
        in.count = unpadded(v, in.count);
    if (in.count == 0)
        return MR_OK;
    v->e->config->iface->forward(v->e->model, values, &in, &out);
    c->download(v->e->device, v->losses, out.losses, in.count * sizeof *v->losses);
    if (v->pairs)
        return evaluate_pairs(v, &in, &out, err);
    c->download(v->e->device, v->best, out.best, in.count * sizeof *v->best);
    if (v->e->tell || v->e->outcomes || v->e->targets)
        c->download(v->e->device, v->logits, out.logits, in.count * v->classes * sizeof *v->logits);
    MR_TRY(c->wait(v->e->device, err));
    for (size_t i = 0; i < in.count; i++)
        MR_TRY(keep(v, i, err));
    return MR_OK;
}

/* Rank 0 gets the text of all ranks for this step, in rank order, which is the order of the samples. */
static mr_status pass_on(evaluation *v, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf all = {0};
    mr_status status = mr_ranks_gather(v->e->ranks, &v->text, &all, NULL, err);
    mr_buf_clear(&v->text);
    if (status != MR_OK || mr_ranks_rank(v->e->ranks) != 0)
        return status;
    return v->e->take(v->e->ctx, (const char *)all.data, all.len, err);
}

static int by_position(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    return (x->position > y->position) - (x->position < y->position);
}

static bool keeps_outcomes(const evaluation *v)
{
    return v->e->outcomes && mr_ranks_rank(v->e->ranks) == 0;
}

static mr_status keep_outcome(const evaluation *v, const scored *s, mr_error *err)
{
    mr_outcomes *o = v->e->outcomes;
    if (!keeps_outcomes(v))
        return MR_OK;
    if (!MR_GROW(o->items, o->count, o->capacity))
        return mr_fail_memory(err, "evaluating");
    o->items[o->count++] = (mr_outcome){s->position, s->label, s->predicted, s->probability, s->loss};
    return MR_OK;
}

/* Logits are in the order of the ranks, as the items are before they are sorted. */
static mr_status add_up_several(evaluation *v, const mr_buf *all, mr_evaluation *out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf logits = {0}, samples = {0};
    MR_AUTO(mr_scores_release) mr_scores scores = {0};
    const scored *items = (const scored *)(const void *)all->data;
    MR_TRY(mr_ranks_agree(v->e->ranks, mr_buf_status(&v->logits_of, err, "evaluating"), err));
    MR_TRY(mr_ranks_gather(v->e->ranks, &v->logits_of, &logits, NULL, err));
    for (size_t i = 0; i < all->len / sizeof *items; i++)
        if (items[i].weight > 0)
            mr_buf_add(&samples, &items[i].position, sizeof items[i].position);
    mr_status status = mr_buf_status(&samples, err, "evaluating");
    const mr_scores_input in = {.logits = (const float *)(const void *)logits.data,
                                .samples = (const uint64_t *)(const void *)samples.data,
                                .count = samples.len / sizeof(uint64_t),
                                .classes = v->classes,
                                .targets = v->e->targets,
                                .map = v->e->classes,
                                .threshold = v->e->threshold > 0 ? v->e->threshold : -1};
    if (status == MR_OK)
        status = mr_scores_measure(&in, &scores, err);
    MR_TRY(mr_ranks_agree(v->e->ranks, status, err));
    out->accuracy = scores.mean_precision;
    out->f1 = scores.f1;
    out->threshold = scores.threshold;
    mr_scores *wanted = v->e->scores ? v->e->scores : keeps_outcomes(v) ? &v->e->outcomes->scores : NULL;
    if (wanted) {
        *wanted = scores;
        scores = (mr_scores){0};
    }
    return MR_OK;
}

static mr_status add_up(evaluation *v, mr_evaluation *out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf all = {0};
    MR_TRY(mr_ranks_agree(v->e->ranks, mr_buf_status(&v->mine, err, "evaluating"), err));
    MR_TRY(mr_ranks_gather(v->e->ranks, &v->mine, &all, NULL, err));
    if (!all.len)
        return MR_OK;
    if (v->e->targets)
        MR_TRY(add_up_several(v, &all, out, err));
    size_t count = all.len / sizeof(scored);
    scored *items = (scored *)(void *)all.data;
    double loss = 0, weight = 0;
    qsort(items, count, sizeof *items, by_position);
    for (size_t i = 0; i < count; i++) {
        if (!(items[i].weight > 0))
            continue;
        loss += (double)items[i].loss;
        weight += (double)items[i].weight;
        out->samples++;
        out->right += items[i].label == items[i].predicted;
        if (items[i].label >= 0)
            MR_TRY(keep_outcome(v, &items[i], err));
    }
    out->loss = weight > 0 ? loss / weight : 0;
    if (!v->e->targets)
        out->accuracy = out->samples ? (double)out->right / (double)out->samples : 0;
    return MR_OK;
}

/* The loss is a mean over samples; a short last batch has fewer negatives, as in the reference. */
static mr_status add_up_pairs(evaluation *v, mr_evaluation *out, mr_error *err)
{
    mr_embeddings g = {0};
    double loss = 0, weight = 0;
    mr_status status = mr_embeddings_join(v->e->ranks, &v->mine, v->kinds, v->e->config->embed, &g, err);
    if (status == MR_OK)
        status = mr_recall_measure(v->e->device, v->e->ranks, &g, &out->recall, err);
    for (size_t i = 0; i < g.count; i++) {
        loss += (double)g.samples[i].loss;
        weight += (double)g.samples[i].weight;
    }
    if (status == MR_OK && keeps_outcomes(v))
        status = mr_searches_keep(v->e, &g, v->e->outcomes, err);
    status = mr_ranks_agree(v->e->ranks, status, err);
    out->samples = g.count;
    out->loss = weight > 0 ? loss / weight : 0;
    out->accuracy = (out->recall.text_to_image[0] + out->recall.image_to_text[0]) / 2;
    if (status == MR_OK && v->e->gallery)
        *v->e->gallery = g;
    else
        mr_embeddings_release(&g);
    return status;
}

mr_status mr_split_check_eval(const mr_manifest *m, const char *dataset, const char *split, mr_error *err)
{
    const mr_split *found;
    mr_status status = mr_manifest_find_split(m, dataset, split, &found, err);
    if (status == MR_OK && found->samples == 0)
        return mr_fail(err, MR_MISUSE, "%s: split \"%s\" has no samples to evaluate", dataset, split);
    return status;
}

static void release(evaluation *v)
{
    mr_progress_end(v->progress);
    mr_feed_close(&v->feed);
    free(v->losses);
    free(v->best);
    free(v->logits);
    for (unsigned k = 0; k < MR_EMBEDDINGS; k++)
        free(v->embeddings[k]);
    mr_buf_free(&v->mine);
    mr_buf_free(&v->logits_of);
    mr_buf_free(&v->text);
}

mr_status mr_evaluate(const mr_evaluator *e, const float *values, mr_evaluation *out, mr_error *err)
{
    MR_AUTO(release) evaluation v = {.e = e};
    mr_evaluation result = {0};
    double start = mr_seconds();
    MR_TRY(mr_ranks_agree(e->ranks, begin(&v, err), err));
    for (uint64_t step = 0; step < v.steps; step++) {
        MR_TRY(mr_ranks_agree(e->ranks, evaluate_step(&v, values, err), err));
        mr_progress_add(v.progress, v.samples * (step + 1) / v.steps - v.samples * step / v.steps, 0);
        if (e->tell)
            MR_TRY(mr_ranks_agree(e->ranks, pass_on(&v, err), err));
    }
    MR_TRY(v.pairs ? add_up_pairs(&v, &result, err) : add_up(&v, &result, err));
    MR_TRY(mr_damage_join(&v.feed.damage, e->ranks, err));
    if (!e->unlabelled && !result.samples)
        return mr_fail(err, MR_BAD_DATA,
                       "%s: none of its samples could be evaluated; `millrace verify --decode` shows which are intact",
                       e->loader.split);
    result.seconds = mr_seconds() - start;
    result.damaged = v.feed.damage.count;
    *out = result;
    if (e->outcomes)
        snprintf(e->outcomes->split, sizeof e->outcomes->split, "%s", e->loader.split);
    if (e->damage) {
        mr_damage_release(e->damage);
        *e->damage = v.feed.damage;
        v.feed.damage = (mr_damage){0};
    }
    return MR_OK;
}
