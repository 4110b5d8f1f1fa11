/* build_seeks.c - seek indexes of the shards that were just built, beside them in the staging folder.
 * Invariant: they are made by what `millrace seek` uses, of the files that will be published: later or now, they are
 * the same.  Those of an interrupted run are gone by then: their own hashes prove nothing about the pictures. */
#include <stdlib.h>

#include "pipeline/ingest.h"

mr_status mr_build_seeks(mr_ingest *in, const mr_stage *stage, mr_error *err)
{
    const mr_ingest_options *o = in->options;
    const mr_seek_options options = {.every = o->seek_every,
                                     .jobs = o->jobs,
                                     .quiet = o->for_source.quiet,
                                     .progress = o->for_source.progress,
                                     .ranks = in->ranks};
    const mr_shard **shards = mr_alloc(in->cut_count, sizeof *shards);
    in->seeks = mr_alloc(in->cut_count, sizeof *in->seeks);
    mr_status status = shards && in->seeks ? MR_OK : mr_fail_memory(err, "making seek indexes");
    status = mr_ranks_agree(in->ranks, status, err);
    for (size_t i = 0; status == MR_OK && i < in->cut_count; i++)
        shards[i] = &in->shards[i];
    if (status == MR_OK)
        status = mr_seek_make(mr_stage_dir(stage), shards, in->cut_count, &options, in->seeks, err);
    for (size_t i = 0; status == MR_OK && i < in->cut_count; i++)
        if (in->seeks[i].outcome == MR_SEEK_FAILED)
            status = mr_fail(err, in->seeks[i].why.status, "%s", in->seeks[i].why.text);
    free(shards);
    return status;
}
