/* string_map.h - which of a list's texts is this one, without looking at them all.
 * Invariant: the texts stay with their list, in whose order they are numbered; a text is asked for by its number, so a
 * list may move, and grow, as it likes. */
#ifndef MR_STRING_MAP_H
#define MR_STRING_MAP_H

#include "base/buf.h"

typedef struct mr_string_map {
    uint32_t *slots;    /* [size]: a number + 1 where its hash, or those before it, left room; 0: empty */
    size_t size, count; /* size: a power of two, at least twice the count; 0: nothing was added */
    uint64_t seed;      /* of the hashes: texts that strangers chose do not all stand in one place */
} mr_string_map;

/* The bytes of text `number` of `list`. */
typedef const void *mr_string_map_text(const void *list, size_t number, size_t *len);

/* The number of a text, SIZE_MAX: it is not there. */
size_t mr_string_map_find(const mr_string_map *f, mr_string_map_text *text_of, const void *list, const void *text,
                          size_t len);
/* Adds a text, which is not there yet, as number f->count: that of the list's next.  False: memory is out, or there are
 * more than can be numbered. */
bool mr_string_map_add(mr_string_map *f, mr_string_map_text *text_of, const void *list, const void *text, size_t len);
void mr_string_map_release(mr_string_map *f); /* a zeroed one is fine */

#endif
