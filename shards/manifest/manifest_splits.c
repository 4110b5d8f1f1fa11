/* manifest_splits.c - the splits of a manifest, and the shards that it lists.
 * Invariant: a split is accepted only with shards that follow one another, fit their files and add up to its sums. */
#include <stdio.h>
#include <string.h>

#include "base/scope.h"
#include "shards/manifest/format.h"
#include "shards/manifest/manifest_parts.h"

enum { WHERE = 200, LEAST_NODE = 16 };
/* LEAST_NODE: each sample has a node of LMDB in the file: header, key and meta.  So a file's size bounds the memory
 * that its index takes, whatever a hostile manifest claims. */

typedef unsigned long long ull;

static mr_status get_hex(const json_t *obj, const char *key, const char *where, uint8_t *out, size_t len, mr_error *err)
{
    const char *text;
    MR_TRY(mr_json_get_string(obj, key, where, &text, err));
    if (!mr_unhex(text, out, len))
        return mr_fail(err, MR_BAD_DATA, "%s: \"%s\" is not %zu hexadecimal digits", where, key, 2 * len);
    return MR_OK;
}

static mr_status parse_digest(const json_t *obj, const char *key, const char *where, mr_digest *out, mr_error *err)
{
    json_t *file;
    char place[WHERE + 16];
    snprintf(place, sizeof place, "%s.%s", where, key);
    MR_TRY(mr_json_get(obj, key, JSON_OBJECT, where, &file, err));
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
    return MR_OK;
}

/* ---- rules ------------------------------------------------------------------------------------------------------- */

static mr_status check_shard(const mr_shard *s, uint64_t first, const char *file, mr_error *err)
{
    if (s->first != first)
        return mr_fail(err, MR_BAD_DATA, "%.80s: %s: begins at sample %llu, the shard before ends at %llu", file,
                       s->name, (ull)s->first, (ull)first);
    if (s->images > s->samples)
        return mr_fail(err, MR_BAD_DATA, "%.80s: %s: more images than samples", file, s->name);
    if (s->samples == 0 || s->samples > UINT32_MAX || s->images == 0)
        return mr_fail(err, MR_BAD_DATA, "%.80s: %s: a shard has 1 to 4294967295 samples and at least one image", file,
                       s->name);
    if (s->mdb.bytes == 0 || s->mdb.bytes % MR_LMDB_PAGE || s->image_bytes > s->mdb.bytes)
        return mr_fail(err, MR_BAD_DATA,
                       "%.80s: %s: an .mdb of %llu bytes is not a whole number of pages that hold its images", file,
                       s->name, (ull)s->mdb.bytes);
    if (s->samples > s->mdb.bytes / LEAST_NODE)
        return mr_fail(err, MR_BAD_DATA, "%.80s: %s: an .mdb of %llu bytes has no room for %llu samples", file, s->name,
                       (ull)s->mdb.bytes, (ull)s->samples);
    if (s->idx.bytes != MR_INDEX_HEADER + s->samples * MR_INDEX_ROW)
        return mr_fail(err, MR_BAD_DATA, "%.80s: %s: an .idx of %llu bytes does not match %llu samples", file, s->name,
                       (ull)s->idx.bytes, (ull)s->samples);
    return MR_OK;
}

static mr_status check_shards(const mr_split *split, const char *file, mr_error *err)
{
    const mr_shard *shards = split->shards;
    uint64_t samples = 0, images = 0, bytes = 0;
    for (size_t i = 0; i < split->shard_count; i++) {
        MR_TRY(check_shard(&shards[i], samples, file, err));
        /* A sum of sizes that fit a file: only image_bytes could wrap, and samples are bounded by 32 bits a shard. */
        samples += shards[i].samples;
        images += shards[i].images;
        if (__builtin_add_overflow(bytes, shards[i].image_bytes, &bytes))
            return mr_fail(err, MR_BAD_DATA, "%.80s: %s: sizes exceed 64 bits", file, shards[i].name);
    }
    if (samples != split->samples || images != split->images || bytes != split->image_bytes)
        return mr_fail(err, MR_BAD_DATA, "%.80s: %s: its samples, images or bytes are not the sum over its shards",
                       file, split->name);
    return MR_OK;
}

static mr_status parse_shard(const json_t *obj, const char *file, mr_shard *out, mr_error *err)
{
    const char *name;
    char where[WHERE];
    uint64_t counts[3];
    snprintf(where, sizeof where, "%.80s: %s", file, out->name);
    if (!json_is_object(obj))
        return mr_fail(err, MR_BAD_DATA, "%s: is not an object", where);
    MR_TRY(mr_json_get_string(obj, "name", where, &name, err));
    if (strcmp(name, out->name) != 0)
        return mr_fail(err, MR_BAD_DATA, "%s: its name is \"%.80s\", it must be \"%s\"", where, name, out->name);
    MR_TRY(mr_json_get_u64(obj, "first", where, &out->first, err));
    MR_TRY(parse_counts(obj, where, counts, err));
    MR_TRY(parse_digest(obj, "mdb", where, &out->mdb, err));
    MR_TRY(parse_digest(obj, "idx", where, &out->idx, err));
    out->samples = counts[0];
    out->images = counts[1];
    out->image_bytes = counts[2];
    return MR_OK;
}

static mr_status parse_list(const json_t *obj, const char *where, const char *file, mr_split *out, mr_error *err)
{
    json_t *shards;
    MR_TRY(mr_json_get(obj, "shards", JSON_ARRAY, where, &shards, err));
    size_t count = json_array_size(shards);
    if (count > MR_SHARDS_MAX)
        return mr_fail(err, MR_BAD_DATA, "%s: %zu shards are more than %d", where, count, MR_SHARDS_MAX);
    out->shards = mr_alloc(count, sizeof *out->shards);
    if (!out->shards)
        return mr_fail_memory(err, "reading the manifest");
    out->shard_count = count;
    for (size_t i = 0; i < count; i++) {
        snprintf(out->shards[i].name, sizeof out->shards[i].name, "%.63s-%05zu", out->name, i);
        MR_TRY(parse_shard(json_array_get(shards, i), file, &out->shards[i], err));
    }
    return check_shards(out, file, err);
}

static mr_status parse_split(const char *key, const json_t *obj, const char *name, bool listed, mr_split *out,
                             mr_error *err)
{
    char where[WHERE];
    uint64_t counts[3], shards;
    if (!mr_split_name_ok(key))
        return mr_fail(err, MR_BAD_DATA, "%.80s: \"%.80s\" is not a valid split name", name, key);
    snprintf(where, sizeof where, "%.80s: %s", name, key);
    if (!json_is_object(obj))
        return mr_fail(err, MR_BAD_DATA, "%s: is not an object", where);
    MR_TRY(parse_counts(obj, where, counts, err));
    snprintf(out->name, sizeof out->name, "%s", key);
    out->samples = counts[0];
    out->images = counts[1];
    out->image_bytes = counts[2];
    if (listed)
        return parse_list(obj, where, name, out, err);
    MR_TRY(mr_json_get_u64(obj, "shards", where, &shards, err));
    out->shard_count = (size_t)shards;
    return MR_OK;
}

mr_status mr_manifest_parse_splits(const json_t *doc, const char *name, bool listed, mr_manifest *m, mr_error *err)
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
        MR_TRY(parse_split(key, value, name, listed, next++, err));
    }
    return MR_OK;
}

bool mr_split_name_ok(const char *name)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
    size_t len = strlen(name);
    return len > 0 && len < sizeof((mr_split *)NULL)->name && name[0] != '.' && strspn(name, allowed) == len;
}
