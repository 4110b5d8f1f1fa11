/* ingest_state.c - what the steps of an ingest share.
 * Invariant: releasing is right after any step, and after none. */
#include "ingest/pipeline/ingest_state.h"

#include <stdlib.h>

int mr_ingest_progress(const mr_ingest *in)
{
    const mr_source_options *o = &in->options->for_source;
    return o->quiet || mr_ranks_rank(in->ranks) != 0 ? MR_PROGRESS_QUIET : o->progress;
}

void mr_ingest_release(mr_ingest *in)
{
    for (size_t i = 0; in->examined && i < in->file_count; i++)
        free(in->examined[i].why);
    free(in->examined);
    free(in->looks);
    free(in->leaked);
    free(in->files);
    free(in->file_of);
    free(in->order);
    free(in->cuts);
    free(in->shards);
    free(in->tallies);
    free(in->seeks);
    mr_manifest_free(in->manifest);
    mr_plan_free(in->choice.layout, &in->plan);
    mr_notes_free(&in->notes);
    mr_source_free(in->source);
    *in = (mr_ingest){0};
}
