/* string_map.c - finds a string's number in a list: a hash table with linear probing.
 * Invariant: a string is in the first slot that was free at or after its hash; nothing is ever removed. */
#include "base/string_map.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { MIN_SIZE = 64 };

/* The slot where this string is, or belongs. */
static size_t slot_of(const mr_string_map *f, mr_string_map_text *text_of, const void *list, const void *text,
                      size_t len)
{
    size_t mask = f->size - 1, i = (size_t)mr_hash64_seeded(text, len, f->seed) & mask;
    for (; f->slots[i]; i = (i + 1) & mask) {
        size_t other_len;
        const void *other = text_of(list, f->slots[i] - 1, &other_len);
        if (other_len == len && (len == 0 || memcmp(other, text, len) == 0))
            break;
    }
    return i;
}

size_t mr_string_map_find(const mr_string_map *f, mr_string_map_text *text_of, const void *list, const void *text,
                          size_t len)
{
    uint32_t found = f->size ? f->slots[slot_of(f, text_of, list, text, len)] : 0;
    return found ? found - 1 : SIZE_MAX;
}

static bool grow(mr_string_map *f, mr_string_map_text *text_of, const void *list)
{
    mr_string_map grown = {.size = f->size ? f->size * 2 : MIN_SIZE, .count = f->count, .seed = mr_hash_seed()};
    grown.slots = mr_alloc(grown.size, sizeof *grown.slots);
    if (!grown.slots)
        return false;
    for (size_t n = 0; n < f->count; n++) {
        size_t len;
        const void *text = text_of(list, n, &len);
        grown.slots[slot_of(&grown, text_of, list, text, len)] = (uint32_t)n + 1;
    }
    free(f->slots);
    *f = grown;
    return true;
}

bool mr_string_map_add(mr_string_map *f, mr_string_map_text *text_of, const void *list, const void *text, size_t len)
{
    if (f->count == UINT32_MAX - 1 || ((f->count + 1) * 2 > f->size && !grow(f, text_of, list)))
        return false;
    f->slots[slot_of(f, text_of, list, text, len)] = (uint32_t)++f->count;
    return true;
}

void mr_string_map_release(mr_string_map *f)
{
    free(f->slots);
    *f = (mr_string_map){0};
}
