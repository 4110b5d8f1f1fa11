/* json_repair.h - what tools write that is not JSON: NaN, Infinity, and bytes that are not UTF-8.
 * Invariant: a text keeps its length, so places in it stay; what was replaced is listed, so that no value that was
 * replaced is ever mistaken for the source's.
 *
 *      "bbox": [1, NaN, 3, 4], "name": "caf\xE9"     becomes     "bbox": [1, "N", 3, 4], "name": "caf?"              */
#ifndef MR_JSON_REPAIR_H
#define MR_JSON_REPAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mr_json_flaw {
    uint64_t at; /* the byte, from 0 */
    bool text;   /* not UTF-8; else NaN or Infinity */
} mr_json_flaw;

typedef struct mr_json_repair { /* a zeroed one is at the beginning of a document */
    bool in_string, escaped;
    mr_json_flaw *flaws; /* in order */
    size_t count, capacity;
    bool failed; /* memory ran out */
} mr_json_repair;

/* Repairs the next bytes (whole characters and words), which start at `at` in the document. */
void mr_json_repair_bytes(mr_json_repair *r, char *text, size_t len, uint64_t at);
/* How many bytes at the end of the text may be the beginning of such a word. */
size_t mr_json_repair_cut(const char *text, size_t len);
/* The first flaw in [from, to); NULL: none.  *next is where the last search ended, since places rise. */
const mr_json_flaw *mr_json_repair_find(const mr_json_repair *r, size_t *next, uint64_t from, uint64_t to);
/* "NaN or Infinity, which JSON does not have" or "text that is not UTF-8". */
const char *mr_json_flaw_text(const mr_json_flaw *flaw);
void mr_json_repair_free(mr_json_repair *r);

#endif
