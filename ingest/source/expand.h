/* expand.h - opens files of a source by running a program: their contents become entries of the tree.
 * Invariant: the resulting tree depends on the files and the program's output alone, not on which thread or rank ran
 * the program, nor on where the bytes were stored.
 *
 *      data/train.parquet  ->  data/train.parquet/schema.json, data/train.parquet/000000000.json, ...             */
#ifndef MR_SOURCE_EXPAND_H
#define MR_SOURCE_EXPAND_H

#include "ingest/source/source.h"

typedef struct mr_expand {
    const char *const *argv; /* the program and its options, NULL-terminated; "/dev/stdin", the file, is appended */
    const uint32_t *entries; /* the files to open */
    size_t count;
    uint64_t memory; /* what the program needs for any file: its address space is limited to that, and to what the ratio
                        allows for the file; 0: no limit */
    unsigned jobs, rank, world; /* this rank opens every world-th file, on `jobs` threads */
    const mr_source_options *options;
    /* Creates an empty file for what thread `worker` unpacks, and sets `path` ("" if other ranks cannot or need not
     * open it); this module closes it.  Called once per thread; thread-safe. */
    mr_status (*spool)(void *ctx, unsigned worker, int *fd, char path[4096], mr_error *err);
    void *ctx;
} mr_expand;

/* Runs the program over this rank's share.  `part` gets the new entries, in no particular order, for mr_source_join()
 * or, packed by mr_source_pack(), for other ranks.  What was left out is in the notes.  Stops at the first file that
 * fails. */
mr_status mr_source_expand(const mr_source *s, const mr_expand *x, mr_notes *notes, mr_source **part, mr_error *err);

/* Moves the entries of the parts into the tree: entry numbers change, paths stay valid.  The parts become empty; the
 * caller still frees them.  MR_BAD_DATA: together they exceed the limits of a source. */
mr_status mr_source_join(mr_source *s, mr_source *const *parts, size_t count, const mr_source_options *o,
                         mr_notes *notes, mr_error *err);

#endif
