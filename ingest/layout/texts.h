/* texts.h - label files that a plan has read, kept for metas and objects: small ones cost more to open than to read.
 * Invariant: memory is at most MR_TEXTS_MAX bytes and their list; what does not fit is read from the source again. */
#ifndef MR_TEXTS_H
#define MR_TEXTS_H

#include "ingest/source/source.h"

enum { MR_TEXTS_MAX = 64 << 20 };

typedef struct mr_kept_text {
    uint32_t entry, len;
    size_t at;
} mr_kept_text;

typedef struct mr_texts { /* a zeroed one is empty */
    mr_buf bytes;
    mr_kept_text *items; /* sorted by entry after mr_texts_sort() */
    size_t count, capacity;
} mr_texts;

/* Keeps a copy of the text of an entry, which has none yet, if there is room. */
void mr_texts_keep(mr_texts *texts, uint32_t entry, const void *bytes, size_t len);
/* After the last one. */
void mr_texts_sort(mr_texts *texts);
/* Lends the text; NULL: it was not kept.  Thread-safe. */
const void *mr_texts_find(const mr_texts *texts, uint32_t entry, size_t *len);
/* Replaces out's contents with the whole entry, kept or read.  Thread-safe. */
mr_status mr_texts_read(const mr_texts *texts, const mr_source *s, uint32_t entry, mr_buf *out, mr_error *err);
void mr_texts_free(mr_texts *texts);

#endif
