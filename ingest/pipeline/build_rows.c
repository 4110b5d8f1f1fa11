/* build_rows.c - the image, meta and index row of each sample of a shard, from source and plan.
 * Invariant: all of it follows from the source as it was examined; a file that has changed since is an error. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "shards/format/meta.h"
#include "ingest/pipeline/build_parts.h"

static const mr_sample *sample_of(const mr_build *b, size_t row)
{
    return &b->in->plan.samples[b->in->order[b->cut->begin + row]];
}

static const mr_examined *examined_of(const mr_build *b, size_t row)
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

mr_status mr_build_begin(mr_build *b, mr_error *err)
{
    size_t n = b->cut->count;
    MR_AUTO(mr_scope_free) content_row *pairs = mr_alloc(n, sizeof *pairs);
    b->holders = mr_alloc(n, sizeof *b->holders);
    b->rows = mr_alloc(n, sizeof *b->rows);
    if (!pairs || !b->holders || !b->rows)
        return mr_fail_memory(err, b->cut->name);
    for (size_t i = 0; i < n; i++)
        pairs[i] = (content_row){examined_of(b, i)->content, (uint32_t)i};
    qsort(pairs, n, sizeof *pairs, by_content);
    for (size_t i = 0, first = 0; i < n; i++) {
        if (pairs[i].content != pairs[first].content)
            first = i;
        b->holders[pairs[i].row] = pairs[first].row;
    }
    return MR_OK;
}

static mr_status add_objects(mr_build *b, size_t row, mr_error *err)
{
    const mr_ingest *in = b->in;
    const mr_image_facts *f = &examined_of(b, row)->facts;
    const mr_stored picture = {f->width, f->height, f->orientation};
    mr_objects *o = &b->objects;
    mr_objects_clear(o);
    MR_TRY(in->choice.layout->objects(&in->choice.tree, &in->plan, sample_of(b, row), &picture, o, err));
    mr_objects_settle(o, &picture);
    if (o->failed || !mr_objects_count(o, &picture, in->order[b->cut->begin + row], &b->tally))
        return mr_fail_memory(err, b->cut->name);
    if (o->known)
        mr_objects_write(o, in->plan.classes, in->plan.class_count, &b->meta);
    return MR_OK;
}

/* Objects that a meta of our own brings along, from a tar of `export` or a program that writes a dataset. */
static mr_status count_objects(mr_build *b, size_t row, mr_error *err)
{
    static const char word[] = ",\"objects\":";
    const mr_image_facts *f = &examined_of(b, row)->facts;
    const mr_stored picture = {f->width, f->height, f->orientation};
    mr_objects_clear(&b->objects);
    if (!memmem(b->meta.data, b->meta.len, word, sizeof word - 1) ||
        mr_objects_parse(b->meta.data, b->meta.len, &b->objects, NULL) == MR_BAD_DATA)
        return MR_OK;
    if (b->objects.failed || !mr_objects_count(&b->objects, &picture, b->in->order[b->cut->begin + row], &b->tally))
        return mr_fail_memory(err, b->cut->name);
    return MR_OK;
}

static mr_status compose_meta(mr_build *b, size_t row, uint32_t holder, mr_error *err)
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
    if (in->choice.layout->meta)
        MR_TRY(in->choice.layout->meta(&in->choice.tree, &in->plan, s, &b->meta, err));
    if (in->choice.layout->objects)
        MR_TRY(add_objects(b, row, err));
    if (in->choice.layout->masks)
        MR_TRY(mr_build_masks(b, s, &examined_of(b, row)->facts, in->order[b->cut->begin + row], err));
    mr_buf_add(&b->meta, "}", 1);
    MR_TRY(mr_buf_status(&b->meta, err, b->cut->name));
    return in->choice.layout->objects ? MR_OK : count_objects(b, row, err);
}

/* Equal hashes prove nothing: XXH3-128 can be forged.  The bytes are compared before two samples share one copy. */
static mr_status settle_holder(mr_build *b, size_t row, uint32_t *holder, mr_error *err)
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
        MR_TRY(mr_source_pread(source, mine, b->image.data, len, at, err));
        MR_TRY(mr_source_pread(source, other, b->other.data, len, at, err));
        if (memcmp(b->image.data, b->other.data, len) != 0)
            *holder = (uint32_t)row;
    }
    return MR_OK;
}

static mr_status read_image(mr_build *b, size_t row, mr_error *err)
{
    const mr_ingest *in = b->in;
    uint32_t entry = sample_of(b, row)->entry;
    MR_TRY(mr_source_read(in->source, entry, &b->image, err));
    if (mr_hash64(b->image.data, b->image.len) != examined_of(b, row)->hash)
        return mr_fail(err, MR_BAD_DATA, "%s: changed while being ingested; run the command again",
                       mr_source_entry(in->source, entry)->path);
    b->shard.images++;
    b->shard.image_bytes += b->image.len;
    b->rows[row].image_len = (uint32_t)b->image.len;
    b->rows[row].image_hash = examined_of(b, row)->hash;
    return MR_OK;
}

mr_status mr_build_row(mr_build *b, size_t row, mr_error *err)
{
    const mr_image_facts *f = &examined_of(b, row)->facts;
    const mr_sample *s = sample_of(b, row);
    mr_row *r = &b->rows[row];
    uint32_t holder;
    MR_TRY(settle_holder(b, row, &holder, err));
    if (holder == row)
        MR_TRY(read_image(b, row, err));
    MR_TRY(compose_meta(b, row, holder, err));
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
    r->flags =
        f->flags | (s->flags & (MR_FLAG_MULTI_LABEL | MR_FLAG_UNANNOTATED)) | (holder != row ? MR_FLAG_SAME_BYTES : 0);
    r->holder = holder;
    if (b->meta.len > MR_META_MAX)
        return mr_fail(err, MR_BAD_DATA, "%s: its annotations are longer than 1 GiB",
                       mr_source_entry(b->in->source, s->entry)->path);
    return MR_OK;
}
