/* names.c - names of samples and of shards, and the JSON that millrace itself exports.
 * Invariant: a key ends at the first dot of a name, as in webdataset. */
#include "ingest/layout/webdataset/webdataset.h"

#include <string.h>

#include "base/scope.h"

static const char own_start[] = "{\"source\":\"";

bool mr_webdataset_name(const char *name, size_t len, size_t *key_len)
{
    const char *dot = memchr(name, '.', len);
    *key_len = dot ? (size_t)(dot - name) : 0;
    return *key_len > 0;
}

static size_t without_digits(const char *name, size_t len)
{
    while (len && name[len - 1] >= '0' && name[len - 1] <= '9')
        len--;
    return len;
}

static size_t without_separators(const char *name, size_t len)
{
    while (len && strchr("-_.", name[len - 1]))
        len--;
    return len;
}

/* "train-000012", "train_1of64", "train-00001-of-00064", "train". */
size_t mr_webdataset_shard(const char *name, size_t len)
{
    const char *end = memmem(name, len, ".tar", 4);
    size_t stem = end ? (size_t)(end - name) : len > 4 && !memcmp(name + len - 4, ".tgz", 4) ? len - 4 : 0;
    size_t cut = without_digits(name, stem), of = without_separators(name, cut);
    if (cut < stem && of >= 2 && memcmp(name + of - 2, "of", 2) == 0) {
        size_t number = without_separators(name, of - 2), before = without_digits(name, number);
        cut = before < number ? before : cut;
    }
    cut = cut < stem ? without_separators(name, cut) : cut;
    return cut ? cut : stem; /* "00012" is named after its number */
}

bool mr_webdataset_own(const void *json, size_t len)
{
    return len > sizeof own_start && memcmp(json, own_start, sizeof own_start - 1) == 0;
}

/* One past the JSON string that begins at `at`, at most `len`: the file may have changed since plan() parsed it. */
static size_t string_end(const char *json, size_t len, size_t at)
{
    for (at++; at < len && json[at] != '"'; at++)
        at += json[at] == '\\';
    return at < len ? at + 1 : len;
}

size_t mr_webdataset_added(const char *json, size_t len)
{
    static const char *const words[] = {",\"label\":", ",\"class\":", ",\"image_of\":", ",\"unannotated\":"};
    size_t at = string_end(json, len, sizeof own_start - 2);
    for (size_t i = 0; i < MR_COUNT(words); i++) {
        size_t n = strlen(words[i]);
        if (len - at <= n || memcmp(json + at, words[i], n) != 0)
            continue;
        at += n;
        at = json[at] == '"' ? string_end(json, len, at) : at + strcspn(json + at, ",}");
    }
    return at;
}

mr_status mr_webdataset_json(const mr_tree *t, uint32_t entry, mr_buf *out, mr_error *err)
{
    const mr_entry *e = mr_source_entry(t->source, entry);
    if (e->size > MR_WEBDATASET_JSON_MAX)
        return mr_fail(err, MR_BAD_DATA, "%s: larger than %d MiB", e->path, MR_WEBDATASET_JSON_MAX >> 20);
    MR_TRY(mr_source_read(t->source, entry, out, err));
    size_t from = 0;
    while (out->len && strchr(" \t\r\n", out->data[out->len - 1]))
        out->len--;
    while (from < out->len && strchr(" \t\r\n", out->data[from]))
        from++;
    out->len -= from;
    memmove(out->data, out->data + from, out->len);
    if (!out->len || out->data[0] != '{' || out->data[out->len - 1] != '}')
        return mr_fail(err, MR_BAD_DATA, "%s: not a JSON object", e->path);
    return MR_OK;
}
