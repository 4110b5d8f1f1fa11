/* build_resume.c - is a finished shard of an earlier run the one that this run would write?
 * Invariant: a shard is reused only if it follows from the source just read: each record is compared byte for byte,
 * the index and the counts are computed again, and the .mdb, whose layout only a writer could check, must have the
 * digest in NAME.done.  A shard that differs or cannot be read is not an error: it is rewritten. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "shards/format/index.h"
#include "shards/format/seal_shard.h"
#include "ingest/pipeline/build_parts.h"

void mr_build_done_name(const char *shard, char name[128])
{
    snprintf(name, 128, "%s.done", shard);
}

mr_status mr_build_write_done(int dir, const mr_shard *shard, mr_error *err)
{
    char xxh[33], sha[65], name[128];
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    mr_build_done_name(shard->name, name);
    mr_hex(shard->mdb.xxh3_128, 16, xxh);
    mr_hex(shard->mdb.sha256, 32, sha);
    json_t *doc =
        json_pack("{s{sIssss}}", "mdb", "bytes", (json_int_t)shard->mdb.bytes, "xxh3_128", xxh, "sha256", sha);
    mr_status status = mr_json_dump(doc, &text, err);
    json_decref(doc);
    MR_TRY(status);
    return mr_file_publish(dir, name, text.data, text.len, err);
}

static bool read_done(const mr_build *b, mr_digest *mdb)
{
    json_int_t bytes = -1;
    const char *xxh, *sha;
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    json_t *doc = NULL;
    bool good = mr_file_read_all(b->dir, b->done, 1 << 16, &text, NULL) == MR_OK &&
                mr_json_parse(text.data, text.len, b->done, &doc, NULL) == MR_OK &&
                json_unpack(doc, "{s{sIssss}}", "mdb", "bytes", &bytes, "xxh3_128", &xxh, "sha256", &sha) == 0 &&
                bytes >= 0 && mr_unhex(xxh, mdb->xxh3_128, 16) && mr_unhex(sha, mdb->sha256, 32);
    mdb->bytes = (uint64_t)bytes;
    json_decref(doc);
    return good;
}

static bool same_bytes(mr_build *b, int mdb, uint64_t offset, const mr_buf *expected)
{
    enum { CHUNK = 1 << 18 };
    mr_buf_clear(&b->other);
    if (!mr_buf_reserve(&b->other, CHUNK))
        return false;
    for (size_t at = 0; at < expected->len; at += CHUNK) {
        size_t len = expected->len - at < CHUNK ? expected->len - at : CHUNK;
        if (mr_file_pread(mdb, b->other.data, len, offset + at, b->mdb, NULL) != MR_OK ||
            memcmp(b->other.data, expected->data + at, len) != 0)
            return false;
    }
    return true;
}

/* `found`: the rows of the existing index.  Their offsets are checked later, when the index computed from the pages
 * must equal it. */
static bool same_records(mr_build *b, int mdb, const mr_row *found)
{
    for (size_t row = 0; row < b->cut->count; row++)
        if (mr_build_row(b, row, NULL) != MR_OK || !same_bytes(b, mdb, found[row].meta_offset, &b->meta) ||
            (b->rows[row].holder == row && !same_bytes(b, mdb, found[row].image_offset, &b->image)))
            return false;
    return true;
}

static bool same_shard(mr_build *b, int mdb)
{
    mr_shard *s = &b->shard;
    mr_digest found;
    MR_AUTO(mr_buf_free) mr_buf idx = {0};
    MR_AUTO(mr_buf_free) mr_buf computed = {0};
    MR_AUTO(mr_scope_free) mr_row *rows = NULL;
    return mr_file_read_all(b->dir, b->idx, MR_INDEX_HEADER + s->samples * MR_INDEX_ROW, &idx, NULL) == MR_OK &&
           mr_index_parse(idx.data, idx.len, s, &rows, NULL) == MR_OK && same_records(b, mdb, rows) &&
           mr_shard_index(mdb, s->mdb.bytes, s, b->rows, &computed, NULL) == MR_OK && computed.len == idx.len &&
           memcmp(computed.data, idx.data, idx.len) == 0 &&
           mr_file_digest(mdb, s->mdb.bytes, true, b->mdb, &found, NULL) == MR_OK &&
           memcmp(found.sha256, s->mdb.sha256, 32) == 0 && memcmp(found.xxh3_128, s->mdb.xxh3_128, 16) == 0;
}

bool mr_build_resume(mr_build *b)
{
    MR_AUTO(mr_scope_close) int mdb = -1;
    uint64_t size;
    if (!read_done(b, &b->shard.mdb) || mr_file_open(b->dir, b->mdb, false, &mdb, &size, NULL) != MR_OK)
        return false;
    return size == b->shard.mdb.bytes && same_shard(b, mdb);
}
