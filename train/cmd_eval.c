/* cmd_eval.c - `millrace eval DATASET RUN`: loss and accuracy (or recall) of a trained model on a split, every sample
 * once. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/scope.h"
#include "shards/dataset/dataset_ranks.h"
#include "base/cli/term.h"
#include "base/text.h"
#include "shards/dataset/dataset.h"
#include "loader/cmd_damage.h"
#include "train/setup/labels.h"
#include "train/cmd_session.h"
#include "train/commands.h"

typedef unsigned long long ull;

typedef struct request {
    mr_session_request trained;
    bool json;
} request;

static const mr_option options[] = {
    {.kind = MR_ARG_TABLE, MR_FIELD(request, trained), .rows = mr_cmd_session_options},
    {"json", 0, MR_ARG_FLAG, MR_FIELD(request, json), .own = true, .help = "print one JSON object"},
    MR_OPTION_QUIET_IGNORED,
    {0},
};

static const mr_option arguments[] = {CMD_SESSION_ARGUMENTS(request, trained)};

static json_t *recall_json(const mr_recall *r)
{
    json_t *doc = json_object(), *to_image = json_object(), *to_text = json_object();
    for (int k = 0; k < MR_RECALLS; k++) {
        char at[16];
        snprintf(at, sizeof at, "%u", mr_recall_at[k]);
        json_object_set_new(to_image, at, json_real(r->text_to_image[k]));
        json_object_set_new(to_text, at, json_real(r->image_to_text[k]));
    }
    json_object_set_new(doc, "text_to_image_recall", to_image);
    json_object_set_new(doc, "image_to_text_recall", to_text);
    return doc;
}

/* Follows the result; "" where nothing was damaged. */
static const char *left_out(const mr_evaluation *r, char text[60])
{
    text[0] = '\0';
    if (r->damaged)
        snprintf(text, 60, "; %llu damaged sample%s skipped", (ull)r->damaged, r->damaged == 1 ? "" : "s");
    return text;
}

static mr_status print_recall(const mr_session *t, const char *split, const mr_evaluation *r, mr_error *err)
{
    char number[40], out[60], cell[2][MR_RECALLS][16];
    printf("%s, %s: %s pairs, loss %.5f in batches of %zu%s\n", t->path, split, mr_text_count(r->samples, number),
           r->loss, t->evaluator.batch, left_out(r, out));
    mr_table *table = mr_table_new(4);
    mr_table_row(table, "recall", "@1", "@5", "@10");
    for (int way = 0; way < 2; way++) {
        const double *share = way ? r->recall.image_to_text : r->recall.text_to_image;
        for (int k = 0; k < MR_RECALLS; k++)
            snprintf(cell[way][k], sizeof cell[way][k], "%.4f", share[k]);
        mr_table_row(table, way ? "image to text" : "text to image", cell[way][0], cell[way][1], cell[way][2]);
    }
    return mr_table_print(table, stdout, err);
}

/* ---- several labels ---------------------------------------------------------------------------------------------- */

static mr_status print_classes(const mr_session *t, const mr_scores *s, mr_error *err)
{
    char number[40], cell[4][16];
    mr_table *table = mr_table_new(6);
    mr_table_row(table, "class", ">samples", ">average precision", ">precision", ">recall", ">F1");
    for (size_t i = 0; i < s->classes; i++) {
        const mr_class_score *c = &s->each[i];
        const double shares[4] = {c->average_precision, c->precision, c->recall, c->f1};
        for (int k = 0; k < 4; k++)
            snprintf(cell[k], sizeof cell[k], c->positives ? "%.4f" : "-", shares[k]);
        mr_table_row(table, mr_session_class(t, (int32_t)i), mr_text_count(c->positives, number), cell[0], cell[1],
                     cell[2], cell[3]);
    }
    return mr_table_print(table, stdout, err);
}

static mr_status print_scores(const mr_session *t, const char *split, const mr_evaluation *r, const mr_scores *s,
                              mr_error *err)
{
    char number[40], out[60];
    printf("%s, %s: %s samples, mAP %s%.5f%s, F1 %.5f at probability %.4f, loss %.5f%s\n", t->path, split,
           mr_text_count(r->samples, number), mr_sgr(stdout, MR_BOLD), r->accuracy, mr_sgr(stdout, MR_PLAIN), r->f1,
           r->threshold, r->loss, left_out(r, out));
    return print_classes(t, s, err);
}

static json_t *scores_json(const mr_session *t, const mr_evaluation *r, const mr_scores *s)
{
    json_t *classes = json_array();
    for (size_t i = 0; i < s->classes; i++) {
        const mr_class_score *c = &s->each[i];
        bool known = c->positives > 0;
        json_array_append_new(classes,
                              json_pack("{s:s, s:I, s:o, s:o, s:o, s:o}", "class", mr_session_class(t, (int32_t)i),
                                        "samples", (json_int_t)c->positives, "average_precision",
                                        known ? json_real(c->average_precision) : json_null(), "precision",
                                        known ? json_real(c->precision) : json_null(), "recall",
                                        known ? json_real(c->recall) : json_null(), "f1",
                                        known ? json_real(c->f1) : json_null()));
    }
    return json_pack("{s:f, s:f, s:f, s:o}", "mean_average_precision", r->accuracy, "f1", r->f1, "threshold",
                     r->threshold, "classes", classes);
}

/* ---- the result -------------------------------------------------------------------------------------------------- */

static json_t *path(const char *bytes)
{
    return mr_json_path(bytes, strlen(bytes));
}

static mr_status print(const request *q, const mr_session *t, const mr_evaluation *r, const mr_scores *s, mr_error *err)
{
    const char *split = t->evaluator.loader.split;
    bool pairs = t->checkpoint.model.iface->text;
    if (q->json) {
        json_t *doc = json_pack("{s:o, s:o, s:s, s:I, s:I, s:I, s:o, s:f}", "dataset", path(q->trained.dataset),
                                "checkpoint", path(t->path), "split", split, "update", (json_int_t)t->checkpoint.update,
                                "samples", (json_int_t)r->samples, "damaged", (json_int_t)r->damaged, "loss",
                                isfinite(r->loss) ? json_real(r->loss) : json_null(), "seconds", r->seconds);
        mr_session_origin_json(t, doc);
        if (pairs)
            json_object_update_new(doc, recall_json(&r->recall));
        else if (t->several)
            json_object_update_new(doc, scores_json(t, r, s));
        else
            json_object_set_new(doc, "accuracy", json_real(r->accuracy));
        mr_status status = doc ? mr_json_print(doc, err) : mr_fail_memory(err, "printing");
        json_decref(doc);
        return status;
    }
    char number[2][40], out[60];
    if (pairs)
        return print_recall(t, split, r, err);
    if (t->several)
        return print_scores(t, split, r, s, err);
    printf("%s, %s of %s: accuracy %s%.5f%s (%s of %s), loss %.5f%s\n", t->path, split, q->trained.dataset,
           mr_sgr(stdout, MR_BOLD), r->accuracy, mr_sgr(stdout, MR_PLAIN), mr_text_count(r->right, number[0]),
           mr_text_count(r->samples, number[1]), r->loss, left_out(r, out));
    return MR_OK;
}

/* Before the first image is decoded. */
static mr_status check_labels(const request *q, const mr_session *t, mr_ranks *ranks, mr_error *err)
{
    if (t->checkpoint.model.iface->text)
        return MR_OK;
    const mr_split *split = mr_manifest_split(mr_dataset_manifest(t->ds), t->evaluator.loader.split);
    if (t->several)
        return mr_labels_check_targets(&t->targets, split, q->trained.dataset, err);
    return mr_labels_check(t->ds, split, ranks, q->trained.dataset, "use 'millrace predict', which needs no labels",
                           err);
}

static mr_status evaluate(const request *q, mr_ranks *ranks, mr_session *t, mr_error *err)
{
    mr_evaluation result;
    MR_AUTO(mr_scores_release) mr_scores scores = {0};
    MR_TRY(mr_session_open(&q->trained, ranks, t, err));
    MR_TRY(mr_ranks_agree(ranks, check_labels(q, t, ranks, err), err));
    t->evaluator.shows = true;
    if (t->several) {
        t->evaluator.targets = &t->targets;
        t->evaluator.scores = &scores;
    }
    MR_TRY(mr_evaluate(&t->evaluator, t->values, &result, err));
    if (mr_ranks_rank(ranks) != 0)
        return MR_OK;
    MR_TRY(print(q, t, &result, &scores, err));
    MR_TRY(mr_cmd_session_note(t, err));
    return mr_cmd_damage_warn(&t->damage, t->ds, t->evaluator.loader.split, err);
}

static int start(int argc, char **argv)
{
    request q = {.json = false};
    mr_ranks *ranks = NULL;
    mr_session t = {.path = NULL};
    MR_AUTO(mr_cli_release) mr_cli cli = {0};
    mr_error err = {0};
    if (!mr_cli_parse(&cli, &mr_cmd_eval, argc, argv, &q))
        return cli.code;
    mr_status status = mr_cli_ranks(&cli, q.trained.stall, &ranks, &err);
    if (status == MR_OK)
        status = evaluate(&q, ranks, &t, &err);
    mr_dataset_stage_warn(t.ds, ranks);
    mr_session_close(&t);
    return mr_cli_end(ranks, status, &err);
}

const mr_command mr_cmd_eval = {
    .name = "eval",
    .title = "evaluate a trained model on a split",
    .usage = "DATASET RUN",
    .example = "millrace eval flowers run",
    .summary =
        "Evaluates a trained model on a whole split, every sample once; under mpirun the ranks share "
        "it, and the result is the same.  RUN is the --output of millrace train, or one "
        "step-NNNNNNNN in it.  Classes are matched by name.  An image-text model is evaluated by its "
        "loss in batches of --batch, and by recall at 1, 5 and 10, from text to image and from image to text; "
        "identical images and identical texts count as one, ties count against.  A multi-label model is evaluated by "
        "its mean average precision (mAP) and by F1, of each class as well.",
    .notes = "Examples:\n"
             "  millrace eval flowers run\n"
             "  millrace eval flowers run --split test --best --json\n"
             "  mpirun -n 4 millrace eval flowers run/step-00000200\n"
             "\n"
             "Exit status: 0 done; 1 the data or the checkpoint is bad; 2 usage error; 3 system error.",
    .options = options,
    .arguments = arguments,
    .run = start,
};
