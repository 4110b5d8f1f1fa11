/* cmd_saw.c - `millrace saw RUN...`: in which steps of runs a sample was seen.
 * Invariant: computed from what the newest checkpoint says about the run (dataset, split, seed, batch, tail), as the
 * run computed it; no image is read.  A run keeps all of these when it is resumed, so its steps are those of one
 * schedule. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cli/cli.h"
#include "base/cli/term.h"
#include "base/scope.h"
#include "base/text.h"
#include "loader/order/schedule.h"
#include "shards/dataset/dataset.h"
#include "shards/format/meta.h"
#include "train/checkpoint/checkpoint.h"
#include "train/commands.h"
#include "train/run/pairs.h"
#include "train/setup/settings.h"

enum { SHOWN = 12 }; /* steps in a line for people */

typedef struct request {
    mr_cli_list runs;
    const char *source, *hash, *dataset;
    bool json;
} request;

static const mr_option options[] = {
    {"source", 0, MR_ARG_TEXT, MR_FIELD(request, source), .value = "PATH",
     .help = "the sample with this path in the source, as `show` prints it"},
    {"hash", 0, MR_ARG_TEXT, MR_FIELD(request, hash), .value = "HEX",
     .help = "the samples whose image has this XXH3-64, as `show` prints it"},
    {"dataset", 0, MR_ARG_PATH, MR_FIELD(request, dataset), .value = "DATASET",
     .help = "where the runs' dataset or view is now; by default where it was"},
    {"json", 0, MR_ARG_FLAG, MR_FIELD(request, json), .help = "print one JSON object, with every step"},
    {0},
};

static const mr_option arguments[] = {{.value = "RUN", .kind = MR_ARG_LIST, MR_FIELD(request, runs)}, {0}};

static mr_status check(void *ctx, mr_error *err)
{
    const request *q = ctx;
    if (!q->runs.count)
        return mr_fail(err, MR_MISUSE, "RUN is missing, for example: %s", mr_cmd_saw.example);
    if (!q->source == !q->hash)
        return mr_fail(err, MR_MISUSE, "name the sample by --source PATH or by --hash HEX");
    if (q->hash && (strlen(q->hash) != 16 || strspn(q->hash, "0123456789abcdefABCDEF") != 16))
        return mr_fail(err, MR_MISUSE, "--hash %s: is not 16 hexadecimal digits", q->hash);
    return MR_OK;
}

/* ---- a run ------------------------------------------------------------------------------------------------------- */

typedef struct run {
    const char *path, *split;
    mr_checkpoint checkpoint;
    mr_dataset *ds;
    mr_schedule schedule;
    uint64_t grad_accum;
    mr_pairs pairs; /* its items, of a run on images and texts */
} run;

static void free_run(run *r)
{
    mr_checkpoint_release(&r->checkpoint);
    mr_dataset_free(r->ds);
    mr_pairs_close(&r->pairs);
}

static const char *option_of(const run *r, const char *name)
{
    const char *text = json_string_value(json_object_get(json_object_get(r->checkpoint.facts, "options"), name));
    return text ? text : "";
}

static mr_status open_dataset(const request *q, run *r, mr_error *err)
{
    const char *digest = json_string_value(json_object_get(r->checkpoint.facts, "dataset"));
    const char *path = json_string_value(json_object_get(r->checkpoint.facts, "dataset_path"));
    mr_error why;
    if (!digest || !path)
        return mr_fail(err, MR_BAD_DATA, "%s: its checkpoint does not say what it was trained on", r->path);
    mr_status status = mr_dataset_open(q->dataset ? q->dataset : path, &r->ds, &why);
    if (status != MR_OK)
        return mr_fail(err, status, "%s: %s%s", r->path, why.text, q->dataset ? "" : "; give its path with --dataset");
    if (strcasecmp(digest, mr_dataset_sha256(r->ds)) == 0)
        return MR_OK;
    return mr_fail(err, MR_MISUSE, "%s: was trained on %s, and %s is %s; name the right one with --dataset", r->path,
                   digest, q->dataset ? q->dataset : path, mr_dataset_sha256(r->ds));
}

static mr_status list_items(run *r, mr_error *err)
{
    const char *column = json_string_value(json_object_get(r->checkpoint.facts, "text_column"));
    const char *expand = option_of(r, "expand-captions");
    if (!column)
        return MR_OK;
    snprintf(r->pairs.column, sizeof r->pairs.column, "%s", column);
    const mr_pairs_options o = {.train_split = r->split, .expand = *expand && strcmp(expand, "no") != 0};
    return mr_pairs_list(&r->pairs, r->ds, &o, err);
}

static mr_status make_schedule(run *r, mr_error *err)
{
    const mr_split *split;
    mr_order order;
    const char *tail = option_of(r, "tail");
    uint64_t batch = (uint64_t)json_integer_value(json_object_get(r->checkpoint.facts, "global_batch"));
    r->grad_accum = strtoull(option_of(r, "grad-accum"), NULL, 10);
    r->split = option_of(r, "split");
    if (!r->grad_accum || !batch || batch % r->grad_accum || !*r->split || !*tail)
        return mr_fail(err, MR_BAD_DATA, "%s: its checkpoint does not say in which batches it was trained", r->path);
    MR_TRY(mr_manifest_find_split(mr_dataset_manifest(r->ds), r->path, r->split, &split, err));
    MR_TRY(list_items(r, err));
    uint64_t items = r->pairs.items ? r->pairs.item_count : mr_draw_items(split, MR_SHUFFLE_FULL);
    MR_TRY(mr_order_make(MR_SHUFFLE_FULL, items, r->checkpoint.seed, 0, 0, &order, err));
    MR_TRY(mr_schedule_make(&order, batch / r->grad_accum, 1, mr_settings_tail(tail), &r->schedule, err));
    if (!r->pairs.items)
        r->schedule.draw = mr_draw_of(split, MR_SHUFFLE_FULL);
    return MR_OK;
}

/* ---- the sample -------------------------------------------------------------------------------------------------- */

typedef struct wanted {
    const request *q;
    uint64_t hash;
    mr_buf numbers; /* uint64_t each, ascending */
} wanted;

static mr_status by_hash(void *ctx, uint64_t number, const mr_row *row, mr_error *err)
{
    wanted *w = ctx;
    if (row->image_hash == w->hash)
        mr_buf_add(&w->numbers, &number, sizeof number);
    return mr_buf_status(&w->numbers, err, "looking for the sample");
}

static mr_status by_source(wanted *w, const run *r, mr_error *err)
{
    MR_AUTO(mr_sample_view_free) mr_sample_view view = {0};
    MR_AUTO(mr_buf_free) mr_buf source = {0};
    mr_meta_facts facts;
    for (uint64_t n = 0; n < mr_dataset_samples(r->ds, r->split); n++) {
        MR_TRY(mr_dataset_read_meta(r->ds, r->split, n, &view, err));
        mr_buf_clear(&source);
        MR_TRY(mr_meta_scan(view.meta, view.meta_len, &facts, &source, err));
        if (strcmp(mr_buf_text(&source), w->q->source) == 0)
            mr_buf_add(&w->numbers, &n, sizeof n);
    }
    return mr_buf_status(&w->numbers, err, "looking for the sample");
}

static mr_status find(wanted *w, const run *r, mr_error *err)
{
    const mr_split *split = mr_manifest_split(mr_dataset_manifest(r->ds), r->split);
    mr_buf_clear(&w->numbers);
    if (w->q->source)
        return by_source(w, r, err);
    w->hash = strtoull(w->q->hash, NULL, 16);
    return mr_dataset_each_row(r->ds, split, by_hash, w, err);
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* ---- when it was seen -------------------------------------------------------------------------------------------- */

typedef struct seen {
    uint64_t epoch, step, sample; /* the step: an update, from 1 */
} seen;

/* Each step of the run so far, in order. */
static mr_status list_seen(const run *r, const wanted *w, mr_buf *out, mr_error *err)
{
    const mr_schedule *s = &r->schedule;
    uint64_t per_epoch = (s->steps + r->grad_accum - 1) / r->grad_accum, count = w->numbers.len / sizeof(uint64_t);
    for (uint64_t update = 1; count && update <= r->checkpoint.update; update++) {
        uint64_t epoch = (update - 1) / per_epoch, first = (update - 1) % per_epoch * r->grad_accum;
        for (uint64_t step = first; step < first + r->grad_accum && step < s->steps; step++)
            for (uint64_t i = 0; i < mr_schedule_count(s, step, 0); i++) {
                mr_slot slot = mr_schedule_slot(s, epoch, step, 0, i);
                uint64_t sample = r->pairs.items ? r->pairs.items[slot.item] : slot.sample;
                const seen at = {epoch, update, sample};
                if (slot.weight > 0 && bsearch(&sample, w->numbers.data, count, sizeof sample, by_number))
                    mr_buf_add(out, &at, sizeof at);
            }
    }
    return mr_buf_status(out, err, r->path);
}

static json_t *seen_json(const run *r, const seen *list, size_t count)
{
    json_t *steps = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(steps, json_pack("{s:I,s:I,s:I}", "epoch", (json_int_t)list[i].epoch, "step",
                                               (json_int_t)list[i].step, "sample", (json_int_t)list[i].sample));
    return json_pack("{s:s,s:I,s:s,s:s,s:o}", "run", r->path, "last_step", (json_int_t)r->checkpoint.update, "split",
                     r->split, "dataset", mr_dataset_sha256(r->ds), "seen", steps);
}

static void print_seen(const run *r, const wanted *w, const seen *list, size_t count)
{
    char times[32], steps[32];
    mr_text_count(r->checkpoint.update, steps);
    mr_term_text(stdout, r->path);
    if (!w->numbers.len)
        printf(": never; its dataset has no such sample in %s\n", r->split);
    else if (!count)
        printf(": not in its %s steps\n", steps);
    else
        printf(": %s time%s in %s steps:", mr_text_count(count, times), count == 1 ? "" : "s", steps);
    for (size_t i = 0; i < count && i < SHOWN; i++)
        printf("%s %llu (epoch %llu)", i ? "," : "", (unsigned long long)list[i].step,
               (unsigned long long)list[i].epoch);
    if (count)
        printf("%s\n", count > SHOWN ? " ..." : "");
}

static mr_status look(const request *q, const char *path, json_t *all, bool *any, mr_error *err)
{
    MR_AUTO(free_run) run r = {.path = path};
    MR_AUTO(mr_buf_free) mr_buf list = {0};
    wanted w = {.q = q};
    MR_TRY(mr_checkpoint_look(path, false, &r.checkpoint, NULL, err));
    MR_TRY(open_dataset(q, &r, err));
    MR_TRY(make_schedule(&r, err));
    mr_status status = find(&w, &r, err);
    if (status == MR_OK)
        status = list_seen(&r, &w, &list, err);
    const seen *found = (const seen *)(const void *)list.data;
    size_t count = list.len / sizeof *found;
    if (status == MR_OK && q->json)
        json_array_append_new(all, seen_json(&r, found, count));
    else if (status == MR_OK)
        print_seen(&r, &w, found, count);
    mr_buf_free(&w.numbers);
    *any = *any || count;
    return status;
}

static void release(json_t **doc)
{
    json_decref(*doc);
}

static mr_status look_at_all(const request *q, bool *any, mr_error *err)
{
    json_t *all = json_array();
    MR_AUTO(release) json_t *doc = json_pack("{s:o}", "runs", all);
    if (!doc)
        return mr_fail_memory(err, "looking for the sample");
    for (size_t i = 0; i < q->runs.count; i++)
        MR_TRY(look(q, q->runs.items[i], all, any, err));
    return q->json ? mr_json_print(doc, err) : mr_term_flush(err);
}

static int start(int argc, char **argv)
{
    request q = {.json = false};
    MR_AUTO(mr_cli_release) mr_cli cli = {0};
    mr_error err = {0};
    bool any = false;
    int code;
    if (mr_cli_parse(&cli, &mr_cmd_saw, argc, argv, &q)) {
        code = mr_cli_end(NULL, look_at_all(&q, &any, &err), &err);
        code = code == 0 && !any ? 1 : code;
    } else {
        code = cli.code;
    }
    free(q.runs.items);
    return code;
}

const mr_command mr_cmd_saw = {
    .name = "saw",
    .title = "list the steps of runs that saw a sample",
    .usage = "RUN... --source PATH",
    .example = "millrace saw run1 run2 --source train/rose/17.jpg",
    .summary = "Lists each step of these runs that saw a sample, by its path in the source or the hash of its image.  "
               "It is computed from the run's dataset or view, seed and batches; no image is read.",
    .notes =
        "RUN is the --output of `train`, with at least one checkpoint; what came after the newest one is not "
        "counted.  A sample that was damaged when it was read, and replaced or left out (--max-bad), counts as seen.\n"
        "\n"
        "Examples:\n"
        "  millrace saw run1 run2 --source train/rose/17.jpg\n"
        "  millrace saw runs/* --hash a0630e0ba9540d8f --json\n"
        "\n"
        "Exit status: 0 seen by one of them; 1 by none; 2 usage error; 3 system error.",
    .options = options,
    .arguments = arguments,
    .check = check,
    .run = start,
};
