/* words.h - how often words occur.
 * Invariant: words are lower-case runs of ASCII letters, digits and characters beyond ASCII, of three bytes or more;
 * at most the first MR_WORDS_MOST different ones are kept. */
#ifndef MR_REPORT_WORDS_H
#define MR_REPORT_WORDS_H

#include "base/buf.h"
#include "base/string_map.h"

enum { MR_WORDS_MOST = 200000, MR_WORD_LONGEST = 64 };

typedef struct mr_word {
    size_t at, len; /* in mr_words.text */
    uint64_t count;
} mr_word;

typedef struct mr_words { /* a zeroed one is empty */
    mr_buf text;
    mr_word *items;
    size_t count, capacity;
    mr_string_map map;
} mr_words;

/* Counts the words of `text`; *total: how many it has.  MR_SYSTEM: out of memory. */
mr_status mr_words_add(mr_words *w, const char *text, size_t len, uint64_t *total, mr_error *err);
/* The most frequent ones first, equal ones by their bytes; adding ends with it. */
void mr_words_sort(mr_words *w);
void mr_words_free(mr_words *w);

#endif
