/* labels.h - labels that rows have as texts: which become classes and which do not.
 * Invariant: one text per sample, in the order of the samples, empty for none. */
#ifndef MR_LABELS_H
#define MR_LABELS_H

#include "ingest/layout/common/label_census.h"
#include "ingest/tables/jsonl.h"

typedef struct mr_labels {  /* zero but for `asked` */
    const char *asked;      /* --label-column; NULL: the layout's own label, which may turn out to be none */
    mr_buf texts;           /* "text\0" a sample */
    bool other;             /* some label is more than a single letter */
    size_t labelled;        /* samples with one */
    mr_label_census census; /* numbers in the requested column, or letters */
    mr_label_gaps gaps;
} mr_labels;

/* Keeps the label of the next sample.  `row` is the row's number for a message, called `what` there ("line").
 * MR_MISUSE: the requested column holds a list or an object. */
mr_status mr_labels_take(mr_labels *l, const mr_jsonl_field *field, const char *file, const char *what, uint64_t row,
                         mr_error *err);

/* After all samples of the plan: letters make classes (A to E), other texts make none; a requested column makes classes
 * of all its values. `columns`: the existing ones, for a message. */
mr_status mr_labels_plan(mr_labels *l, mr_plan *plan, const char *columns, mr_error *err);
void mr_labels_free(mr_labels *l);

#endif
