/* cmd_inspect_croissant.c - prints the Croissant description of a dataset: manifest and shards with their SHA-256,
 * classes and splits. Invariant: paths are relative to the dataset's folder, where the description belongs. */
#include "train/report/cmd_inspect_croissant.h"

#include <stdio.h>

#include "base/scope.h"
#include "shards/export/formats/croissant.h"

static void add_file(const mr_shard *shard, const char *suffix, const mr_digest *digest, mr_buf *out)
{
    char path[sizeof shard->name + 8];
    snprintf(path, sizeof path, "%s.%s", shard->name, suffix);
    const mr_croissant_object object = {
        .path = path, .format = "application/octet-stream", .sha256 = digest->sha256, .bytes = digest->bytes};
    mr_buf_add_text(out, ",\n");
    mr_croissant_add_object(&object, out);
}

mr_status mr_cmd_croissant_print(const mr_dataset *ds, mr_error *err)
{
    const mr_manifest *m = mr_dataset_manifest(ds);
    const uint8_t *digest = mr_dataset_digest(ds);
    const mr_croissant_of of = {.manifest = m, .digest = digest};
    const mr_croissant_object manifest = {.path = MR_MANIFEST, .format = "application/json", .sha256 = digest};
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    mr_croissant_add_head(&of, &text);
    mr_buf_add_text(&text, "\n");
    mr_croissant_add_object(&manifest, &text);
    for (size_t i = 0; i < m->split_count; i++)
        for (size_t k = 0; k < m->splits[i].shard_count; k++) {
            const mr_shard *shard = &m->splits[i].shards[k];
            add_file(shard, "mdb", &shard->mdb, &text);
            add_file(shard, "idx", &shard->idx, &text);
        }
    mr_croissant_add_lists(&of, &text);
    mr_croissant_add_end(&text);
    MR_TRY(mr_buf_status(&text, err, "writing JSON"));
    fwrite(text.data, 1, text.len, stdout);
    return MR_OK;
}
