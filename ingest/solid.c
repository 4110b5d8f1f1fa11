/* solid.c - a view written as a dataset of its own: the shards are planned from the rows, and built side by side.
 * Invariant: a pure function of what is seen and the size of shards: not of threads, nor of where the view is. */
#include "ingest/solid.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cli/term.h"
#include "base/files/file.h"
#include "base/scope.h"
#include "base/system/pool.h"
#include "ingest/stage/stage.h"
#include "shards/dataset/dataset.h"
#include "shards/format/index.h"
#include "shards/format/meta.h"
#include "shards/format/seal_shard.h"
#include "shards/format/writer.h"
#include "shards/seek/seek.h"
#include "shards/view/view.h"

typedef struct solid {
    const mr_solid_options *o;
    mr_dataset *ds;
    mr_stage *stage;
    mr_manifest made; /* layout, classes and so on are lent by the view's manifest */
    size_t shard_count;
    mr_shard **shards;     /* of all splits */
    const mr_split **from; /* parallel to them */
    mr_progress *progress;
} solid;

bool mr_solid_is_view(const char *path)
{
    char text[64] = "";
    MR_AUTO(mr_scope_close) int fd = mr_view_is_at(path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    return n > 0 && text[0] == '{' && strstr(text, "\"millrace_view\"");
}

/* ---- which samples go where -------------------------------------------------------------------------------------- */

typedef struct cutting {
    solid *s;
    mr_split *split;
    uint64_t bytes; /* bytes in the last shard */
    size_t capacity;
} cutting;

static mr_status begin_shard(cutting *c, uint64_t first, mr_error *err)
{
    mr_split *split = c->split;
    if (split->shard_count == MR_SHARDS_MAX)
        return mr_fail(err, MR_MISUSE, "--shard-size %llu: makes more than %d shards, the limit for split '%s'",
                       (unsigned long long)c->s->o->shard_size, MR_SHARDS_MAX, split->name);
    if (!MR_GROW(split->shards, split->shard_count, c->capacity))
        return mr_fail_memory(err, "planning shards");
    mr_shard *s = &split->shards[split->shard_count];
    *s = (mr_shard){.first = first};
    snprintf(s->name, sizeof s->name, "%.63s-%05zu", split->name, split->shard_count++);
    c->bytes = 0;
    return MR_OK;
}

static mr_status cut(void *ctx, uint64_t number, const mr_row *row, mr_error *err)
{
    cutting *c = ctx;
    uint64_t more = (uint64_t)row->image_len + row->meta_len;
    if (!c->split->shard_count || c->bytes + more > c->s->o->shard_size)
        MR_TRY(begin_shard(c, number, err));
    c->split->shards[c->split->shard_count - 1].samples++;
    c->bytes += more;
    return MR_OK;
}

static mr_status plan(solid *s, mr_error *err)
{
    const mr_manifest *m = mr_dataset_manifest(s->ds);
    s->made = *m;
    s->made.shared = NULL;
    s->made.splits = mr_alloc(m->split_count + 1, sizeof *s->made.splits);
    if (!s->made.splits)
        return mr_fail_memory(err, "planning shards");
    for (size_t i = 0; i < m->split_count; i++) {
        cutting c = {.s = s, .split = &s->made.splits[i]};
        snprintf(c.split->name, sizeof c.split->name, "%s", m->splits[i].name);
        MR_TRY(mr_dataset_each_row(s->ds, &m->splits[i], cut, &c, err));
        s->shard_count += c.split->shard_count;
    }
    s->shards = mr_alloc(s->shard_count + 1, sizeof *s->shards);
    s->from = mr_alloc(s->shard_count + 1, sizeof(const mr_split *));
    if (!s->shards || !s->from)
        return mr_fail_memory(err, "planning shards");
    for (size_t i = 0, at = 0; i < m->split_count; i++)
        for (size_t k = 0; k < s->made.splits[i].shard_count; k++, at++) {
            s->shards[at] = &s->made.splits[i].shards[k];
            s->from[at] = &m->splits[i];
        }
    return MR_OK;
}

/* ---- a shard ----------------------------------------------------------------------------------------------------- */

typedef struct building {
    const solid *s;
    mr_shard *shard;
    const char *split;
    mr_row *rows;
    uint32_t *slots; /* by image hash: 1 + a row that stores its own image; 0: free */
    size_t size;     /* a power of two */
    mr_sample_view view, holder;
    mr_buf meta;
} building;

static void free_building(building *b)
{
    free(b->rows);
    free(b->slots);
    mr_sample_view_free(&b->view);
    mr_sample_view_free(&b->holder);
    mr_buf_free(&b->meta);
}

/* The first row before this one with the same bytes; itself if there is none.  Equal hashes prove nothing. */
static mr_status find_holder(building *b, uint64_t i, uint32_t *holder, mr_error *err)
{
    size_t at = b->rows[i].image_hash & (b->size - 1);
    for (; b->slots[at]; at = (at + 1) & (b->size - 1)) {
        const mr_row *row = &b->rows[b->slots[at] - 1];
        if (row->image_hash != b->rows[i].image_hash || row->image_len != b->rows[i].image_len)
            continue;
        *holder = b->slots[at] - 1;
        MR_TRY(mr_dataset_read(b->s->ds, b->split, b->shard->first + *holder, &b->holder, err));
        if (memcmp(b->holder.image, b->view.image, b->view.image_len) == 0)
            return MR_OK;
    }
    b->slots[at] = (uint32_t)i + 1;
    *holder = (uint32_t)i;
    return MR_OK;
}

static mr_status put(building *b, mr_writer *w, uint64_t i, mr_error *err)
{
    uint64_t number = b->shard->first + i;
    mr_row *r = &b->rows[i];
    mr_sample_view *v = &b->view;
    uint32_t holder;
    MR_TRY(mr_dataset_read(b->s->ds, b->split, number, v, err));
    *r = (mr_row){.image_len = (uint32_t)v->image_len,
                  .image_hash = mr_hash64(v->image, v->image_len),
                  .width = v->width,
                  .height = v->height,
                  .label = v->label,
                  .codec = v->codec,
                  .orientation = v->orientation,
                  .components = v->components,
                  .bits = v->bits};
    MR_TRY(find_holder(b, i, &holder, err));
    r->holder = holder;
    r->flags = (v->flags & ~MR_FLAG_SAME_BYTES) | (holder != i ? MR_FLAG_SAME_BYTES : 0);
    mr_buf_clear(&b->meta);
    mr_meta_place(&b->meta, v->meta, v->meta_len, holder != i, b->shard->first + holder);
    MR_TRY(mr_buf_status(&b->meta, err, b->shard->name));
    r->meta_len = (uint32_t)b->meta.len;
    r->meta_hash = mr_hash64(b->meta.data, b->meta.len);
    if (holder == i) {
        b->shard->images++;
        b->shard->image_bytes += v->image_len;
        MR_TRY(mr_writer_image(w, number, v->image, v->image_len, err));
    }
    MR_TRY(mr_writer_meta(w, number, b->meta.data, b->meta.len, err));
    mr_progress_add(b->s->progress, 1, v->image_len);
    return MR_OK;
}

static mr_status put_all(building *b, mr_writer *w, mr_error *err)
{
    for (uint64_t i = 0; i < b->shard->samples; i++)
        MR_TRY(put(b, w, i, err));
    return MR_OK;
}

static mr_status build(void *ctx, size_t item, unsigned worker, mr_error *err)
{
    const solid *s = ctx;
    char path[4096];
    mr_writer *w = NULL;
    MR_AUTO(free_building) building b = {.s = s, .shard = s->shards[item], .split = s->from[item]->name};
    (void)worker;
    if ((size_t)snprintf(path, sizeof path, "%s/%s.mdb", mr_stage_path(s->stage), b.shard->name) >= sizeof path)
        return mr_fail(err, MR_MISUSE, "%s: the path is too long", mr_stage_path(s->stage));
    b.size = 2;
    while (b.size < 2 * b.shard->samples)
        b.size *= 2;
    b.rows = mr_alloc(b.shard->samples, sizeof *b.rows);
    b.slots = mr_alloc(b.size, sizeof *b.slots);
    if (!b.rows || !b.slots)
        return mr_fail_memory(err, b.shard->name);
    MR_TRY(mr_stage_held(s->stage, err)); /* LMDB opens by path */
    MR_TRY(mr_writer_open(path, &w, err));
    mr_status status = put_all(&b, w, err);
    if (status == MR_OK)
        status = mr_writer_finish(w, err);
    else
        mr_writer_abandon(w);
    MR_TRY(status);
    return mr_shard_seal(mr_stage_dir(s->stage), b.shard, b.rows, err);
}

/* ---- the dataset ------------------------------------------------------------------------------------------------- */

static mr_status make_seeks(const solid *s, mr_error *err)
{
    const mr_seek_options o = {.every = s->o->seek_every, .jobs = s->o->jobs, .quiet = s->o->quiet};
    MR_AUTO(mr_scope_free) mr_seek_result *results = mr_alloc(s->shard_count + 1, sizeof *results);
    if (!results)
        return mr_fail_memory(err, "making seek indexes");
    MR_TRY(mr_seek_make(mr_stage_dir(s->stage), (const mr_shard *const *)s->shards, s->shard_count, &o, results, err));
    for (size_t i = 0; i < s->shard_count; i++)
        if (results[i].outcome == MR_SEEK_FAILED)
            return mr_fail(err, results[i].why.status, "%s", results[i].why.text);
    return MR_OK;
}

static void sum(solid *s, mr_solid_result *out)
{
    for (size_t i = 0; i < s->made.split_count; i++) {
        mr_split *split = &s->made.splits[i];
        for (size_t k = 0; k < split->shard_count; k++) {
            split->samples += split->shards[k].samples;
            split->images += split->shards[k].images;
            split->image_bytes += split->shards[k].image_bytes;
        }
        out->samples += split->samples;
        out->images += split->images;
        out->image_bytes += split->image_bytes;
    }
    out->shards = s->shard_count;
    out->splits = s->made.split_count;
}

/* What it was made of; for people, as of any dataset. */
static mr_status write_report(const solid *s, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    json_t *doc = json_pack("{s:s,s:s}", "view", mr_dataset_sha256(s->ds), "layout", s->made.layout);
    mr_status status = mr_json_dump(doc, &text, err);
    json_decref(doc);
    MR_TRY(status);
    return mr_file_publish(mr_stage_dir(s->stage), MR_REPORT, text.data, text.len, err);
}

static mr_status publish(solid *s, mr_solid_result *out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    uint8_t digest[32];
    MR_TRY(write_report(s, err));
    MR_TRY(mr_manifest_write(&s->made, &text, err));
    mr_sha256(text.data, text.len, digest);
    mr_hex(digest, sizeof digest, out->digest);
    MR_TRY(mr_file_publish(mr_stage_dir(s->stage), MR_MANIFEST, text.data, text.len, err));
    return mr_stage_publish(s->stage, s->o->published, err);
}

static mr_status write_shards(solid *s, mr_error *err)
{
    uint64_t samples = 0;
    for (size_t i = 0; i < s->shard_count; i++)
        samples += s->shards[i]->samples;
    MR_TRY(mr_stage_sweep(s->stage, NULL, 0, err));
    s->progress = mr_progress_begin("shards", samples, s->o->quiet ? MR_PROGRESS_QUIET : MR_PROGRESS_LINE);
    mr_status status = mr_pool_run(s->shard_count, s->o->jobs ? s->o->jobs : mr_pool_processors(), build, s, err);
    mr_progress_end(s->progress);
    return status;
}

static void release(solid *s)
{
    if (s->stage)
        mr_stage_close(s->stage);
    for (size_t i = 0; s->made.splits && i < s->made.split_count; i++)
        free(s->made.splits[i].shards);
    free(s->made.splits);
    json_decref(s->made.options);
    free(s->shards);
    free(s->from);
    mr_dataset_free(s->ds);
}

mr_status mr_solid_write(const mr_solid_options *o, mr_solid_result *out, mr_error *err)
{
    MR_AUTO(release) solid s = {.o = o};
    *out = (mr_solid_result){.samples = 0};
    MR_TRY(mr_dataset_open(o->source, &s.ds, err));
    mr_status status = plan(&s, err);
    s.made.options = json_copy(mr_dataset_manifest(s.ds)->options);
    MR_TRY(status);
    if (!s.made.options ||
        json_object_set_new(s.made.options, "shard_size", json_integer((json_int_t)o->shard_size)) != 0)
        return mr_fail_memory(err, o->target);
    MR_TRY(mr_stage_open(o->target, o->force, o->ranks, &s.stage, err));
    MR_TRY(write_shards(&s, err));
    if (o->seek)
        MR_TRY(make_seeks(&s, err));
    sum(&s, out);
    return publish(&s, out, err);
}
