/* shard_files_state.h - what shard_files.c and shard_rows.c share about open shards.
 * Invariant: all members but the atomic ones change only with the lock held, and those of an entry that say how it is
 * read (mr_open_shard) only while it is closed: borrowers is MR_SHARD_CLOSED then, and nobody can borrow it. */
#ifndef MR_SHARD_FILES_STATE_H
#define MR_SHARD_FILES_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "loader/batch/shard_files.h"

enum { MR_SHARD_CLOSED = -1 };

typedef struct mr_shard_entry {
    mr_open_shard files;        /* first, so that what is borrowed leads to its entry */
    _Atomic int borrowers;      /* MR_SHARD_CLOSED: none can borrow it without the lock */
    _Atomic bool settled;       /* no copy of it has to be looked for, or given up, before it is borrowed */
    _Atomic uint64_t used;      /* how many shards had been opened when it was last used: the lowest is closed first */
    _Atomic(uint8_t *) rows;    /* all rows, once many were read one by one; NULL: not yet */
    _Atomic(uint8_t *) table;   /* that of its seek index, kept in memory like rows; NULL: not */
    _Atomic unsigned rows_read; /* one by one, since it was opened */
    _Atomic bool table_tried;   /* to keep: once for each opening */
    _Atomic bool overwritten;   /* the index, after it was opened */
    bool copied;                /* files.mdb is a copy on this host's own disk */
    bool mistrusted;            /* its copy gave wrong bytes */
    unsigned lookups;           /* borrowed since a copy was last looked for */
    unsigned place;             /* index in the list of open shards */
} mr_shard_entry;

struct mr_shard_files {
    const mr_dataset *ds;
    const mr_split *split;
    pthread_mutex_t lock;
    pthread_cond_t returned;
    _Atomic unsigned users, waiting; /* waiting: threads for a shard to be returned */
    unsigned max, count;
    _Atomic uint64_t opened;
    size_t rows_bytes, tables_bytes;
    uint64_t foreign;                  /* unused seek indexes */
    _Atomic uint64_t found, refused;   /* entries, by mr_shard_files_seek() */
    _Atomic(mr_shard_entry *) *shards; /* by number in the split; NULL: never opened */
    mr_shard_entry *open[MR_SHARD_FILES_MAX];
};

/* Entries are the files' own; borrowers see them as constant. */
static inline mr_shard_entry *mr_shard_entry_of(const mr_open_shard *shard)
{
    return (mr_shard_entry *)(uintptr_t)shard;
}

/* shard_rows.c.  With the lock held: the rows and the table that are kept of the shard. */
void mr_shard_rows_drop(mr_shard_files *f, mr_shard_entry *e);

#endif
