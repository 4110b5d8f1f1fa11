/* stems.c - names of images without folders and endings: see stems.h.
 * Invariant: names are compared by their hashes alone. */
#include "ingest/layout/stems.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

const char *mr_stem(const char *path, size_t len, size_t *stem_len)
{
    const char *slash = memrchr(path, '/', len), *name = slash ? slash + 1 : path;
    size_t name_len = len - (size_t)(name - path);
    const char *dot = memrchr(name, '.', name_len);
    *stem_len = dot && dot > name ? (size_t)(dot - name) : name_len;
    return name;
}

mr_status mr_stems_add(mr_stems *stems, const char *path, size_t len, mr_error *err)
{
    size_t stem_len;
    const char *stem = mr_stem(path, len, &stem_len);
    if (!MR_GROW(stems->hashes, stems->count, stems->capacity))
        return mr_fail_memory(err, "listing image names");
    stems->hashes[stems->count++] = mr_hash64(stem, stem_len);
    return MR_OK;
}

static int by_value(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

void mr_stems_sort(mr_stems *stems)
{
    if (stems->count)
        qsort(stems->hashes, stems->count, sizeof *stems->hashes, by_value);
}

bool mr_stems_have(const mr_stems *stems, const char *stem, size_t len)
{
    uint64_t hash = mr_hash64(stem, len);
    return stems->count && bsearch(&hash, stems->hashes, stems->count, sizeof hash, by_value);
}

void mr_stems_free(mr_stems *stems)
{
    free(stems->hashes);
    *stems = (mr_stems){0};
}
