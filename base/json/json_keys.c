/* json_keys.c - see json_keys.h.
 * Invariant: the keys of an object are one run of `items`, after those of the objects around it. */
#include "base/json/json_keys.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/hash.h"

enum { FEW = 32 };

typedef struct mr_json_key {
    uint64_t hash, at;
} key;

bool mr_json_keys_begin(mr_json_keys *k)
{
    if (!MR_GROW(k->begins, k->depth, k->begin_capacity))
        return false;
    k->seed = k->seed ? k->seed : mr_hash_seed() | 1;
    k->begins[k->depth++] = k->count;
    return true;
}

mr_json_keys_verdict mr_json_keys_add(mr_json_keys *k, const void *text, size_t len, uint64_t at)
{
    size_t begin = k->begins[k->depth - 1];
    uint64_t hash = mr_hash64_seeded(text, len, k->seed);
    if (!MR_GROW(k->items, k->count, k->capacity))
        return MR_JSON_KEYS_NO_MEMORY;
    for (size_t i = begin; i < k->count && k->count - begin <= FEW; i++)
        if (k->items[i].hash == hash)
            return MR_JSON_KEYS_TWICE;
    k->items[k->count++] = (key){hash, at};
    return MR_JSON_KEYS_DIFFER;
}

static int by_hash_and_place(const void *a, const void *b)
{
    const key *x = a, *y = b;
    return x->hash != y->hash ? (x->hash > y->hash ? 1 : -1) : (x->at > y->at) - (x->at < y->at);
}

bool mr_json_keys_end(mr_json_keys *k, uint64_t *at)
{
    size_t begin = k->begins[--k->depth], count = k->count - begin;
    bool good = true;
    k->count = begin;
    if (count <= FEW)
        return true;
    key *keys = k->items + begin;
    qsort(keys, count, sizeof *keys, by_hash_and_place);
    for (size_t i = 1; i < count; i++)
        if (keys[i].hash == keys[i - 1].hash && (good || keys[i].at < *at)) {
            *at = keys[i].at;
            good = false;
        }
    return good;
}

void mr_json_keys_free(mr_json_keys *k)
{
    free(k->items);
    free(k->begins);
    *k = (mr_json_keys){0};
}
