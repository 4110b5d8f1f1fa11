/* cmd_inspect_classes.h - the classes of a dataset, and the samples of each, for `millrace inspect`.
 * Invariant: classes are in the order of their labels; no file is read. */
#ifndef MR_CMD_INSPECT_CLASSES_H
#define MR_CMD_INSPECT_CLASSES_H

#include "shards/dataset/class_counts.h"
#include "shards/manifest/manifest.h"

/* The names of the first classes. */
void mr_cmd_classes_print(const mr_manifest *m);
/* A row per class, a column per split; just the classes where no sample has a single label. */
void mr_cmd_class_counts_print(const mr_manifest *m, const mr_class_counts *c);

/* Both add members to `doc`. */
void mr_cmd_classes_json(const mr_manifest *m, json_t *doc);
void mr_cmd_class_counts_json(const mr_manifest *m, const mr_class_counts *c, json_t *doc);

#endif
