/* hub_yaml.h - the front matter of the hub's dataset card: licence, tasks, sizes, files, features.
 * Invariant: it is YAML 1.1 whatever the names hold, and no line of it but the last is "---". */
#ifndef MR_HUB_YAML_H
#define MR_HUB_YAML_H

#include "shards/export/formats/hub_card.h"

/* Appends UTF-8 between double quotes, in a form that every reader of YAML accepts. */
void mr_yaml_add_string(mr_buf *out, const char *text, size_t len);

/* Appends it, with both lines of "---". */
void mr_hub_yaml_add(const mr_export_run *run, const mr_hub_card *c, mr_export_row_kind kind, mr_buf *out);

#endif
