/* owner.h - who owns a folder, on any file system: a file with a heartbeat, where locks may not reach other hosts.
 * Invariant: no clocks of two hosts are compared.  The owner rewrites its file at every tick; a process that wants the
 * folder counts its own ticks in which the file has not changed, and a tick counts once however late it comes.
 *
 *      OUTPUT/.millrace-owner      of a `train`
 *      DATASET.partial.owner           of an `ingest`, beside the folder that takes DATASET's place
 *
 * The lock of temp.h comes first, and decides at once between processes of one host.  After that:
 *
 *      no file                                  it is made, and the folder is ours
 *      of this boot of this host, and locked    the kernel has let the lock go: its owner has ended, taken over at once
 *      of this boot, without locks              the process decides, if its number means something here
 *      of another host                          watched for MR_OWNER_TICKS: in use if it changes, else taken over */
#ifndef MR_OWNER_H
#define MR_OWNER_H

#include "base/ranks/ranks.h"

typedef struct mr_owner mr_owner;

enum { MR_OWNER_TICK_MS = 1000, MR_OWNER_TICKS = 15 };
#define MR_OWNER_IN_FOLDER ".millrace-owner"
#define MR_OWNER_ENDING    ".owner"

typedef struct mr_owner_options {
    int dirfd; /* the folder that holds the file; duplicated */
    const char *name;
    int lock;         /* on which the caller holds the lock, if the file system has any */
    const char *path; /* what is owned, for messages; this and `name` are copied */
    mr_ranks *ranks;  /* lent; NULL: alone */
    void (*say)(const char *text);
    /* On a thread, when mr_owner_check() failed: it must end this process, which is to write no more. */
    void (*lost)(mr_ranks *ranks, const mr_error *why);
    long tick_ms; /* 0: MR_OWNER_TICK_MS */
} mr_owner_options;

/* Waits for MR_OWNER_TICKS at most, and says so.  MR_AGAIN: the owner is alive; err is who that is, "process 4711 on
 * node7".  *out NULL: the folder cannot be written to, which is reported where it matters.  MR_SYSTEM: the file cannot
 * be made, no memory, no thread. */
mr_status mr_owner_take(const mr_owner_options *o, mr_owner **out, mr_error *err);
/* MR_SYSTEM: another process has taken the folder, or the file is gone.  NULL: MR_OK. */
mr_status mr_owner_check(const mr_owner *o, mr_error *err);
void mr_owner_release(mr_owner *o); /* removes the file; NULL is fine */

/* Collective.  Whether one rank of each host sees, at `file`, the file of rank 0's owner (NULL on the others; NULL on
 * rank 0: all agree).  Several seconds are given to a file system that shows new files late.  MR_MISUSE: it does not;
 * err is of the first such rank. */
mr_status mr_owner_seen(const mr_owner *o, const char *file, mr_ranks *ranks, mr_error *err);

#endif
