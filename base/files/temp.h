/* temp.h - files and folders under temporary names: whose they are, and how a folder takes its final name.
 * Invariant: a writer holds the lock of what it writes under a temporary name, so what is not locked was left by a
 * writer that was killed.
 *
 *      base/files/output.c       NAME.tmp, PATH.millrace.tmp   writers of one path take turns
 *      shards/export       OUT.millrace-export-PID       removed by the next export to OUT, if its lock is free
 *      train/checkpoint    .step-N.tmp-PID               removed by the next run, if its process is gone, too
 *      ingest/pipeline     DATASET.partial                   continued by the next ingest to DATASET
 *
 * Where the file system has no locks every claim succeeds, and exports are not removed; owner.h keeps others out of
 * OUTPUT and DATASET.partial all the same. */
#ifndef MR_TEMP_H
#define MR_TEMP_H

#include <stdbool.h>

/* Locks `fd`, just created or opened as `name`, until it is closed.  False: another process has the lock (`wait`: this
 * waits for it), or `name` was removed or replaced before it was locked. */
bool mr_temp_claim(int fd, int dirfd, const char *name, bool wait);

/* Replaces the folder `to` by the folder `from`.  `aside` NULL: exchanges the two names; otherwise renames the
 * old folder to `aside` first, where a crash before the second rename leaves it whole.  Returns 0 or errno: see
 * mr_temp_cannot_exchange().  *gone: where the old folder is now, `from` or `aside`; NULL: still at `to`. */
int mr_temp_replace(int dirfd, const char *from, const char *to, const char *aside, const char **gone);

/* Whether mr_temp_replace() has to be tried again with `aside`: this file system cannot exchange names. */
bool mr_temp_cannot_exchange(int failed);

#endif
