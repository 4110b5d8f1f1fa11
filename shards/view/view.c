/* view.c - a view's file: read, checked, written.
 * Invariant: what was read and is written again has the same bytes, and so the same digest. */
#include "shards/view/view.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/file.h"
#include "base/files/path.h"
#include "base/scope.h"
#include "base/text.h"

enum { VERSION = 1, MEMORY_FACTOR = 2 };

static void free_json(json_t **doc)
{
    json_decref(*doc);
}

/* ---- freeing ----------------------------------------------------------------------------------------------------- */

void mr_view_part_free(mr_view_part *p)
{
    for (size_t i = 0; p->conditions && i < p->condition_count; i++)
        mr_condition_free(&p->conditions[i]);
    free(p->conditions);
    free(p->split);
    free(p->weight);
}

void mr_view_file_free(mr_view_file *v)
{
    if (!v)
        return;
    for (size_t i = 0; v->sources && i < v->source_count; i++)
        free(v->sources[i].path);
    for (size_t i = 0; v->splits && i < v->split_count; i++) {
        for (size_t k = 0; v->splits[i].parts && k < v->splits[i].part_count; k++)
            mr_view_part_free(&v->splits[i].parts[k]);
        free(v->splits[i].parts);
        free(v->splits[i].name);
    }
    for (size_t i = 0; v->renames && i < v->rename_count; i++) {
        free(v->renames[i].from);
        free(v->renames[i].to);
    }
    free(v->sources);
    free(v->renames);
    free(v->splits);
    free(v);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static json_t *pack_part(const mr_view_part *p)
{
    char list[33];
    json_t *conditions = json_array();
    mr_hex(p->list, sizeof p->list, list);
    for (size_t i = 0; i < p->condition_count; i++)
        json_array_append_new(conditions, json_pack("[s,s]", p->conditions[i].kind->name, p->conditions[i].argument));
    return json_pack("{s:I,s:s,s:o,s:I,s:s,s:s*}", "dataset", (json_int_t)p->dataset, "split", p->split, "conditions",
                     conditions, "samples", (json_int_t)p->samples, "list", list, "weight", p->weight);
}

static json_t *pack_view(const mr_view_file *v)
{
    json_t *datasets = json_array(), *splits = json_array();
    char digest[65];
    for (size_t i = 0; i < v->source_count; i++) {
        mr_hex(v->sources[i].digest, sizeof v->sources[i].digest, digest);
        json_array_append_new(datasets, json_string(digest));
    }
    for (size_t i = 0; i < v->split_count; i++) {
        json_t *parts = json_array();
        for (size_t k = 0; k < v->splits[i].part_count; k++)
            json_array_append_new(parts, pack_part(&v->splits[i].parts[k]));
        json_array_append_new(splits,
                              json_pack("{s:s,s:o,s:o*,s:s*}", "name", v->splits[i].name, "parts", parts, "repeat",
                                        v->splits[i].repeat > 1 ? json_integer((json_int_t)v->splits[i].repeat) : NULL,
                                        "balance", v->splits[i].balance ? "class" : NULL));
    }
    json_t *renames = v->rename_count ? json_array() : NULL;
    for (size_t i = 0; i < v->rename_count; i++)
        json_array_append_new(renames, json_pack("[s,s]", v->renames[i].from, v->renames[i].to));
    return json_pack("{s:o,s:o*,s:o}", "datasets", datasets, "rename", renames, "splits", splits);
}

static mr_status digest_of(const json_t *view, uint8_t digest[32], mr_error *err)
{
    MR_AUTO(mr_scope_free) char *text = json_dumps(view, JSON_COMPACT);
    if (!text)
        return mr_fail_memory(err, "a view");
    mr_sha256(text, strlen(text), digest);
    return MR_OK;
}

mr_status mr_view_write(mr_view_file *v, mr_buf *out, mr_error *err)
{
    char digest[65];
    json_t *paths = json_array();
    json_t *view = pack_view(v);
    MR_AUTO(free_json) json_t *doc = json_pack("{s:i,s:o,s:o}", "millrace_view", VERSION, "paths", paths, "view", view);
    for (size_t i = 0; doc && i < v->source_count; i++)
        json_array_append_new(paths, mr_json_path(v->sources[i].path, strlen(v->sources[i].path)));
    if (!doc)
        return mr_fail_memory(err, "a view");
    MR_TRY(digest_of(view, v->digest, err));
    mr_hex(v->digest, sizeof v->digest, digest);
    json_object_set_new(doc, "sha256", json_string(digest));
    return mr_json_dump(doc, out, err);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

bool mr_view_weight_ok(const char *text)
{
    char *end;
    double weight = strtod(text, &end);
    bool digits = *text && strspn(text, "0123456789.") == strlen(text);
    return digits && !*end && weight > 0 && weight <= MR_VIEW_REPEAT;
}

static mr_status parse_conditions(const json_t *list, const char *name, mr_view_part *p, mr_error *err)
{
    size_t i;
    json_t *item;
    mr_error why;
    p->conditions = mr_alloc(json_array_size(list), sizeof *p->conditions);
    if (!p->conditions)
        return mr_fail_memory(err, name);
    p->condition_count = json_array_size(list);
    json_array_foreach(list, i, item)
    {
        const char *kind = json_string_value(json_array_get(item, 0));
        const char *argument = json_string_value(json_array_get(item, 1));
        if (!kind || !argument || json_array_size(item) != 2)
            return mr_fail(err, MR_BAD_DATA, "%s: a condition is a list of two texts, its name and its argument", name);
        mr_status status = mr_condition_make(kind, argument, &p->conditions[i], &why);
        if (status != MR_OK)
            return mr_fail(err, status == MR_MISUSE ? MR_BAD_DATA : status, "%s: %s", name, why.text);
    }
    return MR_OK;
}

static mr_status parse_part(const json_t *from, const char *name, size_t sources, mr_view_part *p, mr_error *err)
{
    uint64_t dataset;
    const char *split, *list;
    json_t *conditions;
    MR_TRY(mr_json_get_u64(from, "dataset", name, &dataset, err));
    MR_TRY(mr_json_get_string(from, "split", name, &split, err));
    MR_TRY(mr_json_get(from, "conditions", JSON_ARRAY, name, &conditions, err));
    MR_TRY(mr_json_get_u64(from, "samples", name, &p->samples, err));
    MR_TRY(mr_json_get_string(from, "list", name, &list, err));
    if (dataset >= sources || !mr_split_name_ok(split) || !mr_unhex(list, p->list, sizeof p->list))
        return mr_fail(err, MR_BAD_DATA, "%s: a part names no dataset or split of the view, or its list is not a hash",
                       name);
    const json_t *weight = json_object_get(from, "weight");
    if (weight && (!json_is_string(weight) || !mr_view_weight_ok(json_string_value(weight))))
        return mr_fail(err, MR_BAD_DATA, "%s: the weight of a part is not a number above 0", name);
    p->dataset = dataset;
    p->split = strdup(split);
    p->weight = weight ? strdup(json_string_value(weight)) : NULL;
    return p->split && (p->weight || !weight) ? parse_conditions(conditions, name, p, err) : mr_fail_memory(err, name);
}

static mr_status parse_split(const json_t *from, const char *name, mr_view_file *v, size_t at, mr_error *err)
{
    const char *split;
    json_t *parts, *part;
    size_t i;
    mr_view_split *s = &v->splits[at];
    MR_TRY(mr_json_get_string(from, "name", name, &split, err));
    MR_TRY(mr_json_get(from, "parts", JSON_ARRAY, name, &parts, err));
    for (i = 0; i < at; i++)
        if (strcmp(v->splits[i].name, split) == 0)
            return mr_fail(err, MR_BAD_DATA, "%s: has the split %s twice", name, split);
    if (!mr_split_name_ok(split) || json_array_size(parts) > MR_VIEW_PARTS)
        return mr_fail(err, MR_BAD_DATA, "%s: a split has an invalid name, or more parts than %d", name, MR_VIEW_PARTS);
    s->repeat = 1;
    if (json_object_get(from, "repeat"))
        MR_TRY(mr_json_get_u64(from, "repeat", name, &s->repeat, err));
    if (s->repeat < 1 || s->repeat > MR_VIEW_REPEAT)
        return mr_fail(err, MR_BAD_DATA, "%s: a split is repeated 1 to %d times", name, MR_VIEW_REPEAT);
    s->balance = json_object_get(from, "balance") != NULL;
    s->name = strdup(split);
    s->parts = mr_alloc(json_array_size(parts), sizeof *s->parts);
    if (!s->name || !s->parts)
        return mr_fail_memory(err, name);
    s->part_count = json_array_size(parts);
    json_array_foreach(parts, i, part) MR_TRY(parse_part(part, name, v->source_count, &s->parts[i], err));
    return MR_OK;
}

static mr_status parse_source(const json_t *path, const json_t *digest, const char *name, mr_view_source *out,
                              mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf bytes = {0};
    const char *text = json_string_value(path), *hex = json_string_value(digest);
    if (!text || !*text || !mr_text_unescape(&bytes, text, strlen(text)) || strlen(mr_buf_text(&bytes)) != bytes.len ||
        !hex || !mr_unhex(hex, out->digest, sizeof out->digest))
        return mr_fail(err, MR_BAD_DATA, "%s: has a dataset without a path or a digest", name);
    out->path = strdup(mr_buf_text(&bytes));
    return out->path ? MR_OK : mr_fail_memory(err, name);
}

static mr_status parse_renames(const json_t *list, const char *name, mr_view_file *v, mr_error *err)
{
    size_t i;
    json_t *item;
    if (!list)
        return MR_OK;
    if (!json_is_array(list) || json_array_size(list) > MR_VIEW_RENAMES)
        return mr_fail(err, MR_BAD_DATA, "%s: \"rename\" is not a list of at most %d", name, MR_VIEW_RENAMES);
    v->renames = mr_alloc(json_array_size(list) + 1, sizeof *v->renames);
    if (!v->renames)
        return mr_fail_memory(err, name);
    json_array_foreach(list, i, item)
    {
        const char *from = json_string_value(json_array_get(item, 0)), *to = json_string_value(json_array_get(item, 1));
        if (!from || !to || !*to || json_array_size(item) != 2)
            return mr_fail(err, MR_BAD_DATA, "%s: a renamed class is a list of two names", name);
        mr_view_rename *r = &v->renames[v->rename_count++];
        r->from = strdup(from);
        r->to = strdup(to);
        if (!r->from || !r->to)
            return mr_fail_memory(err, name);
    }
    return MR_OK;
}

static mr_status parse_all(const json_t *doc, const char *name, mr_view_file *v, mr_error *err)
{
    json_t *paths, *view, *datasets, *splits, *item;
    const char *stated;
    char found[65];
    size_t i;
    MR_TRY(mr_json_get(doc, "paths", JSON_ARRAY, name, &paths, err));
    MR_TRY(mr_json_get(doc, "view", JSON_OBJECT, name, &view, err));
    MR_TRY(mr_json_get_string(doc, "sha256", name, &stated, err));
    MR_TRY(digest_of(view, v->digest, err));
    mr_hex(v->digest, sizeof v->digest, found);
    if (strcmp(found, stated) != 0)
        return mr_fail(err, MR_BAD_DATA,
                       "%s: was edited: its digest is %.64s, and it states %.64s; make it again by "
                       "`millrace view`",
                       name, found, stated);
    MR_TRY(mr_json_get(view, "datasets", JSON_ARRAY, name, &datasets, err));
    MR_TRY(mr_json_get(view, "splits", JSON_ARRAY, name, &splits, err));
    size_t sources = json_array_size(datasets), count = json_array_size(splits);
    if (!sources || sources > MR_VIEW_DATASETS || json_array_size(paths) != sources || !count || count > MR_SPLITS_MAX)
        return mr_fail(err, MR_BAD_DATA, "%s: needs 1 to %d datasets, a path for each, and 1 to %d splits", name,
                       MR_VIEW_DATASETS, MR_SPLITS_MAX);
    v->sources = mr_alloc(sources, sizeof *v->sources);
    v->splits = mr_alloc(count, sizeof *v->splits);
    if (!v->sources || !v->splits)
        return mr_fail_memory(err, name);
    v->source_count = sources;
    v->split_count = count;
    json_array_foreach(datasets, i, item)
        MR_TRY(parse_source(json_array_get(paths, i), item, name, &v->sources[i], err));
    MR_TRY(parse_renames(json_object_get(view, "rename"), name, v, err));
    json_array_foreach(splits, i, item) MR_TRY(parse_split(item, name, v, i, err));
    return MR_OK;
}

/* Members that are not known here, or in another order, would be lost when it is written again. */
static mr_status check_form(const mr_view_file *v, const char *name, mr_error *err)
{
    uint8_t digest[32];
    MR_AUTO(free_json) json_t *view = pack_view(v);
    MR_TRY(digest_of(view, digest, err));
    if (memcmp(digest, v->digest, sizeof digest) == 0)
        return MR_OK;
    return mr_fail(err, MR_BAD_DATA,
                   "%s: has members that this version does not know, or in a different order; make it "
                   "again by `millrace view`",
                   name);
}

mr_status mr_view_parse(const void *bytes, size_t len, const char *name, mr_view_file **out, mr_error *err)
{
    MR_AUTO(free_json) json_t *doc = NULL;
    MR_AUTO(mr_view_file_release) mr_view_file *v = mr_alloc(1, sizeof *v);
    uint64_t version;
    if (!v)
        return mr_fail_memory(err, name);
    MR_TRY(mr_json_bounded(bytes, len, MEMORY_FACTOR * MR_VIEW_MAX, name, err));
    MR_TRY(mr_json_parse(bytes, len, name, &doc, err));
    if (!json_is_object(doc) || !json_object_get(doc, "millrace_view"))
        return mr_fail(err, MR_BAD_DATA, "%s: is neither a dataset nor a view of datasets", name);
    MR_TRY(mr_json_get_u64(doc, "millrace_view", name, &version, err));
    if (version != VERSION)
        return mr_fail(err, MR_MISUSE, "%s: is a view of format %llu, and this version of millrace reads %d", name,
                       (unsigned long long)version, VERSION);
    MR_TRY(parse_all(doc, name, v, err));
    MR_TRY(check_form(v, name, err));
    *out = v;
    v = NULL;
    return MR_OK;
}

mr_status mr_view_read(const char *path, mr_view_file **out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf bytes = {0};
    MR_TRY(mr_file_read_all(AT_FDCWD, path, MR_VIEW_MAX, &bytes, err));
    return mr_view_parse(bytes.data, bytes.len, path, out, err);
}

bool mr_view_is_at(const char *path)
{
    struct stat st;
    return !mr_path_is_url(path) && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

mr_status mr_view_refuse(const char *path, mr_error *err)
{
    MR_AUTO(mr_view_file_release) mr_view_file *v = NULL;
    if (!mr_view_is_at(path))
        return MR_OK;
    MR_TRY(mr_view_read(path, &v, err));
    return mr_fail(err, MR_MISUSE, "%s: is a view, which this command does not accept; name its dataset", path);
}
