/* schema.c - schema.json of an opened Parquet file.
 * Invariant: a schema is checked here, and nothing in it is assumed about the rows.
 *
 *      {"rows": 78, "image": "image", "columns": ["label", ...],
 *       "label": {"column": "label", "kind": "names", "names": ["cat", "dog"]}}         or null */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/layout/hub/hub.h"

enum { SCHEMA_MAX = 16 << 20 };

void mr_hub_schema_free(mr_hub_schema *s)
{
    free(s->column);
    json_decref(s->names);
    json_decref(s->objects);
    mr_buf_free(&s->columns);
    *s = (mr_hub_schema){0};
}

static mr_status parse_names(json_t *names, json_t **out, const char *name, mr_error *err)
{
    size_t i, j;
    json_t *item, *other;
    if (json_array_size(names) == 0)
        return mr_fail(err, MR_BAD_DATA, "%s: a label with class names has none", name);
    json_array_foreach(names, i, item)
    {
        if (!json_is_string(item))
            return mr_fail(err, MR_BAD_DATA, "%s: class name %zu is not a string", name, i);
        for (j = 0; j < i && i < 1000; j++)
            if ((other = json_array_get(names, j)) && json_equal(other, item))
                return mr_fail(err, MR_BAD_DATA, "%s: classes %zu and %zu have the same name, %s", name, j, i,
                               json_string_value(item));
    }
    *out = json_incref(names);
    return MR_OK;
}

static mr_status parse_label(const json_t *label, mr_hub_schema *s, const char *name, mr_error *err)
{
    static const char *const words[] = {
        [MR_HUB_NAMES] = "names", [MR_HUB_NUMBERS] = "numbers", [MR_HUB_TEXTS] = "texts"};
    const char *column, *kind;
    if (!label || json_is_null(label))
        return MR_OK;
    mr_status status = mr_json_get_string(label, "column", name, &column, err);
    if (status == MR_OK)
        status = mr_json_get_string(label, "kind", name, &kind, err);
    if (status != MR_OK)
        return status;
    for (size_t k = MR_HUB_NAMES; k < MR_COUNT(words); k++)
        if (strcmp(words[k], kind) == 0)
            s->kind = (mr_hub_kind)k;
    if (s->kind == MR_HUB_NO_LABEL && strcmp(kind, "none") != 0)
        return mr_fail(err, MR_BAD_DATA, "%s: unknown kind of label \"%s\"", name, kind);
    s->list = s->kind == MR_HUB_NAMES && json_is_true(json_object_get(label, "list"));
    if (s->kind == MR_HUB_NAMES)
        status = parse_names(json_object_get(label, "names"), &s->names, name, err);
    s->column = strdup(column);
    return s->column ? status : mr_fail_memory(err, name);
}

static mr_status parse(const mr_buf *bytes, const char *name, mr_hub_schema *s, mr_error *err)
{
    json_t *doc = NULL, *item;
    size_t i;
    mr_status status = mr_json_parse(bytes->data, bytes->len, name, &doc, err);
    if (status == MR_OK)
        status = mr_json_get_u64(doc, "rows", name, &s->rows, err);
    if (status == MR_OK)
        status = parse_label(json_object_get(doc, "label"), s, name, err);
    if (status == MR_OK && json_is_array(json_object_get(doc, "objects")))
        status = parse_names(json_object_get(doc, "objects"), &s->objects, name, err);
    s->captions = json_is_true(json_object_get(doc, "captions"));
    json_array_foreach(json_object_get(doc, "columns"), i, item)
        mr_buf_printf(&s->columns, "%s%s", i ? ", " : "", json_is_string(item) ? json_string_value(item) : "?");
    json_decref(doc);
    return status == MR_OK ? mr_buf_status(&s->columns, err, name) : status;
}

mr_status mr_hub_schema_read(const mr_tree *t, const mr_hub_file *file, mr_plan *plan, mr_hub_schema *s, mr_error *err)
{
    mr_buf path = {0}, bytes = {0};
    mr_buf_add(&path, file->path.text, file->path.len);
    mr_buf_add_text(&path, "/schema.json");
    const char *name = mr_buf_text(&path);
    mr_status status = mr_buf_status(&path, err, "reading a schema");
    uint32_t entry = status == MR_OK ? mr_tree_find(t, name, path.len) : MR_NO_ENTRY;
    if (status == MR_OK && entry == MR_NO_ENTRY)
        status = mr_fail(err, MR_BAD_DATA, "%s: is missing from the reader's output", name);
    else if (status == MR_OK && mr_source_entry(t->source, entry)->size > SCHEMA_MAX)
        status = mr_fail(err, MR_BAD_DATA, "%s: is longer than 16 MiB", name);
    if (status == MR_OK) {
        plan->used[entry] = 1;
        status = mr_source_read(t->source, entry, &bytes, err);
    }
    if (status == MR_OK)
        status = parse(&bytes, name, s, err);
    mr_buf_free(&path);
    mr_buf_free(&bytes);
    return status;
}

mr_status mr_hub_schema_agree(const mr_hub_schema *first, const mr_hub_schema *s, const mr_hub_file *file,
                              mr_error *err)
{
    if ((s->objects || first->objects) && !json_equal(s->objects, first->objects))
        return mr_fail(err, MR_BAD_DATA, "%.*s: its objects have different classes from those of the files before it",
                       (int)file->path.len, file->path.text);
    if (s->kind == first->kind && (s->kind == MR_HUB_NO_LABEL || strcmp(s->column, first->column) == 0) &&
        (s->kind != MR_HUB_NAMES || (s->list == first->list && json_equal(s->names, first->names))))
        return MR_OK;
    return mr_fail(err, MR_BAD_DATA,
                   "%.*s: its labels (%s) differ from those of the files before it (%s)%s; choose a column that is the "
                   "same in all with --label-column",
                   (int)file->path.len, file->path.text, s->column ? s->column : "none",
                   first->column ? first->column : "none",
                   s->kind == MR_HUB_NAMES && first->kind == MR_HUB_NAMES ? ", or have other class names" : "");
}

/* Whether a part of the name is a word for labels: "fine_label", "Category". */
static bool is_like_label(const char *name)
{
    static const char *const words[] = {"label", "class", "category", "target", "species"};
    for (size_t i = 0; i < MR_COUNT(words); i++)
        if (strcasestr(name, words[i]))
            return true;
    return false;
}

mr_status mr_hub_schema_note(mr_hub_schema *s, const mr_hub_file *file, mr_notes *notes, mr_error *err)
{
    MR_AUTO(mr_scope_free) char *names = strdup(mr_buf_text(&s->columns));
    MR_AUTO(mr_buf_free) mr_buf likely = {0};
    char *rest = NULL;
    if (!names)
        return mr_fail_memory(err, "reading a schema");
    for (const char *name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        name += strspn(name, " ");
        if (!strcasecmp(name, "split"))
            mr_note_add(notes, MR_NOTE_INFO, file->path.text, file->path.len, 0,
                        "column %s is not read: a file's split is that of its name", name);
        if (is_like_label(name))
            mr_buf_printf(&likely, "%s%s", likely.len ? ", " : "", name);
    }
    if (!s->column && !s->objects && likely.len)
        mr_note_add(notes, MR_NOTE_INFO, file->path.text, file->path.len, 0,
                    "no column is called label: samples have none; --label-column accepts one of: %s",
                    mr_buf_text(&likely));
    return mr_buf_status(&likely, err, "reading a schema");
}
