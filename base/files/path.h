/* path.h - paths: their parts, where they lead, and whether one is inside another.
 * Invariant: nothing here modifies the file system. */
#ifndef MR_PATH_H
#define MR_PATH_H

#include "base/error.h"

enum { MR_PATH_LINKS = 40 }; /* symbolic links in one path: as many as the system follows */

/* A hidden file in the folder of an export: the list of what the export made.  It is not the user's data. */
#define MR_PATH_EXPORT_LIST ".millrace-export"

/* Its length without trailing slashes; "/" keeps its own. */
size_t mr_path_len(const char *path);
/* "https://..." and the like. */
bool mr_path_is_url(const char *path);
/* DIR of "DIR/NAME" ("." if there is none) and NAME, trailing slashes ignored; caller frees both. */
mr_status mr_path_split(const char *path, char **dir, char **name, mr_error *err);

/* Replaces *path, a symbolic link, by its target; the old path is freed, the caller frees the new one. */
mr_status mr_path_follow(char **path, mr_error *err);

/* Whether `path` is `folder` (which may be a file) or is inside it, under whatever names: links, including dangling
 * ones, and mounts are resolved.  Neither has to exist yet; "" is not inside anything, and nothing is inside "". */
bool mr_path_inside(const char *path, const char *folder);
/* MR_MISUSE if it is: a command must not overwrite its input. */
mr_status mr_path_keep_out(const char *path, const char *read, mr_error *err);

#endif
