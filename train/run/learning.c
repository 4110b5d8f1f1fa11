/* learning.c - chooses the loss by looking at the labels, and weighs the classes.
 * Invariant: metas are read only where some sample has no label of its own. */
#include "train/run/learning.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "train/setup/labels.h"

static const double positive_most = 100; /* a class of one sample in a million would outweigh all others */

void mr_learning_release(mr_learning *l)
{
    mr_targets_release(&l->train);
    mr_targets_release(&l->eval);
    free(l->weights);
    *l = (mr_learning){0};
}

/* ---- which loss -------------------------------------------------------------------------------------------------- */

static mr_status one_label(const mr_learning_splits *in, mr_ranks *ranks, mr_error *err)
{
    MR_TRY(mr_labels_check(
        in->ds, in->train, ranks, in->dataset,
        "train on several labels per sample with --loss bce, or on its text with --model bridgetower (--text-column "
        "captions, for example)",
        err));
    return in->eval
               ? mr_labels_check(in->ds, in->eval, ranks, in->dataset,
                                 "choose another --eval-split, or train on several labels per sample with --loss bce",
                                 err)
               : MR_OK;
}

static void remark(const mr_targets *t, bool asked, mr_buf *remarks)
{
    char number[3][40];
    mr_buf_printf(remarks, "Several labels per sample%s: of %s samples %s have more than one, %s none\n",
                  asked ? "" : " (--loss bce)", mr_text_count(t->samples, number[0]),
                  mr_text_count(t->several, number[1]), mr_text_count(t->none, number[2]));
}

static mr_status several_labels(const mr_learning_splits *in, unsigned threads, mr_ranks *ranks, mr_learning *out,
                                mr_error *err)
{
    if (!out->train.samples)
        MR_TRY(mr_targets_read(in->ds, in->train, threads, ranks, &out->train, err));
    MR_TRY(mr_labels_check_targets(&out->train, in->train, in->dataset, err));
    if (!in->eval)
        return MR_OK;
    MR_TRY(mr_targets_read(in->ds, in->eval, threads, ranks, &out->eval, err));
    return mr_labels_check_targets(&out->eval, in->eval, in->dataset, err);
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

/* One label: samples / (classes * those of the class), so that the mean over samples is 1.  Several: negatives for each
 * positive.  A class without samples: 1.  Source: scikit-learn's compute_class_weight("balanced"), and PyTorch's
 * documentation of pos_weight. */
static mr_status weigh(const mr_targets *t, size_t classes, bool several, mr_learning *out, mr_error *err)
{
    MR_AUTO(mr_scope_free) uint64_t *counts = mr_alloc(classes + 1, sizeof *counts);
    out->weights = mr_alloc(classes + 1, sizeof *out->weights);
    size_t present = 0;
    if (!counts || !out->weights)
        return mr_fail_memory(err, "weighing classes");
    mr_targets_count(t, counts);
    for (size_t i = 0; i < classes; i++)
        present += counts[i] > 0;
    for (size_t i = 0; i < classes; i++) {
        double count = (double)counts[i], all = (double)t->samples;
        double weight = several ? (all - count) / count : all / ((double)present * count);
        if (several && weight > positive_most)
            weight = positive_most;
        out->weights[i] = counts[i] && weight > 0 ? (float)weight : 1;
    }
    return MR_OK;
}

static mr_status choose(const mr_settings *s, const mr_learning_splits *in, unsigned threads, mr_ranks *ranks,
                        mr_learning *out, mr_error *err)
{
    bool asked = s->loss[0] == 'b';
    uint64_t missing = 0;
    if (s->loss[0] == 'a')
        MR_TRY(mr_labels_missing(in->ds, in->train, ranks, &missing, err));
    if (missing) {
        MR_TRY(mr_targets_read(in->ds, in->train, threads, ranks, &out->train, err));
        out->several = out->train.listed > 0;
    }
    out->several |= asked;
    return out->several ? several_labels(in, threads, ranks, out, err) : one_label(in, ranks, err);
}

mr_status mr_learning_open(const mr_settings *s, const mr_learning_splits *in, unsigned threads, mr_ranks *ranks,
                           mr_learning *out, mr_buf *remarks, mr_error *err)
{
    size_t classes = mr_dataset_manifest(in->ds)->class_count;
    bool balanced = s->class_weights[0] == 'b';
    MR_TRY(mr_ranks_agree(ranks, choose(s, in, threads, ranks, out, err), err));
    if (out->several)
        remark(&out->train, s->loss[0] == 'b', remarks);
    if (!balanced)
        return MR_OK;
    if (!out->train.samples)
        MR_TRY(mr_targets_read(in->ds, in->train, threads, ranks, &out->train, err));
    return mr_ranks_agree(ranks, weigh(&out->train, classes, out->several, out, err), err);
}
