/* build.c - pass 2: one shard's records, index and digests, in the staging folder.
 * Invariant: NAME.done is published last and only after .mdb and .idx are on disk. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "shards/format/seal_shard.h"
#include "shards/format/writer.h"
#include "ingest/pipeline/build_parts.h"

static mr_status put_sample(mr_build *b, mr_writer *w, size_t row, mr_error *err)
{
    uint64_t number = b->cut->first + row;
    MR_TRY(mr_build_row(b, row, err));
    bool own = b->rows[row].holder == row;
    if (own)
        MR_TRY(mr_writer_image(w, number, b->image.data, b->image.len, err));
    MR_TRY(mr_writer_meta(w, number, b->meta.data, b->meta.len, err));
    mr_progress_add(b->in->progress, 1, own ? b->rows[row].image_len : 0);
    return MR_OK;
}

static mr_status write_records(mr_build *b, mr_writer *w, mr_error *err)
{
    for (size_t row = 0; row < b->cut->count; row++)
        MR_TRY(put_sample(b, w, row, err));
    return MR_OK;
}

static mr_status build_new(mr_build *b, mr_error *err)
{
    mr_writer *w = NULL;
    b->shard.images = b->shard.image_bytes = 0;
    b->tally = (mr_object_tally){0};
    unlinkat(b->dir, b->done, 0);
    unlinkat(b->dir, b->mdb, 0);
    MR_TRY(mr_stage_held(b->stage, err)); /* LMDB opens by path */
    MR_TRY(mr_writer_open(b->path, &w, err));
    mr_status status = write_records(b, w, err);
    if (status == MR_OK)
        status = mr_writer_finish(w, err);
    else
        mr_writer_abandon(w);
    MR_TRY(status);
    MR_TRY(mr_shard_seal(b->dir, &b->shard, b->rows, err));
    return mr_build_write_done(b->dir, &b->shard, err);
}

static void end_build(mr_build *b)
{
    free(b->holders);
    free(b->rows);
    mr_buf_free(&b->image);
    mr_buf_free(&b->other);
    mr_buf_free(&b->meta);
    mr_objects_free(&b->objects);
}

mr_status mr_build_shard(mr_ingest *in, const mr_stage *stage, size_t number, bool *resumed, mr_error *err)
{
    MR_AUTO(end_build)
    mr_build b = {.in = in, .cut = &in->cuts[number], .stage = stage, .dir = mr_stage_dir(stage)};
    snprintf(b.mdb, sizeof b.mdb, "%s.mdb", b.cut->name);
    snprintf(b.idx, sizeof b.idx, "%s.idx", b.cut->name);
    mr_build_done_name(b.cut->name, b.done);
    if ((size_t)snprintf(b.path, sizeof b.path, "%s/%s", mr_stage_path(stage), b.mdb) >= sizeof b.path)
        return mr_fail(err, MR_MISUSE, "%s: the path is too long", mr_stage_path(stage));
    memcpy(b.shard.name, b.cut->name, sizeof b.shard.name);
    b.shard.first = b.cut->first;
    b.shard.samples = b.cut->count;
    MR_TRY(mr_build_begin(&b, err));
    *resumed = mr_build_resume(&b);
    if (*resumed)
        mr_progress_add(in->progress, b.cut->count, b.shard.image_bytes);
    else
        MR_TRY(build_new(&b, err));
    in->shards[number] = b.shard;
    in->tallies[number] = b.tally;
    return MR_OK;
}
