/* embeddings.h - a whole split as embeddings: each sample once, in order, the same on every rank.
 * Invariant: a sample that was skipped (damaged, weight 0) is not in it; the result does not depend on how samples were
 * divided among ranks and batches, except for rounding. */
#ifndef MR_EMBEDDINGS_H
#define MR_EMBEDDINGS_H

#include "base/ranks/ranks.h"

enum { MR_OF_TEXT = 0, MR_OF_IMAGE, MR_OF_BOTH, MR_EMBEDDINGS };

typedef struct mr_embeddings_sample { /* travels between ranks as it is */
    uint64_t sample, item; /* number in the split, and in the evaluated list (random choices are keyed by it) */
    uint64_t image, text;  /* XXH3-64 of the image's bytes, and of the text's tokens */
    float loss, weight;
} mr_embeddings_sample;

typedef struct mr_embeddings {
    size_t count, embed;
    unsigned kinds;                   /* kinds of embeddings that are kept: 2 (text, image) or 3 */
    mr_embeddings_sample *samples;    /* [count] */
    float *embeddings[MR_EMBEDDINGS]; /* [count, embed] each, rows of length 1; NULL: not kept */
} mr_embeddings;

/* One sample of this rank, in any order; `rows`: its embeddings, [kinds][embed]. */
void mr_embeddings_add(mr_buf *mine, const mr_embeddings_sample *s, const float *const *rows, unsigned kinds,
                       size_t embed);
/* Collective: the samples of all ranks become one. */
mr_status mr_embeddings_join(mr_ranks *ranks, const mr_buf *mine, unsigned kinds, size_t embed, mr_embeddings *out,
                             mr_error *err);
void mr_embeddings_release(mr_embeddings *g); /* a zeroed one is fine */

#endif
