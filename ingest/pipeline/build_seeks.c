/* build_seeks.c - seek indexes of the shards that were just built, beside them in the staging folder.
 * Invariant: they are the bytes that `millrace seek` would write later: the same code reads the same files.  Those of
 * an interrupted run have been removed: their own hashes prove nothing about the images. */
#include <stdlib.h>

#include "base/scope.h"
#include "ingest/pipeline/ingest_state.h"

mr_status mr_build_seeks(mr_ingest *in, const mr_stage *stage, mr_error *err)
{
    const mr_ingest_options *o = in->options;
    const mr_seek_options options = {.every = o->seek_every,
                                     .jobs = o->jobs,
                                     .quiet = o->for_source.quiet,
                                     .progress = o->for_source.progress,
                                     .ranks = in->ranks};
    MR_AUTO(mr_scope_free) const mr_shard **shards = mr_alloc(in->cut_count, sizeof *shards);
    in->seeks = mr_alloc(in->cut_count, sizeof *in->seeks);
    bool allocated = shards && in->seeks;
    MR_TRY(mr_ranks_agree(in->ranks, allocated ? MR_OK : mr_fail_memory(err, "making seek indexes"), err));
    for (size_t i = 0; i < in->cut_count; i++)
        shards[i] = &in->shards[i];
    MR_TRY(mr_seek_make(mr_stage_dir(stage), shards, in->cut_count, &options, in->seeks, err));
    for (size_t i = 0; i < in->cut_count; i++)
        if (in->seeks[i].outcome == MR_SEEK_FAILED)
            return mr_fail(err, in->seeks[i].why.status, "%s", in->seeks[i].why.text);
    return MR_OK;
}
