/* pairs.h - what a run on images and texts has that a run on labels does not: tokenizer, column, list of pairs.
 * Invariant: a checkpoint keeps the tokenizer's own bytes, so a run is resumed and evaluated without its original
 * files. */
#ifndef MR_PAIRS_H
#define MR_PAIRS_H

#include "base/ranks/ranks.h"
#include "train/checkpoint/checkpoint.h"
#include "train/feed/feed.h"
#include "train/setup/settings.h"

typedef struct mr_pairs {
    mr_tokenizer *tokenizer;
    mr_buf file; /* the tokenizer as a tokenizer.json */
    char column[256];
    uint64_t *items, item_count;      /* samples of the split to train on; NULL: all, each once */
    uint64_t without;                 /* samples without a caption, left out of them; on rank 0 */
    uint64_t *eval_items, eval_count; /* samples of the split to evaluate on; NULL: all of them */
    mr_feed_text text;                /* refers to the above */
} mr_pairs;

/* The tokenizer that the options name: --tokenizer, or one beside --config or in --pretrained.  MR_MISUSE: none.
 * MR_BAD_DATA: its special tokens do not have the ids that the model needs. */
mr_status mr_pairs_tokenizer(const mr_settings *s, mr_pairs *p, mr_error *err);
/* The one that a checkpoint keeps; MR_BAD_DATA also: it has more tokens than the model. */
mr_status mr_pairs_restore(const mr_checkpoint *c, const char *name, mr_pairs *p, mr_error *err);

typedef struct mr_pairs_options {
    const char *column;                   /* "": guessed from the first samples of the first split */
    const char *train_split, *eval_split; /* NULL: none; one is given */
    uint32_t tokens;                      /* most tokens of a text */
    bool expand;                          /* a sample for each caption */
    bool groups;                          /* --unique-images */
} mr_pairs_options;

/* The column, and the samples with text.  Those without are left out, damaged ones are left to the loader.  Collective:
 * rank 0 reads, all ranks have its lists.  MR_MISUSE: no such column, or no sample with text. */
mr_status mr_pairs_open(mr_pairs *p, const mr_dataset *ds, const mr_pairs_options *o, mr_ranks *ranks, mr_error *err);
/* The samples of o->train_split to train on alone, by the column that p->column names; the rest of *p stays as it
 * is. */
mr_status mr_pairs_list(mr_pairs *p, const mr_dataset *ds, const mr_pairs_options *o, mr_error *err);
void mr_pairs_close(mr_pairs *p); /* a zeroed one is fine */

/* How images are prepared, in training and evaluation: short side to `size`, bicubic, in floats, centre crop,
 * normalised as by CLIP.  Source: optimum-habana, run_bridgetower.py. */
mr_transform mr_pairs_transform(uint32_t size, bool apply_orientation);

#endif
