/* find.c - which shard of the manifest has this name, this size, these bytes?
 * Invariant: the lists are sorted once and each question is a binary search, so 100,000 damaged shards are cheap. */
#include "shards/verify/parts.h"

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

static int by_digest(const void *a, const void *b)
{
    const mr_verify_file *x = a, *y = b;
    int cmp = compare(x->digest, y->digest, true, true);
    return cmp ? cmp : strcmp(x->shard->name, y->shard->name);
}

mr_status mr_verify_find_begin(const mr_shard *const *shards, size_t count, mr_verify_find *f, mr_error *err)
{
    f->count = count;
    f->names = mr_alloc(count, sizeof *f->names);
    f->mdb = mr_alloc(count, sizeof *f->mdb);
    f->idx = mr_alloc(count, sizeof *f->idx);
    if (!f->names || !f->mdb || !f->idx)
        return mr_fail_memory(err, MR_MANIFEST);
    for (size_t i = 0; i < count; i++) {
        f->names[i] = shards[i]->name;
        f->mdb[i] = (mr_verify_file){&shards[i]->mdb, shards[i]};
        f->idx[i] = (mr_verify_file){&shards[i]->idx, shards[i]};
    }
    mr_names_sort(f->names, count);
    if (count) {
        qsort(f->mdb, count, sizeof *f->mdb, by_digest);
        qsort(f->idx, count, sizeof *f->idx, by_digest);
    }
    return MR_OK;
}

void mr_verify_find_end(mr_verify_find *f)
{
    free(f->names);
    free(f->mdb);
    free(f->idx);
    *f = (mr_verify_find){0};
}

bool mr_verify_find_name(const mr_verify_find *f, const char *name, size_t len)
{
    return mr_names_have(f->names, f->count, name, len);
}

const mr_shard *mr_verify_find_other(const mr_verify_job *job, bool idx, uint64_t size, const mr_digest *digest)
{
    const mr_verify_find *f = job->find;
    const mr_verify_file *list = idx ? f->idx : f->mdb;
    const mr_digest any = {.bytes = size}, *wanted = digest ? digest : &any;
    bool sha256 = digest && !job->options->no_sha256;
    size_t low = 0, high = f->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (compare(list[mid].digest, wanted, digest != NULL, sha256) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    low += low < f->count && list[low].shard == job->shard;
    bool same = low < f->count && compare(list[low].digest, wanted, digest != NULL, sha256) == 0;
    return same ? list[low].shard : NULL;
}
