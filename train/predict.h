/* predict.h - what the ways of `millrace predict` share: by classes, by several labels, by images and words.
 * Invariant: lines come in the order of the samples, on any number of ranks. */
#ifndef MR_PREDICT_H
#define MR_PREDICT_H

#include "train/run/model_session.h"

typedef struct mr_predict_request {
    mr_session_request trained;
    uint64_t top;
    bool top_given;
    bool json;              /* one object a line; else CSV */
    bool find;              /* --find was given */
    bool words;             /* images are queries for words; else words for images */
    const char *embeddings; /* .npz to write; NULL: none */
} mr_predict_request;

/* Text as a JSON string, or as a cell of CSV: RFC 4180, quoted where it holds a comma, a quote or a line end. */
void mr_predict_cell(const mr_predict_request *q, mr_buf *out, const char *text, size_t len);

/* The source path of the sample, in place of what `out` holds; also for a damaged one. */
mr_status mr_predict_source(const mr_session *t, const mr_verdict *v, mr_buf *out, mr_error *err);
/* Prints lines; the `take` of mr_evaluator. */
mr_status mr_predict_take(void *ctx, const char *text, size_t len, mr_error *err);

/* The whole of it, for a model of images and words, or of several labels.  Collective; rank 0 prints and writes. */
mr_status mr_predict_pairs(const mr_predict_request *q, mr_session *t, mr_error *err);
mr_status mr_predict_labels(const mr_predict_request *q, mr_session *t, mr_error *err);

#endif
