/* fuzz_manifest.c - a stranger's manifest.
 * Promises: no name leaves the dataset's folder, counts add up, and what is read can be written, sealed and read again
 * as the same bytes. */
#include "shards/manifest/format.h"
#include "shards/manifest/manifest.h"
#include "tests/fuzz/fuzz.h"

static void check_split(const mr_manifest *m, const mr_split *split)
{
    uint64_t samples = 0, images = 0;
    FUZZ_MUST(mr_split_name_ok(split->name));
    FUZZ_MUST(!strchr(split->name, '/') && split->name[0] != '.');
    FUZZ_MUST(mr_manifest_split(m, split->name) == split);
    for (size_t i = 0; i < split->shard_count; i++) {
        const mr_shard *shard = &split->shards[i];
        FUZZ_MUST(strncmp(shard->name, split->name, strlen(split->name)) == 0 && !strchr(shard->name, '/'));
        FUZZ_MUST(shard->first == samples);
        FUZZ_MUST(shard->idx.bytes == MR_INDEX_HEADER + shard->samples * MR_INDEX_ROW);
        FUZZ_MUST(shard->mdb.bytes % MR_LMDB_PAGE == 0 && shard->mdb.bytes > 0);
        samples += shard->samples;
        images += shard->images;
    }
    FUZZ_MUST(split->samples == samples && split->images == images && images <= samples);
}

static void check_round_trip(const mr_manifest *m)
{
    mr_buf text = {0}, second = {0};
    mr_manifest *again = NULL;
    mr_error err;
    FUZZ_MUST(mr_manifest_write(m, &text, &err) == MR_OK);
    FUZZ_MUST(mr_manifest_check_seal(text.data, text.len, "again", &err) == MR_OK);
    FUZZ_MUST(mr_manifest_parse(text.data, text.len, "again", &again, &err) == MR_OK);
    FUZZ_MUST(mr_manifest_write(again, &second, &err) == MR_OK);
    FUZZ_MUST(text.len == second.len && memcmp(text.data, second.data, text.len) == 0);
    text.data[text.len / 2] ^= 1;
    FUZZ_MUST(mr_manifest_check_seal(text.data, text.len, "bent", &err) != MR_OK);
    mr_manifest_free(again);
    mr_buf_free(&second);
    mr_buf_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mr_manifest *m = NULL;
    mr_error err;
    mr_status status = mr_manifest_check_seal(data, size, "manifest.json", &err);
    if (status != MR_OK)
        fuzz_refused(status, &err);
    status = mr_manifest_parse(data, size, "manifest.json", &m, &err);
    if (status != MR_OK) {
        FUZZ_MUST(status == MR_BAD_DATA && !m);
        fuzz_refused(status, &err);
        return 0;
    }
    FUZZ_MUST(m->layout && m->variant && json_is_object(m->options));
    for (size_t i = 0; i < m->class_count; i++)
        FUZZ_MUST(m->classes[i].name != NULL);
    for (size_t i = 0; i < m->split_count; i++)
        check_split(m, &m->splits[i]);
    check_round_trip(m);
    mr_manifest_free(m);
    return 0;
}
