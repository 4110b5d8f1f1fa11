/* find.c - which shard of the manifest has this name, this size, these bytes?
 * Invariant: sorted once, each question is a search by halves: 100,000 damaged shards cost no more each than ten. */
#include "verify/parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static int compare(const mr_digest *a, const mr_digest *b, bool xxh3, bool sha256)
{
    int by_xxh3 = xxh3 ? memcmp(a->xxh3_128, b->xxh3_128, sizeof a->xxh3_128) : 0;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    return by_xxh3 || !sha256 ? by_xxh3 : memcmp(a->sha256, b->sha256, sizeof a->sha256);
}

static int by_mdb(const void *a, const void *b)
{
    const mr_shard *x = *(const mr_shard *const *)a, *y = *(const mr_shard *const *)b;
    int cmp = compare(&x->mdb, &y->mdb, true, true);
    return cmp ? cmp : strcmp(x->name, y->name);
}

static int by_idx(const void *a, const void *b)
{
    const mr_shard *x = *(const mr_shard *const *)a, *y = *(const mr_shard *const *)b;
    int cmp = compare(&x->idx, &y->idx, true, true);
    return cmp ? cmp : strcmp(x->name, y->name);
}

mr_status mr_verify_find_begin(const mr_shard *const *shards, size_t count, mr_verify_find *f, mr_error *err)
{
    f->count = count;
    f->names = mr_alloc(count, sizeof *f->names);
    f->by_mdb = mr_alloc(count, sizeof *f->by_mdb);
    f->by_idx = mr_alloc(count, sizeof *f->by_idx);
    if (!f->names || !f->by_mdb || !f->by_idx)
        return mr_fail_memory(err, MR_MANIFEST);
    for (size_t i = 0; i < count; i++) {
        f->names[i] = shards[i]->name;
        f->by_mdb[i] = f->by_idx[i] = shards[i];
    }
    mr_names_sort(f->names, count);
    if (count) {
        qsort(f->by_mdb, count, sizeof *f->by_mdb, by_mdb);
        qsort(f->by_idx, count, sizeof *f->by_idx, by_idx);
    }
    return MR_OK;
}

void mr_verify_find_end(mr_verify_find *f)
{
    free(f->names);
    free(f->by_mdb);
    free(f->by_idx);
    *f = (mr_verify_find){0};
}

bool mr_verify_find_name(const mr_verify_find *f, const char *name, size_t len)
{
    return mr_names_have(f->names, f->count, name, len);
}

const mr_shard *mr_verify_find_other(const mr_verify_job *job, bool idx, uint64_t size, const mr_digest *digest)
{
    const mr_verify_find *f = job->find;
    const mr_shard *const *list = idx ? f->by_idx : f->by_mdb;
    const mr_digest any = {.bytes = size};
    bool sha256 = digest && !job->options->no_sha256;
    size_t low = 0, high = f->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (compare(idx ? &list[mid]->idx : &list[mid]->mdb, digest ? digest : &any, digest != NULL, sha256) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    low += low < f->count && list[low] == job->shard;
    bool same = low < f->count &&
                compare(idx ? &list[low]->idx : &list[low]->mdb, digest ? digest : &any, digest != NULL, sha256) == 0;
    return same ? list[low] : NULL;
}
