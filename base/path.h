/* path.h - paths: their parts, where they lead, and whether one lies in another.
 * Invariant: nothing here changes what lies at a path. */
#ifndef MR_PATH_H
#define MR_PATH_H

#include "base/error.h"

enum { MR_PATH_LINKS = 40 }; /* that one path may lead over: as many as the system follows */

/* Its length without trailing slashes; "/" keeps its own. */
size_t mr_path_len(const char *path);
/* DIR of "DIR/NAME" ("." if there is none) and NAME, trailing slashes ignored; caller frees both. */
mr_status mr_path_split(const char *path, char **dir, char **name, mr_error *err);

/* *path, a symbolic link, becomes what it says: a path of its own, to be freed by the caller as the one before. */
mr_status mr_path_follow(char **path, mr_error *err);

/* Whether `path` is `folder` (which may be a file) or lies in it, whatever the two are called: links are resolved,
 * those that lead nowhere too, and mounts.  Neither need be there yet; "" is inside of nothing, and nothing inside of
 * it. */
bool mr_path_inside(const char *path, const char *folder);
/* MR_MISUSE if it does: what a command reads it must not write over. */
mr_status mr_path_keep_out(const char *path, const char *read, mr_error *err);

#endif
