/* push.h - uploads files to a URL: to a bucket, or to a web server that accepts PUT.
 * Invariant: a file is stored only if its SHA-256 is the expected one. */
#ifndef MR_PUSH_H
#define MR_PUSH_H

#include <stdint.h>

#include "base/error.h"

typedef struct mr_push mr_push; /* connections; any number of threads use it */

mr_status mr_push_open(const char *url, mr_push **out, mr_error *err);
void mr_push_close(mr_push *p); /* NULL is fine */

/* Stores file `name` of the folder; *stored false: it was stored already, by size and SHA-256.  `sha256` NULL: any. */
mr_status mr_push_file(mr_push *p, int dirfd, const char *name, const uint8_t *sha256, bool *stored, mr_error *err);

#endif
