/* string_map.h - finds a string's number in a list by hash.
 * Invariant: the list owns the strings and numbers them in order; the map looks them up by number, so the list may grow
 * and move. */
#ifndef MR_STRING_MAP_H
#define MR_STRING_MAP_H

#include "base/buf.h"

typedef struct mr_string_map {
    uint32_t *slots;    /* [size]: a string's number + 1; 0: empty */
    size_t size, count; /* size: a power of two, at least twice the count; 0: nothing was added */
    uint64_t seed;      /* for the hashes: untrusted strings cannot be chosen to collide */
} mr_string_map;

/* The bytes of string `number` of `list`. */
typedef const void *mr_string_map_text(const void *list, size_t number, size_t *len);

/* The number of a string; SIZE_MAX: not found. */
size_t mr_string_map_find(const mr_string_map *f, mr_string_map_text *text_of, const void *list, const void *text,
                          size_t len);
/* Adds a string that is not in the map as number f->count, its number in the list.  False: out of memory, or too many
 * strings. */
bool mr_string_map_add(mr_string_map *f, mr_string_map_text *text_of, const void *list, const void *text, size_t len);
void mr_string_map_release(mr_string_map *f); /* a zeroed one is fine */

#endif
