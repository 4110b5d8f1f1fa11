/* stems.h - names of images without folders and endings.
 * Invariant: mr_stems_have() is called only after mr_stems_sort(). */
#ifndef MR_STEMS_H
#define MR_STEMS_H

#include "base/error.h"

/* Names of images without folder and ending, to recognise tables that leave out endings. */
typedef struct mr_stems {
    uint64_t *hashes; /* sorted */
    size_t count, capacity;
} mr_stems;

mr_status mr_stems_add(mr_stems *stems, const char *path, size_t len, mr_error *err);
void mr_stems_sort(mr_stems *stems);
bool mr_stems_have(const mr_stems *stems, const char *stem, size_t len);
void mr_stems_free(mr_stems *stems);
/* The name of a file without its folder and its last ending. */
const char *mr_stem(const char *path, size_t len, size_t *stem_len);

#endif
