/* plan.c - the metadata files of an ImageFolder as tables, and the folders as classes where they have no label.
 * Invariant: of the rows of JSON lines only the columns in use are kept; the rest stays in the file until meta(). */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "format/format.h"
#include "imagefolder/imagefolder.h"
#include "layout/hub_objects.h"
#include "tables/jsonl.h"

/* ---- JSON lines as a table ------------------------------------------------------------------------------------- */

enum { FILE_NAME, LABEL, COLUMNS, TEXT = COLUMNS, FIELDS };

typedef struct lines {
    mr_jsonl file;
    mr_jsonl_field fields[FIELDS];
    mr_buf cells; /* "file_name\0label\0" a row */
    uint64_t *at;
    uint32_t *len;
    size_t count, at_room, len_room;
    bool labelled;
    bool texts, other; /* rows with a text, or a list of texts; with something else */
    bool objects;
    size_t picked; /* fields: all, or all but TEXT */
} lines;

static void end_lines(lines *l)
{
    mr_buf_free(&l->file.buf);
    mr_buf_free(&l->cells);
    mr_buf_free(&l->fields[FILE_NAME].text);
    mr_buf_free(&l->fields[LABEL].text);
    mr_buf_free(&l->fields[TEXT].text);
    free(l->at);
    free(l->len);
}

static mr_status bad_line(const lines *l, const mr_jsonl_row *row, const char *what, const char *why, mr_error *err)
{
    return mr_fail(err, MR_BAD_DATA, "%s: line %llu: \"%s\" %s", mr_source_entry(l->file.source, l->file.entry)->path,
                   (unsigned long long)row->line, what, why);
}

static mr_status add_line(lines *l, const mr_jsonl_row *row, bool asked, mr_error *err)
{
    const mr_jsonl_field *name = &l->fields[FILE_NAME], *label = &l->fields[LABEL], *text = &l->fields[TEXT];
    MR_TRY(mr_jsonl_pick(&l->file, row, l->fields, l->picked, NULL, err));
    l->texts = l->texts || text->kind == MR_JSONL_TEXTS;
    l->other = l->other || (text->kind >= MR_JSONL_INTEGER && text->kind <= MR_JSONL_OTHER);
    if (name->kind != MR_JSONL_STRING || (name->text.len && memchr(name->text.data, '\0', name->text.len)))
        return bad_line(l, row, "file_name", name->kind == MR_JSONL_ABSENT ? "is missing" : "is not a path", err);
    bool usable = label->kind != MR_JSONL_OTHER && label->kind != MR_JSONL_NULL && label->kind != MR_JSONL_ABSENT;
    if (usable && label->text.len && memchr(label->text.data, '\0', label->text.len))
        return bad_line(l, row, label->name, "has a NUL byte", err);
    if (asked && label->kind == MR_JSONL_OTHER)
        return bad_line(l, row, label->name, "is a list or an object, not a label", err);
    l->labelled = l->labelled || usable;
    l->objects = l->objects || memmem(row->text, row->len, "\"objects\"", 9);
    mr_buf_add(&l->cells, name->text.data, name->text.len);
    mr_buf_add(&l->cells, "", 1);
    if (usable)
        mr_buf_add(&l->cells, label->text.data, label->text.len);
    mr_buf_add(&l->cells, "", 1);
    bool at_fits = MR_GROW(l->at, l->count, l->at_room), len_fits = at_fits && MR_GROW(l->len, l->count, l->len_room);
    if (!len_fits || row->len > UINT32_MAX || l->count >= UINT32_MAX - 1)
        return mr_fail_memory(err, "reading metadata");
    l->at[l->count] = row->at;
    l->len[l->count++] = (uint32_t)row->len;
    return mr_buf_status(&l->cells, err, "reading metadata");
}

/* The columns in use: cells are slices of the sheet's text, as those of a CSV. */
static mr_status make_sheet(lines *l, const char *label, mr_sheet *s, mr_error *err)
{
    mr_buf text = {0};
    mr_buf_add(&text, "file_name", 10);
    mr_buf_add(&text, label, strlen(label) + 1);
    mr_buf_add(&text, l->cells.data, l->cells.len);
    s->csv = (mr_csv){.text = text, .columns = COLUMNS, .rows = l->count};
    MR_TRY(mr_buf_status(&s->csv.text, err, "reading metadata"));
    s->csv.cells = s->csv.header = mr_alloc((l->count + 1) * COLUMNS, sizeof *s->csv.cells);
    s->labels = mr_alloc(1, sizeof *s->labels);
    if (!s->csv.cells || !s->labels)
        return mr_fail_memory(err, "reading metadata");
    char *at = (char *)s->csv.text.data;
    for (size_t i = 0; i < (l->count + 1) * COLUMNS; i++, at += strlen(at) + 1)
        s->csv.cells[i] = at;
    s->labels[0] = LABEL;
    s->label_count = l->labelled;
    s->objects = l->objects;
    s->at = l->at;
    s->len = l->len;
    l->at = NULL;
    l->len = NULL;
    return MR_OK;
}

static mr_status read_lines(const mr_tree *t, const mr_layout_options *o, uint32_t entry, mr_sheet *s, mr_error *err)
{
    const char *label = o->label_column ? o->label_column : "label";
    const char *text = o->text_column ? o->text_column : "text";
    MR_AUTO(end_lines)
    lines l = {.file = {.source = t->source, .entry = entry},
               .fields = {{.name = "file_name"}, {.name = label}, {.name = text, .texts = true}},
               .picked = strcmp(text, label) && strcmp(text, "file_name") ? FIELDS : COLUMNS};
    size_t len;
    mr_jsonl_row row;
    mr_status status;
    *s = (mr_sheet){.entry = entry, .name = mr_tree_path(t, entry, &len), .split = -1, .text = -1, .utf8 = true};
    while ((status = mr_jsonl_next(&l.file, &row, err)) == MR_OK)
        MR_TRY(add_line(&l, &row, o->label_column != NULL, err));
    if (status != MR_END)
        return status;
    if (o->text_column && !l.texts)
        return mr_fail(err, MR_MISUSE, "--text-column %s: no row of %s has a text there", text, s->name);
    s->text_name = l.texts && (o->text_column || !l.other) ? text : NULL;
    return make_sheet(&l, label, s, err);
}

/* ---- CSV ------------------------------------------------------------------------------------------------------- */

static mr_status read_csv(const mr_tree *t, const mr_layout_options *o, uint32_t entry, mr_plan *plan, mr_sheet *s,
                          mr_error *err)
{
    MR_TRY(mr_sheet_read(t, entry, false, s, err));
    MR_TRY(mr_csv_check_header(&s->csv, s->name, err));
    s->beside = true;
    s->path = mr_csv_column(&s->csv, "file_name");
    if (s->path < 0)
        return mr_fail(err, MR_BAD_DATA, "%s: no column is named \"file_name\"", s->name);
    MR_TRY(mr_sheet_find_others(s, o, plan->notes, err));
    return MR_OK;
}

static mr_status take_file(const mr_tree *t, const mr_layout_options *o, uint32_t entry, mr_plan *plan, mr_error *err)
{
    mr_table_state *st = plan->state;
    if (st->sheet_count == MR_SHEETS_MAX)
        return mr_fail(err, MR_BAD_DATA, "more than %d metadata files; --leave-out leaves some out", MR_SHEETS_MAX);
    mr_sheet *s = &st->sheets[st->sheet_count++];
    bool csv = mr_imagefolder_is(t, entry, ".csv");
    MR_TRY(csv ? read_csv(t, o, entry, plan, s, err) : read_lines(t, o, entry, s, err));
    s->beside = true;
    s->split = -1; /* the folders say it */
    s->word = NULL;
    return MR_OK;
}

/* ---- folders as classes ---------------------------------------------------------------------------------------- */

static const char *folder_of(const mr_tree *t, uint32_t entry, size_t *len)
{
    size_t path_len;
    const char *path = mr_tree_path(t, entry, &path_len), *slash = memrchr(path, '/', path_len);
    const char *before = slash && slash > path ? memrchr(path, '/', (size_t)(slash - path)) : NULL;
    const char *name = before ? before + 1 : path;
    *len = slash ? (size_t)(slash - name) : 0;
    return name;
}

/* As the hub has it: each picture's folder, if there are at least two and none is a split or "images". */
static bool folders_are_classes(const mr_tree *t, const mr_plan *plan)
{
    size_t len, first_len = 0;
    const char *first = NULL;
    bool two = false;
    for (size_t i = 0; i < plan->sample_count; i++) {
        const char *name = folder_of(t, plan->samples[i].entry, &len);
        if (!len || mr_folder_word(name, len))
            return false;
        two = two || (first && (first_len != len || memcmp(first, name, len) != 0));
        first = name;
        first_len = len;
    }
    return two;
}

static mr_status label_by_folder(const mr_tree *t, mr_plan *plan, mr_error *err)
{
    mr_class_set set = {0};
    mr_status status = MR_OK;
    size_t len;
    for (size_t i = 0; i < plan->sample_count && status == MR_OK; i++) {
        const char *name = folder_of(t, plan->samples[i].entry, &len);
        status = mr_class_set_add(&set, plan, name, len, err);
    }
    mr_class_set_free(&set);
    MR_TRY(status);
    mr_plan_classes_sort(plan);
    for (size_t i = 0; i < plan->sample_count; i++) {
        const char *name = folder_of(t, plan->samples[i].entry, &len);
        plan->samples[i].label = mr_plan_class_find(plan, name, len);
        plan->samples[i].flags &= ~(uint32_t)MR_FLAG_UNANNOTATED;
    }
    mr_note_add(plan->notes, MR_NOTE_INFO, "metadata", 8, 0, "no column of labels: the folders are the classes");
    return MR_OK;
}

/* ---- classes of objects ---------------------------------------------------------------------------------------- */

/* Of all rows, where pictures have no label of their own: otherwise objects have the classes of the labels. */
static mr_status list_object_classes(const mr_tree *t, mr_plan *plan, mr_error *err)
{
    const mr_table_state *st = plan->state;
    mr_class_set set = {0};
    mr_buf row = {0};
    mr_status status = MR_OK;
    for (size_t i = 0; i < st->sheet_count; i++)
        for (size_t n = 0; st->sheets[i].objects && n < st->sheets[i].csv.rows && status == MR_OK; n++) {
            const mr_sheet *s = &st->sheets[i];
            mr_buf_clear(&row);
            status = mr_jsonl_copy(t->source, s->entry, s->at[n], s->len[n], &row, err);
            if (status == MR_OK)
                status = mr_hub_objects_classes(row.data, row.len, s->name, &set, plan, err);
        }
    mr_class_set_free(&set);
    mr_buf_free(&row);
    return status == MR_OK ? mr_plan_classes_in_order(plan, err) : status;
}

mr_status mr_imagefolder_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err)
{
    mr_table_state *st = plan->state = mr_alloc(1, sizeof *st);
    MR_AUTO(mr_picture_index_free) mr_picture_index index = {0};
    bool labelled = false;
    if (!st)
        return mr_fail_memory(err, "reading metadata");
    MR_TRY(mr_picture_index_make(t, &index, err));
    for (uint32_t e = t->begin; e < t->end; e++)
        if (mr_imagefolder_is(t, e, ".csv") || mr_imagefolder_is(t, e, ".jsonl"))
            MR_TRY(take_file(t, o, e, plan, err));
    for (size_t i = 0; i < st->sheet_count; i++)
        labelled = labelled || st->sheets[i].label_count;
    if (!st->sheet_count)
        return mr_fail(err, MR_BAD_DATA, "no metadata.csv or metadata.jsonl is there");
    if (o->label_column && !labelled)
        return mr_fail(err, MR_MISUSE, "--label-column %s: no metadata file has this column", o->label_column);
    plan->variant = "metadata";
    MR_TRY(mr_table_rows(t, o, &index, plan, err));
    labelled = false; /* a column of texts has become captions */
    for (size_t i = 0; i < st->sheet_count; i++)
        labelled = labelled || st->sheets[i].label_count;
    if (labelled)
        return MR_OK;
    return folders_are_classes(t, plan) ? label_by_folder(t, plan, err) : list_object_classes(t, plan, err);
}
