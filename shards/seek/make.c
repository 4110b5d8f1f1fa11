/* make.c - the seek files of a dataset: shards shared out to ranks, their rows in chunks to threads.
 * Invariant: shard i is made by rank i % world, and every rank has every result when it is over. */
#include "shards/seek/parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/system/pool.h"
#include "base/scope.h"
#include "base/cli/term.h"

typedef struct run {
    mr_seek_job *jobs;       /* one for each of this rank's shards */
    size_t count, chunks;    /* jobs; chunks of all of them */
    mr_seek_worker *workers; /* one a thread */
    unsigned threads, rank, world;
    mr_progress *progress;
} run;

/* Whether a chunk comes before, in or after those of a job. */
static int by_chunk(const void *key, const void *item)
{
    size_t chunk = *(const size_t *)key;
    const mr_seek_job *job = item;
    return chunk < job->first_chunk ? -1 : chunk - job->first_chunk >= job->chunk_count;
}

static mr_status one_chunk(void *ctx, size_t item, unsigned worker, mr_error *err)
{
    run *v = ctx;
    (void)err;
    mr_seek_job *job = bsearch(&item, v->jobs, v->count, sizeof *v->jobs, by_chunk);
    size_t chunk = item - job->first_chunk;
    uint64_t rows = job->shard->samples - (uint64_t)chunk * MR_SEEK_CHUNK;
    mr_seek_job_chunk(job, &v->workers[worker], chunk);
    mr_progress_add(v->progress, rows < MR_SEEK_CHUNK ? rows : MR_SEEK_CHUNK, 0);
    return MR_OK;
}

static mr_status prepare(run *v, int dirfd, const mr_shard *const *shards, size_t count, const mr_seek_options *o,
                         mr_seek_result *results, mr_error *err)
{
    size_t mine = count > v->rank ? (count - v->rank - 1) / v->world + 1 : 0;
    v->jobs = mr_alloc(mine + 1, sizeof *v->jobs);
    v->workers = mr_alloc(v->threads, sizeof *v->workers);
    if (!v->jobs || !v->workers)
        return mr_fail_memory(err, "making a seek index");
    for (size_t i = v->rank; i < count; i += v->world) {
        mr_seek_job *job = &v->jobs[v->count];
        *job = (mr_seek_job){.dirfd = dirfd, .shard = shards[i], .options = o, .out = &results[i]};
        MR_TRY(mr_seek_job_init(job, err));
        job->first_chunk = v->chunks;
        v->chunks += job->chunk_count;
        v->count++;
    }
    return MR_OK;
}

static void dispose(run *v)
{
    for (size_t i = 0; i < v->count; i++)
        mr_seek_job_free(&v->jobs[i]);
    for (unsigned i = 0; v->workers && i < v->threads; i++) {
        mr_jpeg_decoder_free(v->workers[i].decoder);
        mr_buf_free(&v->workers[i].record);
        mr_buf_free(&v->workers[i].entries);
    }
    free(v->jobs);
    free(v->workers);
}

/* Every rank's results, joined on all. */
static mr_status exchange(const run *v, const mr_seek_options *o, size_t count, mr_seek_result *results,
                          mr_status status, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf mine = {0}, all = {0};
    size_t at = 0;
    if (v->world == 1)
        return status;
    for (size_t i = v->rank; i < count; i += v->world)
        mr_buf_add(&mine, &results[i], sizeof results[i]);
    if (status == MR_OK)
        status = mr_buf_status(&mine, err, "making a seek index");
    MR_TRY(mr_ranks_agree(o->ranks, status, err));
    MR_TRY(mr_ranks_gather(o->ranks, &mine, &all, NULL, err));
    if (all.len != count * sizeof *results)
        return mr_fail(err, MR_SYSTEM, "mpirun: the ranks made seek indexes of different shards");
    for (unsigned r = 0; r < v->world; r++)
        for (size_t i = r; i < count; i += v->world, at += sizeof results[i])
            memcpy(&results[i], all.data + at, sizeof results[i]);
    return MR_OK;
}

mr_status mr_seek_make(int dirfd, const mr_shard *const *shards, size_t count, const mr_seek_options *o,
                       mr_seek_result *results, mr_error *err)
{
    run v = {.threads = o->jobs ? o->jobs : mr_pool_processors(),
             .world = o->ranks ? mr_ranks_world(o->ranks) : 1,
             .rank = o->ranks ? mr_ranks_rank(o->ranks) : 0};
    uint64_t samples = 0;
    memset(results, 0, count * sizeof *results);
    mr_status status = prepare(&v, dirfd, shards, count, o, results, err);
    for (size_t i = 0; i < v.count; i++)
        samples += v.jobs[i].shard->samples;
    if (status == MR_OK) {
        v.progress = mr_progress_begin("seek index", samples, o->quiet || v.rank ? MR_PROGRESS_QUIET : o->progress);
        status = mr_pool_run(v.chunks, v.threads, one_chunk, &v, err);
        mr_progress_end(v.progress);
    }
    dispose(&v);
    return exchange(&v, o, count, results, status, err);
}

mr_status mr_seek_drop(int dirfd, const mr_shard *const *shards, size_t count, size_t *dropped, mr_error *err)
{
    *dropped = 0;
    for (size_t i = 0; i < count; i++) {
        char name[MR_SEEK_NAME];
        snprintf(name, sizeof name, "%s" MR_SEEK_SUFFIX, shards[i]->name);
        mr_file_forget(dirfd, name);
        if (unlinkat(dirfd, name, 0) == 0)
            ++*dropped;
        else if (errno != ENOENT)
            return mr_fail_errno(err, errno, "%s: cannot remove", name);
    }
    return *dropped ? mr_dir_sync(dirfd, "the dataset's folder", err) : MR_OK;
}
