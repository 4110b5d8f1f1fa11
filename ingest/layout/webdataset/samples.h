/* samples.h - plan.c goes through the folders of samples, samples.c through the files of one sample.
 * Invariant: a sample that is rejected leaves nothing in the labels. */
#ifndef MR_WEBDATASET_SAMPLES_H
#define MR_WEBDATASET_SAMPLES_H

#include "ingest/layout/webdataset/groups.h"
#include "ingest/layout/webdataset/webdataset.h"

typedef struct mr_webdataset_build { /* while plan() runs */
    const mr_tree *tree;
    const mr_layout_options *options;
    mr_plan *plan;
    mr_webdataset_state *state;
    mr_webdataset_labels labels;
    mr_webdataset_facts facts;
    mr_jsonl_field field;    /* --label-column, else "label" */
    size_t unread;           /* samples whose JSON has that label, which is not read without --label-column */
    bool split_known;        /* some folder names a split, so all must */
    uint32_t split;          /* of the current folder */
    bool beside;             /* the current folder is none of the shards, and there are some */
    int place;               /* the current splits: train, val, test, others */
    mr_webdataset_group odd; /* the first whose images are of other kinds only */
    mr_error *err;
} mr_webdataset_build;

/* Adds the sample of a group; notes a group without an image, and a rejected image.  Nothing for a group without a
 * key. */
mr_status mr_webdataset_sample(mr_webdataset_build *b, const mr_webdataset_group *g);
/* MR_BAD_DATA: no sample has an image of a usual kind, and which member is meant cannot be known. */
mr_status mr_webdataset_check_odd(const mr_webdataset_build *b);

#endif
