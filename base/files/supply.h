/* supply.h - folders whose files are elsewhere, and are fetched when they are first opened.
 * Invariant: readers of such a folder need no code for it: mr_file_open() asks its supplier for what is not there.
 *
 *      place     https://host/dogs            what the user wrote, and messages repeat
 *      folder    ~/.cache/millrace/...        what is opened instead
 *
 * A supplier lives as long as the process: any thread may have the folder open. */
#ifndef MR_SUPPLY_H
#define MR_SUPPLY_H

#include "base/error.h"

/* Opens file `name` of the folder for reading.  MR_END: there is no such file; else errno is not ENOENT. */
typedef mr_status mr_supply_open(void *from, const char *name, int *fd, mr_error *err);

/* From now on `place` is `folder`.  Another folder replaces the one that the place had. */
mr_status mr_supply_add(const char *place, const char *folder, mr_supply_open *open, void *from, mr_error *err);

/* What the supplier of the open folder has by this name; MR_END: nothing, or it has no supplier. */
mr_status mr_supply_file(int dirfd, const char *name, int *fd, mr_error *err);
/* `from` of the folder's supplier, if it is this kind of supplier; NULL: it is not. */
void *mr_supply_from(int dirfd, mr_supply_open *open);

/* The folder of a place; any other path is its own.  Valid until the process ends. */
const char *mr_supply_folder(const char *path);
/* Opens a folder, or that of a place; -1: errno is set. */
int mr_supply_open_folder(const char *path);

#endif
