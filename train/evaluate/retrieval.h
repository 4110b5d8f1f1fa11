/* retrieval.h - texts search images in a gallery, and images texts: how often a matching one is found.
 * Invariant: a tie, up to rounding, counts against: where all embeddings are equal nothing is found.
 *
 * Sample c is an answer to sample r if it is r, or has the same image (bytes) or the same text: datasets repeat both.
 * recall@k: the share of samples whose best answer has fewer than k others, which are not answers, that are as near. */
#ifndef MR_RETRIEVAL_H
#define MR_RETRIEVAL_H

#include "device/device.h"
#include "train/evaluate/embeddings.h"

enum { MR_RECALLS = 3 }; /* at 1, 5, 10 */
extern const unsigned mr_recall_at[MR_RECALLS];

typedef struct mr_recall {
    double text_to_image[MR_RECALLS], image_to_text[MR_RECALLS]; /* 0 to 1; 0 of an empty gallery */
} mr_recall;

/* Whether sample c is an answer to sample r; both are rows of the gallery. */
bool mr_answers(const mr_embeddings *g, size_t r, size_t c);

/* Collective: ranks share the rows.  The same result on every rank and any number of them.  Time: count^2 * embed. */
mr_status mr_recall_measure(mr_device *d, mr_ranks *ranks, const mr_embeddings *g, mr_recall *out, mr_error *err);

typedef struct mr_match {
    size_t sample; /* row of the gallery */
    float score;   /* cosine */
} mr_match;

/* The `top` nearest rows of kind `to` for each of `count` rows of kind `from` beginning with row `first`, best first
 * (the earlier row among equals), to out[count][top]; top <= g->count. */
mr_status mr_matches_find(mr_device *d, const mr_embeddings *g, unsigned from, unsigned to, size_t first, size_t count,
                          size_t top, mr_match *out, mr_error *err);

#endif
