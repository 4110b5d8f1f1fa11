/* lines.c - metadata.jsonl as a table.
 * Invariant: only the columns in use are kept of the rows; the rest stays in the file until meta(). A damaged row
 * rejects its image, not the file. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "ingest/layout/imagefolder/imagefolder.h"
#include "base/json/json.h"
#include "base/json/json_walk.h"
#include "ingest/tables/jsonl.h"

enum { FILE_NAME, LABEL, COLUMNS, TEXT = COLUMNS, FIELDS };
enum { HEAD_MAX = 1 << 20 }; /* of the file, to find what its rows have */

typedef struct lines {
    mr_jsonl file;
    mr_jsonl_field fields[FIELDS];
    mr_buf cells; /* "file_name\0label\0" a row */
    uint64_t *at;
    uint32_t *len;
    size_t count, at_capacity, len_capacity;
    bool labelled;
    bool texts;       /* rows with a text, or a list of texts */
    size_t odd_texts; /* ... with something else */
    bool objects;
    size_t picked;     /* fields: all, or all but TEXT */
    size_t odd_labels; /* objects, and lists of something else than texts and numbers */
    mr_sheet_fault *faults;
    size_t fault_count, fault_capacity;
    mr_notes *notes;
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
    for (size_t i = 0; i < l->fault_count; i++)
        free(l->faults[i].why);
    free(l->faults);
}

static mr_status bad_line(const lines *l, const mr_jsonl_row *row, const char *what, const char *why, mr_error *err)
{
    return mr_fail(err, MR_BAD_DATA, "%s: line %llu: \"%s\" %s", mr_source_entry(l->file.source, l->file.entry)->path,
                   (unsigned long long)row->line, what, why);
}

/* A list of labels as one cell; false: it is something else. */
static bool list_label(lines *l, const mr_jsonl_row *row, mr_buf *cell)
{
    json_t *doc = NULL, *item;
    size_t i;
    mr_error why;
    mr_buf_clear(cell);
    bool good = mr_json_parse(row->text, row->len, "row", &doc, &why) == MR_OK;
    json_t *list = json_object_get(doc, l->fields[LABEL].name);
    good = good && json_is_array(list);
    json_array_foreach(list, i, item)
    {
        mr_buf_add_text(cell, i ? MR_LABEL_END : "");
        if (json_is_string(item) && !memchr(json_string_value(item), '\0', json_string_length(item)))
            mr_buf_add_text(cell, json_string_value(item));
        else if (json_is_integer(item))
            mr_buf_printf(cell, "%lld", (long long)json_integer_value(item));
        else
            good = false;
    }
    json_decref(doc);
    if (!good)
        mr_buf_clear(cell);
    return good;
}

/* What is wrong with the members in use. */
static mr_status check_line(const lines *l, const mr_jsonl_row *row, mr_error *err)
{
    const mr_jsonl_field *name = &l->fields[FILE_NAME], *label = &l->fields[LABEL];
    if (name->kind != MR_JSONL_STRING || (name->text.len && memchr(name->text.data, '\0', name->text.len)))
        return bad_line(l, row, "file_name", name->kind == MR_JSONL_ABSENT ? "is missing" : "is not a path", err);
    if (label->text.len && memchr(label->text.data, '\0', label->text.len))
        return bad_line(l, row, label->name, "has a NUL byte", err);
    return MR_OK;
}

static mr_status add_cells(lines *l, const mr_jsonl_row *row, const char *label, size_t label_len, mr_error *err)
{
    const mr_buf *name = &l->fields[FILE_NAME].text;
    mr_buf_add(&l->cells, name->data, name->len);
    mr_buf_add(&l->cells, "", 1);
    mr_buf_add(&l->cells, label, label_len);
    mr_buf_add(&l->cells, "", 1);
    bool at_fits = MR_GROW(l->at, l->count, l->at_capacity),
         len_fits = at_fits && MR_GROW(l->len, l->count, l->len_capacity);
    if (!len_fits || row->len > UINT32_MAX || l->count >= UINT32_MAX - 1)
        return mr_fail_memory(err, "reading metadata");
    l->at[l->count] = row->at;
    l->len[l->count++] = (uint32_t)row->len;
    return mr_buf_status(&l->cells, err, "reading metadata");
}

/* A damaged row rejects the image that it names, as far as it can be read. */
static mr_status keep_fault(lines *l, const mr_jsonl_row *row, const mr_error *why, mr_error *err)
{
    const mr_jsonl_field *name = &l->fields[FILE_NAME];
    const mr_entry *e = mr_source_entry(l->file.source, l->file.entry);
    if (name->kind != MR_JSONL_STRING || !name->text.len || memchr(name->text.data, '\0', name->text.len)) {
        mr_note_add(l->notes, MR_NOTE_REJECT, e->path, e->path_len, 0, "%s", why->text);
        return MR_OK;
    }
    if (!MR_GROW(l->faults, l->fault_count, l->fault_capacity))
        return mr_fail_memory(err, "reading metadata");
    l->faults[l->fault_count].row = l->count;
    if (!(l->faults[l->fault_count].why = strdup(why->text)))
        return mr_fail_memory(err, "reading metadata");
    l->fault_count++;
    return add_cells(l, row, "", 0, err);
}

static mr_status add_line(lines *l, const mr_jsonl_row *row, mr_buf *cell, mr_error *err)
{
    const mr_jsonl_field *label = &l->fields[LABEL], *text = &l->fields[TEXT];
    MR_TRY(mr_jsonl_pick(&l->file, row, l->fields, l->picked, NULL, err));
    MR_TRY(check_line(l, row, err));
    l->texts = l->texts || text->kind == MR_JSONL_TEXTS;
    l->odd_texts += text->kind >= MR_JSONL_INTEGER && text->kind <= MR_JSONL_OTHER;
    bool listed = label->kind == MR_JSONL_OTHER && list_label(l, row, cell);
    bool usable = label->kind != MR_JSONL_OTHER && label->kind != MR_JSONL_NULL && label->kind != MR_JSONL_ABSENT;
    const mr_buf *labels = listed ? cell : &label->text;
    l->odd_labels += label->kind == MR_JSONL_OTHER && !listed;
    l->labelled = l->labelled || usable || listed;
    l->objects = l->objects || memmem(row->text, row->len, "\"objects\"", 9);
    return add_cells(l, row, (const char *)labels->data, usable || listed ? labels->len : 0, err);
}

static mr_status add_lines(lines *l, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf cell = {0};
    mr_jsonl_row row;
    mr_status status;
    mr_error first = {0}, why;
    size_t bad = 0;
    while ((status = mr_jsonl_next(&l->file, &row, err)) == MR_OK) {
        status = add_line(l, &row, &cell, &why);
        if (status == MR_BAD_DATA && !bad++)
            first = why;
        if (status == MR_BAD_DATA)
            status = keep_fault(l, &row, &why, &why);
        if (status != MR_OK) {
            *err = why;
            return status;
        }
    }
    if (status != MR_END)
        return status;
    if (!bad || l->count > l->fault_count)
        return MR_OK;
    *err = first; /* no line of the file is good */
    return MR_BAD_DATA;
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
    s->faults = l->faults;
    s->fault_count = l->fault_count;
    l->at = NULL;
    l->len = NULL;
    l->faults = NULL;
    l->fault_count = 0;
    return MR_OK;
}

/* 1: the row has a list of this name; 0: something else of this name, or `other` alone; -1: neither, or null. */
static int row_has_list(const char *row, const char *end, const char *name, const char *other)
{
    mr_json_span key, value;
    mr_json_walk w = mr_json_walk_of((mr_json_span){row, end});
    int has = -1;
    while (mr_json_next(&w, &key, &value) == 1) {
        if (*value.at != 'n' && mr_json_equals(key, name))
            return *value.at == '[';
        if (*value.at != 'n' && mr_json_equals(key, other))
            has = 0;
    }
    return has;
}

/* The first row with one of both names decides: a list of the former, as exports write it, or the latter. */
static const char *list_or(const char *head, const char *end, const char *name, const char *other)
{
    int has = -1;
    const char *at = mr_json_blanks(head, end);
    while (has < 0 && at < end && *at == '{') {
        has = row_has_list(at, end, name, other);
        const char *line = memchr(at, '\n', (size_t)(end - at));
        at = line ? mr_json_blanks(line, end) : end;
    }
    return has == 1 ? name : other;
}

/* The columns of labels and captions that are read if none was requested. */
static void find_columns(const mr_source *source, uint32_t entry, const char **label, const char **text)
{
    uint64_t size = mr_source_entry(source, entry)->size;
    size_t len = size < HEAD_MAX ? (size_t)size : HEAD_MAX;
    MR_AUTO(mr_scope_free) char *head = mr_alloc(len + 1, 1);
    mr_error why;
    if (head && len && mr_source_pread(source, entry, head, len, 0, &why) != MR_OK)
        len = 0;
    *label = head ? list_or(head, head + len, "labels", "label") : "label";
    *text = head ? list_or(head, head + len, "captions", "text") : "text";
}

mr_status mr_imagefolder_lines(const mr_tree *t, const mr_layout_options *o, uint32_t entry, mr_plan *plan, mr_sheet *s,
                               mr_error *err)
{
    const char *label, *text;
    find_columns(t->source, entry, &label, &text);
    label = o->label_column ? o->label_column : label;
    text = o->text_column ? o->text_column : text;
    MR_AUTO(end_lines)
    lines l = {.file = {.source = t->source, .entry = entry},
               .fields = {{.name = "file_name"}, {.name = label}, {.name = text, .texts = true}},
               .picked = strcmp(text, label) && strcmp(text, "file_name") ? FIELDS : COLUMNS,
               .notes = plan->notes};
    size_t len;
    *s = (mr_sheet){.entry = entry, .name = mr_tree_path(t, entry, &len), .split = -1, .text = -1, .utf8 = true};
    MR_TRY(add_lines(&l, err));
    if (o->text_column && !l.texts)
        return mr_fail(err, MR_MISUSE, "--text-column %s: no row of %s has a text there", text, s->name);
    if (l.odd_labels)
        mr_note_add(plan->notes, MR_NOTE_INFO, s->name, strlen(s->name), 0,
                    "column %.80s: rows with an object, or a list of anything but strings and integers: %zu; "
                    "their images are kept without a label",
                    label, l.odd_labels);
    s->text_name = l.texts && (o->text_column || !l.odd_texts) ? text : NULL;
    if (l.odd_texts && l.texts)
        mr_note_add(plan->notes, MR_NOTE_INFO, s->name, strlen(s->name), 0,
                    "column %.80s: rows with neither a string nor a list of strings: %zu; %s", text, l.odd_texts,
                    s->text_name ? "their images have no captions"
                                 : "captions are read only from a column that --text-column names");
    return make_sheet(&l, label, s, err);
}
