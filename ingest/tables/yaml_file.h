/* yaml_file.h - a YAML file of a source, as a tree.
 * Invariant: as for base/yaml.h; messages name the file. */
#ifndef MR_YAML_FILE_H
#define MR_YAML_FILE_H

#include "base/yaml.h"
#include "ingest/source/source.h"

/* MR_BAD_DATA: not YAML (mr_yaml_parse()), or longer than MR_YAML_MAX. */
mr_status mr_yaml_read(const mr_source *s, uint32_t entry, mr_yaml *out, mr_error *err);

#endif
