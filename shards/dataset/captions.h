/* captions.h - an image's captions, from a sample's meta.
 * Invariant: depends only on the meta's bytes; the error about a missing column names the existing ones.
 *
 *      {"columns":{"image_description":"A dog in a bar."}}         New Yorker, hub: --text-column image_description
 *      {"captions":[{"caption":"two dogs"},{"caption":"..."}]}      COCO: --text-column captions (caption is the same)
 *      {"captions":["a daisy"]}                                     Roboflow's CLIP export: the same
 * A column that is a list of strings has as many captions; null and "" do not count.  "caption" and "captions" mean the
 * list beside the columns, unless a column has that name.
 *
 * Memory is allocated only for what is appended, however large or deep the meta is: one pass over its bytes, of which
 * only those that are needed are checked (`millrace verify` checks all).  MR_BAD_DATA: not a JSON object, or a needed
 * member occurs twice. */
#ifndef MR_CAPTIONS_H
#define MR_CAPTIONS_H

#include "base/buf.h"

/* How many captions `column` has in this meta; 0 is not a failure. */
mr_status mr_captions_count(const char *column, const char *meta, size_t len, size_t *count, mr_error *err);
/* Appends caption n, UTF-8.  MR_BAD_SAMPLE: there is none of that number. */
mr_status mr_captions_get(const char *column, const char *meta, size_t len, size_t n, mr_buf *out, mr_error *err);
/* The default column: "image_description" if the meta has it, else "captions", else NULL.  `known` gets the names of
 * the columns with text, comma-separated, for messages. */
const char *mr_captions_guess(const char *meta, size_t len, mr_buf *known);

/* Both of the above in one pass: where a column's captions are, in the meta. */
typedef struct mr_captions {
    const char *at, *end; /* the column's value */
    size_t count;
} mr_captions;
mr_status mr_captions_find(const char *column, const char *meta, size_t len, mr_captions *out, mr_error *err);
/* Appends caption n < count. */
mr_status mr_captions_read(const mr_captions *c, size_t n, mr_buf *out, mr_error *err);

/* The samples of a split in order, each as often as it has captions: items of a loader.  *without: samples without
 * captions, which are left out; a sample with a damaged meta is listed once, for the loader to find.  Caller:
 * free(*items).  MR_BAD_DATA: names the sample whose captions cannot be read; MR_MISUSE: no such split. */
mr_status mr_captions_expand(const mr_dataset *ds, const char *split, const char *column, uint64_t **items,
                             uint64_t *count, uint64_t *without, mr_error *err);

#endif
