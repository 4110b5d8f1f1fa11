/* near.c - for each image the nearest earlier ones, and whether they really look alike.
 * Invariant: an image is compared with earlier ones only, by one thread, the nearest first.
 *
 *      hash of the image, turned in 8 ways  --> hashes of earlier images
 *      hash of the image                    --> hashes of windows of earlier images     it is a crop of one
 *      hashes of its windows                  --> hashes of earlier images                one is a crop of it     */
#include "image/similar/near.h"

#include <stdlib.h>
#include <string.h>

#include "image/similar/near_table.h"
#include "base/system/pool.h"
#include "base/scope.h"

enum { WAYS = 8, NEAREST = 6 };

/* How a candidate was found: as it is, by one of the image's windows (their numbers), turned (TURNED + the way, from
 * 1), or by its own windows. */
enum { UPRIGHT = 0, TURNED = MR_NEAR_WINDOWS, ITS_WINDOWS = TURNED + WAYS };

typedef struct candidate {
    uint32_t picture;
    unsigned distance, by;
} candidate;

typedef struct nearest { /* the nearest first */
    candidate at[NEAREST];
    unsigned count;
} nearest;

typedef struct job {
    const mr_near_search *search;
    mr_near_table whole, windows; /* hashes of whole images, and of their other windows */
    mr_near_found *found;
} job;

typedef struct picking { /* for one image */
    const mr_near_picture *pictures, *picture;
    nearest other_splits, own_split;
    unsigned by; /* how candidates are being found */
} picking;

void mr_near_set(mr_near_picture *picture, const mr_alike *look)
{
    picture->state = !look ? MR_NEAR_UNREADABLE : mr_alike_plain(look) ? MR_NEAR_PLAIN : MR_NEAR_HASHED;
    if (picture->state == MR_NEAR_HASHED)
        mr_near_hash_make(look, &picture->hash);
    if (picture->state == MR_NEAR_HASHED)
        mr_alike_rough_make(look, &picture->rough);
}

/* ---- candidates -------------------------------------------------------------------------------------------------- */

static bool nearer(candidate a, candidate b)
{
    return a.distance != b.distance ? a.distance < b.distance : a.picture < b.picture;
}

static void insert(nearest *n, candidate c)
{
    unsigned i = 0;
    while (i < n->count && n->at[i].picture != c.picture)
        i++;
    if (i == n->count && i < NEAREST)
        n->at[n->count++] = (candidate){UINT32_MAX, UINT32_MAX, UPRIGHT};
    else if (i == n->count)
        i--; /* the farthest makes room */
    if (!nearer(c, n->at[i]))
        return;
    for (; i > 0 && nearer(c, n->at[i - 1]); i--)
        n->at[i] = n->at[i - 1];
    n->at[i] = c;
}

static void take(void *ctx, uint32_t number, unsigned distance)
{
    picking *p = ctx;
    const mr_near_picture *other = &p->pictures[number];
    if (other->content != p->picture->content)
        insert(other->split == p->picture->split ? &p->own_split : &p->other_splits,
               (candidate){number, distance, p->by});
}

/* False: there are too many to look at all. */
static bool pick(const job *j, uint32_t number, picking *p)
{
    const mr_near_hash *h = &p->picture->hash;
    unsigned distance = j->search->distance;
    size_t left = MR_NEAR_LOOKED;
    for (unsigned way = 0; way < WAYS; way++) {
        p->by = way ? TURNED + way : UPRIGHT;
        if (!mr_near_table_find(&j->whole, mr_near_turned(h->windows[0], way), distance, number, &left, take, p))
            return false;
    }
    p->by = ITS_WINDOWS;
    if (!mr_near_table_find(&j->windows, h->windows[0], distance, number, &left, take, p))
        return false;
    for (p->by = 1; p->by < MR_NEAR_WINDOWS; p->by++)
        if (!mr_near_table_find(&j->whole, h->windows[p->by], distance, number, &left, take, p))
            return false;
    return true;
}

/* Whether decoding both again is worth the time. */
static bool roughly_alike(const picking *p, const candidate *c)
{
    const mr_alike_rough *own = &p->picture->rough, *other = &p->pictures[c->picture].rough;
    if (c->by < TURNED)
        return mr_alike_rough_compare(own, other, mr_near_window(c->by), 0);
    if (c->by < ITS_WINDOWS)
        return mr_alike_rough_compare(own, other, mr_near_window(0), c->by - TURNED);
    for (unsigned w = 1; w < MR_NEAR_WINDOWS; w++)
        if (mr_alike_rough_compare(other, own, mr_near_window(w), 0))
            return true;
    return false;
}

/* Keeps those of `n` that are worth it, the nearest MR_NEAR_TRIED. */
static void sift(const picking *p, nearest *n)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < n->count && kept < MR_NEAR_TRIED; i++)
        if (roughly_alike(p, &n->at[i]))
            n->at[kept++] = n->at[i];
    n->count = kept;
}

/* ---- comparison -------------------------------------------------------------------------------------------------- */

/* The first candidate that looks like the image; false: none does. */
static mr_status compare(const job *j, const mr_alike *look, const nearest *n, unsigned worker, candidate *alike,
                         bool *any, mr_error *err)
{
    mr_alike other;
    *any = false;
    for (unsigned i = 0; i < n->count && !*any; i++) {
        mr_error why;
        mr_status status = j->search->load(j->search->ctx, n->at[i].picture, worker, &other, &why);
        if (status == MR_BAD_SAMPLE)
            continue;
        if (status != MR_OK) {
            if (err)
                *err = why;
            return status;
        }
        *any = mr_alike_compare(&other, look);
        *alike = n->at[i];
    }
    return MR_OK;
}

static mr_status decide(const job *j, size_t number, const picking *p, unsigned worker, mr_error *err)
{
    const nearest *const lists[] = {[MR_NEAR_DUPLICATE] = &p->own_split, [MR_NEAR_LEAK] = &p->other_splits};
    mr_near_found *found = &j->found[number];
    mr_alike look;
    if (p->own_split.count + p->other_splits.count == 0)
        return MR_OK;
    mr_status status = j->search->load(j->search->ctx, number, worker, &look, err);
    if (status != MR_OK)
        return status == MR_BAD_SAMPLE ? MR_OK : status;
    for (int kind = MR_NEAR_LEAK; kind >= MR_NEAR_DUPLICATE && found->kind == MR_NEAR_UNIQUE; kind--) {
        candidate alike;
        bool any;
        MR_TRY(compare(j, &look, lists[kind], worker, &alike, &any, err));
        if (!any)
            continue;
        found->kind = (uint8_t)kind;
        found->other = alike.picture;
        found->distance = (uint8_t)alike.distance;
    }
    return MR_OK;
}

static mr_status find_one(void *ctx, size_t number, unsigned worker, mr_error *err)
{
    const job *j = ctx;
    const mr_near_picture *picture = &j->search->pictures[number];
    picking p = {.pictures = j->search->pictures, .picture = picture};
    if (number % j->search->world != j->search->rank)
        return MR_OK;
    if (picture->state == MR_NEAR_HASHED) {
        j->found[number].crowded = !pick(j, (uint32_t)number, &p);
        sift(&p, &p.own_split);
        sift(&p, &p.other_splits);
        MR_TRY(decide(j, number, &p, worker, err));
    }
    mr_progress_add(j->search->progress, 1, 0);
    return MR_OK;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

/* A table of windows `first` to `last` of every image. */
static mr_status make_table(const mr_near_search *s, unsigned first, unsigned last, mr_near_table *out, mr_error *err)
{
    size_t count = 0;
    MR_AUTO(mr_scope_free) mr_near_entry *entries = mr_alloc(s->count, (last - first + 1) * sizeof *entries);
    if (!entries)
        return mr_fail_memory(err, "looking for near-duplicates");
    for (size_t i = 0; i < s->count; i++)
        for (unsigned w = first; w <= last && s->pictures[i].state == MR_NEAR_HASHED; w++)
            entries[count++] = (mr_near_entry){s->pictures[i].hash.windows[w], (uint32_t)i, s->pictures[i].split};
    return mr_near_table_make(entries, count, out, err);
}

mr_status mr_near_find(const mr_near_search *search, mr_near_found *found, mr_error *err)
{
    job j = {.search = search, .found = found};
    mr_status status = make_table(search, 0, 0, &j.whole, err);
    if (status == MR_OK)
        status = make_table(search, 1, MR_NEAR_WINDOWS - 1, &j.windows, err);
    if (status == MR_OK)
        status = mr_pool_run(search->count, search->jobs, find_one, &j, err);
    mr_near_table_free(&j.whole);
    mr_near_table_free(&j.windows);
    return status;
}
