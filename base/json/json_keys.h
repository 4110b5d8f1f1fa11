/* json_keys.h - the keys of the JSON objects that are open in a stream: finds one that occurs twice.
 * Invariant: memory is 16 bytes for each key of the open objects; a key costs a hash, and a comparison with each of the
 * first few of its object. */
#ifndef MR_JSON_KEYS_H
#define MR_JSON_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mr_json_keys { /* a zeroed one is empty */
    struct mr_json_key *items;
    size_t *begins; /* where the keys of each open object begin in items */
    size_t count, capacity, depth, begin_capacity;
    uint64_t seed; /* so that untrusted keys cannot be chosen to collide */
} mr_json_keys;

typedef enum mr_json_keys_verdict {
    MR_JSON_KEYS_DIFFER,
    MR_JSON_KEYS_TWICE,
    MR_JSON_KEYS_NO_MEMORY
} mr_json_keys_verdict;

bool mr_json_keys_begin(mr_json_keys *k); /* an object; false: out of memory */
/* A key of the innermost object, which ends before `at`.  In an object of many keys one that occurs twice is found at
 * its end. */
mr_json_keys_verdict mr_json_keys_add(mr_json_keys *k, const void *text, size_t len, uint64_t at);
/* The innermost object ends.  False: one of its keys occurs twice, the second time before *at. */
bool mr_json_keys_end(mr_json_keys *k, uint64_t *at);
void mr_json_keys_free(mr_json_keys *k);

#endif
