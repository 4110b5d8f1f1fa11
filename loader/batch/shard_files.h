/* shard_files.h - the shards of a split, kept open and shared by threads.
 * Invariant: at most a fixed number of shards is open (fewer if the process may open few files); a borrowed one stays
 * open until it is returned.  Threads that borrow an open shard, read its kept rows and return it take no lock.  Files
 * are read by pread() only, so a child of fork() may share the descriptors. A thread borrows one shard at a time:
 * borrowing two could deadlock. */
#ifndef MR_SHARD_FILES_H
#define MR_SHARD_FILES_H

#include "shards/dataset/dataset.h"
#include "shards/seek/seek.h"

enum {
    MR_SHARD_FILES_MAX = 512,
    MR_SHARD_FILES_ROWS = 16 << 20, /* bytes of rows kept in memory, for all open shards together */
    MR_SHARD_FILES_SEEK = 8 << 20,  /* the same for the tables of seek indexes */
};

typedef struct mr_shard_files mr_shard_files;

typedef struct mr_open_shard {
    const mr_shard *shard;
    int mdb, idx; /* descriptors; mdb -1: it is elsewhere, and read by range */
    int seek;     /* the seek index; -1: there is none, or it does not belong to this shard */
    uint64_t seek_size;
} mr_open_shard;

/* At most `max` shards are open; 0: MR_SHARD_FILES_MAX, or a twelfth of RLIMIT_NOFILE (a shard takes three
 * descriptors).  Dataset and split must outlive it. */
mr_status mr_shard_files_new(const mr_dataset *ds, const mr_split *split, unsigned max, mr_shard_files **out,
                             mr_error *err);
/* Adds a user: each user frees it, and the last one closes the shards. */
mr_shard_files *mr_shard_files_share(mr_shard_files *f);
void mr_shard_files_free(mr_shard_files *f);

/* The shard that has sample n, open.  If no descriptor is free, closes idle shards, then waits for returned ones. */
mr_status mr_shard_files_borrow(mr_shard_files *f, uint64_t n, const mr_open_shard **out, mr_error *err);
/* The row of sample n of the borrowed `shard`. */
mr_status mr_shard_files_row(mr_shard_files *f, const mr_open_shard *shard, uint64_t n, mr_row *row, mr_error *err);
/* Reads the entries of the shard's seek index for the image of `row`, packed, into `out`, which holds row->image_len
 * bytes; NULL: only looks up where they are.  Returns their length; 0: there are none, or they do not match their check
 * or the image's hash, which is counted but not a failure.  *at, unless NULL: their offset, after the check. */
size_t mr_shard_files_seek(mr_shard_files *f, const mr_open_shard *shard, const mr_row *row, uint8_t *out,
                           uint64_t *at);

typedef struct mr_shard_files_counts {
    uint64_t found;   /* entries read */
    uint64_t refused; /* entries that could not be read or do not match */
    uint64_t foreign; /* unused seek indexes: of another shard, or with a damaged header; counted per opening */
} mr_shard_files_counts;
mr_shard_files_counts mr_shard_files_count(mr_shard_files *f);

void mr_shard_files_return(mr_shard_files *f, const mr_open_shard *shard);
/* The copy that the borrowed `shard` was read from gave wrong bytes: it is removed, and once it is returned the
 * dataset's own file is read.  False: it is the dataset's own. */
bool mr_shard_files_drop_copy(mr_shard_files *f, const mr_open_shard *shard);
/* The dataset's own NAME.mdb, for the caller to close; -1: it is elsewhere. */
mr_status mr_shard_files_original(const mr_shard_files *f, const mr_shard *shard, int *fd, mr_error *err);

typedef struct mr_shard_span {
    uint64_t offset;
    size_t len;
    const char *name; /* for messages */
} mr_shard_span;
/* Bytes that will be read by range. */
void mr_shard_files_ahead(const mr_shard_files *f, const mr_shard *shard, uint64_t offset, size_t len);
/* Bytes of NAME.mdb, by its descriptor or by range. */
mr_status mr_shard_files_read(const mr_shard_files *f, const mr_shard *shard, int fd, mr_shard_span span, uint8_t *out,
                              const atomic_bool *stop, mr_error *err);

#endif
