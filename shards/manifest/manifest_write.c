/* manifest_write.c - a manifest's bytes.
 * Invariant: the same manifest gives the same bytes: members in a fixed order, indented by 1, a final newline; and what
 * is written can be read back by mr_manifest_parse(). */
#include <string.h>

#include "base/scope.h"
#include "shards/manifest/format.h"
#include "shards/manifest/manifest.h"

/* Adds a new reference to obj and gives up the caller's; a NULL value makes the whole document fail at the end. */
static void put(json_t *obj, const char *key, json_t *value, bool *failed)
{
    if (json_object_set_new(obj, key, value) != 0)
        *failed = true;
}

static void put_count(json_t *obj, const char *key, uint64_t count, bool *failed)
{
    put(obj, key, count <= INT64_MAX ? json_integer((json_int_t)count) : NULL, failed);
}

static json_t *digest_json(const mr_digest *digest, bool *failed)
{
    json_t *file = json_object();
    char hex[65];
    put_count(file, "bytes", digest->bytes, failed);
    mr_hex(digest->xxh3_128, sizeof digest->xxh3_128, hex);
    put(file, "xxh3_128", json_string(hex), failed);
    mr_hex(digest->sha256, sizeof digest->sha256, hex);
    put(file, "sha256", json_string(hex), failed);
    return file;
}

static json_t *list_json(const mr_split *split, bool *failed)
{
    json_t *list = json_array();
    for (size_t i = 0; i < split->shard_count; i++) {
        const mr_shard *shard = &split->shards[i];
        json_t *item = json_object();
        put(item, "name", json_string(shard->name), failed);
        put_count(item, "first", shard->first, failed);
        put_count(item, "samples", shard->samples, failed);
        put_count(item, "images", shard->images, failed);
        put_count(item, "bytes", shard->image_bytes, failed);
        put(item, "mdb", digest_json(&shard->mdb, failed), failed);
        put(item, "idx", digest_json(&shard->idx, failed), failed);
        if (json_array_append_new(list, item) != 0)
            *failed = true;
    }
    return list;
}

static json_t *split_json(const mr_split *split, bool listed, bool *failed)
{
    json_t *obj = json_object();
    put_count(obj, "samples", split->samples, failed);
    put_count(obj, "images", split->images, failed);
    put_count(obj, "bytes", split->image_bytes, failed);
    if (listed)
        put(obj, "shards", list_json(split, failed), failed);
    else
        put_count(obj, "shards", split->shard_count, failed);
    return obj;
}

static json_t *classes_json(const mr_manifest *m, bool *failed)
{
    json_t *list = json_array();
    for (size_t i = 0; i < m->class_count; i++) {
        json_t *item = json_object();
        put(item, "name", json_string(m->classes[i].name), failed);
        if (m->classes[i].has_id)
            put(item, "id", json_integer(m->classes[i].id), failed);
        if (json_array_append_new(list, item) != 0)
            *failed = true;
    }
    return list;
}

/* What cannot be read is not written. */
static mr_status check_counts(const mr_manifest *m, mr_error *err)
{
    if (m->split_count > MR_SPLITS_MAX)
        return mr_fail(err, MR_BAD_DATA, MR_MANIFEST ": %zu splits are more than %d", m->split_count, MR_SPLITS_MAX);
    for (size_t i = 0; i < m->split_count; i++)
        if (m->splits[i].shard_count > MR_SHARDS_MAX)
            return mr_fail(err, MR_BAD_DATA, MR_MANIFEST ": %s: %zu shards are more than %d", m->splits[i].name,
                           m->splits[i].shard_count, MR_SHARDS_MAX);
    return MR_OK;
}

static json_t *document(const mr_manifest *m, bool listed, bool *failed)
{
    json_t *doc = json_object(), *splits = json_object();
    put(doc, "millrace", json_string("dataset"), failed);
    put(doc, "format", json_integer(MR_FORMAT), failed);
    put(doc, "layout", json_string(m->layout ? m->layout : ""), failed);
    put(doc, "variant", json_string(m->variant ? m->variant : ""), failed);
    put(doc, "licence", m->licence ? json_string(m->licence) : json_null(), failed);
    put(doc, "options", m->options ? json_incref(m->options) : json_object(), failed);
    put(doc, "classes", classes_json(m, failed), failed);
    for (size_t i = 0; i < m->split_count; i++)
        put(splits, m->splits[i].name, split_json(&m->splits[i], listed, failed), failed);
    put(doc, "splits", splits, failed);
    return doc;
}

mr_status mr_manifest_write(const mr_manifest *m, mr_buf *out, mr_error *err)
{
    for (size_t i = 0; i < m->split_count; i++)
        if (!mr_split_name_ok(m->splits[i].name) || mr_manifest_split(m, m->splits[i].name) != &m->splits[i])
            return mr_fail(err, MR_MISUSE, MR_MANIFEST ": \"%s\" is not a valid split name, or is given twice",
                           m->splits[i].name);
    MR_TRY(check_counts(m, err));
    MR_TRY(mr_classes_check(m->classes, m->class_count, MR_MANIFEST, err));
    bool failed = false;
    size_t start = out->len;
    MR_AUTO(json_decrefp) json_t *doc = document(m, true, &failed);
    if (failed)
        return mr_fail(err, MR_SYSTEM, MR_MANIFEST ": out of memory, or a text in it that is not UTF-8");
    MR_TRY(mr_json_dump(doc, out, err));
    MR_TRY(mr_manifest_seal(out, start, err));
    if (out->len - start > MR_MANIFEST_MAX)
        return mr_fail(err, MR_BAD_DATA, MR_MANIFEST ": %zu bytes are more than the limit of 256 MiB",
                       out->len - start);
    return mr_json_bounded(out->data + start, out->len - start, MR_MANIFEST_MEMORY, MR_MANIFEST, err);
}

mr_status mr_manifest_hand_out(const mr_manifest *m, mr_buf *head, mr_shard **rows, size_t *count, mr_error *err)
{
    bool failed = false;
    size_t at = 0;
    *count = 0;
    for (size_t i = 0; i < m->split_count; i++)
        *count += m->splits[i].shard_count;
    *rows = mr_alloc(*count, sizeof **rows);
    if (!*rows)
        return mr_fail_memory(err, MR_MANIFEST);
    for (size_t i = 0; i < m->split_count; at += m->splits[i++].shard_count)
        if (m->splits[i].shard_count)
            memcpy(*rows + at, m->splits[i].shards, m->splits[i].shard_count * sizeof **rows);
    MR_AUTO(json_decrefp) json_t *doc = document(m, false, &failed);
    if (failed)
        return mr_fail_memory(err, MR_MANIFEST);
    return mr_json_dump(doc, head, err);
}
