/* download.h - a file behind a URL that is read while it arrives.
 * Invariant: only bytes that mr_download_wait() has waited for are the server's: the file has its final size from the
 * start, if the server states it; whether they are the right ones is known at the end. */
#ifndef MR_DOWNLOAD_H
#define MR_DOWNLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct mr_download mr_download;

/* Begins to download to `folder`, under the file's own name.  Returns once the first bytes are there.
 * MR_MISUSE: there is no such file, or the URL names none. */
mr_status mr_download_begin(const char *url, const char *folder, mr_download **out, mr_error *err);
const char *mr_download_path(const mr_download *d);
uint64_t mr_download_size(mr_download *d); /* bytes; 0: not known before all of it is there */

/* Waits for the first `end` bytes, or for all if there are fewer.  False: they will not come. */
bool mr_download_wait(mr_download *d, uint64_t end);

/* Frees it, not the file.  `status` is that of reading: MR_OK waits for the rest of the file, a failure stops.  Returns
 * what is at fault: the download; MR_BAD_DATA if the SHA-256 is not that after #sha256= of the URL; or `status`. */
mr_status mr_download_end(mr_download *d, mr_status status, mr_error *err);

#endif
