/* hub_card.h - README.md of an export to Parquet or to tars: the hub's dataset card.
 * Source: "Create a dataset card" and "Data files configuration" in the documentation of the hub, and the metadata that
 * its library datasets writes under dataset_info.
 * Invariant: what a dataset or its source named is in the YAML between double quotes, in the text as a code span;
 * neither can end it. */
#ifndef MR_HUB_CARD_H
#define MR_HUB_CARD_H

#include "shards/export/class_names.h"
#include "shards/export/row.h"

typedef struct mr_hub_split {
    char *files;         /* its files, as a glob without what needs quotes; NULL: it has none */
    uint64_t bytes;      /* bytes of its values, about as many as in Arrow's memory */
    uint64_t file_bytes; /* bytes of its files */
} mr_hub_split;

typedef struct mr_hub_card { /* a zeroed one is closed */
    bool tar;                /* tars, whose features the hub finds by looking */
    mr_hub_split *splits;    /* as in the manifest */
    uint64_t *counts;        /* [split][class]: labels and objects of the first `shown` classes */
    size_t shown, split_count;
    mr_class_names names;
} mr_hub_card;

/* `tar`: the card of an export to tars; else to Parquet. */
mr_status mr_hub_card_open(mr_export_run *run, bool tar, mr_hub_card *c, mr_error *err);
/* Counts a sample, whose image is named `name` in its row. */
void mr_hub_card_take(const mr_export_run *run, mr_hub_card *c, const mr_export_sample *s, mr_export_row_kind kind,
                      size_t name_len);
mr_hub_split *mr_hub_card_split(const mr_export_run *run, mr_hub_card *c, const mr_split *split);
mr_status mr_hub_card_write(mr_export_run *run, const mr_hub_card *c, mr_export_row_kind kind, mr_error *err);
void mr_hub_card_free(mr_hub_card *c);

#endif
