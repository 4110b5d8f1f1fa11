/* made.h - what an export made, so that --force removes nothing else.
 * Invariant: a file that is not in the folder's list, or was changed after it was written, belongs to the user. */
#ifndef MR_EXPORT_MADE_H
#define MR_EXPORT_MADE_H

#include "base/error.h"

/* Lists every file of the complete folder in a hidden one: a hash of its path and size per line, sorted. */
mr_status mr_export_made_note(int dirfd, const char *path, mr_error *err);

/* MR_MISUSE: the folder holds files that no export made; the message has the first names. */
mr_status mr_export_made_check(const char *path, mr_error *err);

#endif
