/* captions.h - captions of a sample from a column of its row.
 * Invariant: a meta's "captions" is a list of strings. */
#ifndef MR_LAYOUT_CAPTIONS_H
#define MR_LAYOUT_CAPTIONS_H

#include "ingest/source/source.h"

/* Appends ,"captions":[...] with the string, or the strings, of `column` in the JSON object that `out` holds from
 * `columns_at` to its end; nothing where it has none.  `entry`: its file, for the message.  MR_BAD_DATA: the column
 * holds something else. */
mr_status mr_captions_add(const mr_tree *t, uint32_t entry, const char *column, size_t columns_at, mr_buf *out,
                          mr_error *err);

#endif
