/* environment.h - variables of the environment: an empty one counts as unset.
 * Invariant: what is returned is the environment's own text, which no part of millrace changes. */
#ifndef MR_ENVIRONMENT_H
#define MR_ENVIRONMENT_H

#include "base/buf.h"

const char *mr_env(const char *name); /* NULL: not set, or empty */

/* Appends the path of `name` among what millrace keeps for this user and can rebuild: in $XDG_CACHE_HOME, else in
 * $HOME/.cache; both must be absolute.  False: there is neither, or memory ran out (out->failed).
 * Source: the XDG Base Directory Specification 0.8. */
bool mr_env_cache_path(const char *name, mr_buf *out);

#endif
