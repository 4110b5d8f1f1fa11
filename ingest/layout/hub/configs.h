/* configs.h - the configs of a dataset card, README.md: which files are which split of which config.
 * Invariant: as the hub's own library reads them, except that nothing is chosen for the user and no file is dropped.
 *
 *      ---
 *      configs:
 *      - config_name: default                      or data_files: "data/a-?.parquet", all of it train
 *        data_files:                               or data_dir: en, splits by the names of its files
 *        - {split: train, path: "a*.parquet"}
 *        - {split: test, path: ["b.parquet", "**"]}
 *      ---
 * Source: huggingface.co/docs/hub/datasets-manual-configuration. */
#ifndef MR_HUB_CONFIGS_H
#define MR_HUB_CONFIGS_H

#include "base/yaml.h"
#include "ingest/layout/hub/hub.h"

typedef struct mr_hub_rule { /* texts of the YAML; split NULL: that of the file's name */
    const char *config, *split, *dir, *pattern;
} mr_hub_rule;

struct mr_hub_configs { /* a zeroed one has no rules */
    mr_yaml yaml;
    mr_hub_rule *rules;
    size_t count, capacity;
};

/* Reads README.md, if there is one with configs.  MR_BAD_DATA: they are not read; the message says how to do
 * without. */
mr_status mr_hub_configs_read(const mr_tree *t, mr_hub_configs *card, mr_error *err);
/* Whether a rule is for one of the files. */
bool mr_hub_configs_fits(const mr_hub_configs *card, const mr_hub_files *files);
/* If so, keeps the files of the requested config, or of the only one, with their splits.  MR_MISUSE: lists the configs.
 * MR_BAD_DATA: a file in two splits, or in no config. */
mr_status mr_hub_configs_apply(const mr_hub_configs *card, const char *wanted, mr_hub_files *files, mr_error *err);
void mr_hub_configs_free(mr_hub_configs *card);

#endif
