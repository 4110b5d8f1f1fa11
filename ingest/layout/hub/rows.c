/* rows.c - from the rows of opened Parquet files to samples and labels.
 * Invariant: every row is a sample, in row order, or in a note; a stream that lacks a row, or a required member, is bad
 * data, whatever exit status its writer had. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/layout/hub/rows_state.h"

enum { PATH_MAX_BYTES = 4096 };

/* ---- rows ----------------------------------------------------------------------------------------------------- */

/* Whether the name of entry `e`, after the file's own, begins with this row's number and `end`. */
static bool is_row(const mr_hub_build *b, uint32_t e, uint64_t row, const char *end)
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

static void note_row(mr_hub_build *b, mr_note_kind kind, uint64_t row, const char *why, const char *what)
{
    mr_buf_clear(&b->path);
    mr_buf_printf(&b->path, "%.*s/%09" PRIu64, (int)b->file->path.len, b->file->path.text, row);
    mr_note_add(b->plan->notes, kind, mr_buf_text(&b->path), b->path.len, 0, "%s%s", why, what);
}

/* An image by its path: next to the Parquet file, otherwise from the root. */
static mr_status find_image(mr_hub_build *b, uint32_t entry, uint64_t row, uint32_t *image)
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
static mr_status read_row(mr_hub_build *b, uint32_t entry, uint64_t row, mr_buf *text)
{
    mr_jsonl_row line = {.line = 1};
    MR_TRY(mr_source_read(b->tree->source, entry, text, b->err));
    line.text = (const char *)text->data;
    line.len = text->len;
    b->row = (mr_jsonl){.source = b->tree->source, .entry = entry};
    MR_TRY(mr_jsonl_pick(&b->row, &line, &b->field, b->first.kind != MR_HUB_NO_LABEL, NULL, b->err));
    if (!text->len || text->data[0] != '{' || text->data[text->len - 1] != '}')
        return mr_fail(b->err, MR_BAD_DATA, "%s: row %" PRIu64 " is not a JSON object", mr_hub_file_name(b), row);
    return MR_OK;
}

static int path_order(const void *a, const void *b)
{
    const mr_note *x = a, *y = b;
    return strcmp(x->path, y->path);
}

/* What the listing left out, by path: a row whose image is among it is rejected once, for that reason. */
static mr_status list_left_out(mr_hub_build *b)
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

static const mr_note *find_left_out(mr_hub_build *b, uint64_t row)
{
    size_t low = 0, high = b->left_out_count;
    mr_buf_clear(&b->path);
    mr_buf_printf(&b->path, "%s/%09" PRIu64 "/", mr_hub_file_name(b), row);
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

static void reject_row(mr_hub_build *b, uint64_t row)
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
static mr_status add_row(mr_hub_build *b, uint64_t row, uint64_t rows, uint32_t split, uint32_t *at, mr_buf *text)
{
    uint32_t image = MR_NO_ENTRY, json = *at;
    if (!is_row(b, json, row, ".json"))
        return mr_fail(b->err, MR_BAD_DATA, "%s: row %" PRIu64 " of %" PRIu64 " is missing from the reader's output",
                       mr_hub_file_name(b), row, rows);
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
    mr_sample sample = {.split = split,
                        .entry = image,
                        .label = -1,
                        .aux = json,
                        .meta_bytes = mr_source_entry(b->tree->source, json)->size};
    if (!mr_hub_take_classes(b, text, &sample)) {
        note_row(b, MR_NOTE_REJECT, row, b->first.column, " has no class of its list of names");
        b->plan->used[image] = MR_USE_REJECTED;
        return MR_OK;
    }
    status = mr_hub_take_label(b, row);
    if (status != MR_OK)
        return status;
    if (mr_hub_objects_name_classes(b))
        MR_TRY(mr_hub_objects_classes(text->data, text->len, mr_hub_file_name(b), &b->classes, b->plan, b->err));
    return mr_plan_add(b->plan, &sample, b->err);
}

static mr_status add_rows(mr_hub_build *b, uint64_t rows)
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

static mr_status plan_file(mr_hub_build *b, bool first)
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
        if (status == MR_OK)
            status = mr_hub_add_names(b);
    }
    mr_hub_schema_free(&s);
    return status == MR_OK ? add_rows(b, rows) : status;
}

mr_status mr_hub_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err)
{
    const mr_hub_state *st = plan->state;
    mr_hub_build b = {.tree = t, .options = o, .plan = plan, .labels = {.asked = o->label_column}, .err = err};
    mr_status status = list_left_out(&b);
    for (size_t i = 0; i < st->files.count && status == MR_OK; i++) {
        b.file = &st->files.items[i];
        status = plan_file(&b, i == 0);
    }
    mr_hub_mark_left_out(t, plan);
    if (status == MR_OK)
        status = mr_hub_plan_labels(&b);
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
    mr_buf_free(&b.list);
    mr_buf_free(&b.path);
    mr_buf_free(&b.scratch);
    return status;
}
