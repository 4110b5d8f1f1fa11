/* texts.c - see texts.h.
 * Invariant: items are in `bytes` in the order in which they were kept. */
#include "ingest/layout/texts.h"

#include <stdlib.h>

void mr_texts_keep(mr_texts *texts, uint32_t entry, const void *bytes, size_t len)
{
    size_t at = texts->bytes.len;
    if (len > MR_TEXTS_MAX - at || !MR_GROW(texts->items, texts->count, texts->capacity))
        return;
    mr_buf_add(&texts->bytes, bytes, len);
    if (texts->bytes.failed) /* it can be read again */
        mr_texts_free(texts);
    else
        texts->items[texts->count++] = (mr_kept_text){entry, (uint32_t)len, at};
}

static int by_entry(const void *a, const void *b)
{
    const mr_kept_text *x = a, *y = b;
    return (x->entry > y->entry) - (x->entry < y->entry);
}

void mr_texts_sort(mr_texts *texts)
{
    if (texts->count)
        qsort(texts->items, texts->count, sizeof *texts->items, by_entry);
}

const void *mr_texts_find(const mr_texts *texts, uint32_t entry, size_t *len)
{
    const mr_kept_text key = {.entry = entry}, *found = NULL;
    if (texts->count)
        found = bsearch(&key, texts->items, texts->count, sizeof key, by_entry);
    *len = found ? found->len : 0;
    if (found && !found->len)
        return ""; /* where every kept text is empty, there are no bytes */
    return found ? texts->bytes.data + found->at : NULL;
}

mr_status mr_texts_read(const mr_texts *texts, const mr_source *s, uint32_t entry, mr_buf *out, mr_error *err)
{
    size_t len;
    const void *kept = mr_texts_find(texts, entry, &len);
    if (!kept)
        return mr_source_read(s, entry, out, err);
    mr_buf_clear(out);
    mr_buf_add(out, kept, len);
    return mr_buf_status(out, err, "reading labels");
}

void mr_texts_free(mr_texts *texts)
{
    mr_buf_free(&texts->bytes);
    free(texts->items);
    *texts = (mr_texts){0};
}
