/* contrast.h - the contrastive head of BridgeTower: three embeddings per pair to row-wise losses, and their gradients.
 * Invariant: a loss belongs to a row; its negatives are the other rows of the batch, or with peers those of all ranks.
 * Source: transformers 4.55, BridgeTowerForContrastiveLearning.
 *
 *      t, i, c = x / |x|                                 text, image, both
 *      loss of row r = (CE(s t i^T) + CE(s t c^T) + CE(s i c^T)) / 3 at column r,      s = exp(log_scale)
 *
 * With peers every rank shares its columns (slot: rows of i and c, then weight and group of each sample), computes the
 * losses of its own rows against all columns, and returns the gradients of other ranks' columns to them: then the sum
 * of all ranks' gradients is that of one rank with the joined batch. */
#ifndef MR_CONTRAST_H
#define MR_CONTRAST_H

#include "device/device.h"
#include "train/exchange/peers.h"

typedef struct mr_contrast mr_contrast;

/* Floats that are shared per sample. */
size_t mr_contrast_row(size_t embed);
/* For up to `batch` rows of `embed`; `world` ranks with peers, 1 without.  MR_MISUSE: more bytes than there are
 * addresses. */
mr_status mr_contrast_open(mr_device *d, size_t batch, size_t embed, unsigned world, bool training, mr_contrast **out,
                           mr_error *err);
void mr_contrast_close(mr_contrast *c); /* NULL is fine */
/* Bytes of device memory; UINT64_MAX: more than there are addresses. */
uint64_t mr_contrast_bytes(size_t batch, size_t embed, unsigned world, bool training);

typedef struct mr_contrast_input {
    size_t count;
    bool training;          /* the gradients are computed too */
    const float *x[3];      /* [count, embed], device: outputs of the three heads */
    const float *log_scale; /* device */
    const float *weights;   /* [count], device; NULL: all 1.  A sample of weight 0 is not a negative either */
    const int32_t *groups;  /* [count], device; NULL: none */
    mr_peers *peers;        /* NULL: alone */
    void *d_x[3];           /* [count, embed] of `type`: gradients of the SUM of losses */
    float *d_log_scale;     /* added to */
    mr_type type;
} mr_contrast_input;

typedef struct mr_contrast_output { /* lent until the next call */
    const float *losses;            /* [count], times weight, device */
    const float *embeddings[3];     /* [count, embed], device */
} mr_contrast_output;

/* One call is the forward and, when training, the backward pass; collective with peers: one sum, two when training,
 * also on a rank whose count is 0.  With peers either all ranks give groups or none does.  After a sum that failed
 * (peers->status) the results mean nothing. */
void mr_contrast_run(mr_contrast *c, const mr_contrast_input *in, mr_contrast_output *out);

#endif
