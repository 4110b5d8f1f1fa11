/* pairs.h - what a run on pictures and their words has beside a run on labels: tokenizer, column, the list of pairs.
 * Invariant: it is known before anything large is taken, and a checkpoint keeps the tokenizer's own bytes, so that a
 * run goes on, and is judged, without the files it was begun with. */
#ifndef MR_PAIRS_H
#define MR_PAIRS_H

#include "base/ranks.h"
#include "checkpoint/checkpoint.h"
#include "feed/feed.h"
#include "run/settings.h"

typedef struct mr_pairs {
    mr_tokenizer *tokenizer;
    mr_buf file; /* the tokenizer as a tokenizer.json */
    char column[256];
    uint64_t *items, item_count;    /* mr_pairs_learn(): samples of the split to learn from; NULL: all, each once */
    uint64_t without;               /* samples without a caption, left out of them */
    uint64_t *judged, judged_count; /* mr_pairs_judge(): samples of the split to judge by; NULL: all of them */
    mr_feed_text text;              /* of the above */
} mr_pairs;

/* The tokenizer that the options name: --tokenizer, or what lies beside --config or in --pretrained.  MR_MISUSE: none.
 * MR_BAD_DATA: its special tokens have not the ids that the model needs. */
mr_status mr_pairs_tokenizer(const mr_settings *s, mr_pairs *p, mr_error *err);
/* The one that a checkpoint keeps; MR_BAD_DATA also: it has more tokens than the model. */
mr_status mr_pairs_restore(const mr_checkpoint *c, const char *name, mr_pairs *p, mr_error *err);

/* What of a meta is read: `column` "" is guessed from the split's first samples.  `tokens`: that a text may have.
 * MR_MISUSE: there is no such column, the message names those there are. */
mr_status mr_pairs_open(mr_pairs *p, const mr_dataset *ds, const char *split, const char *column, uint32_t tokens,
                        mr_error *err);
/* Finds what of a split can be learned from, and what can be judged: samples without text are not pairs, and are left
 * out. Damaged ones are for the loader to find.  `expand`: a sample for each of its captions; `groups`:
 * --unique-images. MR_MISUSE: none has words. */
mr_status mr_pairs_learn(mr_pairs *p, const mr_dataset *ds, const char *split, bool expand, bool groups, mr_error *err);
mr_status mr_pairs_judge(mr_pairs *p, const mr_dataset *ds, const char *split, mr_error *err);
/* Collective, after both: a rank that finds a meta damaged which is whole to the others has other lists, and other
 * numbers of steps.  MR_BAD_DATA names the first one; without pairs all are alike. */
mr_status mr_pairs_agree(const mr_pairs *p, mr_ranks *ranks, mr_error *err);
void mr_pairs_close(mr_pairs *p); /* a zeroed one is fine */

/* How such models see pictures, in training as in evaluation: short side to `size`, bicubic, in floats, the middle, as
 * CLIP normalises.  Source: optimum-habana, run_bridgetower.py. */
mr_transform mr_pairs_transform(uint32_t size, bool apply_orientation);

#endif
