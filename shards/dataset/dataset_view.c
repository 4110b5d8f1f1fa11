/* dataset_view.c - a view opened as a dataset: its datasets, and splits made of what is seen of theirs.
 * Invariant: what is seen is found again from the conditions, and is the list that the view was made of, or it does not
 * open.  The datasets stay as they were opened: a shard of a view leads to the dataset's own (mr_dataset_owner()).
 *
 *      stored, A   0 1 2 3 4 5 6 7           B   0 1 2 3 ...     shards, first numbers, keys: as ever
 *      the split   0 1 2 3 4 5 6 7               8 9 10 11       A's, then B's
 *      seen          1     4 5                     9             sample 0 of the view is number 1 of the split */
#include "shards/dataset/view_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/path.h"
#include "base/scope.h"
#include "shards/dataset/parts.h"

typedef struct opening {
    const char *path;
    mr_view_file *file;
    mr_dataset **datasets; /* the datasets of all of its sources */
    int32_t **labels;
    mr_manifest *seen;
    mr_ranks *host; /* NULL: alone */
} opening;

/* ---- its splits -------------------------------------------------------------------------------------------------- */

static mr_status list_part(const opening *o, mr_view_part *p, const char *split, mr_view_list *list, mr_error *err)
{
    MR_TRY(mr_view_list_make(o->datasets[p->dataset], p, false, list, err));
    if (list->samples == p->samples && memcmp(list->hash, p->list, sizeof list->hash) == 0)
        return MR_OK;
    return mr_fail(err, MR_BAD_DATA,
                   "%s: the conditions of %s select other samples than when it was made; "
                   "make it again by `millrace view`",
                   o->path, split);
}

/* All shards of the part's split follow those that the split of the view has. */
static mr_status add_shards(const opening *o, const mr_view_part *p, uint64_t before, mr_split *to, mr_error *err)
{
    const mr_manifest *m = o->datasets[p->dataset]->manifest;
    const mr_split *from = mr_manifest_split(m, p->split);
    mr_shard *shards = realloc(to->shards, (to->shard_count + from->shard_count + 1) * sizeof *shards);
    if (!shards)
        return mr_fail_memory(err, o->path);
    to->shards = shards;
    for (size_t i = 0; i < from->shard_count; i++) {
        mr_shard *s = &shards[to->shard_count++];
        *s = from->shards[i];
        s->stored = &from->shards[i];
        s->dataset = (uint32_t)p->dataset;
        s->before = before;
        s->labels = o->labels[p->dataset];
        s->label_count = (uint32_t)m->class_count;
    }
    return MR_OK;
}

static uint64_t *grow_seen(mr_split *to, uint64_t more)
{
    uint64_t *seen = realloc(to->seen, (to->samples + more + 1) * sizeof *seen);
    if (seen && !to->seen) /* all before were seen */
        for (uint64_t n = 0; n < to->samples; n++)
            seen[n] = n;
    to->seen = seen ? seen : to->seen;
    return seen;
}

/* A split that is seen as a whole has no list. */
static mr_status add_seen(const mr_view_list *list, uint64_t before, mr_split *to, mr_error *err)
{
    bool all = list->all && !to->seen && to->samples == before;
    uint64_t *seen = all ? NULL : grow_seen(to, list->samples);
    if (!all && !seen)
        return mr_fail_memory(err, "a view");
    for (uint64_t i = 0; !all && i < list->samples; i++)
        seen[to->samples + i] = before + (list->all ? i : ((const uint64_t *)(const void *)list->numbers.data)[i]);
    to->samples += list->samples;
    to->images += list->images;
    to->image_bytes += list->image_bytes;
    return MR_OK;
}

static bool finds(const opening *o)
{
    return !o->host || mr_ranks_rank(o->host) == 0;
}

static mr_status fill_split(const opening *o, const mr_view_split *from, mr_split *to, mr_error *err)
{
    uint64_t before = 0;
    snprintf(to->name, sizeof to->name, "%s", from->name);
    for (size_t i = 0; i < from->part_count; i++) {
        mr_view_part *p = &from->parts[i];
        MR_AUTO(mr_view_list_free) mr_view_list list = {.samples = p->samples};
        MR_TRY(add_shards(o, p, before, to, err));
        if (finds(o)) {
            MR_TRY(list_part(o, p, from->name, &list, err));
            MR_TRY(add_seen(&list, before, to, err));
        } else {
            to->samples += list.samples; /* the rest comes from the first rank */
        }
        before += mr_manifest_split(o->datasets[p->dataset]->manifest, p->split)->samples;
    }
    return MR_OK;
}

/* ---- what callers see -------------------------------------------------------------------------------------------- */

static char *same_text(const opening *o, size_t member, const char *otherwise)
{
    const char *first = *(char **)((char *)o->datasets[0]->manifest + member);
    for (size_t i = 1; first && i < o->file->source_count; i++) {
        const char *text = *(char **)((char *)o->datasets[i]->manifest + member);
        first = text && strcmp(text, first) == 0 ? first : otherwise;
    }
    return first ? strdup(first) : NULL;
}

static mr_status fill_manifest(const opening *o, mr_error *err)
{
    mr_manifest *m = o->seen;
    const mr_manifest *first = o->datasets[0]->manifest;
    m->layout = same_text(o, offsetof(mr_manifest, layout), "several");
    m->variant = same_text(o, offsetof(mr_manifest, variant), "");
    m->licence = same_text(o, offsetof(mr_manifest, licence), NULL);
    m->options = json_incref(first->options);
    m->splits = mr_alloc(o->file->split_count, sizeof *m->splits);
    if (!m->layout || !m->variant || !m->splits)
        return mr_fail_memory(err, o->path);
    MR_TRY(mr_view_join_classes(o->datasets, o->file->source_count, o->file, &m->classes, &m->class_count, o->labels,
                                err));
    m->split_count = o->file->split_count;
    for (size_t i = 0; i < m->split_count; i++)
        MR_TRY(fill_split(o, &o->file->splits[i], &m->splits[i], err));
    return MR_OK;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static mr_status open_source(const opening *o, size_t i, mr_error *err)
{
    const mr_view_source *s = &o->file->sources[i];
    MR_AUTO(mr_scope_free) char *place = mr_view_place(o->path, s);
    char wanted[65];
    mr_error why;
    if (!place)
        return mr_fail_memory(err, o->path);
    if (mr_view_is_at(place))
        return mr_fail(err, MR_BAD_DATA, "%s: %s is a view, not a dataset; make it again by `millrace view`", o->path,
                       place);
    mr_hex(s->digest, sizeof s->digest, wanted);
    if (!mr_path_is_url(place) && access(place, F_OK) != 0)
        return mr_fail(err, MR_MISUSE,
                       "%s: its dataset %s is not there; move it back or beside the view, or write the view "
                       "again with its path: `millrace view NEW %s --at %.12s=PATH`",
                       o->path, place, o->path, wanted);
    mr_status status = mr_dataset_open(place, &o->datasets[i], &why);
    if (status != MR_OK)
        return mr_fail(err, status, "%s: %s", o->path, why.text);
    if (memcmp(o->datasets[i]->digest, s->digest, sizeof s->digest) == 0)
        return MR_OK;
    return mr_fail(err, MR_BAD_DATA, "%s: %s is not the dataset that the view was made of: %s, not %s", o->path, place,
                   o->datasets[i]->sha256, wanted);
}

static void free_seen(mr_manifest *seen)
{
    for (size_t i = 0; seen && seen->splits && i < seen->split_count; i++) {
        if (seen->splits[i].list)
            mr_shared_free(seen->splits[i].list);
        else
            free(seen->splits[i].seen);
        mr_draw_free(seen->splits[i].draw);
    }
    mr_manifest_free(seen);
}

static void free_labels(int32_t **labels, size_t count)
{
    for (size_t i = 0; labels && i < count; i++)
        free(labels[i]);
    free(labels);
}

static void free_opening(opening *o)
{
    for (size_t i = 0; o->datasets && i < o->file->source_count; i++)
        mr_dataset_free(o->datasets[i]);
    free(o->datasets);
    free_labels(o->labels, o->file ? o->file->source_count : 0);
    free_seen(o->seen);
    mr_view_file_free(o->file);
}

void mr_dataset_free_seen(mr_dataset *ds)
{
    for (size_t i = 0; i < ds->other_count; i++)
        mr_dataset_free(ds->others[i]);
    free(ds->others);
    free_labels(ds->labels, ds->other_count + 1);
    free_seen(ds->seen);
}

size_t mr_dataset_source_count(const mr_dataset *ds)
{
    return ds->seen ? ds->other_count + 1 : 0;
}

const char *mr_dataset_source_path(const mr_dataset *ds, size_t i)
{
    return i ? ds->others[i - 1]->path : ds->path;
}

/* The first dataset becomes the view, and owns all else. */
static mr_dataset *settle(opening *o)
{
    mr_dataset *ds = o->datasets[0];
    ds->other_count = o->file->source_count - 1;
    memmove(o->datasets, o->datasets + 1, ds->other_count * sizeof *o->datasets);
    ds->others = o->datasets;
    ds->labels = o->labels;
    ds->seen = o->seen;
    memcpy(ds->digest, o->file->digest, sizeof ds->digest);
    mr_hex(ds->digest, sizeof ds->digest, ds->sha256);
    o->datasets = NULL;
    o->labels = NULL;
    o->seen = NULL;
    return ds;
}

static mr_status open_parts(opening *o, mr_error *err)
{
    MR_TRY(mr_view_read(o->path, &o->file, err));
    o->datasets = mr_alloc(o->file->source_count, sizeof *o->datasets);
    o->labels = mr_alloc(o->file->source_count, sizeof *o->labels);
    o->seen = mr_alloc(1, sizeof *o->seen);
    if (!o->datasets || !o->labels || !o->seen)
        return mr_fail_memory(err, o->path);
    for (size_t i = 0; i < o->file->source_count; i++)
        MR_TRY(open_source(o, i, err));
    return fill_manifest(o, err);
}

/* What the first rank of a host found in a split. */
typedef struct found {
    uint64_t listed, images, image_bytes; /* listed: its list has this many numbers, 0: all are seen */
} found;

/* Collective. */
static mr_status share_split(const opening *o, const found *f, mr_split *to, mr_error *err)
{
    to->images = f->images;
    to->image_bytes = f->image_bytes;
    if (!f->listed)
        return MR_OK;
    bool first = finds(o);
    MR_TRY(mr_shared_make(o->host, first ? to->seen : NULL, first ? f->listed * sizeof *to->seen : 0, &to->list, err));
    free(to->seen);
    to->seen = (uint64_t *)(uintptr_t)mr_shared_bytes(to->list); /* nothing writes to it */
    return MR_OK;
}

/* Collective: each list is in the memory of a host once. */
static mr_status share_lists(const opening *o, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf facts = {0};
    for (size_t i = 0; finds(o) && i < o->seen->split_count; i++) {
        const mr_split *s = &o->seen->splits[i];
        const found f = {s->seen ? s->samples : 0, s->images, s->image_bytes};
        mr_buf_add(&facts, &f, sizeof f);
    }
    MR_TRY(mr_ranks_agree(o->host, mr_buf_status(&facts, err, o->path), err));
    MR_TRY(mr_ranks_share(o->host, &facts, err));
    size_t count = facts.len / sizeof(found); /* those of another view, if the ranks of the hosts see different files */
    MR_TRY(mr_ranks_agree(o->host,
                          count == o->seen->split_count
                              ? MR_OK
                              : mr_fail(err, MR_BAD_DATA, "%s: the ranks of a host see different files", o->path),
                          err));
    for (size_t i = 0; i < count; i++)
        MR_TRY(share_split(o, (const found *)(const void *)facts.data + i, &o->seen->splits[i], err));
    return MR_OK;
}

mr_status mr_dataset_open_view(const char *path, mr_ranks *host, mr_dataset **out, mr_error *err)
{
    MR_AUTO(free_opening) opening o = {.path = path, .host = host};
    mr_status status = open_parts(&o, err);
    if (host)
        status = mr_ranks_agree(host, status, err);
    MR_TRY(status);
    if (host)
        MR_TRY(share_lists(&o, err));
    MR_AUTO(mr_dataset_release) mr_dataset *ds = settle(&o);
    for (size_t i = 0; i < o.file->split_count; i++)
        MR_TRY(mr_view_draw_make(ds, &o.file->splits[i], &ds->seen->splits[i], err));
    *out = ds;
    ds = NULL;
    return MR_OK;
}
