/* parts.h - private to this module: a shard whose seek file is being made, by any number of threads.
 *
 *   begin (the first thread)  ->  chunk, chunk, ... (any thread, any order)  ->  end (the last one): publish
 *
 * Invariant: entries of chunk k go into chunks[k] only, so the file is the same whichever thread made which. */
#ifndef MR_SEEK_PARTS_H
#define MR_SEEK_PARTS_H

#include <pthread.h>

#include "shards/seek/seek.h"

enum { MR_SEEK_CHUNK = 128 }; /* rows that a thread takes at a time */

typedef struct mr_seek_worker { /* what a thread owns */
    mr_jpeg_decoder *decoder;
    mr_buf record, entries;
} mr_seek_worker;

typedef struct mr_seek_job {
    int dirfd;
    const mr_shard *shard;
    const mr_seek_options *options;
    mr_seek_result *out;
    pthread_mutex_t lock; /* guards `out` and what follows but chunks and lens */
    size_t first_chunk;   /* among those of all jobs */
    size_t chunk_count, left;
    size_t failed_chunk; /* the chunk whose failure is in out->why: the first in order */
    bool begun, idle;    /* idle: nothing to make */
    unsigned every;
    mr_buf existing; /* the file that is compared, with options->check */
    int mdb;
    mr_row *rows;
    mr_buf *chunks; /* checks and entries, one after another */
    uint32_t *lens; /* a row: bytes of it in its chunk; 0: none */
} mr_seek_job;

mr_status mr_seek_job_init(mr_seek_job *job, mr_error *err); /* the members up to `out` are set */
void mr_seek_job_free(mr_seek_job *job);
/* A damaged shard is not a failure of the call: the job's result has it. */
void mr_seek_job_chunk(mr_seek_job *job, mr_seek_worker *h, size_t chunk);

#endif
