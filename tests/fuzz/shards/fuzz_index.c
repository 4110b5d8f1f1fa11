/* fuzz_index.c - an index, judged against the shard that its own header describes.
 * Promises: every row that is handed out points inside the shard, and packing the rows gives the input's bytes. */
#include "shards/format/index.h"
#include "tests/fuzz/fuzz.h"

static void check_row(const mr_row *rows, uint64_t i, const mr_shard *shard)
{
    const mr_row *row = &rows[i], *holder = &rows[row->holder];
    mr_error err;
    FUZZ_MUST(row->image_len > 0 && row->image_offset <= shard->mdb.bytes &&
              row->image_len <= shard->mdb.bytes - row->image_offset);
    FUZZ_MUST(row->meta_len > 1 && row->meta_offset <= shard->mdb.bytes &&
              row->meta_len <= shard->mdb.bytes - row->meta_offset);
    FUZZ_MUST(mr_codec_by_id(row->codec) && row->orientation >= 1 && row->orientation <= 8);
    FUZZ_MUST(row->holder <= i && holder->holder == row->holder);
    FUZZ_MUST(holder->image_offset == row->image_offset && holder->image_len == row->image_len);
    FUZZ_MUST(mr_index_check_row(row, i, shard, &err) == MR_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mr_shard shard = {.name = "train-00000", .mdb = {.bytes = 1 << 20}, .idx = {.bytes = size}};
    mr_index_header header;
    mr_row *rows = NULL;
    mr_error err;
    mr_status status = MR_OK;
    if (size >= MR_INDEX_HEADER) {
        status = mr_index_header_unpack(data, size, "train-00000.idx", &header, &err);
        if (status == MR_OK) {
            shard.first = header.first;
            shard.samples = header.rows;
            shard.mdb.bytes = header.mdb_bytes;
        } else {
            fuzz_refused(status, &err);
        }
    }
    mr_status parsed = mr_index_parse(data, size, &shard, &rows, &err);
    if (parsed != MR_OK) {
        FUZZ_MUST(parsed == MR_BAD_DATA && !rows);
        fuzz_refused(parsed, &err);
        return 0;
    }
    FUZZ_MUST(status == MR_OK && size == MR_INDEX_HEADER + shard.samples * MR_INDEX_ROW);
    for (uint64_t i = 0; i < shard.samples; i++)
        check_row(rows, i, &shard);
    mr_buf packed = {0};
    mr_index_pack(rows, shard.first, shard.samples, shard.mdb.bytes, &packed);
    FUZZ_MUST(packed.len == size && memcmp(packed.data, data, size) == 0);
    mr_buf_free(&packed);
    free(rows);
    return 0;
}
