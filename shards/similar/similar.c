/* similar.c - reads the images of a dataset and finds those that look alike.
 * Invariant: among samples with equal bytes in one split only the first is an image here; ingest stores the bytes once.
 *
 *      indexes --> images, without repeated bytes --> hashes (every image is decoded) --> mr_near_find() */
#include "shards/view/view.h"
#include "shards/similar/similar.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/system/pool.h"
#include "base/files/supply.h"
#include "base/scope.h"
#include "shards/format/index.h"

enum { LARGE = 64 << 20 }; /* pixels */

/* ---- which images ---------------------------------------------------------------------------------------------- */

typedef struct listing {
    mr_similar *out;
    uint32_t split;
} listing;

static mr_status list_row(void *ctx, uint64_t number, const mr_row *row, mr_error *err)
{
    const listing *l = ctx;
    uint32_t at = (uint32_t)l->out->count++;
    (void)err;
    l->out->pictures[at] = (mr_similar_picture){.hash = row->image_hash,
                                                .number = number,
                                                .len = row->image_len,
                                                .split = l->split,
                                                .label = row->label,
                                                .equal = at,
                                                .large = (uint64_t)row->width * row->height > LARGE};
    return MR_OK;
}

static mr_status list_samples(const char *dir, const mr_dataset *ds, mr_similar *out, mr_error *err)
{
    const mr_manifest *m = mr_dataset_manifest(ds);
    uint64_t samples = 0;
    for (size_t i = 0; i < m->split_count; i++)
        samples += m->splits[i].samples;
    if (samples >= UINT32_MAX)
        return mr_fail(err, MR_MISUSE, "%s: more samples than --near-duplicates can compare (4,294,967,294)", dir);
    out->pictures = mr_alloc(samples, sizeof *out->pictures);
    if (!out->pictures)
        return mr_fail_memory(err, "looking for near-duplicates");
    for (size_t i = 0; i < m->split_count; i++) {
        listing l = {out, (uint32_t)i};
        MR_TRY(mr_dataset_each_row(ds, &m->splits[i], list_row, &l, err));
    }
    return MR_OK;
}

static int by_bytes(const void *a, const void *b)
{
    const mr_similar_picture *x = a, *y = b;
    int order = (x->hash > y->hash) - (x->hash < y->hash);
    if (order == 0)
        order = (x->len > y->len) - (x->len < y->len);
    return order ? order : (x->equal > y->equal) - (x->equal < y->equal);
}

static int by_place(const void *a, const void *b)
{
    const mr_similar_picture *x = a, *y = b;
    int order = (x->split > y->split) - (x->split < y->split);
    return order ? order : (x->number > y->number) - (x->number < y->number);
}

/* Numbers the contents, and drops samples that repeat one of their split. */
static void drop_repeated(mr_similar *n)
{
    size_t kept = 0;
    uint32_t contents = 0;
    mr_similar_picture last = {0};
    if (n->count)
        qsort(n->pictures, n->count, sizeof *n->pictures, by_bytes);
    for (size_t i = 0; i < n->count; i++) {
        mr_similar_picture p = n->pictures[i];
        bool same = i && p.hash == last.hash && p.len == last.len;
        contents += i && !same;
        p.content = contents;
        if (same && p.split == last.split)
            n->repeated++;
        else
            n->pictures[kept++] = p;
        last = p;
    }
    n->count = kept;
    if (kept)
        qsort(n->pictures, kept, sizeof *n->pictures, by_place);
}

/* `equal` becomes the first image with the same bytes. */
static mr_status find_equal(mr_similar *n, mr_error *err)
{
    MR_AUTO(mr_scope_free) uint32_t *first = mr_alloc(n->count, sizeof *first); /* by content, plus 1 */
    if (!first)
        return mr_fail_memory(err, "looking for near-duplicates");
    for (uint32_t i = 0; i < n->count; i++) {
        uint32_t *at = &first[n->pictures[i].content];
        *at = *at ? *at : i + 1;
        n->pictures[i].equal = *at - 1;
        n->equal += n->pictures[i].equal != i;
    }
    return MR_OK;
}

/* ---- their hashes ------------------------------------------------------------------------------------------------ */

typedef struct pass {
    const mr_dataset *ds;
    const mr_similar *near;
    mr_near_picture *pictures;
    mr_sample_view *views; /* one per worker */
    const mr_similar_options *options;
    mr_progress *progress;
    pthread_mutex_t large;
} pass;

/* A hash differs from the image: the dataset is damaged, whatever it looks like. */
static mr_status read_picture(pass *p, size_t i, unsigned worker, mr_error *err)
{
    const mr_similar_picture *picture = &p->near->pictures[i];
    const char *split = mr_dataset_manifest(p->ds)->splits[picture->split].name;
    mr_status status = mr_dataset_read(p->ds, split, picture->number, &p->views[worker], err);
    return status == MR_BAD_SAMPLE ? MR_BAD_DATA : status;
}

/* `decode`: the fast look for a hash, instead of the one for a comparison. */
static mr_status look_at(pass *p, size_t i, unsigned worker, bool decode, mr_alike *look, mr_error *err)
{
    bool large = p->near->pictures[i].large;
    mr_sample_view *view = &p->views[worker];
    const mr_image_limits limits = {.max_pixels = p->options->max_pixels};
    uint32_t oddities;
    if (large)
        pthread_mutex_lock(&p->large);
    mr_status status = read_picture(p, i, worker, err);
    if (status == MR_OK)
        status = decode ? mr_image_decode_look(view->image, view->image_len, &limits, &oddities, look, err)
                        : mr_image_shrink(view->image, view->image_len, &limits, look, err);
    if (large) {
        mr_sample_view_free(view);
        pthread_mutex_unlock(&p->large);
    }
    return status;
}

static mr_status load(void *ctx, size_t i, unsigned worker, mr_alike *out, mr_error *err)
{
    return look_at(ctx, i, worker, false, out, err);
}

static mr_status hash_one(void *ctx, size_t i, unsigned worker, mr_error *err)
{
    pass *p = ctx;
    mr_near_picture *picture = &p->pictures[i];
    mr_error why;
    mr_alike look;
    mr_status status = look_at(p, i, worker, true, &look, &why);
    if (status != MR_OK && status != MR_BAD_SAMPLE) {
        if (err)
            *err = why;
        return status;
    }
    picture->split = p->near->pictures[i].split;
    picture->content = p->near->pictures[i].content;
    mr_near_set(picture, status == MR_OK ? &look : NULL);
    mr_progress_add(p->progress, 1, p->near->pictures[i].len);
    return MR_OK;
}

/* ---- everything -------------------------------------------------------------------------------------------------- */

static mr_status run_passes(pass *p, unsigned jobs, mr_similar *out, mr_error *err)
{
    p->progress = mr_progress_begin("hashing", out->count, p->options->progress);
    mr_status status = mr_pool_run(out->count, jobs, hash_one, p, err);
    mr_progress_end(p->progress);
    MR_TRY(status);
    mr_near_search all = {.pictures = p->pictures,
                          .count = out->count,
                          .distance = p->options->distance,
                          .jobs = jobs,
                          .world = 1,
                          .load = load,
                          .ctx = p};
    all.progress = mr_progress_begin("comparing", out->count, p->options->progress);
    status = mr_near_find(&all, out->found, err);
    mr_progress_end(all.progress);
    return status;
}

static mr_status search(const mr_dataset *ds, const mr_similar_options *o, mr_similar *out, mr_error *err)
{
    pass p = {.ds = ds, .near = out, .options = o, .large = PTHREAD_MUTEX_INITIALIZER};
    unsigned jobs = o->jobs ? o->jobs : mr_pool_processors();
    out->found = mr_alloc(out->count, sizeof *out->found);
    p.pictures = mr_alloc(out->count, sizeof *p.pictures);
    p.views = mr_alloc(jobs, sizeof *p.views);
    mr_status status = out->found && p.pictures && p.views ? run_passes(&p, jobs, out, err)
                                                           : mr_fail_memory(err, "looking for near-duplicates");
    for (size_t i = 0; status == MR_OK && i < out->count; i++) {
        out->plain += p.pictures[i].state == MR_NEAR_PLAIN;
        out->unreadable += p.pictures[i].state == MR_NEAR_UNREADABLE;
        out->crowded += out->found[i].crowded;
        out->leaks += out->found[i].kind == MR_NEAR_LEAK;
        out->duplicates += out->found[i].kind == MR_NEAR_DUPLICATE;
    }
    for (unsigned i = 0; p.views && i < jobs; i++)
        mr_sample_view_free(&p.views[i]);
    free(p.views);
    free(p.pictures);
    return status;
}

mr_status mr_similar_find(const char *dir, const mr_dataset *ds, const mr_similar_options *o, mr_similar *out,
                          mr_error *err)
{
    MR_TRY(list_samples(dir, ds, out, err));
    drop_repeated(out);
    MR_TRY(find_equal(out, err));
    return o->bytes_only ? MR_OK : search(ds, o, out, err);
}

void mr_similar_free(mr_similar *n)
{
    free(n->pictures);
    free(n->found);
    *n = (mr_similar){0};
}

/* ---- pairs ------------------------------------------------------------------------------------------------------- */

uint64_t mr_similar_count(const mr_similar *n, mr_similar_kind kind)
{
    return kind == MR_SIMILAR_EQUAL ? n->equal : kind == MR_SIMILAR_LEAK ? n->leaks : n->duplicates;
}

const mr_similar_picture *mr_similar_other(const mr_similar *n, size_t i, mr_similar_kind kind)
{
    if (kind == MR_SIMILAR_EQUAL)
        return n->pictures[i].equal != i ? &n->pictures[n->pictures[i].equal] : NULL;
    mr_near_kind wanted = kind == MR_SIMILAR_LEAK ? MR_NEAR_LEAK : MR_NEAR_DUPLICATE;
    return n->found && n->found[i].kind == wanted ? &n->pictures[n->found[i].other] : NULL;
}
