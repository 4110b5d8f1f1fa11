/* cmd_lists.h - option values of ingest and sample that are more than a word.
 * Invariant: nothing here ends the program: a refusal is MR_MISUSE, and its sentence begins with the option. */
#ifndef MR_CMD_LISTS_H
#define MR_CMD_LISTS_H

#include "layout/layout.h"

/* --split-map: FROM=TO,FROM=TO... after the `*count` maps that exist; they point into `text`, which is modified. */
mr_status mr_split_map_take(char *text, mr_split_map *maps, size_t room, size_t *count, mr_error *err);

/* --max-rejects: a number of images, `*percent` then is -1, or a percentage. */
mr_status mr_max_rejects_take(const char *text, uint64_t *count, double *percent, mr_error *err);

/* --size of sample: MIN[:MAX]. */
mr_status mr_sides_take(const char *text, uint32_t *least, uint32_t *most, mr_error *err);

#endif
