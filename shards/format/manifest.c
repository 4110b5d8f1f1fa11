/* manifest.c - a dataset's manifest, parsed and checked.
 * Invariant: a manifest is returned only when every name, number and sum in it has been checked; in particular no name
 * in it leads out of the dataset's folder. */
#include "format/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/scope.h"
#include "format/format.h"

enum { WHERE = 200, LEAST_NODE = 16 };
/* LEAST_NODE: each sample has a node of LMDB in the file: header, key and meta.  So a file's size bounds the memory
 * that its index takes, whatever a hostile manifest claims. */

void mr_manifest_free(mr_manifest *m)
{
    if (!m)
        return;
    for (size_t i = 0; m->classes && i < m->class_count; i++)
        free(m->classes[i].name);
    for (size_t i = 0; m->splits && i < m->split_count; i++)
        free(m->splits[i].shards);
    free(m->classes);
    free(m->splits);
    free(m->layout);
    free(m->variant);
    free(m->licence);
    json_decref(m->options);
    free(m);
}

const mr_split *mr_manifest_split(const mr_manifest *m, const char *name)
{
    for (size_t i = 0; i < m->split_count; i++)
        if (strcmp(m->splits[i].name, name) == 0)
            return &m->splits[i];
    return NULL;
}

mr_status mr_manifest_shards(const mr_manifest *m, const mr_shard ***list, size_t *count, mr_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < m->split_count; i++)
        n += m->splits[i].shard_count;
    *count = n;
    *list = mr_alloc(n, sizeof **list);
    if (!*list)
        return mr_fail_memory(err, MR_MANIFEST);
    n = 0;
    for (size_t i = 0; i < m->split_count; i++)
        for (size_t k = 0; k < m->splits[i].shard_count; k++)
            (*list)[n++] = &m->splits[i].shards[k];
    return MR_OK;
}

mr_status mr_manifest_find_split(const mr_manifest *m, const char *dataset, const char *name, const mr_split **out,
                                 mr_error *err)
{
    const mr_split *found = mr_manifest_split(m, name);
    MR_AUTO(mr_buf_free) mr_buf names = {0};
    if (out)
        *out = found;
    if (found)
        return MR_OK;
    for (size_t i = 0; i < m->split_count; i++)
        mr_buf_printf(&names, "%s%s", i ? ", " : "", m->splits[i].name);
    return mr_fail(err, MR_MISUSE, "split \"%s\": %s has no such split; it has %s", name,
                   dataset ? dataset : "the dataset", m->split_count ? mr_buf_text(&names) : "no splits");
}

bool mr_split_name_ok(const char *name)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
    size_t len = strlen(name);
    return len > 0 && len < sizeof((mr_split *)NULL)->name && name[0] != '.' && strspn(name, allowed) == len;
}

static mr_status copy_text(const json_t *obj, const char *key, const char *where, char **out, mr_error *err)
{
    const char *text;
    MR_TRY(mr_json_get_string(obj, key, where, &text, err));
    *out = strdup(text);
    return *out ? MR_OK : mr_fail_memory(err, "reading the manifest");
}

static mr_status get_hex(const json_t *obj, const char *key, const char *where, uint8_t *out, size_t len, mr_error *err)
{
    const char *text;
    MR_TRY(mr_json_get_string(obj, key, where, &text, err));
    if (!mr_unhex(text, out, len))
        return mr_fail(err, MR_BAD_DATA, "%s: \"%s\" is not %zu hexadecimal digits", where, key, 2 * len);
    return MR_OK;
}

static mr_status parse_digest(const json_t *shard, const char *key, const char *where, mr_digest *out, mr_error *err)
{
    json_t *file;
    char place[WHERE + 16];
    snprintf(place, sizeof place, "%s.%s", where, key);
    MR_TRY(mr_json_get(shard, key, JSON_OBJECT, where, &file, err));
    MR_TRY(mr_json_get_u64(file, "bytes", place, &out->bytes, err));
    MR_TRY(get_hex(file, "xxh3_128", place, out->xxh3_128, sizeof out->xxh3_128, err));
    return get_hex(file, "sha256", place, out->sha256, sizeof out->sha256, err);
}

/* Samples, images and bytes, as a split and a shard state them. */
static mr_status parse_counts(const json_t *obj, const char *where, uint64_t counts[3], mr_error *err)
{
    static const char *const keys[3] = {"samples", "images", "bytes"};
    for (int i = 0; i < 3; i++)
        MR_TRY(mr_json_get_u64(obj, keys[i], where, &counts[i], err));
    if (counts[1] > counts[0])
        return mr_fail(err, MR_BAD_DATA, "%s: more images than samples", where);
    return MR_OK;
}

static mr_status parse_shard(const json_t *obj, const char *where, const char *expected, uint64_t first, mr_shard *out,
                             mr_error *err)
{
    const char *name;
    uint64_t counts[3];
    if (!json_is_object(obj))
        return mr_fail(err, MR_BAD_DATA, "%s: is not an object", where);
    MR_TRY(mr_json_get_string(obj, "name", where, &name, err));
    if (strcmp(name, expected) != 0)
        return mr_fail(err, MR_BAD_DATA, "%s: its name is \"%.80s\", it must be \"%s\"", where, name, expected);
    MR_TRY(mr_json_get_u64(obj, "first", where, &out->first, err));
    MR_TRY(parse_counts(obj, where, counts, err));
    MR_TRY(parse_digest(obj, "mdb", where, &out->mdb, err));
    MR_TRY(parse_digest(obj, "idx", where, &out->idx, err));
    snprintf(out->name, sizeof out->name, "%s", expected);
    out->samples = counts[0];
    out->images = counts[1];
    out->image_bytes = counts[2];
    if (out->first != first)
        return mr_fail(err, MR_BAD_DATA, "%s: begins at sample %llu, the shard before ends at %llu", where,
                       (unsigned long long)out->first, (unsigned long long)first);
    if (out->samples == 0 || out->samples > UINT32_MAX || out->images == 0)
        return mr_fail(err, MR_BAD_DATA, "%s: a shard has 1 to 4294967295 samples and at least one image", where);
    if (out->mdb.bytes == 0 || out->mdb.bytes % MR_LMDB_PAGE || out->image_bytes > out->mdb.bytes)
        return mr_fail(err, MR_BAD_DATA,
                       "%s: an .mdb of %llu bytes is not a whole number of pages that hold its images", where,
                       (unsigned long long)out->mdb.bytes);
    if (out->samples > out->mdb.bytes / LEAST_NODE)
        return mr_fail(err, MR_BAD_DATA, "%s: an .mdb of %llu bytes has no room for %llu samples", where,
                       (unsigned long long)out->mdb.bytes, (unsigned long long)out->samples);
    if (out->idx.bytes != MR_INDEX_HEADER + out->samples * MR_INDEX_ROW)
        return mr_fail(err, MR_BAD_DATA, "%s: an .idx of %llu bytes does not fit %llu samples", where,
                       (unsigned long long)out->idx.bytes, (unsigned long long)out->samples);
    return MR_OK;
}

static mr_status parse_split(const char *key, const json_t *obj, const char *name, mr_split *out, mr_error *err)
{
    char where[WHERE], expected[80];
    uint64_t counts[3], sums[3] = {0};
    json_t *shards;
    if (!mr_split_name_ok(key))
        return mr_fail(err, MR_BAD_DATA, "%.80s: \"%.80s\" is not a valid split name", name, key);
    snprintf(where, sizeof where, "%.80s: %s", name, key);
    if (!json_is_object(obj))
        return mr_fail(err, MR_BAD_DATA, "%s: is not an object", where);
    MR_TRY(parse_counts(obj, where, counts, err));
    MR_TRY(mr_json_get(obj, "shards", JSON_ARRAY, where, &shards, err));
    size_t count = json_array_size(shards);
    if (count > MR_SHARDS_MAX)
        return mr_fail(err, MR_BAD_DATA, "%s: %zu shards are more than %d", where, count, MR_SHARDS_MAX);
    out->shards = mr_alloc(count, sizeof *out->shards);
    if (!out->shards)
        return mr_fail_memory(err, "reading the manifest");
    out->shard_count = count;
    for (size_t i = 0; i < count; i++) {
        mr_shard *shard = &out->shards[i];
        snprintf(expected, sizeof expected, "%s-%05zu", key, i);
        snprintf(where, sizeof where, "%.80s: %s", name, expected);
        MR_TRY(parse_shard(json_array_get(shards, i), where, expected, sums[0], shard, err));
        /* A sum of sizes that fit a file: only image_bytes could wrap, and samples are bounded by 32 bits a shard. */
        sums[0] += shard->samples;
        sums[1] += shard->images;
        if (__builtin_add_overflow(sums[2], shard->image_bytes, &sums[2]))
            return mr_fail(err, MR_BAD_DATA, "%s: sizes exceed 64 bits", where);
    }
    if (memcmp(counts, sums, sizeof sums) != 0)
        return mr_fail(err, MR_BAD_DATA, "%.80s: %s: its samples, images or bytes are not the sum over its shards",
                       name, key);
    snprintf(out->name, sizeof out->name, "%s", key);
    out->samples = sums[0];
    out->images = sums[1];
    out->image_bytes = sums[2];
    return MR_OK;
}

static mr_status parse_splits(const json_t *doc, const char *name, mr_manifest *m, mr_error *err)
{
    json_t *splits, *value;
    const char *key;
    MR_TRY(mr_json_get(doc, "splits", JSON_OBJECT, name, &splits, err));
    size_t count = json_object_size(splits);
    if (count > MR_SPLITS_MAX)
        return mr_fail(err, MR_BAD_DATA, "%s: %zu splits are more than %d", name, count, MR_SPLITS_MAX);
    m->splits = mr_alloc(count, sizeof *m->splits);
    if (!m->splits)
        return mr_fail_memory(err, "reading the manifest");
    m->split_count = count;
    mr_split *next = m->splits;
    json_object_foreach(splits, key, value)
    {
        MR_TRY(parse_split(key, value, name, next++, err));
    }
    return MR_OK;
}

static mr_status parse_class(const json_t *obj, const char *where, mr_class *out, mr_error *err)
{
    json_t *id = json_object_get(obj, "id");
    if (!json_is_object(obj))
        return mr_fail(err, MR_BAD_DATA, "%s: is not an object", where);
    if (id && !json_is_integer(id))
        return mr_fail(err, MR_BAD_DATA, "%s: \"id\" is not an integer", where);
    out->has_id = id != NULL;
    out->id = json_integer_value(id);
    return copy_text(obj, "name", where, &out->name, err);
}

static mr_status parse_classes(const json_t *doc, const char *name, mr_manifest *m, mr_error *err)
{
    json_t *classes;
    char where[WHERE];
    MR_TRY(mr_json_get(doc, "classes", JSON_ARRAY, name, &classes, err));
    size_t count = json_array_size(classes);
    m->classes = mr_alloc(count, sizeof *m->classes);
    if (!m->classes)
        return mr_fail_memory(err, "reading the manifest");
    m->class_count = count;
    for (size_t i = 0; i < count; i++) {
        snprintf(where, sizeof where, "%.80s: class %zu", name, i);
        MR_TRY(parse_class(json_array_get(classes, i), where, &m->classes[i], err));
    }
    return mr_classes_check(m->classes, count, name, err);
}

/* What kind of file it is comes first: the rest may mean something else in another version. */
static mr_status parse_kind(const json_t *doc, const char *name, mr_error *err)
{
    const json_t *format = json_object_get(doc, "format");
    const char *kind = json_string_value(json_object_get(doc, "millrace"));
    if (!kind || strcmp(kind, "dataset") != 0)
        return mr_fail(err, MR_BAD_DATA, "%s: is not the manifest of a millrace dataset", name);
    if (!json_is_integer(format))
        return mr_fail(err, MR_BAD_DATA, "%s: \"format\" is not an integer", name);
    if (json_integer_value(format) != MR_FORMAT_VERSION)
        return mr_fail(err, MR_BAD_DATA, "%s: format version %lld; this program reads version %d: use a newer millrace",
                       name, (long long)json_integer_value(format), MR_FORMAT_VERSION);
    return MR_OK;
}

static mr_status parse_licence(const json_t *doc, const char *name, mr_manifest *m, mr_error *err)
{
    const json_t *licence = json_object_get(doc, "licence");
    if (json_is_null(licence))
        return MR_OK;
    return copy_text(doc, "licence", name, &m->licence, err);
}

mr_status mr_manifest_parse(const void *bytes, size_t len, const char *name, mr_manifest **out, mr_error *err)
{
    MR_AUTO(json_decrefp) json_t *doc = NULL;
    json_t *options;
    if (len > MR_MANIFEST_MAX)
        return mr_fail(err, MR_BAD_DATA, "%s: %zu bytes are more than the limit of 256 MiB", name, len);
    MR_AUTO(mr_manifest_release) mr_manifest *m = mr_alloc(1, sizeof *m);
    if (!m)
        return mr_fail_memory(err, "reading the manifest");
    MR_TRY(mr_json_bounded(bytes, len, MR_MANIFEST_MEMORY, name, err));
    MR_TRY(mr_json_parse(bytes, len, name, &doc, err));
    MR_TRY(parse_kind(doc, name, err));
    MR_TRY(copy_text(doc, "layout", name, &m->layout, err));
    MR_TRY(copy_text(doc, "variant", name, &m->variant, err));
    MR_TRY(parse_licence(doc, name, m, err));
    MR_TRY(mr_json_get(doc, "options", JSON_OBJECT, name, &options, err));
    m->options = json_incref(options);
    MR_TRY(parse_classes(doc, name, m, err));
    MR_TRY(parse_splits(doc, name, m, err));
    *out = m;
    m = NULL;
    return MR_OK;
}

mr_status mr_manifest_open(const char *dir, mr_manifest **out, uint8_t digest[32], mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf bytes = {0};
    MR_AUTO(mr_scope_close) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return mr_fail(err, MR_MISUSE, "%s: no such folder; give the folder that `millrace ingest` made", dir);
    if (fd < 0)
        return mr_fail_errno(err, errno, "%s", dir);
    if (fstatat(fd, MR_MANIFEST, &st, 0) != 0 && errno == ENOENT)
        return mr_fail(err, MR_MISUSE, "%s: no dataset there (no %s); give the folder that `millrace ingest` made", dir,
                       MR_MANIFEST);
    MR_TRY(mr_file_read_all(fd, MR_MANIFEST, MR_MANIFEST_MAX, &bytes, err));
    MR_TRY(mr_manifest_parse(bytes.data, bytes.len, MR_MANIFEST, out, err));
    if (digest)
        mr_sha256(bytes.data, bytes.len, digest);
    return MR_OK;
}
