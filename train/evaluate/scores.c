/* scores.c - precision and recall over all thresholds, by sorting scores.
 * Invariant: a score that is not a number counts as the lowest. */
#include "train/evaluate/scores.h"

#include <math.h>
#include <stdlib.h>

#include "base/scope.h"

typedef struct scored {
    float score;
    bool hit; /* the sample has the class */
} scored;

void mr_scores_release(mr_scores *s)
{
    free(s->each);
    *s = (mr_scores){0};
}

static int by_score(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    return (x->score < y->score) - (x->score > y->score); /* the highest first */
}

static bool has(const mr_scores_input *in, uint64_t sample, size_t class)
{
    const mr_targets *t = in->targets;
    for (uint64_t i = t->at[sample]; i < t->at[sample + 1]; i++) {
        int32_t own = in->map ? in->map[t->classes[i]] : t->classes[i];
        if (own >= 0 && (size_t)own == class)
            return true;
    }
    return false;
}

static double average_precision(const scored *sorted, size_t count, uint64_t positives)
{
    uint64_t found = 0, before = 0;
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        found += sorted[i].hit;
        if (i + 1 < count && sorted[i + 1].score == sorted[i].score)
            continue;
        sum += (double)(found - before) * (double)found / (double)(i + 1);
        before = found;
    }
    return positives ? sum / (double)positives : -1;
}

static double f1_of(uint64_t right, uint64_t taken, uint64_t positives)
{
    return taken + positives ? 2 * (double)right / (double)(taken + positives) : 0;
}

/* Between the last score that is taken and the first that is not. */
static double best_threshold(const scored *sorted, size_t count, uint64_t positives)
{
    uint64_t found = 0;
    double best = -1, logit = INFINITY;
    for (size_t i = 0; i < count; i++) {
        found += sorted[i].hit;
        bool last = i + 1 == count;
        if ((!last && sorted[i + 1].score == sorted[i].score) || !isfinite(sorted[i].score))
            continue;
        double f1 = f1_of(found, i + 1, positives);
        if (f1 <= best)
            continue;
        best = f1;
        logit = last || !isfinite(sorted[i + 1].score) ? (double)sorted[i].score
                                                       : ((double)sorted[i].score + (double)sorted[i + 1].score) / 2;
    }
    return isfinite(logit) ? 1 / (1 + exp(-logit)) : 0.5;
}

static float usable(float score)
{
    return isnan(score) ? -INFINITY : score;
}

static void measure_class(const mr_scores_input *in, size_t class, scored *column, mr_class_score *out)
{
    for (size_t i = 0; i < in->count; i++) {
        column[i] = (scored){usable(in->logits[i * in->classes + class]), has(in, in->samples[i], class)};
        out->positives += column[i].hit;
    }
    qsort(column, in->count, sizeof *column, by_score);
    out->average_precision = average_precision(column, in->count, out->positives);
}

static double choose_threshold(const mr_scores_input *in, const mr_scores *s, scored *all)
{
    uint64_t positives = 0;
    for (size_t c = 0; c < in->classes; c++)
        positives += s->each[c].positives;
    for (size_t i = 0; i < in->count; i++)
        for (size_t c = 0; c < in->classes; c++)
            all[i * in->classes + c] = (scored){usable(in->logits[i * in->classes + c]), has(in, in->samples[i], c)};
    qsort(all, in->count * in->classes, sizeof *all, by_score);
    return best_threshold(all, in->count * in->classes, positives);
}

static void apply_threshold(const mr_scores_input *in, mr_scores *s)
{
    uint64_t right = 0, taken = 0, positives = 0;
    double logit = log(s->threshold) - log1p(-s->threshold);
    for (size_t c = 0; c < in->classes; c++) {
        mr_class_score *e = &s->each[c];
        uint64_t of_class = 0, hits = 0;
        for (size_t i = 0; i < in->count; i++) {
            bool found = (double)usable(in->logits[i * in->classes + c]) >= logit;
            of_class += found;
            hits += found && has(in, in->samples[i], c);
        }
        e->precision = of_class ? (double)hits / (double)of_class : 0;
        e->recall = e->positives ? (double)hits / (double)e->positives : 0;
        e->f1 = f1_of(hits, of_class, e->positives);
        right += hits;
        taken += of_class;
        positives += e->positives;
    }
    s->f1 = f1_of(right, taken, positives);
}

mr_status mr_scores_measure(const mr_scores_input *in, mr_scores *out, mr_error *err)
{
    size_t capacity = in->threshold < 0 ? in->classes : 1, known = 0;
    MR_AUTO(mr_scope_free) scored *all = mr_alloc(in->count * capacity + 1, sizeof *all);
    *out = (mr_scores){.classes = in->classes, .threshold = in->threshold};
    out->each = mr_alloc(in->classes + 1, sizeof *out->each);
    if (!out->each || !all)
        return mr_fail_memory(err, "measuring average precision");
    for (size_t c = 0; c < in->classes; c++) {
        measure_class(in, c, all, &out->each[c]);
        known += out->each[c].positives > 0;
        out->mean_precision += out->each[c].positives ? out->each[c].average_precision : 0;
    }
    out->mean_precision = known ? out->mean_precision / (double)known : 0;
    if (in->threshold < 0)
        out->threshold = choose_threshold(in, out, all);
    apply_threshold(in, out);
    return MR_OK;
}
