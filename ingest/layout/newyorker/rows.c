/* rows.c - from the rows of a config to samples and labels.
 * Invariant: every row is a sample, in row order, or in a note. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/source/names.h"
#include "ingest/layout/common/labels.h"
#include "ingest/layout/newyorker/newyorker.h"

/* ---- rows ----------------------------------------------------------------------------------------------------- */

typedef struct build {
    const mr_tree *tree;
    const mr_layout_options *options;
    mr_plan *plan;
    mr_newyorker_state *st;
    mr_jsonl_field fields[2]; /* contest_number, and the label */
    mr_labels labels;
    mr_buf columns; /* the first row's, for a message */
    mr_error *err;
} build;

/* MR_NO_ENTRY: missing, or ambiguous: a number must name one image. */
static mr_status find_image(const build *b, int64_t number, uint32_t *entry)
{
    static const char *const ends[] = {"jpeg", "jpg", "png", "webp"};
    const mr_source *s = b->tree->source;
    *entry = MR_NO_ENTRY;
    for (size_t i = 0; i < MR_COUNT(ends); i++) {
        char path[64];
        int n = snprintf(path, sizeof path, MR_NEWYORKER_IMAGES "/%" PRId64 ".%s", number, ends[i]);
        uint32_t found = mr_tree_find(b->tree, path, (size_t)n);
        if (found != MR_NO_ENTRY && *entry != MR_NO_ENTRY) {
            mr_fail(b->err, MR_BAD_DATA, "%s and %s are both the image of contest %" PRId64,
                    mr_source_entry(s, *entry)->path, mr_source_entry(s, found)->path, number);
            return mr_source_dispensable(s, found, "keeps the other", MR_BAD_DATA, b->err);
        }
        if (found != MR_NO_ENTRY)
            *entry = found;
    }
    return MR_OK;
}

static const char *file_name(const mr_jsonl *j)
{
    return mr_source_entry(j->source, j->entry)->path;
}

static mr_status contest_number(build *b, const mr_jsonl *j, const mr_jsonl_row *r, int64_t *number)
{
    mr_jsonl_field *f = &b->fields[0];
    errno = 0;
    *number = f->kind == MR_JSONL_INTEGER ? strtoll(mr_buf_text(&f->text), NULL, 10) : 0;
    if (f->kind == MR_JSONL_INTEGER && !errno)
        return MR_OK;
    return mr_fail(b->err, MR_BAD_DATA, "%s: line %" PRIu64 ": %s", file_name(j), r->line,
                   f->kind == MR_JSONL_ABSENT ? "no \"contest_number\"" : "\"contest_number\" is not an integer");
}

static mr_status add_row(build *b, const mr_jsonl *j, const mr_jsonl_row *r, uint32_t split)
{
    int64_t number;
    uint32_t entry = MR_NO_ENTRY;
    mr_buf *columns = b->columns.len ? NULL : &b->columns;
    MR_TRY(mr_jsonl_pick(j, r, b->fields, MR_COUNT(b->fields), columns, b->err));
    MR_TRY(contest_number(b, j, r, &number));
    MR_TRY(find_image(b, number, &entry));
    if (entry == MR_NO_ENTRY) {
        char path[64];
        int n = snprintf(path, sizeof path, MR_NEWYORKER_IMAGES "/%" PRId64 ".jpeg", number);
        mr_note_add(b->plan->notes, MR_NOTE_MISSING, path, (size_t)n, 0, "%s line %" PRIu64 ": row left out",
                    file_name(j), r->line);
        return MR_OK;
    }
    MR_TRY(mr_labels_take(&b->labels, &b->fields[1], file_name(j), "line", r->line, b->err));
    if (!MR_GROW(b->st->rows, b->st->count, b->st->capacity))
        return mr_fail_memory(b->err, "listing rows");
    b->st->rows[b->st->count] = (mr_newyorker_row){.at = r->at, .len = (uint32_t)r->len, .file = j->entry};
    mr_sample sample = {.split = split, .entry = entry, .label = -1, .aux = b->st->count++, .meta_bytes = r->len};
    return mr_plan_add(b->plan, &sample, b->err);
}

static mr_status plan_file(build *b, uint32_t entry, const char *stem)
{
    mr_jsonl j = {.source = b->tree->source, .entry = entry};
    mr_jsonl_row r;
    size_t splits = b->plan->split_count, samples = b->plan->sample_count;
    uint32_t split;
    mr_status status = mr_plan_split_get(b->plan, b->options, stem, strlen(stem), &split, b->err);
    if (status != MR_OK)
        return status;
    b->plan->used[entry] = 1;
    if (split == MR_NO_ENTRY) {
        mr_note_add(b->plan->notes, MR_NOTE_INFO, stem, strlen(stem), 0, "split left out by --split-map");
        return MR_OK;
    }
    while ((status = mr_jsonl_next(&j, &r, b->err)) == MR_OK && (status = add_row(b, &j, &r, split)) == MR_OK)
        ;
    mr_buf_free(&j.buf);
    if (status != MR_END)
        return status;
    if (b->plan->sample_count == samples) {
        b->plan->split_count = splits;
        mr_note_add(b->plan->notes, MR_NOTE_INFO, file_name(&j), strlen(file_name(&j)), 0,
                    "no row with an image: no split is made of it");
    }
    return MR_OK;
}

/* One note for all: it is normal that a config's rows use a part of the contest images. */
static void note_unused(const build *b, const char *config)
{
    mr_child child = {0};
    size_t count = 0;
    uint64_t bytes = 0;
    while (mr_tree_next(b->tree, MR_NEWYORKER_IMAGES, strlen(MR_NEWYORKER_IMAGES), &child)) {
        if (child.is_dir || !mr_name_is_image(child.name, child.name_len) || b->plan->used[child.entry])
            continue;
        b->plan->used[child.entry] = MR_USE_LEFT_OUT; /* by the choice of a config */
        bytes += mr_source_entry(b->tree->source, child.entry)->size;
        count++;
    }
    if (count)
        mr_note_add(b->plan->notes, MR_NOTE_INFO, MR_NEWYORKER_IMAGES, strlen(MR_NEWYORKER_IMAGES), bytes,
                    "images left out, as no row of the splits of %s uses them: %zu", config, count);
}

mr_status mr_newyorker_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err)
{
    mr_newyorker_config config = {0};
    size_t files = 0;
    build b = {.tree = t,
               .options = o,
               .plan = plan,
               .labels = {.asked = o->label_column},
               .err = err,
               .fields = {{.name = "contest_number"}, {.name = o->label_column ? o->label_column : "label"}}};
    plan->answers = true;
    mr_status status = mr_newyorker_choose(t, o->config, &config, err);
    if (status != MR_OK)
        return status;
    plan->state = b.st = mr_alloc(1, sizeof *b.st);
    if (!b.st)
        return mr_fail_memory(err, "listing rows");
    for (int i = 0; i < MR_NEWYORKER_FILES; i++)
        files += config.files[i] != MR_NO_ENTRY;
    for (int i = 0; i < MR_NEWYORKER_FILES && status == MR_OK; i++) {
        if (config.files[i] == MR_NO_ENTRY)
            continue;
        status = plan_file(&b, config.files[i], mr_newyorker_stems[i]);
        if (files > 1)
            status = mr_source_dispensable(t->source, config.files[i], "ingests without its rows", status, err);
    }
    if (status == MR_OK)
        status = mr_labels_plan(&b.labels, plan, mr_buf_text(&b.columns), err);
    if (status == MR_OK)
        note_unused(&b, config.name);
    mr_buf name = {0};
    mr_text_escape(&name, config.name, strlen(config.name));
    if (status == MR_OK)
        status = mr_plan_variant_set(plan, &name, err);
    mr_buf_free(&name);
    for (size_t i = 0; i < MR_COUNT(b.fields); i++)
        mr_buf_free(&b.fields[i].text);
    mr_labels_free(&b.labels);
    mr_buf_free(&b.columns);
    return status;
}
