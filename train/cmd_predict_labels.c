/* cmd_predict_labels.c - `millrace predict` of a model of several labels per sample: the probability of every class.
 * Invariant: every line has every class of the model, in the model's order, under names that differ. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/string_map.h"
#include "base/cli/term.h"
#include "shards/dataset/dataset.h"
#include "train/predict.h"

typedef unsigned long long ull;

typedef struct prediction {
    const mr_predict_request *q;
    const mr_session *t;
    size_t classes;
    char **names; /* [classes] */
    mr_buf source;
} prediction;

/* ---- names ------------------------------------------------------------------------------------------------------- */

static const void *name_at(const void *list, size_t number, size_t *len)
{
    char *const *names = list;
    *len = strlen(names[number]);
    return names[number];
}

/* If classes share a name, all but the first get their number as well: "cat", "cat (7)". */
static mr_status name_classes(prediction *p, mr_error *err)
{
    MR_AUTO(mr_string_map_release) mr_string_map map = {0};
    p->names = mr_alloc(p->classes + 1, sizeof *p->names);
    for (size_t i = 0; p->names && i < p->classes; i++) {
        MR_AUTO(mr_buf_free) mr_buf name = {0};
        mr_buf_add_text(&name, mr_session_class(p->t, (int32_t)i));
        while (!name.failed && mr_string_map_find(&map, name_at, p->names, mr_buf_text(&name), name.len) != SIZE_MAX)
            mr_buf_printf(&name, " (%zu)", i);
        p->names[i] = name.failed ? NULL : strdup(mr_buf_text(&name));
        if (!p->names[i] || !mr_string_map_add(&map, name_at, p->names, p->names[i], strlen(p->names[i])))
            return mr_fail_memory(err, "predicting");
    }
    return p->names ? MR_OK : mr_fail_memory(err, "predicting");
}

static void release(prediction *p)
{
    for (size_t i = 0; p->names && i < p->classes; i++)
        free(p->names[i]);
    free(p->names);
    mr_buf_free(&p->source);
}

/* ---- one sample -------------------------------------------------------------------------------------------------- */

static double probability(float logit)
{
    return 1 / (1 + exp(-(double)logit));
}

/* A list of names: an array of JSON, or one cell in which semicolons separate them. */
typedef struct list {
    const mr_predict_request *q;
    mr_buf *out, cell;
    size_t count;
} list;

static void begin_list(list *l)
{
    l->count = 0;
    mr_buf_add_text(l->out, l->q->json ? "[" : "");
}

static void add_name(list *l, const char *name)
{
    bool json = l->q->json;
    if (l->count++)
        mr_buf_add_text(json ? l->out : &l->cell, json ? "," : ";");
    if (json)
        mr_predict_cell(l->q, l->out, name, strlen(name));
    else
        mr_buf_add_text(&l->cell, name);
}

static void end_list(list *l)
{
    if (l->q->json)
        mr_buf_add_text(l->out, "]");
    else
        mr_predict_cell(l->q, l->out, mr_buf_text(&l->cell), l->cell.len);
    mr_buf_free(&l->cell);
}

/* Those that the source states, by the dataset's names. */
static void add_labels(const prediction *p, uint64_t sample, mr_buf *out)
{
    const mr_targets *own = &p->t->targets;
    const mr_manifest *m = mr_dataset_manifest(p->t->ds);
    list l = {.q = p->q, .out = out};
    begin_list(&l);
    for (uint64_t i = own->at[sample]; i < own->at[sample + 1]; i++)
        add_name(&l, m->classes[own->classes[i]].name);
    end_list(&l);
}

static void add_found(const prediction *p, const float *logits, mr_buf *out)
{
    list l = {.q = p->q, .out = out};
    begin_list(&l);
    for (size_t i = 0; logits && i < p->classes; i++)
        if (probability(logits[i]) >= p->t->threshold)
            add_name(&l, p->names[i]);
    end_list(&l);
}

/* `logits` NULL: the image is damaged. */
static void add_probabilities(const prediction *p, const float *logits, mr_buf *out)
{
    for (size_t i = 0; i < p->classes; i++) {
        bool json = p->q->json;
        if (json && !logits)
            break;
        mr_buf_add_text(out, json && i == 0 ? "" : ",");
        if (json) {
            mr_predict_cell(p->q, out, p->names[i], strlen(p->names[i]));
            mr_buf_add_text(out, ":");
        }
        if (logits)
            mr_buf_printf(out, "%.6f", probability(logits[i]));
    }
}

static mr_status print_sample(void *ctx, const mr_verdict *v, mr_buf *out, mr_error *err)
{
    prediction *p = ctx;
    bool json = p->q->json, damaged = !(v->facts->weight > 0);
    const float *logits = damaged ? NULL : v->logits;
    MR_TRY(mr_predict_source(p->t, v, &p->source, err));
    mr_buf_printf(out, json ? "{\"sample\":%llu,\"source\":" : "%llu,", (ull)v->facts->sample);
    mr_predict_cell(p->q, out, mr_buf_text(&p->source), p->source.len);
    mr_buf_add_text(out, json ? ",\"labels\":" : ",");
    add_labels(p, v->facts->sample, out);
    mr_buf_add_text(out, json ? ",\"found\":" : ",");
    add_found(p, logits, out);
    mr_buf_add_text(out, json ? ",\"probabilities\":{" : "");
    add_probabilities(p, logits, out);
    mr_buf_add_text(out, json ? damaged ? "},\"damaged\":true}\n" : "}}\n" : "\n");
    return mr_buf_status(out, err, "printing predictions");
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static mr_status print_head(const prediction *p, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf head = {0};
    if (p->q->json || mr_ranks_rank(p->t->evaluator.ranks) != 0)
        return MR_OK;
    mr_buf_add_text(&head, "sample,source,labels,found");
    for (size_t i = 0; i < p->classes; i++) {
        mr_buf_add_text(&head, ",");
        mr_predict_cell(p->q, &head, p->names[i], strlen(p->names[i]));
    }
    mr_buf_add_text(&head, "\n");
    MR_TRY(mr_buf_status(&head, err, "printing predictions"));
    return mr_predict_take(NULL, mr_buf_text(&head), head.len, err);
}

mr_status mr_predict_labels(const mr_predict_request *q, mr_session *t, mr_error *err)
{
    MR_AUTO(release) prediction p = {.q = q, .t = t, .classes = t->checkpoint.model.classes};
    mr_evaluation ignored;
    MR_TRY(mr_ranks_agree(t->evaluator.ranks, name_classes(&p, err), err));
    MR_TRY(mr_ranks_agree(t->evaluator.ranks, print_head(&p, err), err));
    t->evaluator.unlabelled = true;
    t->evaluator.tell = print_sample;
    t->evaluator.take = mr_predict_take;
    t->evaluator.ctx = &p;
    return mr_evaluate(&t->evaluator, t->values, &ignored, err);
}
