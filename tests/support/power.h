/* power.h - what a power loss may leave of a folder, from the log of what was done to it (faults/faults.h).
 *
 *      log:   create a.tmp   write a.tmp   sync a.tmp   rename a.tmp a   sync .   ACK
 *                                                     ^ moment: a.tmp is there or not; if it is, its bytes are whole
 *
 * The model: bytes are safe once their file was synced, a name once its folder was (a rename between two folders:
 * both).  What is not yet safe survives in a random subset, a write also in part or as zeros; names survive in the
 * order of a journal or, in other images, in any order at all.  LMDB without WRITEMAP writes by calls, which are seen.
 * Not seen: stores through a writable map, io_uring, what stdio writes, and a disk that lies about a sync. */
#ifndef MR_SUPPORT_POWER_H
#define MR_SUPPORT_POWER_H

#include "tests/support/support.h"

typedef struct power power;

/* `root` was empty when the log began, and still is there. */
power *power_load(const char *log, const char *root);
void power_free(power *p);

/* Appends "exit 0 was seen" to the log. */
void power_acknowledge(const char *log);

size_t power_moments(const power *p); /* a moment m is before the m-th record */
unsigned power_acknowledged(const power *p, size_t moment);

/* The folder as a loss at this moment may leave it, in the new folder `out`. */
void power_image(const power *p, size_t moment, mr_random *chance, const char *out);

/* A name was given to bytes not yet synced, or "exit 0" came before the folder's sync: which; NULL: none.  Heap.
 * *published: how many renames were looked at. */
char *power_disorder(const power *p, size_t *published);

#endif
