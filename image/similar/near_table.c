/* near_table.c - hashes in buckets by each quarter of their bits.
 * Invariant: every bucket is sorted by image.
 *
 * Two hashes that differ in at most 4 r + a bits (a < 4) differ in at most r bits in one of the quarters 0 to a, or in
 * at most r - 1 in one of the others: so only the buckets that near are looked at. Source: M. Norouzi, A. Punjani, D.
 * J. Fleet, Fast Search in Hamming Space with Multi-Index Hashing (CVPR 2012), 3. */
#include "image/similar/near_table.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT = 4, CHUNK_BITS = 16 }; /* KEPT: equal hashes kept per split */

static unsigned chunk_of(uint64_t hash, int chunk)
{
    return (unsigned)(hash >> (CHUNK_BITS * chunk)) & (MR_NEAR_BUCKETS - 1);
}

static int by_hash(const void *a, const void *b)
{
    const mr_near_entry *x = a, *y = b;
    int order = (x->hash > y->hash) - (x->hash < y->hash);
    if (order == 0)
        order = (x->split > y->split) - (x->split < y->split);
    return order ? order : (x->picture > y->picture) - (x->picture < y->picture);
}

static int by_picture(const void *a, const void *b)
{
    const mr_near_entry *x = a, *y = b;
    return (x->picture > y->picture) - (x->picture < y->picture);
}

static size_t drop_repeated(mr_near_entry *entries, size_t count)
{
    size_t kept = 0, run = 0;
    mr_near_entry last = {0};
    qsort(entries, count, sizeof *entries, by_hash);
    for (size_t i = 0; i < count; i++) {
        mr_near_entry e = entries[i];
        run = i && e.hash == last.hash && e.split == last.split ? run + 1 : 0;
        if (run < KEPT)
            entries[kept++] = e;
        last = e;
    }
    qsort(entries, kept, sizeof *entries, by_picture);
    return kept;
}

static void fill_chunk(const mr_near_entry *entries, size_t count, int chunk, uint32_t *start, mr_near_entry *sorted)
{
    for (size_t i = 0; i < count; i++)
        start[chunk_of(entries[i].hash, chunk) + 1]++;
    for (size_t b = 0; b < MR_NEAR_BUCKETS; b++)
        start[b + 1] += start[b];
    for (size_t i = 0; i < count; i++) /* moves each start to its bucket's end */
        sorted[start[chunk_of(entries[i].hash, chunk)]++] = entries[i];
    memmove(start + 1, start, MR_NEAR_BUCKETS * sizeof *start);
    start[0] = 0;
}

mr_status mr_near_table_make(mr_near_entry *entries, size_t count, mr_near_table *out, mr_error *err)
{
    count = count ? drop_repeated(entries, count) : 0;
    out->count = count;
    for (int c = 0; c < MR_NEAR_CHUNKS; c++) {
        out->start[c] = mr_alloc(MR_NEAR_BUCKETS + 1, sizeof *out->start[c]);
        out->entries[c] = mr_alloc(count, sizeof *out->entries[c]);
        if (!out->start[c] || !out->entries[c])
            return mr_fail_memory(err, "looking for near-duplicates");
        fill_chunk(entries, count, c, out->start[c], out->entries[c]);
    }
    return MR_OK;
}

void mr_near_table_free(mr_near_table *t)
{
    for (int c = 0; c < MR_NEAR_CHUNKS; c++) {
        free(t->start[c]);
        free(t->entries[c]);
    }
    *t = (mr_near_table){0};
}

typedef struct query {
    const mr_near_table *table;
    uint64_t hash;
    unsigned distance;
    uint32_t before;
    size_t *left;
    mr_near_take take;
    void *ctx;
} query;

static bool look_in_bucket(const query *q, int chunk, unsigned bucket)
{
    const mr_near_entry *e = q->table->entries[chunk] + q->table->start[chunk][bucket];
    const mr_near_entry *end = q->table->entries[chunk] + q->table->start[chunk][bucket + 1];
    for (; e < end && e->picture < q->before; e++) {
        if (*q->left == 0)
            return false;
        (*q->left)--;
        unsigned distance = (unsigned)__builtin_popcountll(e->hash ^ q->hash);
        if (distance <= q->distance)
            q->take(q->ctx, e->picture, distance);
    }
    return true;
}

/* The bucket, and those whose bits below `top` differ in at most `radius`. */
static bool look_around(const query *q, int chunk, unsigned bucket, int top, int radius)
{
    if (!look_in_bucket(q, chunk, bucket))
        return false;
    for (int bit = 0; radius && bit < top; bit++)
        if (!look_around(q, chunk, bucket ^ 1u << bit, bit, radius - 1))
            return false;
    return true;
}

bool mr_near_table_find(const mr_near_table *t, uint64_t hash, unsigned distance, uint32_t before, size_t *left,
                        mr_near_take take, void *ctx)
{
    const query q = {t, hash, distance, before, left, take, ctx};
    int radius = (int)distance / MR_NEAR_CHUNKS, whole = (int)distance % MR_NEAR_CHUNKS;
    for (int c = 0; c < MR_NEAR_CHUNKS; c++) {
        int near = c <= whole ? radius : radius - 1;
        if (near >= 0 && !look_around(&q, c, chunk_of(hash, c), CHUNK_BITS, near))
            return false;
    }
    return true;
}
