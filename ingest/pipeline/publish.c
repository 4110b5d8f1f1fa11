/* publish.c - the last step, of rank 0: report, then manifest, then the rename that shows them.
 * Invariant: a dataset has no NAME.done; where it does not come to the rename, the shards have theirs again, and the
 * next run takes them over. */
#include "base/file.h"
#include "pipeline/build_parts.h"

static mr_status remove_marks(const mr_ingest *in, int dir, mr_error *err)
{
    mr_status status = MR_OK;
    for (size_t i = 0; status == MR_OK && i < in->cut_count; i++) {
        char done[128];
        mr_build_done_name(in->cuts[i].name, done);
        status = mr_dir_remove(dir, done, err);
    }
    return status;
}

/* As far as it goes: a shard without one is rewritten. */
static void restore_marks(const mr_ingest *in, int dir)
{
    for (size_t i = 0; i < in->cut_count; i++)
        (void)mr_build_write_done(dir, &in->shards[i], NULL);
}

static mr_status write_descriptions(mr_ingest *in, int dir, mr_error *err)
{
    mr_buf text = {0};
    json_t *report = NULL;
    mr_status status = mr_ingest_manifest(in, err);
    if (status == MR_OK) {
        report = mr_ingest_report(in, true);
        status = mr_json_dump(report, &text, err);
    }
    if (status == MR_OK)
        status = mr_file_publish(dir, MR_REPORT, text.data, text.len, err);
    mr_buf_clear(&text);
    if (status == MR_OK)
        status = mr_manifest_write(in->manifest, &text, err);
    if (status == MR_OK) {
        mr_sha256(text.data, text.len, in->digest);
        status = mr_file_publish(dir, MR_MANIFEST, text.data, text.len, err);
    }
    json_decref(report);
    mr_buf_free(&text);
    return status;
}

mr_status mr_publish(mr_ingest *in, mr_stage *stage, mr_error *err)
{
    int dir = mr_stage_dir(stage);
    mr_status status = write_descriptions(in, dir, err);
    if (status != MR_OK)
        return status;
    status = remove_marks(in, dir, err);
    if (status == MR_OK)
        status = mr_stage_publish(stage, in->options->published, err);
    if (!atomic_load(in->options->published))
        restore_marks(in, dir);
    return status;
}
