/* cmd_predict.c - `millrace predict DATASET RUN`: what a trained model predicts for each sample, one line per sample.
 * Invariant: lines come in the order of the samples, on any number of ranks. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "shards/dataset/dataset_ranks.h"
#include "shards/dataset/dataset.h"
#include "loader/cmd_damage.h"
#include "train/cmd_session.h"
#include "train/commands.h"
#include "train/predict.h"

typedef unsigned long long ull;

typedef struct request {
    mr_predict_request asked;
    const mr_session *model;
    mr_buf source;
    int32_t *order; /* [classes]: those of one sample, best first */
} request;

static const mr_option options[] = {
    {.kind = MR_ARG_TABLE, MR_FIELD(request, asked.trained), .rows = mr_cmd_session_options},
    {"top", 0, MR_ARG_COUNT, MR_FIELD(request, asked.top), .value = "K", .low = 1, .standard = "5",
     .given = offsetof(request, asked.top_given), .help = "classes to print per sample, or nearest images"},
    {"format", 0, MR_ARG_WORD, MR_FIELD(request, asked.json), .words = MR_WORDS("csv", "json"), .standard = "csv",
     .help = "output format; json: one object per line"},
    {"no-labels", 0, MR_ARG_FLAG, MR_FIELD(request, asked.trained.no_labels),
     .help = "accept classes that the model does not know"},
    {"find", 0, MR_ARG_WORD, MR_FIELD(request, asked.words), .words = MR_WORDS("images", "words"),
     .given = offsetof(request, asked.find),
     .help = "image-text models: retrieve images for texts (default), or texts for images"},
    {"embeddings", 0, MR_ARG_PATH, MR_FIELD(request, asked.embeddings), .value = "FILE.npz",
     .help = "image-text models: also write the embeddings; arrays sample, text, image and both"},
    MR_OPTION_QUIET_IGNORED,
    {0},
};

static const mr_option arguments[] = {CMD_SESSION_ARGUMENTS(request, asked.trained)};

/* ---- one sample ------------------------------------------------------------------------------------------------- */

/* The `top` largest logits in front, the first of equals first. */
static void rank_classes(request *q, const float *logits, size_t classes, size_t top)
{
    for (size_t i = 0; i < classes; i++)
        q->order[i] = (int32_t)i;
    for (size_t k = 0; k < top; k++) {
        size_t best = k;
        for (size_t i = k + 1; i < classes; i++)
            if (logits[q->order[i]] > logits[q->order[best]] ||
                (logits[q->order[i]] == logits[q->order[best]] && q->order[i] < q->order[best]))
                best = i;
        int32_t keep = q->order[k];
        q->order[k] = q->order[best];
        q->order[best] = keep;
    }
}

static void add_class(const request *q, mr_buf *out, const char *name)
{
    mr_predict_cell(&q->asked, out, name, strlen(name));
}

static void add_sample(request *q, const mr_verdict *v, const char *label, mr_buf *out)
{
    const char *source = mr_buf_text(&q->source);
    mr_buf_printf(out, q->asked.json ? "{\"sample\":%llu,\"source\":" : "%llu,", (ull)v->facts->sample);
    mr_predict_cell(&q->asked, out, source, q->source.len);
    mr_buf_add_text(out, q->asked.json ? ",\"label\":" : ",");
    if (q->asked.json && !label)
        mr_buf_add_text(out, "null");
    else
        add_class(q, out, label ? label : "");
}

static mr_status print_damaged(request *q, const mr_verdict *v, size_t top, mr_buf *out, mr_error *err)
{
    add_sample(q, v, NULL, out);
    for (size_t k = 0; k < top && !q->asked.json; k++)
        mr_buf_add_text(out, ",,");
    mr_buf_add_text(out, q->asked.json ? ",\"top\":[],\"damaged\":true}\n" : "\n");
    return mr_buf_status(out, err, "printing predictions");
}

static mr_status print_sample(void *ctx, const mr_verdict *v, mr_buf *out, mr_error *err)
{
    request *q = ctx;
    const mr_manifest *m = mr_dataset_manifest(q->model->ds);
    size_t classes = q->model->checkpoint.model.classes, top = q->asked.top < classes ? q->asked.top : classes;
    double sum = 0, largest;
    MR_TRY(mr_predict_source(q->model, v, &q->source, err));
    if (!(v->facts->weight > 0)) /* skipped, as --max-bad allows: a line without classes */
        return print_damaged(q, v, top, out, err);
    rank_classes(q, v->logits, classes, top);
    largest = (double)v->logits[v->best];
    for (size_t i = 0; i < classes; i++)
        sum += exp((double)v->logits[i] - largest);
    add_sample(q, v, v->facts->label >= 0 ? m->classes[v->facts->label].name : NULL, out);
    mr_buf_add_text(out, q->asked.json ? ",\"top\":[" : "");
    for (size_t k = 0; k < top; k++) {
        double p = exp((double)v->logits[q->order[k]] - largest) / sum;
        mr_buf_add_text(out, q->asked.json ? k ? ",{\"class\":" : "{\"class\":" : ",");
        add_class(q, out, mr_session_class(q->model, q->order[k]));
        mr_buf_printf(out, q->asked.json ? ",\"probability\":%.6f}" : ",%.6f", p);
    }
    mr_buf_add_text(out, q->asked.json ? "]}\n" : "\n");
    return mr_buf_status(out, err, "printing predictions");
}

/* ---- all of them ------------------------------------------------------------------------------------------------ */

static void print_head(const request *q, size_t classes)
{
    if (q->asked.json)
        return;
    printf("sample,source,label");
    for (size_t k = 1; k <= q->asked.top && k <= classes; k++)
        printf(",class_%zu,probability_%zu", k, k);
    printf("\n");
}

static mr_status predict_classes(request *q, mr_session *t, mr_error *err)
{
    mr_evaluation ignored;
    size_t classes = t->checkpoint.model.classes;
    q->model = t;
    q->order = mr_alloc(classes, sizeof *q->order);
    MR_TRY(mr_ranks_agree(t->evaluator.ranks, q->order ? MR_OK : mr_fail_memory(err, "predicting"), err));
    if (mr_ranks_rank(t->evaluator.ranks) == 0)
        print_head(q, classes);
    t->evaluator.unlabelled = true;
    t->evaluator.tell = print_sample;
    t->evaluator.take = mr_predict_take;
    t->evaluator.ctx = q;
    return mr_evaluate(&t->evaluator, t->values, &ignored, err);
}

static mr_status check_options(const mr_predict_request *q, const mr_session *t, mr_error *err)
{
    if (t->checkpoint.model.iface->text)
        return MR_OK;
    if (q->embeddings || q->find)
        return mr_fail(err, MR_MISUSE, "%s: is a classifier; --embeddings and --find are for image-text models",
                       t->path);
    if (t->several && q->top_given)
        return mr_fail(
            err, MR_MISUSE,
            "--top: %s is a multi-label model, which prints every class; --threshold sets which of them count "
            "as found",
            t->path);
    return MR_OK;
}

static mr_status predict(request *q, mr_ranks *ranks, mr_session *t, mr_error *err)
{
    MR_TRY(mr_session_open(&q->asked.trained, ranks, t, err));
    MR_TRY(check_options(&q->asked, t, err));
    if (t->checkpoint.model.iface->text)
        MR_TRY(mr_predict_pairs(&q->asked, t, err));
    else if (t->several)
        MR_TRY(mr_predict_labels(&q->asked, t, err));
    else
        MR_TRY(predict_classes(q, t, err));
    if (mr_ranks_rank(ranks) == 0)
        MR_TRY(mr_cmd_session_note(t, err));
    return mr_ranks_rank(ranks) == 0 ? mr_cmd_damage_warn(&t->damage, t->ds, t->evaluator.loader.split, err) : MR_OK;
}

static int start(int argc, char **argv)
{
    request q = {.model = NULL};
    mr_ranks *ranks = NULL;
    mr_session t = {.path = NULL};
    MR_AUTO(mr_cli_release) mr_cli cli = {0};
    mr_error err = {0};
    if (!mr_cli_parse(&cli, &mr_cmd_predict, argc, argv, &q))
        return cli.code;
    mr_status status = mr_cli_ranks(&cli, q.asked.trained.stall, &ranks, &err);
    if (status == MR_OK)
        status = predict(&q, ranks, &t, &err);
    mr_dataset_stage_warn(t.ds, ranks);
    mr_session_close(&t);
    free(q.order);
    mr_buf_free(&q.source);
    return mr_cli_end(ranks, status, &err);
}

const mr_command mr_cmd_predict = {
    .name = "predict",
    .title = "print a model's predictions for each sample",
    .usage = "DATASET RUN",
    .example = "millrace predict flowers run",
    .summary = "Prints for each sample of a split its number, source path, label and the classes that a "
               "trained model finds most likely, with probabilities.  RUN is the --output of millrace train, "
               "or one step-NNNNNNNN in it.  Classes are matched by name, in whatever order the dataset has them.  "
               "A multi-label model prints the probability of every class, and those that count as "
               "found.  An image-text model retrieves for each sample's text the nearest images of the "
               "split; samples without text are skipped.",
    .notes = "Examples:\n"
             "  millrace predict flowers run --split test --top 1 > predictions.csv\n"
             "  millrace predict flowers run --format json | jq -r 'select(.label != .top[0].class) | .source'\n"
             "  millrace predict cartoons run --top 3 --embeddings cartoons.npz\n"
             "\n"
             "Exit status: 0 done; 1 the data or the checkpoint is bad; 2 usage error; 3 system error.",
    .options = options,
    .arguments = arguments,
    .run = start,
};
