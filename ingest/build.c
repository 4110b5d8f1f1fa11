/* build.c - pass 2: one shard's records, index and digests, in the staging folder.
 * Invariant: NAME.done (record.h) is published last and only after .mdb and .idx are on disk; it holds their digests
 * and the hash of everything the shard was made from (its recipe), so a later run takes the shard over only if nothing
 * changed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "index.h"
#include "ingest.h"
#include "meta.h"
#include "record.h"
#include "writer.h"

typedef struct build {
    mr_ingest *in;
    const mr_cut *cut;
    int dir;                        /* the staging folder */
    char mdb[128], idx[128], done[128], path[4096];
    uint32_t *holders;              /* row -> first row of the shard with the same content */
    mr_row *rows;
    mr_buf image, other, meta;
    mr_shard shard;
} build;

static const mr_sample *sample_of(const build *b, size_t row)
{
    return &b->in->plan.samples[b->in->order[b->cut->begin + row]];
}

static const mr_examined *examined_of(const build *b, size_t row)
{
    return &b->in->examined[b->in->file_of[sample_of(b, row)->entry]];
}

typedef struct content_row {
    uint32_t content, row;
} content_row;

static int by_content(const void *a, const void *b)
{
    const content_row *x = a, *y = b;
    return x->content != y->content ? (x->content > y->content) - (x->content < y->content)
                                    : (x->row > y->row) - (x->row < y->row);
}

static mr_status find_holders(build *b, mr_error *err)
{
    size_t n = b->cut->count;
    content_row *pairs = mr_alloc(n, sizeof *pairs);
    b->holders = mr_alloc(n, sizeof *b->holders);
    b->rows = mr_alloc(n, sizeof *b->rows);
    if (!pairs || !b->holders || !b->rows) {
        free(pairs);
        return mr_fail_memory(err, b->cut->name);
    }
    for (size_t i = 0; i < n; i++)
        pairs[i] = (content_row){examined_of(b, i)->content, (uint32_t)i};
    qsort(pairs, n, sizeof *pairs, by_content);
    for (size_t i = 0, first = 0; i < n; i++) {
        if (pairs[i].content != pairs[first].content)
            first = i;
        b->holders[pairs[i].row] = pairs[first].row;
    }
    free(pairs);
    return MR_OK;
}

static mr_status compose_meta(build *b, size_t row, uint32_t holder, mr_error *err)
{
    const mr_ingest *in = b->in;
    const mr_sample *s = sample_of(b, row);
    mr_meta_facts facts = {
        .label = s->flags & MR_FLAG_MULTI_LABEL ? -1 : s->label,
        .multi_label = (s->flags & MR_FLAG_MULTI_LABEL) != 0,
        .unannotated = (s->flags & MR_FLAG_UNANNOTATED) != 0,
        .has_image_of = holder != row,
        .image_of = b->cut->first + holder,
    };
    size_t len;
    const char *path = mr_tree_path(&in->choice.tree, s->entry, &len);
    mr_buf_clear(&b->meta);
    mr_meta_begin(&b->meta, path, len, &facts, facts.label >= 0 ? in->plan.classes[facts.label].name : NULL);
    mr_status status = MR_OK;
    if (in->choice.layout->meta)
        status = in->choice.layout->meta(&in->choice.tree, &in->plan, s, &b->meta, err);
    mr_buf_add(&b->meta, "}", 1);
    return status == MR_OK ? mr_buf_status(&b->meta, err, b->cut->name) : status;
}

static void add_to_recipe(mr_hasher *recipe, const build *b, size_t row)
{
    mr_hasher_add(recipe, examined_of(b, row)->hash128, 16);
    mr_hasher_add(recipe, b->meta.data, b->meta.len);
}

/* Equal hashes are not proof: XXH3-128 can be forged.  The bytes are compared before one copy stands for two. */
static mr_status settle_holder(build *b, size_t row, uint32_t *holder, mr_error *err)
{
    enum { CHUNK = 1 << 20 };
    const mr_source *source = b->in->source;
    uint32_t mine = sample_of(b, row)->entry, other = sample_of(b, b->holders[row])->entry;
    uint64_t size = mr_source_entry(source, mine)->size;
    *holder = b->holders[row];
    if (*holder == row || mine == other)
        return MR_OK;
    mr_buf_clear(&b->image);
    mr_buf_clear(&b->other);
    if (!mr_buf_reserve(&b->image, CHUNK) || !mr_buf_reserve(&b->other, CHUNK))
        return mr_fail_memory(err, b->cut->name);
    for (uint64_t at = 0; at < size && *holder != row; at += CHUNK) {
        size_t len = size - at < CHUNK ? (size_t)(size - at) : CHUNK;
        mr_status status = mr_source_pread(source, mine, b->image.data, len, at, err);
        if (status == MR_OK)
            status = mr_source_pread(source, other, b->other.data, len, at, err);
        if (status != MR_OK)
            return status;
        if (memcmp(b->image.data, b->other.data, len) != 0)
            *holder = (uint32_t)row;
    }
    return MR_OK;
}

static mr_status put_image(build *b, mr_writer *w, size_t row, mr_error *err)
{
    const mr_examined *x = examined_of(b, row);
    uint32_t entry = sample_of(b, row)->entry;
    mr_status status = mr_source_read(b->in->source, entry, &b->image, err);
    if (status != MR_OK)
        return status;
    if (mr_hash64(b->image.data, b->image.len) != x->hash)
        return mr_fail(err, MR_BAD_DATA, "%s: changed while being ingested; run the command again",
                       mr_source_entry(b->in->source, entry)->path);
    b->shard.images++;
    b->shard.image_bytes += b->image.len;
    b->rows[row].image_len = (uint32_t)b->image.len;
    b->rows[row].image_hash = x->hash;
    return mr_writer_image(w, b->cut->first + row, b->image.data, b->image.len, err);
}

static mr_status put_sample(build *b, mr_writer *w, mr_hasher *recipe, size_t row, mr_error *err)
{
    const mr_image_facts *f = &examined_of(b, row)->facts;
    const mr_sample *s = sample_of(b, row);
    mr_row *r = &b->rows[row];
    uint32_t holder;
    mr_status status = settle_holder(b, row, &holder, err);
    if (status == MR_OK && holder == row)
        status = put_image(b, w, row, err);
    if (status == MR_OK)
        status = compose_meta(b, row, b->holders[row], err);
    if (status != MR_OK)
        return status;
    add_to_recipe(recipe, b, row);
    if (holder != b->holders[row])
        status = compose_meta(b, row, holder, err);
    if (holder != row) {
        r->image_len = b->rows[holder].image_len;
        r->image_hash = b->rows[holder].image_hash;
    }
    r->meta_len = (uint32_t)b->meta.len;
    r->meta_hash = mr_hash64(b->meta.data, b->meta.len);
    r->width = f->width;
    r->height = f->height;
    r->label = s->flags & MR_FLAG_MULTI_LABEL ? -1 : s->label;
    r->codec = f->codec;
    r->orientation = f->orientation;
    r->components = f->components;
    r->bits = f->bits;
    r->flags = f->flags | (s->flags & (MR_FLAG_MULTI_LABEL | MR_FLAG_UNANNOTATED)) |
               (holder != row ? MR_FLAG_SAME_BYTES : 0);
    r->holder = holder;
    if (status == MR_OK && b->meta.len > MR_META_MAX)
        return mr_fail(err, MR_BAD_DATA, "%s: its annotations are longer than 1 GiB",
                       mr_source_entry(b->in->source, s->entry)->path);
    if (status == MR_OK)
        status = mr_writer_meta(w, b->cut->first + row, b->meta.data, b->meta.len, err);
    mr_progress_add(b->in->progress, 1, holder == row ? r->image_len : 0);
    return status;
}

/* The file's digest, its records' places, the index: from the finished .mdb, which is on disk when this returns. */
static mr_status finish(build *b, mr_error *err)
{
    int fd = -1;
    uint64_t size = 0;
    mr_buf index = {0};
    mr_hasher *h = NULL;
    mr_status status = mr_file_open(b->dir, b->mdb, false, &fd, &size, err);
    if (status == MR_OK)
        status = mr_digest_file(fd, size, true, b->mdb, &b->shard.mdb, err);
    if (status == MR_OK)
        status = mr_index_locate(fd, size, b->mdb, b->cut->first, b->cut->count, b->rows, err);
    if (status == MR_OK && fsync(fd) != 0)
        status = mr_fail_errno(err, errno, "%s: cannot sync", b->mdb);
    if (status == MR_OK) {
        mr_index_pack(b->rows, b->cut->first, b->cut->count, size, &index);
        status = mr_buf_status(&index, err, b->idx);
    }
    if (status == MR_OK)
        status = mr_hasher_begin(true, &h, err);
    if (status == MR_OK) {
        mr_hasher_add(h, index.data, index.len);
        status = mr_hasher_end(h, &b->shard.idx, err);
    }
    if (status == MR_OK)
        status = mr_file_publish(b->dir, b->idx, index.data, index.len, err);
    mr_buf_free(&index);
    if (fd >= 0)
        close(fd);
    return status;
}

static mr_status build_new(build *b, mr_error *err)
{
    mr_writer *w = NULL;
    mr_hasher *recipe = NULL;
    mr_digest recipe_digest;
    b->shard.images = b->shard.image_bytes = 0;
    unlinkat(b->dir, b->done, 0);
    unlinkat(b->dir, b->mdb, 0);
    mr_status status = mr_hasher_begin(false, &recipe, err);
    if (status == MR_OK)
        status = mr_writer_open(b->path, &w, err);
    for (size_t row = 0; status == MR_OK && row < b->cut->count; row++)
        status = put_sample(b, w, recipe, row, err);
    if (recipe) {
        mr_status ended = mr_hasher_end(recipe, status == MR_OK ? &recipe_digest : NULL, err);
        status = status == MR_OK ? ended : status;
    }
    if (status == MR_OK)
        status = mr_writer_finish(w, err);
    else
        mr_writer_abandon(w);
    if (status == MR_OK)
        status = finish(b, err);
    return status == MR_OK ? mr_record_write(b->dir, b->done, &recipe_digest, &b->shard, err) : status;
}

static bool file_as_stated(const build *b, const char *name, const mr_digest *stated)
{
    int fd;
    uint64_t size;
    mr_digest found;
    if (mr_file_open(b->dir, name, false, &fd, &size, NULL) != MR_OK)
        return false;
    bool same = size == stated->bytes && mr_digest_file(fd, size, true, name, &found, NULL) == MR_OK &&
                memcmp(found.sha256, stated->sha256, 32) == 0 && memcmp(found.xxh3_128, stated->xxh3_128, 16) == 0;
    close(fd);
    return same;
}

static bool same_recipe(build *b, const mr_digest *stated)
{
    mr_hasher *h;
    mr_digest found = {0};
    if (mr_hasher_begin(false, &h, NULL) != MR_OK)
        return false;
    for (size_t row = 0; row < b->cut->count; row++) {
        if (compose_meta(b, row, b->holders[row], NULL) != MR_OK) {
            mr_hasher_end(h, NULL, NULL);
            return false;
        }
        add_to_recipe(h, b, row);
    }
    return mr_hasher_end(h, &found, NULL) == MR_OK && memcmp(found.xxh3_128, stated->xxh3_128, 16) == 0;
}

/* True if an earlier run finished this very shard and its files are still what they were. */
static bool take_over(build *b)
{
    mr_digest recipe;
    return mr_record_read(b->dir, b->done, &recipe, &b->shard) && same_recipe(b, &recipe) &&
           file_as_stated(b, b->idx, &b->shard.idx) && file_as_stated(b, b->mdb, &b->shard.mdb);
}

mr_status mr_build_shard(mr_ingest *in, const mr_stage *stage, size_t number, bool *resumed, mr_error *err)
{
    build b = {.in = in, .cut = &in->cuts[number], .dir = mr_stage_dir(stage)};
    snprintf(b.mdb, sizeof b.mdb, "%s.mdb", b.cut->name);
    snprintf(b.idx, sizeof b.idx, "%s.idx", b.cut->name);
    snprintf(b.done, sizeof b.done, "%s.done", b.cut->name);
    if ((size_t)snprintf(b.path, sizeof b.path, "%s/%s", mr_stage_path(stage), b.mdb) >= sizeof b.path)
        return mr_fail(err, MR_MISUSE, "%s: the path is too long", mr_stage_path(stage));
    memcpy(b.shard.name, b.cut->name, sizeof b.shard.name);
    b.shard.first = b.cut->first;
    b.shard.samples = b.cut->count;
    mr_status status = find_holders(&b, err);
    *resumed = status == MR_OK && take_over(&b);
    if (*resumed)
        mr_progress_add(in->progress, b.cut->count, b.shard.image_bytes);
    else if (status == MR_OK)
        status = build_new(&b, err);
    if (status == MR_OK)
        in->shards[number] = b.shard;
    free(b.holders);
    free(b.rows);
    mr_buf_free(&b.image);
    mr_buf_free(&b.other);
    mr_buf_free(&b.meta);
    return status;
}
