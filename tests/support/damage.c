/* damage.c - shards that are cut, overwritten, removed and replaced under those who read them. */
#include "tests/support/damage.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shards/format/index.h"

void damage_nap(void)
{
    nanosleep(&(struct timespec){0, 2000000}, NULL);
}

static mr_row row_of(const char *idx, uint64_t i)
{
    mr_row row;
    uint8_t *bytes = support_read(idx, NULL);
    mr_row_unpack(bytes + MR_INDEX_HEADER + i * MR_INDEX_ROW, &row);
    free(bytes);
    return row;
}

static void write_at(const char *path, uint64_t at, const void *bytes, size_t len)
{
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, bytes, len, (off_t)at), len);
    close(fd);
}

uint64_t damage_samples(const char *dir, const char *shard)
{
    char *idx = support_path("%s/%s.idx", dir, shard);
    uint64_t samples = (support_size(idx) - MR_INDEX_HEADER) / MR_INDEX_ROW;
    free(idx);
    return samples;
}

void damage_do(damage kind, const char *dir, const char *shard, const char *another, bool hit[DAMAGE_MAX])
{
    char *mdb = support_path("%s/%s.mdb", dir, shard), *idx = support_path("%s/%s.idx", dir, shard);
    char *other = support_path("%s/%s.mdb", dir, another), *copy = support_path("%s/copy", dir);
    uint64_t size = support_size(mdb), cut = size / 2;
    uint8_t junk[64];
    memset(junk, 0xA5, sizeof junk);
    memset(hit, 0, DAMAGE_MAX * sizeof *hit);
    assert_true(damage_samples(dir, shard) <= DAMAGE_MAX);
    for (uint64_t i = 0; i < damage_samples(dir, shard); i++) {
        mr_row row = row_of(idx, i);
        if (kind == CUT || kind == CUT_TO_NOTHING)
            hit[i] = kind == CUT_TO_NOTHING || row.image_offset + row.image_len > cut ||
                     row.meta_offset + row.meta_len > cut;
        else if (kind == OVERWRITTEN && i % 3 == 0) {
            hit[i] = true;
            write_at(mdb, i % 2 ? row.meta_offset : row.image_offset + row.image_len / 2, junk, 1);
        } else if (kind == SCRIBBLED)
            hit[i] = true;
    }
    if (kind == CUT || kind == CUT_TO_NOTHING)
        assert_int_equal(truncate(mdb, kind == CUT ? (off_t)cut : 0), 0);
    for (uint64_t at = 0; kind == SCRIBBLED && at < size; at += sizeof junk)
        write_at(mdb, at, junk, sizeof junk);
    if (kind == REMOVED)
        assert_int_equal(unlink(mdb), 0);
    if (kind == REPLACED) {
        size_t len;
        uint8_t *bytes = support_read(other, &len);
        support_write(copy, bytes, len);
        assert_int_equal(rename(copy, mdb), 0);
        free(bytes);
    }
    free(mdb);
    free(idx);
    free(other);
    free(copy);
}
