/* coco_ids.h - ids of COCO files as numbers, also those that are strings.
 * Invariant: equal strings have equal numbers in all files that share a table.  A string in which an integer is spelled
 * as JSON spells it ("139") has that integer's number, since many tools quote ids in one list only; the numbers of
 * others rise with their first mention, below those of all integers that are accepted. */
#ifndef MR_COCO_IDS_H
#define MR_COCO_IDS_H

#include "base/string_map.h"

#define MR_COCO_NO_ID    INT64_MIN                             /* no id */
#define MR_COCO_ID_LEAST (INT64_MIN + 1 + (int64_t)UINT32_MAX) /* the least id that is an integer */

typedef struct mr_coco_ids { /* a zeroed one is empty */
    mr_string_map map;
    mr_buf text;  /* the strings, one after another */
    size_t *ends; /* where each ends in `text` */
    size_t count, capacity;
} mr_coco_ids;

/* The same for a number of JSON, where 3.0 and 3e0 are 3.  False: also where it is not whole. */
bool mr_coco_id_number(const char *text, size_t len, int64_t *out);
/* The number of a string; it is added if it is new.  False: out of memory. */
bool mr_coco_id_add(mr_coco_ids *ids, const char *text, size_t len, int64_t *out);
/* MR_COCO_NO_ID: no such string. */
int64_t mr_coco_id_find(const mr_coco_ids *ids, const char *text, size_t len);
/* Whether the number is that of a string. */
bool mr_coco_id_is_text(int64_t id);
/* For messages: 17, or "a b" in quotes, as path text. */
const char *mr_coco_id_show(const mr_coco_ids *ids, int64_t id, char out[120]);
void mr_coco_ids_free(mr_coco_ids *ids);

#endif
