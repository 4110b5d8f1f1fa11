/* labels.h - labels that rows give as texts: what makes classes of them and what does not.
 * Invariant: one text a sample, in the order of the samples, empty for none. */
#ifndef MR_LABELS_H
#define MR_LABELS_H

#include "layout/layout.h"
#include "tables/jsonl.h"

typedef struct mr_labels { /* zero but for `asked` */
    const char *asked;     /* --label-column; NULL: the layout's own label, which may turn out to be none */
    mr_buf texts;          /* "text\0" a sample */
    bool other;            /* some label is more than a single letter */
    size_t labelled;       /* samples with one */
} mr_labels;

/* Keeps the label of the next sample.  `row` is the row's number for a message, called `what` there ("line").
 * MR_MISUSE: the column that was asked for holds neither a string nor a whole number. */
mr_status mr_labels_take(mr_labels *l, const mr_jsonl_field *field, const char *file, const char *what, uint64_t row,
                         mr_error *err);

/* When every sample of the plan has given its own: letters make classes (A to E), a text stays one and makes none; a
 * column that was asked for makes classes of whatever it holds, up to 10,000.  `columns`: those that there are, for a
 * message. */
mr_status mr_labels_plan(const mr_labels *l, mr_plan *plan, const char *columns, mr_error *err);

#endif
