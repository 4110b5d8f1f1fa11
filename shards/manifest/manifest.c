/* manifest.c - a dataset's manifest, parsed and checked.
 * Invariant: a manifest is returned only when every name, number and sum in it has been checked; in particular no name
 * in it leads out of the dataset's folder. */
#include "shards/manifest/manifest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/path.h"
#include "base/files/supply.h"
#include "base/scope.h"
#include "shards/manifest/format.h"
#include "shards/manifest/manifest_parts.h"

enum { WHERE = 200 };

static void free_shards(mr_manifest *m)
{
    for (size_t i = 0; m->splits && !m->shared && i < m->split_count; i++)
        free(m->splits[i].shards);
    mr_shared_free(m->shared);
}

void mr_manifest_free(mr_manifest *m)
{
    if (!m)
        return;
    for (size_t i = 0; m->classes && i < m->class_count; i++)
        free(m->classes[i].name);
    free_shards(m);
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

mr_status mr_manifest_adopt(mr_manifest *m, mr_shared *rows, mr_error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < m->split_count; i++)
        count += m->splits[i].shard_count;
    if (mr_shared_len(rows) != count * sizeof(mr_shard))
        return mr_fail(err, MR_SYSTEM, "mpirun: the ranks run different programs; start the same program on all");
    free_shards(m);
    m->shared = rows;
    mr_shard *next = (mr_shard *)(uintptr_t)mr_shared_bytes(rows); /* nothing writes to an open manifest */
    for (size_t i = 0; i < m->split_count; next += m->splits[i++].shard_count)
        m->splits[i].shards = next;
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

static mr_status copy_text(const json_t *obj, const char *key, const char *where, char **out, mr_error *err)
{
    const char *text;
    MR_TRY(mr_json_get_string(obj, key, where, &text, err));
    *out = strdup(text);
    return *out ? MR_OK : mr_fail_memory(err, "reading the manifest");
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

/* A later version says in "needs" which millrace reads it.  It is a stranger's text: only a version is repeated. */
static mr_status fail_newer(const json_t *doc, const char *name, mr_error *err)
{
    enum { LONGEST = 20 };
    const char *needs = json_string_value(json_object_get(doc, "needs"));
    size_t len = needs ? strlen(needs) : 0;
    bool known = len && len <= LONGEST && strspn(needs, "0123456789.") == len;
    return mr_fail(err, MR_MISUSE,
                   "%s: its format %lld is newer and needs %s%s or later; this is millrace " MILLRACE_VERSION
                   ", which reads format %d",
                   name, (long long)json_integer_value(json_object_get(doc, "format")),
                   known ? "millrace " : "the version that wrote it", known ? needs : "", MR_FORMAT);
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
    if (json_integer_value(format) > MR_FORMAT)
        return fail_newer(doc, name, err);
    if (json_integer_value(format) < MR_FORMAT)
        return mr_fail(err, MR_BAD_DATA, "%s: \"format\" is %lld; formats start at %d", name,
                       (long long)json_integer_value(format), MR_FORMAT);
    return MR_OK;
}

static mr_status parse_licence(const json_t *doc, const char *name, mr_manifest *m, mr_error *err)
{
    const json_t *licence = json_object_get(doc, "licence");
    if (json_is_null(licence))
        return MR_OK;
    return copy_text(doc, "licence", name, &m->licence, err);
}

static mr_status parse(const void *bytes, size_t len, const char *name, bool listed, mr_manifest **out, mr_error *err)
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
    MR_TRY(mr_manifest_parse_splits(doc, name, listed, m, err));
    *out = m;
    m = NULL;
    return MR_OK;
}

mr_status mr_manifest_parse(const void *bytes, size_t len, const char *name, mr_manifest **out, mr_error *err)
{
    return parse(bytes, len, name, true, out, err);
}

mr_status mr_manifest_parse_head(const void *bytes, size_t len, mr_manifest **out, mr_error *err)
{
    return parse(bytes, len, MR_MANIFEST, false, out, err);
}

static mr_status read_manifest(int dirfd, bool sealed, mr_manifest **out, uint8_t digest[32], mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf bytes = {0};
    MR_AUTO(mr_manifest_release) mr_manifest *m = NULL;
    MR_TRY(mr_file_read_all(dirfd, MR_MANIFEST, MR_MANIFEST_MAX, &bytes, err));
    mr_error why;
    mr_status status = mr_manifest_parse(bytes.data, bytes.len, MR_MANIFEST, &m, &why);
    if (status != MR_OK)
        return mr_fail(err, status, "%s%s", why.text,
                       status == MR_BAD_DATA ? "; restore the original manifest or ingest again" : "");
    if (sealed) /* after the parts, whose messages say more */
        MR_TRY(mr_manifest_check_seal(bytes.data, bytes.len, MR_MANIFEST, err));
    if (digest)
        mr_sha256(bytes.data, bytes.len, digest);
    *out = m;
    m = NULL;
    return MR_OK;
}

mr_status mr_manifest_read(int dirfd, mr_manifest **out, uint8_t digest[32], mr_error *err)
{
    return read_manifest(dirfd, false, out, digest, err);
}

static mr_status open_manifest(const char *dir, bool sealed, mr_manifest **out, uint8_t digest[32], mr_error *err)
{
    MR_AUTO(mr_scope_close) int fd = mr_supply_open_folder(dir);
    struct stat st;
    bool absent = fd < 0 && (errno == ENOENT || errno == ENOTDIR);
    if (absent && mr_path_is_url(dir))
        return mr_fail(
            err, MR_MISUSE,
            "%s: datasets are read from folders, and from URLs of http, https, s3, gs and hf; download this one first",
            dir);
    if (absent)
        return mr_fail(err, MR_MISUSE, "%s: no such folder; name the folder that `millrace ingest` wrote", dir);
    if (fd < 0)
        return mr_fail_errno(err, errno, "%s", dir);
    bool lacks = fstatat(fd, MR_MANIFEST, &st, 0) != 0 && errno == ENOENT;
    if (lacks && fstatat(fd, "train_results.json", &st, 0) == 0)
        return mr_fail(err, MR_MISUSE,
                       "%s: a training run, not a dataset; a command that takes both takes the dataset first", dir);
    if (lacks)
        return mr_fail(err, MR_MISUSE, "%s: not a dataset (no %s); name the folder that `millrace ingest` wrote", dir,
                       MR_MANIFEST);
    mr_error why;
    mr_status status = read_manifest(fd, sealed, out, digest, &why);
    if (status == MR_OK)
        return status;
    return status == MR_MISUSE ? mr_fail(err, status, "%s: %s", dir, why.text) : mr_fail(err, status, "%s", why.text);
}

mr_status mr_manifest_open(const char *dir, mr_manifest **out, uint8_t digest[32], mr_error *err)
{
    return open_manifest(dir, true, out, digest, err);
}

mr_status mr_manifest_open_edited(const char *dir, mr_manifest **out, uint8_t digest[32], mr_error *err)
{
    return open_manifest(dir, false, out, digest, err);
}

bool mr_manifest_is_there(int dirfd)
{
    struct stat st;
    return fstatat(dirfd, MR_MANIFEST, &st, 0) == 0;
}
