/* rows.c - from the rows of opened Parquet files to samples and labels.
 * Invariant: every row is a sample, in row order, or in a note; a stream that lacks a row, or a required member, is bad
 * data, whatever exit status its writer had. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/layout/hub/hub.h"
#include "ingest/layout/common/hub_objects.h"
#include "ingest/layout/common/labels.h"

enum { NUMBER_MAX = 9999, PATH_MAX_BYTES = 4096 };

typedef struct build {
    const mr_tree *tree;
    const mr_layout_options *options;
    mr_plan *plan;
    const mr_hub_file *file; /* the current one */
    mr_hub_schema first;     /* the first file's schema, with which the others must agree */
    mr_labels labels;        /* texts */
    mr_label_census numbers;
    mr_class_set classes; /* the objects' classes */
    mr_label_gaps gaps;
    mr_jsonl_field field; /* the label's column */
    mr_jsonl row;
    mr_note *left_out; /* what the listing left out, sorted by path; the texts belong to the notes */
    size_t left_out_count;
    size_t only_counted; /* images rejected by the listing of which no note was kept */
    mr_buf path, scratch;
    mr_error *err;
} build;

static const char *file_name(build *b)
{
    mr_buf_clear(&b->scratch);
    mr_text_escape(&b->scratch, b->file->path.text, b->file->path.len);
    return mr_buf_text(&b->scratch);
}

/* ---- labels --------------------------------------------------------------------------------------------------- */

static mr_status bad_label(build *b, uint64_t row, const char *what)
{
    return mr_fail(b->err, MR_BAD_DATA, "%s: row %" PRIu64 ": \"%s\" %s", file_name(b), row, b->first.column, what);
}

/* A whole number is the label itself; the hub writes -1 for "not known". */
static mr_status take_number(build *b, uint64_t row)
{
    const mr_buf *text = &b->field.text;
    if (b->field.kind == MR_JSONL_OTHER)
        return bad_label(b, row, "is a list or an object, not a label");
    MR_TRY(mr_label_census_add(&b->numbers, (const char *)text->data, text->len, &b->gaps, b->err));
    mr_buf_add(&b->labels.texts, text->data, text->len);
    mr_buf_add(&b->labels.texts, "", 1);
    return mr_buf_status(&b->labels.texts, b->err, "reading labels");
}

/* A class by its number; false: the list of names has no such number. */
static bool take_named(build *b, int32_t *label)
{
    mr_value v = mr_value_of((const char *)b->field.text.data, b->field.text.len);
    bool none = v.kind == MR_VALUE_NONE || !strcmp(v.name, "-1");
    b->gaps.empty += v.kind == MR_VALUE_NONE;
    b->gaps.minus_one += !strcmp(v.name, "-1");
    if (none || v.kind != MR_VALUE_WHOLE || v.number < 0 || v.number >= (double)json_array_size(b->first.names))
        return none;
    *label = (int32_t)v.number;
    return true;
}

static mr_status take_label(build *b, uint64_t row)
{
    if (b->first.kind == MR_HUB_NO_LABEL)
        return MR_OK;
    if (b->first.kind == MR_HUB_TEXTS)
        return mr_labels_take(&b->labels, &b->field, file_name(b), "row", row, b->err);
    return b->first.kind == MR_HUB_NUMBERS ? take_number(b, row) : MR_OK;
}

static mr_status add_class(build *b, const char *name, size_t len)
{
    return mr_plan_class(b->plan, name, len, false, 0, b->err);
}

static void note_label(build *b, const char *what)
{
    mr_note_add(b->plan->notes, MR_NOTE_INFO, b->first.column, strlen(b->first.column), 0, "%s", what);
}

/* A column "label" of texts that was not requested may hold captions, unless they are single letters. */
static mr_status plan_texts(build *b)
{
    mr_status status = mr_labels_plan(&b->labels, b->plan, mr_buf_text(&b->first.columns), b->err);
    if (status == MR_OK && b->labels.labelled && !b->plan->class_count)
        note_label(b, "a column of strings: samples have no label; --label-column makes classes of it");
    return status;
}

/* Objects whose classes no list names: they are called by the numbers or texts of the rows. */
static bool objects_name_classes(const build *b)
{
    return b->first.kind == MR_HUB_NO_LABEL && !b->first.objects;
}

static mr_status plan_numbers(build *b)
{
    const char *text = (const char *)b->labels.texts.data;
    mr_label_census_settle(&b->numbers, NUMBER_MAX);
    if (mr_label_census_unique(&b->numbers) && !b->options->label_column) {
        note_label(b, "a column of numbers that (nearly) all differ: samples have no label; --label-column makes "
                      "classes of it");
        return MR_OK;
    }
    MR_TRY(mr_label_census_classes(&b->numbers, b->first.column, b->plan, b->err));
    for (size_t i = 0; i < b->plan->sample_count; i++, text += strlen(text) + 1)
        b->plan->samples[i].label = mr_label_census_find(&b->numbers, b->plan, text, strlen(text));
    return MR_OK;
}

static mr_status plan_labels(build *b)
{
    mr_status status = MR_OK;
    size_t i;
    json_t *item;
    if (b->first.kind == MR_HUB_TEXTS)
        return plan_texts(b);
    if (b->first.kind == MR_HUB_NO_LABEL && b->first.column)
        note_label(b, "a column of neither integers nor strings: samples have no label");
    json_array_foreach(b->first.names, i, item) if (status == MR_OK) status =
        add_class(b, json_string_value(item), json_string_length(item));
    if (b->first.kind == MR_HUB_NO_LABEL && b->first.objects) {
        mr_hub_state *st = b->plan->state;
        st->numbered = true;
        json_array_foreach(b->first.objects, i, item) if (status == MR_OK) status =
            add_class(b, json_string_value(item), json_string_length(item));
    }
    MR_TRY(status);
    if (objects_name_classes(b))
        return mr_plan_classes_in_order(b->plan, b->err);
    return b->first.kind == MR_HUB_NUMBERS ? plan_numbers(b) : MR_OK;
}

/* ---- rows ----------------------------------------------------------------------------------------------------- */

/* Whether the name of entry `e`, after the file's own, begins with this row's number and `end`. */
static bool is_row(const build *b, uint32_t e, uint64_t row, const char *end)
{
    char text[40];
    size_t len, skip = b->file->path.len + 1;
    int n = snprintf(text, sizeof text, "%09" PRIu64 "%s", row, end);
    if (e >= b->tree->end)
        return false;
    const char *path = mr_tree_path(b->tree, e, &len);
    return len >= skip + (size_t)n && memcmp(path, b->file->path.text, skip - 1) == 0 && path[skip - 1] == '/' &&
           memcmp(path + skip, text, (size_t)n) == 0 && (*end == '/' || len == skip + (size_t)n);
}

static void note_row(build *b, mr_note_kind kind, uint64_t row, const char *why, const char *what)
{
    mr_buf_clear(&b->path);
    mr_buf_printf(&b->path, "%.*s/%09" PRIu64, (int)b->file->path.len, b->file->path.text, row);
    mr_note_add(b->plan->notes, kind, mr_buf_text(&b->path), b->path.len, 0, "%s%s", why, what);
}

/* An image by its path: next to the Parquet file, otherwise from the root. */
static mr_status find_image(build *b, uint32_t entry, uint64_t row, uint32_t *image)
{
    const mr_source *source = b->tree->source;
    mr_buf target = {0};
    mr_status status = MR_OK;
    if (mr_source_entry(source, entry)->size <= PATH_MAX_BYTES)
        status = mr_source_read(source, entry, &target, b->err);
    const char *text = mr_buf_text(&target);
    if (status == MR_OK && mr_path_beside(b->file->path.text, b->file->path.len, text, &b->path))
        *image = mr_tree_find(b->tree, mr_buf_text(&b->path), b->path.len);
    if (status == MR_OK && *image == MR_NO_ENTRY && mr_path_beside("", 0, text, &b->path))
        *image = mr_tree_find(b->tree, mr_buf_text(&b->path), b->path.len);
    if (status == MR_OK && *image == MR_NO_ENTRY)
        note_row(b, MR_NOTE_MISSING, row, "row left out, its image is missing: ", text);
    mr_buf_free(&target);
    return status;
}

/* Reads and checks the row's JSON: one object; picks its label column. */
static mr_status read_row(build *b, uint32_t entry, uint64_t row, mr_buf *text)
{
    mr_jsonl_row line = {.line = 1};
    MR_TRY(mr_source_read(b->tree->source, entry, text, b->err));
    line.text = (const char *)text->data;
    line.len = text->len;
    b->row = (mr_jsonl){.source = b->tree->source, .entry = entry};
    MR_TRY(mr_jsonl_pick(&b->row, &line, &b->field, b->first.kind != MR_HUB_NO_LABEL, NULL, b->err));
    if (!text->len || text->data[0] != '{' || text->data[text->len - 1] != '}')
        return mr_fail(b->err, MR_BAD_DATA, "%s: row %" PRIu64 " is not a JSON object", file_name(b), row);
    return MR_OK;
}

static int path_order(const void *a, const void *b)
{
    const mr_note *x = a, *y = b;
    return strcmp(x->path, y->path);
}

/* What the listing left out, by path: a row whose image is among it is rejected once, for that reason. */
static mr_status list_left_out(build *b)
{
    const mr_notes *notes = b->plan->notes;
    b->left_out = mr_alloc(notes->count, sizeof *b->left_out);
    if (!b->left_out)
        return mr_fail_memory(b->err, "listing rows");
    for (size_t i = 0; i < notes->count; i++)
        if (notes->items[i].kind == MR_NOTE_REJECT || notes->items[i].kind == MR_NOTE_IGNORED)
            b->left_out[b->left_out_count++] = notes->items[i];
    if (b->left_out_count)
        qsort(b->left_out, b->left_out_count, sizeof *b->left_out, path_order);
    b->only_counted = notes->counts[MR_NOTE_REJECT] - notes->kept[MR_NOTE_REJECT];
    return MR_OK;
}

static const mr_note *find_left_out(build *b, uint64_t row)
{
    size_t low = 0, high = b->left_out_count;
    mr_buf_clear(&b->path);
    mr_buf_printf(&b->path, "%s/%09" PRIu64 "/", file_name(b), row);
    const char *prefix = mr_buf_text(&b->path);
    b->plan->notes->failed = b->plan->notes->failed || b->path.failed || b->scratch.failed;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (strcmp(b->left_out[mid].path, prefix) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    bool found = low < b->left_out_count && strncmp(b->left_out[low].path, prefix, strlen(prefix)) == 0;
    return found ? &b->left_out[low] : NULL;
}

static void reject_row(build *b, uint64_t row)
{
    const mr_note *note = find_left_out(b, row);
    if (!note && b->only_counted)
        b->only_counted--;
    else if (!note)
        note_row(b, MR_NOTE_REJECT, row, "the row has no image", "");
    else if (note->kind != MR_NOTE_REJECT)
        note_row(b, MR_NOTE_REJECT, row, "the row's image is left out: ", note->detail);
}

/* The entries of one row, from *at on, which moves past them. */
static mr_status add_row(build *b, uint64_t row, uint64_t rows, uint32_t split, uint32_t *at, mr_buf *text)
{
    uint32_t image = MR_NO_ENTRY, json = *at;
    int32_t label = -1;
    if (!is_row(b, json, row, ".json"))
        return mr_fail(b->err, MR_BAD_DATA, "%s: row %" PRIu64 " of %" PRIu64 " is missing from the reader's output",
                       file_name(b), row, rows);
    mr_status status = read_row(b, json, row, text);
    b->plan->used[(*at)++] = 1;
    bool by_path = is_row(b, *at, row, ".path");
    if (status == MR_OK && by_path)
        status = find_image(b, *at, row, &image);
    b->plan->used[*at < b->tree->end ? *at : json] |= by_path;
    *at += by_path;
    if (!by_path && is_row(b, *at, row, "/"))
        image = *at;
    while (is_row(b, *at, row, "/"))
        ++*at;
    if (status == MR_OK && image == MR_NO_ENTRY && !by_path)
        reject_row(b, row);
    if (status != MR_OK || image == MR_NO_ENTRY)
        return status;
    if (b->first.kind == MR_HUB_NAMES && !take_named(b, &label)) {
        note_row(b, MR_NOTE_REJECT, row, b->first.column, " has no class of its list of names");
        b->plan->used[image] = MR_USE_REJECTED;
        return MR_OK;
    }
    status = take_label(b, row);
    if (status != MR_OK)
        return status;
    if (objects_name_classes(b))
        MR_TRY(mr_hub_objects_classes(text->data, text->len, file_name(b), &b->classes, b->plan, b->err));
    mr_sample sample = {.split = split,
                        .entry = image,
                        .label = label,
                        .aux = json,
                        .meta_bytes = mr_source_entry(b->tree->source, json)->size};
    return mr_plan_add(b->plan, &sample, b->err);
}

static mr_status add_rows(build *b, uint64_t rows)
{
    mr_buf prefix = {0}, text = {0};
    size_t splits = b->plan->split_count, samples = b->plan->sample_count;
    uint32_t split;
    mr_status status = mr_plan_split_get(b->plan, b->options, b->file->split.text, b->file->split.len, &split, b->err);
    mr_buf_add(&prefix, b->tree->root, b->tree->root_len);
    mr_buf_add(&prefix, b->file->path.text, b->file->path.len);
    mr_buf_add_text(&prefix, "/");
    if (status == MR_OK)
        status = mr_buf_status(&prefix, b->err, "listing rows");
    uint32_t at = status == MR_OK ? mr_source_lower(b->tree->source, (const char *)prefix.data, prefix.len) : 0;
    for (uint64_t row = 0; row < rows && status == MR_OK; row++)
        status = add_row(b, row, rows, split, &at, &text);
    if (status == MR_OK && b->plan->sample_count == samples) {
        b->plan->split_count = splits;
        mr_note_add(b->plan->notes, MR_NOTE_INFO, b->file->path.text, b->file->path.len, 0, "no row with an image");
    }
    mr_buf_free(&prefix);
    mr_buf_free(&text);
    return status;
}

static mr_status plan_file(build *b, bool first)
{
    mr_hub_schema s = {0};
    uint32_t entry = mr_tree_find(b->tree, b->file->path.text, b->file->path.len);
    if (entry != MR_NO_ENTRY)
        b->plan->used[entry] = 1;
    mr_status status = mr_hub_schema_read(b->tree, b->file, b->plan, &s, b->err);
    uint64_t rows = s.rows;
    if (status == MR_OK && !first) {
        status = mr_hub_schema_agree(&b->first, &s, b->file, b->err);
    } else if (status == MR_OK) {
        b->first = s;
        s = (mr_hub_schema){0};
        status = mr_hub_schema_note(&b->first, b->file, b->plan->notes, b->err);
        b->field.name = b->first.column ? b->first.column : "";
    }
    mr_hub_schema_free(&s);
    return status == MR_OK ? add_rows(b, rows) : status;
}

mr_status mr_hub_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err)
{
    const mr_hub_state *st = plan->state;
    build b = {.tree = t, .options = o, .plan = plan, .labels = {.asked = o->label_column}, .err = err};
    mr_status status = list_left_out(&b);
    for (size_t i = 0; i < st->files.count && status == MR_OK; i++) {
        b.file = &st->files.items[i];
        status = plan_file(&b, i == 0);
    }
    mr_hub_mark_left_out(t, plan);
    if (status == MR_OK)
        status = plan_labels(&b);
    b.numbers.minus_is_none = b.numbers.minus_is_none || b.first.kind == MR_HUB_NAMES;
    if (status == MR_OK && b.first.column)
        mr_label_census_note(&b.numbers, &b.gaps, b.first.column, "rows", plan->notes);
    if (status == MR_OK && st->files.count) {
        mr_buf_clear(&b.scratch);
        mr_hub_config_name(&st->files.items[0], &b.scratch);
        status = mr_plan_variant_set(plan, &b.scratch, err);
    }
    free(b.left_out);
    mr_hub_schema_free(&b.first);
    mr_labels_free(&b.labels);
    mr_label_census_free(&b.numbers);
    mr_class_set_free(&b.classes);
    mr_buf_free(&b.field.text);
    mr_buf_free(&b.path);
    mr_buf_free(&b.scratch);
    return status;
}
