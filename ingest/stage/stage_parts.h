/* stage_parts.h - between the files of the stage: what folders hold (stage_files.c), and how the one where the dataset
 * grew (stage.c) takes the place of what is at DATASET (stage_target.c). */
#ifndef MR_STAGE_PARTS_H
#define MR_STAGE_PARTS_H

#include <dirent.h>
#include <limits.h>
#include <stdatomic.h>

#include "shards/manifest/manifest.h"
#include "ingest/stage/stage.h"

/* ---- stage_files.c ----------------------------------------------------------------------------------------------- */

#define MR_STAGE_SPOOL  "spool"
#define MR_STAGE_ENDING ".partial" /* DATASET.partial, where a dataset grows */
#define MR_STAGE_ASIDE  ".old"     /* and after that, where the old one is between two renames */

/* The most of what is there.  Held: nothing but files that are removed, and open on NFS; it cannot be removed before
 * they are closed. */
typedef enum mr_folder_kind { MR_FOLDER_EMPTY, MR_FOLDER_HELD, MR_FOLDER_OTHER, MR_FOLDER_DATASET } mr_folder_kind;

DIR *mr_folder_list(int dir); /* a stream with a descriptor of its own, to be closed; NULL: errno */

/* The shards whose files an open folder may hold: those that its manifest names or, if no manifest can be read, any
 * that are named like shards. */
typedef struct mr_folder_shards {
    mr_manifest *manifest;
    const char **names; /* sorted; NULL: any */
    size_t count;
} mr_folder_shards;

mr_status mr_folder_shards_of(int dir, mr_folder_shards *s, mr_error *err);
void mr_folder_shards_release(mr_folder_shards *s); /* zeroed: any shards */

/* ".", "..", and the name that NFS gives to a file removed while it is open, until it is closed. */
bool mr_folder_skips(const struct dirent *e);
/* Whether millrace made it, by its name; a folder never is. */
bool mr_folder_is_ours(int dir, const struct dirent *e, const mr_folder_shards *s);

/* What an open folder holds; `foreign` gets the name of something that millrace did not make, or "". */
mr_status mr_folder_look(int dir, const char *path, const mr_folder_shards *s, mr_folder_kind *kind,
                         char foreign[NAME_MAX + 1], mr_error *err);
/* A file of it, which may be gone already. */
mr_status mr_folder_unlink(int dir, const char *path, const char *name, mr_error *err);
/* Removes what millrace made from an open folder, the manifest last: killed in between, it still is a dataset.  What
 * else is there stays. */
mr_status mr_folder_clear(int dir, const char *path, const mr_folder_shards *s, mr_error *err);

/* For this process alone until `dir` is closed.  It is a failure if another has it, none if there are no locks. */
mr_status mr_folder_lock(int dir, const char *path, mr_error *err);

/* ---- stage_target.c --------------------------------------------------------------------------------------------- */

typedef struct mr_target { /* DATASET */
    char *path;            /* no trailing slashes */
    bool force;
    int old; /* the locked dataset to remove once the new one is complete; -1: none */
} mr_target;

/* Whether a dataset may appear there; opens and locks the one that it replaces.  Each call looks again. */
mr_status mr_target_check(mr_target *t, mr_error *err);

/* The folder `from` becomes the target; what was there is removed.  On failure all is as it was unless *published. */
mr_status mr_target_take(const mr_target *t, const char *from, atomic_bool *published, mr_error *err);

void mr_target_close(mr_target *t);

#endif
