/* seek.c - seek files put out of order by hand; see support/seek.h. */
#include "tests/support/shards/seek.h"

static uint64_t rows_of(const uint8_t *bytes)
{
    return mr_get64le(bytes + 24);
}

void seek_seal(uint8_t *bytes, size_t len)
{
    mr_put64le(bytes + 56, mr_hash64(bytes + MR_SEEK_HEADER, (rows_of(bytes) + 1) * MR_SEEK_OFFSET));
    mr_hash128(bytes, len - MR_SEEK_TAIL, bytes + len - MR_SEEK_TAIL);
}

uint8_t *seek_entries(uint8_t *bytes, uint64_t i, size_t *len)
{
    const uint8_t *pair = bytes + MR_SEEK_HEADER + i * MR_SEEK_OFFSET;
    uint64_t from = mr_get64le(pair), to = mr_get64le(pair + MR_SEEK_OFFSET);
    *len = from == to ? 0 : (size_t)(to - from - MR_SEEK_CHECK);
    return bytes + from + MR_SEEK_CHECK;
}

void seek_seal_row(uint8_t *bytes, uint64_t i, uint64_t image_hash)
{
    size_t len;
    uint8_t *entries = seek_entries(bytes, i, &len);
    assert_true(len > 0);
    mr_put64le(entries - MR_SEEK_CHECK, mr_hash64(entries, len) ^ image_hash);
}

uint64_t seek_row_with_entries(uint8_t *bytes, uint64_t i)
{
    for (size_t len; i < rows_of(bytes); i++) {
        seek_entries(bytes, i, &len);
        if (len)
            return i;
    }
    fail_msg("no row has entries");
    return 0;
}
