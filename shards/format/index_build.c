/* index_build.c - builds an index from a shard alone: where LMDB put each record, and the facts that the records state.
 * Invariant: nothing but the .mdb's bytes decides the outcome: no limit of a run, no clock, no order of threads. */
#include "shards/format/index.h"

#include <stdlib.h>

#include "base/files/file.h"
#include "base/hash.h"
#include "base/scope.h"
#include "shards/format/meta.h"
#include "shards/format/walk.h"

typedef struct build {
    int fd;
    const char *name;
    uint64_t first, samples;
    uint64_t next; /* row whose record comes next */
    mr_row *rows;
    bool known; /* rows carry lengths and facts already (mr_index_locate) */
    mr_buf record;
} build;

const mr_image_limits mr_stored_limits = {
    .max_pixels = UINT64_MAX, .max_scans = UINT32_MAX, .max_segments = UINT32_MAX};

static mr_status fault(const build *b, uint64_t row, mr_error *err, const char *what)
{
    return mr_fail(err, MR_BAD_DATA, "%s: sample %llu: %s", b->name, (unsigned long long)(b->first + row), what);
}

static mr_status read_record(build *b, const mr_walk_record *r, mr_error *err)
{
    mr_buf_clear(&b->record);
    if (r->len > MR_RECORD_MAX || !mr_buf_reserve(&b->record, r->len))
        return mr_fail_memory(err, "reading a shard");
    b->record.len = r->len;
    return mr_file_pread(b->fd, b->record.data, r->len, r->offset, b->name, err);
}

/* The row that an image_of of this row names: an earlier one that stores its own image. */
static mr_status find_holder(const build *b, uint64_t row, uint64_t image_of, uint32_t *holder, mr_error *err)
{
    if (image_of < b->first || image_of - b->first >= row || (b->rows[image_of - b->first].flags & MR_FLAG_SAME_BYTES))
        return fault(b, row, err, "its \"image_of\" is not an earlier sample of the shard that stores its own image");
    *holder = (uint32_t)(image_of - b->first);
    return MR_OK;
}

static mr_status scan_meta(build *b, uint64_t i, mr_error *err)
{
    mr_row *row = &b->rows[i];
    mr_meta_facts facts;
    mr_error why;
    mr_status status = mr_meta_scan(b->record.data, b->record.len, &facts, NULL, &why);
    if (status == MR_SYSTEM)
        return mr_fail(err, status, "%s: %s", b->name, why.text);
    if (status != MR_OK)
        return fault(b, i, err, why.text);
    row->meta_hash = mr_hash64(b->record.data, b->record.len);
    row->label = facts.label;
    row->holder = (uint32_t)i;
    row->flags = (facts.multi_label ? MR_FLAG_MULTI_LABEL : 0) | (facts.unannotated ? MR_FLAG_UNANNOTATED : 0);
    if (!facts.has_image_of)
        return MR_OK;
    row->flags |= MR_FLAG_SAME_BYTES;
    return find_holder(b, i, facts.image_of, &row->holder, err);
}

static mr_status take_meta(void *ctx, const mr_walk_record *r, mr_error *err)
{
    build *b = ctx;
    uint64_t i = b->next++;
    if (i >= b->samples || r->sample != b->first + i)
        return mr_fail(err, MR_BAD_DATA, "%s: has a meta for sample %llu where the manifest has none", b->name,
                       (unsigned long long)r->sample);
    mr_row *row = &b->rows[i];
    if (r->len < 2 || r->len > MR_RECORD_MAX || (b->known && r->len != row->meta_len))
        return fault(b, i, err, "its meta has the wrong length");
    row->meta_offset = r->offset;
    row->meta_len = (uint32_t)r->len;
    if (b->known)
        return MR_OK;
    MR_TRY(read_record(b, r, err));
    return scan_meta(b, i, err);
}

/* Rows that share an image have none of their own in the database. */
static void skip_sharers(build *b)
{
    while (b->next < b->samples && (b->rows[b->next].flags & MR_FLAG_SAME_BYTES))
        b->next++;
}

static mr_status scan_image(build *b, uint64_t i, mr_error *err)
{
    mr_row *row = &b->rows[i];
    mr_image_facts facts;
    mr_error why;
    mr_status status = mr_image_examine(b->record.data, b->record.len, &mr_stored_limits, &facts, &why);
    if (status == MR_SYSTEM)
        return mr_fail(err, status, "%s: %s", b->name, why.text);
    if (status != MR_OK)
        return fault(b, i, err, why.text);
    row->image_hash = mr_hash64(b->record.data, b->record.len);
    row->width = facts.width;
    row->height = facts.height;
    row->codec = facts.codec;
    row->orientation = facts.orientation;
    row->components = facts.components;
    row->bits = facts.bits;
    row->flags |= facts.flags;
    return MR_OK;
}

static mr_status take_image(void *ctx, const mr_walk_record *r, mr_error *err)
{
    build *b = ctx;
    skip_sharers(b);
    uint64_t i = b->next++;
    if (i >= b->samples || r->sample != b->first + i)
        return mr_fail(err, MR_BAD_DATA, "%s: has an image for sample %llu out of order", b->name,
                       (unsigned long long)r->sample);
    mr_row *row = &b->rows[i];
    if (r->len < 1 || r->len > MR_RECORD_MAX || (b->known && r->len != row->image_len))
        return fault(b, i, err, "its image has the wrong length");
    row->image_offset = r->offset;
    row->image_len = (uint32_t)r->len;
    if (b->known)
        return MR_OK;
    MR_TRY(read_record(b, r, err));
    return scan_image(b, i, err);
}

/* Everything about the image comes from the row that stores it. */
static void share_image(mr_row *row, const mr_row *holder)
{
    row->image_offset = holder->image_offset;
    row->image_hash = holder->image_hash;
    row->image_len = holder->image_len;
    row->width = holder->width;
    row->height = holder->height;
    row->codec = holder->codec;
    row->orientation = holder->orientation;
    row->components = holder->components;
    row->bits = holder->bits;
    row->flags |= holder->flags & ~(uint32_t)(MR_FLAG_SAME_BYTES | MR_FLAG_MULTI_LABEL | MR_FLAG_UNANNOTATED);
}

static mr_status walk_both(build *b, uint64_t size, mr_error *err)
{
    MR_TRY(mr_walk(b->fd, size, b->name, MR_DB_META, take_meta, b, err));
    if (b->next != b->samples)
        return fault(b, b->next, err, "has no meta");
    b->next = 0;
    MR_TRY(mr_walk(b->fd, size, b->name, MR_DB_IMAGE, take_image, b, err));
    skip_sharers(b);
    if (b->next != b->samples)
        return fault(b, b->next, err, "has no image");
    for (uint64_t i = 0; i < b->samples; i++)
        if (b->rows[i].flags & MR_FLAG_SAME_BYTES)
            share_image(&b->rows[i], &b->rows[b->rows[i].holder]);
    return MR_OK;
}

/* A record costs at least a node of 8 bytes in a leaf, so a size bounds the rows before memory is asked for. */
static mr_status check_count(const char *name, uint64_t size, uint64_t first, uint64_t samples, mr_error *err)
{
    if (samples > UINT32_MAX || samples > size / 8 || first > UINT64_MAX - samples)
        return mr_fail(err, MR_BAD_DATA, "%s: %llu samples do not fit a shard of %llu bytes", name,
                       (unsigned long long)samples, (unsigned long long)size);
    return MR_OK;
}

static void free_build(build *b)
{
    mr_buf_free(&b->record);
    free(b->rows);
}

mr_status mr_index_build(int fd, uint64_t size, const char *name, uint64_t first, uint64_t samples, mr_buf *out,
                         mr_error *err)
{
    MR_AUTO(free_build) build b = {.fd = fd, .name = name, .first = first, .samples = samples};
    MR_TRY(check_count(name, size, first, samples, err));
    b.rows = mr_alloc(samples, sizeof *b.rows);
    if (!b.rows)
        return mr_fail_memory(err, "reading a shard");
    MR_TRY(walk_both(&b, size, err));
    mr_index_pack(b.rows, first, samples, size, out);
    return mr_buf_status(out, err, name);
}

mr_status mr_index_locate(int fd, uint64_t size, const char *name, uint64_t first, uint64_t samples, mr_row *rows,
                          mr_error *err)
{
    build b = {.fd = fd, .name = name, .first = first, .samples = samples, .rows = rows, .known = true};
    MR_TRY(check_count(name, size, first, samples, err));
    for (uint64_t i = 0; i < samples; i++) {
        bool same = rows[i].flags & MR_FLAG_SAME_BYTES;
        if (same ? rows[i].holder >= i || rows[rows[i].holder].holder != rows[i].holder : rows[i].holder != i)
            return fault(&b, i, err, "its row names a holder that stores no image");
    }
    return walk_both(&b, size, err);
}
