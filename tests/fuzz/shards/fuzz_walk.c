/* fuzz_walk.c - LMDB pages, and the index that is made from them.
 * Promises: records lie inside the file and come in ascending order, no byte belongs to two of them, and an index that
 * could be built passes its own checks. */
#include <unistd.h>

#include "shards/format/index.h"
#include "shards/format/walk.h"
#include "tests/fuzz/fuzz.h"

typedef struct seen {
    uint64_t size, count, first, next, bytes;
} seen;

static mr_status take(void *ctx, const mr_walk_record *r, mr_error *err)
{
    seen *s = ctx;
    (void)err;
    FUZZ_MUST(r->offset <= s->size && r->len <= s->size - r->offset);
    FUZZ_MUST(s->count == 0 || r->sample >= s->next);
    if (s->count++ == 0)
        s->first = r->sample;
    s->next = r->sample + 1;
    s->bytes += r->len;
    return MR_OK;
}

static mr_status walk(int fd, const char *database, seen *s)
{
    mr_error err;
    mr_status status = mr_walk(fd, s->size, "fuzz.mdb", database, take, s, &err);
    if (status != MR_OK)
        fuzz_refused(status, &err);
    FUZZ_MUST(s->bytes <= s->size);
    return status;
}

static void build_index(int fd, const seen *metas)
{
    mr_shard shard = {.name = "train-00000", .first = metas->first, .samples = metas->count};
    mr_buf index = {0};
    mr_row *rows = NULL;
    mr_error err;
    shard.mdb.bytes = metas->size;
    mr_status status = mr_index_build(fd, metas->size, "train-00000.mdb", metas->first, metas->count, &index, &err);
    if (status == MR_OK) {
        FUZZ_MUST(mr_index_parse(index.data, index.len, &shard, &rows, &err) == MR_OK);
        FUZZ_MUST(mr_index_locate(fd, metas->size, "train-00000.mdb", metas->first, metas->count, rows, &err) == MR_OK);
    } else {
        fuzz_refused(status, &err);
    }
    free(rows);
    mr_buf_free(&index);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Whole pages, or the first check would stop nearly every input. */
    size_t pages = (size + MR_LMDB_PAGE - 1) / MR_LMDB_PAGE;
    int fd = fuzz_file(data, size);
    seen images = {.size = pages * MR_LMDB_PAGE}, metas = images;
    if (ftruncate(fd, (off_t)images.size) != 0)
        exit(3);
    walk(fd, MR_DB_IMAGE, &images);
    mr_status status = walk(fd, MR_DB_META, &metas);
    if (status == MR_OK)
        build_index(fd, &metas);
    if (size % MR_LMDB_PAGE) {
        seen odd = {.size = size};
        FUZZ_MUST(walk(fd, MR_DB_META, &odd) == MR_BAD_DATA);
    }
    close(fd);
    return 0;
}
