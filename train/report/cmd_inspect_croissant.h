/* cmd_inspect_croissant.h - `inspect --croissant`: the files of a dataset, described for catalogues.
 * Invariant: hashes are those of the manifest; no file is read. */
#ifndef MR_CMD_INSPECT_CROISSANT_H
#define MR_CMD_INSPECT_CROISSANT_H

#include "shards/dataset/dataset.h"

mr_status mr_cmd_croissant_print(const mr_dataset *ds, mr_error *err);

#endif
