/* fuzz_seek.c - a seek file, judged against the shard that its own header describes.
 * Promises: entries that are found are inside the file, after the table, in order, and are no longer than their image;
 * packing the header gives the input's bytes; and single spans, taken without the rest, keep to that as well. */
#include "tests/fuzz/fuzz.h"
#include "shards/seek/seek.h"

static void check_spans(const uint8_t *data, size_t size, uint64_t rows, bool whole)
{
    const uint8_t *table = data + MR_SEEK_HEADER;
    uint64_t behind = MR_SEEK_HEADER + (rows + 1) * MR_SEEK_OFFSET, last = behind;
    for (uint64_t i = 0; i < rows; i++) {
        mr_seek_span span;
        uint64_t image_len = whole ? UINT64_MAX : 40;
        if (!mr_seek_span_at(table + i * MR_SEEK_OFFSET, size, rows, image_len, &span))
            continue;
        FUZZ_MUST(span.offset >= behind && span.len > 0 && span.len <= image_len);
        FUZZ_MUST(span.offset <= size - MR_SEEK_TAIL - MR_SEEK_CHECK &&
                  span.len <= size - MR_SEEK_TAIL - MR_SEEK_CHECK - span.offset);
        FUZZ_MUST(!whole || span.offset == last);
        last = span.offset + MR_SEEK_CHECK + span.len;
        uint64_t check = mr_get64le(data + span.offset), hash = mr_hash64(data + span.offset + MR_SEEK_CHECK, span.len);
        FUZZ_MUST(mr_seek_entries_ok(data + span.offset, data + span.offset + MR_SEEK_CHECK, span.len, check ^ hash));
        FUZZ_MUST(
            !mr_seek_entries_ok(data + span.offset, data + span.offset + MR_SEEK_CHECK, span.len, check ^ hash ^ 1));
    }
    FUZZ_MUST(!whole || last == size - MR_SEEK_TAIL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mr_shard shard = {.name = "train-00000"};
    mr_seek_header header;
    mr_error err;
    if (size >= MR_SEEK_HEADER) {
        shard.first = mr_get64le(data + 16);
        shard.samples = mr_get64le(data + 24) & UINT32_MAX;
        shard.mdb.bytes = mr_get64le(data + 32);
        shard.images = shard.samples;
        shard.image_bytes = shard.mdb.bytes;
        memcpy(shard.mdb.xxh3_128, data + 40, 16);
    }
    mr_status status = mr_seek_check(data, size, &shard, NULL, &header, &err);
    if (status != MR_OK)
        fuzz_refused(status, &err);
    /* What a loader sees, which asks for no hash of the whole. */
    mr_status head = size < MR_SEEK_HEADER ? MR_BAD_DATA : mr_seek_check_header(data, size, &shard, &header, &err);
    FUZZ_MUST(head == MR_OK || status == MR_BAD_DATA);
    if (head != MR_OK)
        return 0;
    uint8_t packed[MR_SEEK_HEADER];
    mr_seek_header_pack(&header, packed);
    FUZZ_MUST(memcmp(packed, data, sizeof packed) == 0);
    check_spans(data, size, header.rows, status == MR_OK);
    return 0;
}
