/* shard_files.h - the shards of a split, kept open and shared by threads.
 * Invariant: at most a fixed number of shards is open (fewer where the process may open few files); a borrowed one
 * stays open until it is returned.  Descriptors have no read position in use (pread only), so a fork may share them.
 * A thread borrows one shard at a time: borrowing two could wait for ever. */
#ifndef MR_SHARD_FILES_H
#define MR_SHARD_FILES_H

#include "dataset.h"

enum {
    MR_SHARD_FILES_MAX = 512,
    MR_SHARD_FILES_ROWS = 16 << 20, /* bytes of rows kept in memory, all open shards together */
};

typedef struct mr_shard_files mr_shard_files;

typedef struct mr_open_shard {
    int mdb, idx;                   /* descriptors */
    unsigned borrowers;
    unsigned place;                 /* in the list of open ones */
    uint64_t used;                  /* when last: the longest unused is closed first */
    unsigned rows_read;
    uint8_t *rows;                  /* all of them, kept once many were read one by one; NULL: not */
    const mr_shard *shard;
} mr_open_shard;

/* `max` shards at once; 0: MR_SHARD_FILES_MAX, or an eighth of RLIMIT_NOFILE (a shard takes two).  Dataset and split
 * must outlive it. */
mr_status mr_shard_files_new(const mr_dataset *ds, const mr_split *split, unsigned max, mr_shard_files **out,
                             mr_error *err);
void mr_shard_files_free(mr_shard_files *f);

/* The shard that has sample n, open.  Where no file can be opened it closes idle ones, then waits for returns. */
mr_status mr_shard_files_borrow(mr_shard_files *f, uint64_t n, const mr_open_shard **out, mr_error *err);
/* The row of sample n, of which `shard` was borrowed. */
mr_status mr_shard_files_row(mr_shard_files *f, const mr_open_shard *shard, uint64_t n, mr_row *row, mr_error *err);
void mr_shard_files_return(mr_shard_files *f, const mr_open_shard *shard);

#endif
