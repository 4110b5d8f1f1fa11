/* ledger_parts.h - what the files of the ledger share: the fates while they are settled, and what is left.
 * Invariant: a leftover is an entry whose fate is MR_FATE_UNACCOUNTED. */
#ifndef MR_LEDGER_PARTS_H
#define MR_LEDGER_PARTS_H

#include "ingest/pipeline/ingest_state.h"

typedef struct mr_leftover {
    const char *path; /* of the entry */
    uint32_t entry;
    uint32_t folder;         /* length of the folder that names it; 0: the top level of the source */
    const mr_format *format; /* NULL: an image */
    bool keepable;           /* --keep-unlisted includes it */
    bool skippable;          /* --skip-unmatched leaves it out */
} mr_leftover;

typedef struct mr_book {
    mr_ingest *in;
    uint8_t *fates; /* mr_fate of each entry */
    uint8_t *noted; /* what the plan's notes say about each entry, see ledger.c */
    uint32_t *kept; /* [entries + 1]: samples, annotations and masks before each entry */
    mr_stems of_samples, of_images;
    bool sampled, listed; /* ... are filled */
    unsigned texts;       /* whose names without endings were looked up */
    bool labelled;        /* something says what a sample shows */
    mr_leftover *items;
    size_t count, capacity;
} mr_book;

enum { MR_LEFT_FORMATS = 4 }; /* formats listed per folder; further ones are counted together */

typedef struct mr_left_folder {
    const mr_book *book;
    const mr_leftover *items; /* those of the folder */
    size_t count;
    const char *path; /* from the top level of the source */
    size_t len;
    size_t images, others; /* others: annotations of further formats */
    size_t odd;            /* images that are not named like one */
    uint64_t bytes;
    const mr_format *formats[MR_LEFT_FORMATS];
    size_t counts[MR_LEFT_FORMATS];
    bool keepable, skippable; /* all of them */
    bool inside;              /* it is in the root */
    bool apart;               /* nothing in it is part of the dataset */
} mr_left_folder;

static inline bool mr_book_inside(const mr_ingest *in, uint32_t n)
{
    return n >= in->choice.tree.begin && n < in->choice.tree.end;
}

/* ledger_names.c: whether entry n is an image by its name. */
bool mr_is_named_image(const mr_ingest *in, uint32_t n);
/* ledger_names.c: fills in the names of the samples' images, or of all, unless that is done. */
mr_status mr_book_stems(mr_book *b, bool samples, mr_error *err);
/* ledger_notes.c, when all fates are settled. */
mr_status mr_book_note(mr_book *b, mr_error *err);
typedef struct mr_list_options { /* what --split-list takes; empty if zeroed */
    const char *splits[3];       /* those that `text` has */
    size_t count;
    mr_buf text; /* "meta/test.txt=test,meta/train.txt=train" */
} mr_list_options;
/* advice.c: adds the list, unless its name mentions no split, or one that another list has. */
void mr_list_options_add(mr_list_options *o, const char *path);
void mr_list_options_free(mr_list_options *o);
/* advice.c: why they are left, and each option that settles it. */
void mr_left_advise(const mr_left_folder *f, mr_buf *out);
/* leftovers.c: notes each folder; MR_BAD_DATA: there is one. */
mr_status mr_leftovers_check(mr_book *b, mr_error *err);

#endif
