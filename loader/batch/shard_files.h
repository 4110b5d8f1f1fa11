/* shard_files.h - the shards of a split, kept open and shared by threads.
 * Invariant: at most a fixed number of shards is open (fewer where the process may open few files); a borrowed one
 * stays open until it is returned.  Descriptors have no read position in use (pread only), so a fork may share them.
 * A thread borrows one shard at a time: borrowing two could wait for ever. */
#ifndef MR_SHARD_FILES_H
#define MR_SHARD_FILES_H

#include "dataset/dataset.h"
#include "seek/seek.h"

enum {
    MR_SHARD_FILES_MAX = 512,
    MR_SHARD_FILES_ROWS = 16 << 20, /* bytes of rows kept in memory, all open shards together */
    MR_SHARD_FILES_SEEK = 8 << 20,  /* the same of tables of seek indexes */
};

typedef struct mr_shard_files mr_shard_files;

typedef struct mr_open_shard {
    int mdb, idx; /* descriptors */
    int seek;     /* of the seek index; -1: none, or none of this shard */
    uint64_t seek_size;
    uint8_t *seek_table; /* kept as rows are; NULL: not */
    unsigned borrowers;
    unsigned place; /* in the list of open ones */
    uint64_t used;  /* when last: the longest unused is closed first */
    unsigned rows_read;
    uint8_t *rows; /* all of them, kept once many were read one by one; NULL: not */
    const mr_shard *shard;
} mr_open_shard;

/* `max` shards at once; 0: MR_SHARD_FILES_MAX, or a twelfth of RLIMIT_NOFILE (a shard takes three).  Dataset and split
 * must outlive it. */
mr_status mr_shard_files_new(const mr_dataset *ds, const mr_split *split, unsigned max, mr_shard_files **out,
                             mr_error *err);
/* The same once more: it ends when each of its users has freed it. */
mr_shard_files *mr_shard_files_share(mr_shard_files *f);
void mr_shard_files_free(mr_shard_files *f);

/* The shard that has sample n, open.  Where no file can be opened it closes idle ones, then waits for returns. */
mr_status mr_shard_files_borrow(mr_shard_files *f, uint64_t n, const mr_open_shard **out, mr_error *err);
/* The row of sample n, of which `shard` was borrowed. */
mr_status mr_shard_files_row(mr_shard_files *f, const mr_open_shard *shard, uint64_t n, mr_row *row, mr_error *err);
/* The entries that the shard's seek index has for the image that `row` describes, packed, into `out`, where there is
 * room for row->image_len bytes; NULL: only their place is looked up.  They match their check, and that the image's
 * hash. 0: there are none, or none that can be believed, which is counted and no failure.  *at: where they begin,
 * behind their check; NULL: nobody asks. */
size_t mr_shard_files_seek(mr_shard_files *f, const mr_open_shard *shard, const mr_row *row, uint8_t *out,
                           uint64_t *at);

typedef struct mr_shard_files_counts {
    uint64_t found;   /* entries handed out */
    uint64_t refused; /* entries that could not be read or believed */
    uint64_t foreign; /* seek indexes of another shard, or damaged at their start: not used; per opening */
} mr_shard_files_counts;
mr_shard_files_counts mr_shard_files_count(mr_shard_files *f);

void mr_shard_files_return(mr_shard_files *f, const mr_open_shard *shard);

#endif
