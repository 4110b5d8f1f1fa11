/* cmd_download.h - sources that are URLs.
 * Invariant: the rest of ingest sees files only. */
#ifndef MR_CMD_DOWNLOAD_H
#define MR_CMD_DOWNLOAD_H

#include "base/ranks/ranks.h"

typedef struct cmd_download {
    char *folder; /* DATASET.download; NULL: no source is a URL */
    char **paths; /* of the sources that are: [count], NULL for the others */
    size_t count;
} cmd_download;

/* Collective: rank 0 downloads each source that is a URL next to DATASET, and all replace it by the file's path, which
 * lives as long as *out.  To be ended in any case. */
mr_status mr_cmd_download_begin(char **sources, size_t count, const char *dataset, mr_ranks *ranks, cmd_download *out,
                                mr_error *err);
void mr_cmd_download_end(cmd_download *d, const mr_ranks *ranks); /* removes the files */

#endif
