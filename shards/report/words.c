/* words.c - how often words occur.
 * Invariant: up to MR_WORDS_MOST words, the sorted list does not depend on the order of the texts. */
#include "shards/report/words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const void *text_of(const void *list, size_t number, size_t *len)
{
    const mr_words *w = list;
    *len = w->items[number].len;
    return w->text.data + w->items[number].at;
}

static mr_status add_word(mr_words *w, const char *word, size_t len, mr_error *err)
{
    size_t at = mr_string_map_find(&w->map, text_of, w, word, len);
    if (at != SIZE_MAX) {
        w->items[at].count++;
        return MR_OK;
    }
    if (w->count >= MR_WORDS_MOST)
        return MR_OK;
    if (!MR_GROW(w->items, w->count, w->capacity))
        return mr_fail_memory(err, "counting words");
    mr_word item = {w->text.len, len, 1};
    mr_buf_add(&w->text, word, len);
    if (w->text.failed || !mr_string_map_add(&w->map, text_of, w, word, len))
        return mr_fail_memory(err, "counting words");
    w->items[w->count++] = item;
    return MR_OK;
}

mr_status mr_words_add(mr_words *w, const char *text, size_t len, uint64_t *total, mr_error *err)
{
    char word[MR_WORD_LONGEST];
    size_t length = 0;
    *total = 0;
    for (size_t i = 0; i <= len; i++) {
        unsigned char c = i < len ? (unsigned char)text[i] : ' ';
        if (isalnum(c) || c >= 0x80) {
            if (length < sizeof word)
                word[length] = (char)(c < 0x80 ? tolower(c) : c);
            length++;
            continue;
        }
        *total += length > 0;
        mr_status status = length >= 3 && length <= sizeof word ? add_word(w, word, length, err) : MR_OK;
        if (status != MR_OK)
            return status;
        length = 0;
    }
    return MR_OK;
}

static int by_count(const void *a, const void *b, void *text)
{
    const mr_word *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    int order = memcmp((char *)text + x->at, (char *)text + y->at, x->len < y->len ? x->len : y->len);
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

void mr_words_sort(mr_words *w)
{
    if (w->count)
        qsort_r(w->items, w->count, sizeof *w->items, by_count, w->text.data);
    mr_string_map_release(&w->map);
}

void mr_words_free(mr_words *w)
{
    mr_buf_free(&w->text);
    free(w->items);
    mr_string_map_release(&w->map);
    *w = (mr_words){0};
}
