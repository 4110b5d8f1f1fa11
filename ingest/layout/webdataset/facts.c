/* facts.c - facts about a whole tar: __millrace__/dataset.json, with the names of the splits
 * and of the classes, in order, as path text.  WebDataset's own readers skip such folders.
 *
 *      {"splits": ["train", "val"], "classes": ["zebra", "ant"]}        both optional
 *
 * Invariant: without the file nothing is assumed; with it, what it contradicts is an error. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "base/json/json.h"
#include "ingest/source/names.h"
#include "ingest/layout/webdataset/webdataset.h"

static void free_document(json_t **document)
{
    json_decref(*document);
}

static mr_status take_names(const json_t *document, const char *key, const char *path, mr_buf *out, size_t *count,
                            mr_error *err)
{
    const json_t *list = json_object_get(document, key);
    if (list && !json_is_array(list))
        return mr_fail(err, MR_BAD_DATA, "%s: \"%s\" is not a list of names", path, key);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (!name || !*name)
            return mr_fail(err, MR_BAD_DATA, "%s: \"%s\" is not a list of names", path, key);
        if (!mr_text_unescape(out, name, strlen(name)))
            return mr_fail(err, MR_BAD_DATA, "%s: \"%s\": %.200s is not path text (FORMAT.md)", path, key, name);
        mr_buf_add(out, "", 1);
    }
    *count = json_array_size(list);
    return mr_buf_status(out, err, "reading names");
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static mr_status check_different(const mr_buf *names, size_t count, const char *path, mr_error *err)
{
    MR_AUTO(mr_scope_free) const char **sorted = mr_alloc(count + 1, sizeof *sorted);
    const char *name = (const char *)names->data;
    if (!sorted)
        return mr_fail_memory(err, "reading names");
    for (size_t i = 0; i < count; i++, name += strlen(name) + 1)
        sorted[i] = name;
    qsort(sorted, count, sizeof *sorted, by_name);
    for (size_t i = 1; i < count; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            return mr_fail(err, MR_BAD_DATA, "%s: two classes are called %.200s", path, sorted[i]);
    return MR_OK;
}

/* Beside the facts an export has tables of its samples for readers of Croissant. */
static void take_tables(const mr_tree *t, mr_plan *plan)
{
    static const char folder[] = "__millrace__";
    mr_child child = {0};
    while (mr_tree_next(t, folder, sizeof folder - 1, &child))
        if (!child.is_dir && mr_name_ends(child.name, child.name_len, ".jsonl"))
            plan->used[child.entry] = MR_USE_TAKEN;
}

mr_status mr_webdataset_facts_read(const mr_tree *t, mr_plan *plan, mr_webdataset_facts *facts, mr_error *err)
{
    static const char file[] = MR_WEBDATASET_FACTS;
    uint32_t entry = mr_tree_find(t, file, sizeof file - 1);
    if (entry == MR_NO_ENTRY)
        return MR_OK;
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    MR_AUTO(free_document) json_t *document = NULL;
    const char *path = mr_source_entry(t->source, entry)->path;
    MR_TRY(mr_webdataset_json(t, entry, &text, err));
    MR_TRY(mr_json_parse(text.data, text.len, path, &document, err));
    MR_TRY(take_names(document, "splits", path, &facts->splits, &facts->split_count, err));
    MR_TRY(take_names(document, "classes", path, &facts->classes, &facts->class_count, err));
    MR_TRY(check_different(&facts->classes, facts->class_count, path, err));
    plan->used[entry] = MR_USE_TAKEN;
    take_tables(t, plan);
    return MR_OK;
}

bool mr_webdataset_facts_split(const mr_webdataset_facts *facts, const char *name, size_t len)
{
    const char *split = (const char *)facts->splits.data;
    for (size_t i = 0; i < facts->split_count; i++, split += strlen(split) + 1)
        if (strlen(split) == len && memcmp(split, name, len) == 0)
            return true;
    return false;
}

void mr_webdataset_facts_free(mr_webdataset_facts *facts)
{
    mr_buf_free(&facts->splits);
    mr_buf_free(&facts->classes);
}
