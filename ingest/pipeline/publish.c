/* publish.c - the last step, on rank 0: report, then manifest, then the rename that makes the dataset visible.
 * Invariant: a dataset has no NAME.done; if the rename does not happen, each shard has its NAME.done again, so that the
 * next run takes it over. */
#include "base/files/file.h"
#include "base/scope.h"
#include "ingest/pipeline/build_parts.h"

static mr_status remove_marks(const mr_ingest *in, int dir, mr_error *err)
{
    for (size_t i = 0; i < in->cut_count; i++) {
        char done[128];
        mr_build_done_name(in->cuts[i].name, done);
        MR_TRY(mr_dir_remove(dir, done, err));
    }
    return MR_OK;
}

/* Best effort: a shard without one is rewritten. */
static void restore_marks(const mr_ingest *in, int dir)
{
    for (size_t i = 0; i < in->cut_count; i++)
        (void)mr_build_write_done(dir, &in->shards[i], NULL);
}

static mr_status write_report(const mr_ingest *in, int dir, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    json_t *report = mr_ingest_report(in, true);
    mr_status status = mr_json_dump(report, &text, err);
    json_decref(report);
    MR_TRY(status);
    return mr_file_publish(dir, MR_REPORT, text.data, text.len, err);
}

static mr_status write_manifest(mr_ingest *in, int dir, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    MR_TRY(mr_manifest_write(in->manifest, &text, err));
    mr_sha256(text.data, text.len, in->digest);
    return mr_file_publish(dir, MR_MANIFEST, text.data, text.len, err);
}

mr_status mr_publish(mr_ingest *in, mr_stage *stage, mr_error *err)
{
    int dir = mr_stage_dir(stage);
    MR_TRY(mr_ingest_manifest(in, err));
    MR_TRY(write_report(in, dir, err));
    MR_TRY(write_manifest(in, dir, err));
    mr_status status = remove_marks(in, dir, err);
    if (status == MR_OK)
        status = mr_stage_publish(stage, in->options->published, err);
    if (!atomic_load(in->options->published))
        restore_marks(in, dir);
    return status;
}
