/* cmd_lists.h - structured option values of ingest and sample.
 * Invariant: an invalid value is MR_MISUSE, with a sentence that begins with the option. */
#ifndef MR_CMD_LISTS_H
#define MR_CMD_LISTS_H

#include "ingest/pipeline/ingest_state.h"

/* --split-map, --split-list: appends FROM=TO,FROM=TO... to the `*count` maps; they point into `text`, which is
 * modified.  `option`: its name, for messages. */
mr_status mr_split_map_take(const char *option, char *text, mr_split_map *maps, size_t capacity, size_t *count,
                            mr_error *err);

/* --split: NAME=SHARE,NAME=SHARE... whose sum is 1. */
mr_status mr_split_shares_take(const char *text, mr_ingest_options *o, mr_error *err);

/* --max-rejects: a number of images, which sets `*percent` to -1, or a percentage. */
mr_status mr_max_rejects_take(const char *text, uint64_t *count, double *percent, mr_error *err);

/* --size of sample: MIN[:MAX]. */
mr_status mr_sides_take(const char *text, uint32_t *min, uint32_t *max, mr_error *err);

#endif
