/* diff.c - which samples of two datasets do not agree, and which of them belong together.
 * Invariant: the result depends on the datasets alone, not on the order in which their shards are read. */
#include "shards/diff/diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cli/term.h"
#include "base/files/supply.h"
#include "base/scope.h"
#include "shards/diff/meta.h"
#include "shards/format/index.h"
#include "shards/format/meta.h"
#include "shards/view/view.h"

const char *const mr_diff_words[MR_DIFF_BITS] = {"image", "label", "split", "objects", "meta", "source"};

static mr_status no_memory(mr_error *err)
{
    return mr_fail_memory(err, "comparing datasets");
}

/* ---- the rows ---------------------------------------------------------------------------------------------------- */

typedef struct rows {
    mr_diff_side *items;
    size_t count;
} rows;

static void free_rows(rows *r)
{
    free(r->items);
}

typedef struct listing {
    rows *out;
    const char *split;
} listing;

static mr_status list_row(void *ctx, uint64_t number, const mr_row *row, mr_error *err)
{
    const listing *l = ctx;
    (void)err;
    l->out->items[l->out->count++] = (mr_diff_side){.split = l->split,
                                                    .number = number,
                                                    .image_hash = row->image_hash,
                                                    .meta_hash = row->meta_hash,
                                                    .image_len = row->image_len,
                                                    .flags = row->flags,
                                                    .label = row->label};
    return MR_OK;
}

static mr_status list_rows(const mr_dataset *ds, const char *path, rows *out, mr_error *err)
{
    const mr_manifest *m = mr_dataset_manifest(ds);
    uint64_t samples = 0;
    for (size_t i = 0; i < m->split_count; i++)
        samples += m->splits[i].samples;
    if (samples >= UINT32_MAX)
        return mr_fail(err, MR_MISUSE, "%s: more samples than can be compared (4,294,967,294)", path);
    out->items = mr_alloc(samples, sizeof *out->items);
    if (!out->items)
        return no_memory(err);
    for (size_t i = 0; i < m->split_count; i++) {
        listing l = {out, m->splits[i].name};
        MR_TRY(mr_dataset_each_row(ds, &m->splits[i], list_row, &l, err));
    }
    return MR_OK;
}

static int order_of(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_images(const mr_diff_side *x, const mr_diff_side *y)
{
    int order = order_of(x->image_hash, y->image_hash);
    return order ? order : order_of(x->image_len, y->image_len);
}

static int compare_rows(const mr_diff_side *x, const mr_diff_side *y)
{
    int order = compare_images(x, y);
    if (order == 0)
        order = order_of(x->meta_hash, y->meta_hash);
    return order ? order : strcmp(x->split, y->split);
}

static int by_row(const void *a, const void *b)
{
    const mr_diff_side *x = a, *y = b;
    int order = compare_rows(x, y);
    return order ? order : order_of(x->number, y->number);
}

/* Images that are in several splits, by rows sorted by image; those for which this holds in `other` as well, unless it
 * is NULL, do not count. */
static uint64_t count_leaks(const rows *r, const rows *other)
{
    uint64_t leaks = 0;
    for (size_t i = 0, end, k = 0; i < r->count; i = end) {
        bool leaks_here = false, leaks_there = false;
        for (end = i; end < r->count && compare_images(&r->items[i], &r->items[end]) == 0; end++)
            leaks_here = leaks_here || strcmp(r->items[end].split, r->items[i].split) != 0;
        while (other && k < other->count && compare_images(&other->items[k], &r->items[i]) < 0)
            k++;
        for (size_t at = k; other && at < other->count && compare_images(&other->items[at], &r->items[i]) == 0; at++)
            leaks_there = leaks_there || strcmp(other->items[at].split, other->items[k].split) != 0;
        leaks += leaks_here && !leaks_there;
    }
    return leaks;
}

/* Rows that both have are dropped from both; a meta has the source, label and class, so these agree. */
static void cancel(rows *a, rows *b)
{
    size_t i = 0, k = 0, kept_a = 0, kept_b = 0;
    while (i < a->count && k < b->count) {
        int order = compare_rows(&a->items[i], &b->items[k]);
        if (order < 0)
            a->items[kept_a++] = a->items[i++];
        else if (order > 0)
            b->items[kept_b++] = b->items[k++];
        else
            i++, k++;
    }
    while (i < a->count)
        a->items[kept_a++] = a->items[i++];
    while (k < b->count)
        b->items[kept_b++] = b->items[k++];
    a->count = kept_a;
    b->count = kept_b;
}

/* ---- their sources ----------------------------------------------------------------------------------------------- */

static int by_source(const void *a, const void *b)
{
    const mr_diff_side *x = a, *y = b;
    int order = strcmp(x->source, y->source);
    if (order == 0)
        order = strcmp(x->split, y->split);
    return order ? order : by_row(a, b);
}

static mr_status read_source(const mr_dataset *ds, mr_diff_side *side, mr_sample_view *v, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf source = {0};
    mr_meta_facts facts;
    MR_TRY(mr_dataset_read_meta(ds, side->split, side->number, v, err));
    MR_TRY(mr_meta_scan(v->meta, v->meta_len, &facts, &source, err));
    MR_TRY(mr_buf_status(&source, err, "comparing datasets"));
    side->source = strdup(mr_buf_text(&source));
    return side->source ? MR_OK : no_memory(err);
}

static mr_status read_sources(const mr_dataset *ds, mr_diff_side *sides, size_t count, mr_error *err)
{
    MR_AUTO(mr_sample_view_free) mr_sample_view v = {0};
    mr_progress *progress = mr_progress_begin("comparing", count, MR_PROGRESS_LINE);
    mr_status status = MR_OK;
    for (size_t i = 0; i < count && status == MR_OK; i++) {
        status = read_source(ds, &sides[i], &v, err);
        mr_progress_add(progress, 1, v.meta_len);
    }
    mr_progress_end(progress);
    if (status == MR_OK && count)
        qsort(sides, count, sizeof *sides, by_source);
    return status;
}

/* ---- pairs ------------------------------------------------------------------------------------------------------- */

typedef struct search {
    const mr_dataset *a, *b;
    mr_diff *d;
    bool *paired; /* parallel to the sides */
} search;

static mr_status add_pair(search *s, size_t i, size_t k, mr_error *err)
{
    mr_diff *d = s->d;
    const mr_diff_side *a = &d->sides[i], *b = &d->sides[k];
    unsigned what = compare_images(a, b) ? MR_DIFF_IMAGE : 0;
    what |= strcmp(a->split, b->split) ? MR_DIFF_SPLIT : 0;
    what |= strcmp(a->source, b->source) ? MR_DIFF_SOURCE : 0;
    MR_TRY(mr_diff_metas(s->a, a, s->b, b, &what, err));
    s->paired[i] = s->paired[k] = true;
    if (!what) /* only the numbers of samples or classes differ */
        return MR_OK;
    d->items[d->count++] = (mr_difference){a, b, what};
    d->changed++;
    d->moved += what & MR_DIFF_SOURCE ? 1 : 0;
    for (size_t bit = 0; bit < MR_DIFF_BITS; bit++)
        d->bits[bit] += what >> bit & 1;
    return MR_OK;
}

/* Samples of one source, in order: both lists are sorted by it. */
static mr_status pair_sources(search *s, mr_error *err)
{
    mr_diff *d = s->d;
    size_t i = 0, k = d->a_count;
    while (i < d->a_count && k < d->side_count) {
        int order = strcmp(d->sides[i].source, d->sides[k].source);
        if (order == 0)
            MR_TRY(add_pair(s, i++, k++, err));
        else if (order < 0)
            i++;
        else
            k++;
    }
    return MR_OK;
}

static int by_image(const void *a, const void *b)
{
    const mr_diff_side *x = *(const mr_diff_side *const *)a, *y = *(const mr_diff_side *const *)b;
    int order = compare_images(x, y);
    return order ? order : by_source(x, y);
}

/* The sides [begin, end) that have no partner, by image. */
static size_t list_alone(const search *s, size_t begin, size_t end, const mr_diff_side **out)
{
    size_t count = 0;
    for (size_t i = begin; i < end; i++)
        if (!s->paired[i])
            out[count++] = &s->d->sides[i];
    if (count)
        qsort(out, count, sizeof *out, by_image);
    return count;
}

/* Moves are moves. */
static mr_status pair_images(search *s, mr_error *err)
{
    mr_diff *d = s->d;
    MR_AUTO(mr_scope_free) const mr_diff_side **alone = mr_alloc(d->side_count, sizeof *alone);
    if (!alone)
        return no_memory(err);
    size_t a = list_alone(s, 0, d->a_count, alone), i = 0, k = a;
    size_t all = a + list_alone(s, d->a_count, d->side_count, alone + a);
    while (i < a && k < all) {
        int order = compare_images(alone[i], alone[k]);
        if (order == 0) {
            MR_TRY(add_pair(s, (size_t)(alone[i] - d->sides), (size_t)(alone[k] - d->sides), err));
            i++;
            k++;
        } else if (order < 0) {
            i++;
        } else {
            k++;
        }
    }
    return MR_OK;
}

static void add_alone(search *s)
{
    mr_diff *d = s->d;
    for (size_t i = 0; i < d->side_count; i++) {
        bool of_a = i < d->a_count;
        if (s->paired[i])
            continue;
        d->items[d->count++] = (mr_difference){of_a ? &d->sides[i] : NULL, of_a ? NULL : &d->sides[i], 0};
        d->removed += of_a;
        d->added += !of_a;
    }
}

static int by_place(const void *a, const void *b)
{
    const mr_difference *x = a, *y = b;
    return by_source(x->a, y->a);
}

static mr_status pair_all(search *s, mr_error *err)
{
    mr_diff *d = s->d;
    d->items = mr_alloc(d->side_count, sizeof *d->items);
    if (!d->items)
        return no_memory(err);
    MR_TRY(pair_sources(s, err));
    MR_TRY(pair_images(s, err));
    if (d->count)
        qsort(d->items, d->count, sizeof *d->items, by_place);
    add_alone(s);
    return MR_OK;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static bool same_classes(const mr_manifest *a, const mr_manifest *b)
{
    bool same = a->class_count == b->class_count;
    for (size_t i = 0; same && i < a->class_count; i++)
        same = strcmp(a->classes[i].name, b->classes[i].name) == 0;
    return same;
}

static mr_status take_rest(const rows *a, const rows *b, mr_diff *d, mr_error *err)
{
    d->sides = mr_alloc(a->count + b->count, sizeof *d->sides);
    if (!d->sides)
        return no_memory(err);
    if (a->count)
        memcpy(d->sides, a->items, a->count * sizeof *d->sides);
    if (b->count)
        memcpy(d->sides + a->count, b->items, b->count * sizeof *d->sides);
    d->a_count = a->count;
    d->side_count = a->count + b->count;
    return MR_OK;
}

mr_status mr_diff_find(const mr_dataset *a, const mr_dataset *b, const char *path_a, const char *path_b, mr_diff *out,
                       mr_error *err)
{
    MR_AUTO(free_rows) rows in_a = {0};
    MR_AUTO(free_rows) rows in_b = {0};
    *out = (mr_diff){.classes_differ = !same_classes(mr_dataset_manifest(a), mr_dataset_manifest(b))};
    MR_TRY(list_rows(a, path_a, &in_a, err));
    MR_TRY(list_rows(b, path_b, &in_b, err));
    if (in_a.count)
        qsort(in_a.items, in_a.count, sizeof *in_a.items, by_row);
    if (in_b.count)
        qsort(in_b.items, in_b.count, sizeof *in_b.items, by_row);
    out->leaks_a = count_leaks(&in_a, NULL);
    out->leaks_b = count_leaks(&in_b, NULL);
    out->new_leaks = count_leaks(&in_b, &in_a);
    cancel(&in_a, &in_b);
    MR_TRY(take_rest(&in_a, &in_b, out, err));
    MR_TRY(read_sources(a, out->sides, out->a_count, err));
    MR_TRY(read_sources(b, out->sides + out->a_count, out->side_count - out->a_count, err));
    MR_AUTO(mr_scope_free) bool *paired = mr_alloc(out->side_count, sizeof *paired);
    search s = {a, b, out, paired};
    return paired ? pair_all(&s, err) : no_memory(err);
}

bool mr_diff_equal(const mr_diff *d)
{
    return d->count == 0 && !d->classes_differ;
}

void mr_diff_free(mr_diff *d)
{
    for (size_t i = 0; d->sides && i < d->side_count; i++)
        free(d->sides[i].source);
    free(d->sides);
    free(d->items);
    *d = (mr_diff){0};
}
