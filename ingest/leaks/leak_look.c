/* leak_look.c - decodes files of one name, and numbers the different images that they show.
 * Invariant: a group is processed by one thread in the order of its files, so that the result is the same for any
 * number of threads and ranks; a thread holds one file and MR_LOOKS small images. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "image/similar/alike.h"
#include "base/system/pool.h"
#include "base/scope.h"
#include "ingest/leaks/leak_parts.h"

enum { LARGE = 64 << 20 }; /* bytes or pixels; such images are decoded one at a time */

typedef struct looker { /* one per worker */
    mr_alike looks[MR_LOOKS], current;
} looker;

typedef struct pass {
    mr_ingest *in;
    mr_namesakes *names;
    mr_leak_reader reader;
    looker *lookers;
    mr_progress *progress;
} pass;

static bool mine(const mr_ingest *in, size_t group)
{
    return group % mr_ranks_world(in->ranks) == mr_ranks_rank(in->ranks);
}

mr_status mr_leak_reader_open(mr_ingest *in, mr_leak_reader *out, mr_error *err)
{
    *out = (mr_leak_reader){.in = in, .large = PTHREAD_MUTEX_INITIALIZER};
    out->bytes = mr_alloc(in->options->jobs ? in->options->jobs : 1, sizeof *out->bytes);
    return out->bytes ? MR_OK : mr_fail_memory(err, "looking for leaks");
}

void mr_leak_reader_free(mr_leak_reader *r)
{
    for (unsigned i = 0; r->bytes && (i == 0 || i < r->in->options->jobs); i++)
        mr_buf_free(&r->bytes[i]);
    free(r->bytes);
    r->bytes = NULL;
}

mr_status mr_leak_reader_shrink(mr_leak_reader *r, uint32_t entry, unsigned worker, mr_alike *out, mr_error *err)
{
    const mr_examined *x = &r->in->examined[r->in->file_of[entry]];
    mr_buf *bytes = &r->bytes[worker];
    bool large =
        mr_source_entry(r->in->source, entry)->size > LARGE || (uint64_t)x->facts.width * x->facts.height > LARGE;
    if (large)
        pthread_mutex_lock(&r->large);
    mr_buf_clear(bytes);
    mr_status status = mr_source_read(r->in->source, entry, bytes, err);
    if (status == MR_OK)
        status = mr_image_shrink(bytes->data, bytes->len, &r->in->options->limits, out, err);
    if (large) {
        mr_buf_free(bytes);
        pthread_mutex_unlock(&r->large);
    }
    return status;
}

/* The number of the image in l->current, which gets a new one if it looks like none before.  *left: comparisons. */
static uint8_t recognise(looker *l, unsigned *looks, size_t *left)
{
    if (mr_alike_plain(&l->current))
        return MR_LOOK_PLAIN;
    for (unsigned i = 0; i < *looks; i++) {
        if (*left == 0)
            return MR_LOOK_UNCOMPARED;
        (*left)--;
        if (mr_alike_compare(&l->looks[i], &l->current))
            return (uint8_t)i;
    }
    if (*looks == MR_LOOKS)
        return MR_LOOK_UNCOMPARED;
    l->looks[*looks] = l->current;
    return (uint8_t)(*looks)++;
}

static const mr_namesake *find_equal(const mr_ingest *in, const mr_namesake *files, size_t count, uint32_t sample)
{
    for (size_t i = 0; i < count; i++)
        if (mr_leak_equal_bytes(in, files[i].sample, sample))
            return &files[i];
    return NULL;
}

static mr_status look_at_group(void *ctx, size_t number, unsigned worker, mr_error *err)
{
    pass *p = ctx;
    looker *l = &p->lookers[worker];
    const struct mr_name_group *g = &p->names->groups[number];
    mr_namesake *files = p->names->files + g->begin;
    unsigned looks = 0;
    size_t left = 2 * g->count + 16; /* files of a few bytes must not cost many milliseconds each */
    if (!mine(p->in, number))
        return MR_OK;
    for (size_t i = 0; i < g->count; i++) {
        const mr_namesake *equal = find_equal(p->in, files, i, files[i].sample);
        if (equal) {
            files[i].look = equal->look;
            continue;
        }
        mr_error why;
        mr_status status =
            mr_leak_reader_shrink(&p->reader, p->in->plan.samples[files[i].sample].entry, worker, &l->current, &why);
        if (status != MR_OK && status != MR_BAD_SAMPLE) {
            if (err)
                *err = why;
            return status;
        }
        files[i].look = status == MR_OK ? recognise(l, &looks, &left) : MR_LOOK_UNREADABLE;
    }
    mr_progress_add(p->progress, g->count, 0);
    return MR_OK;
}

/* Every rank's groups, joined on all. */
static mr_status exchange(const mr_ingest *in, mr_namesakes *names, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf part = {0};
    MR_AUTO(mr_buf_free) mr_buf all = {0};
    unsigned world = mr_ranks_world(in->ranks);
    if (world == 1)
        return MR_OK;
    for (size_t g = mr_ranks_rank(in->ranks); g < names->group_count; g += world)
        for (size_t i = 0; i < names->groups[g].count; i++)
            mr_buf_add(&part, &names->files[names->groups[g].begin + i].look, 1);
    MR_TRY(mr_ranks_agree(in->ranks, mr_buf_status(&part, err, "looking for leaks"), err));
    MR_TRY(mr_ranks_gather(in->ranks, &part, &all, NULL, err));
    if (all.len != names->file_count)
        return mr_fail(err, MR_SYSTEM, MR_RANKS_DIFFER("listed different files"));
    const uint8_t *next = all.data;
    for (unsigned rank = 0; rank < world; rank++)
        for (size_t g = rank; g < names->group_count; g += world)
            for (size_t i = 0; i < names->groups[g].count; i++)
                names->files[names->groups[g].begin + i].look = *next++;
    return MR_OK;
}

static mr_status look_at_groups(mr_ingest *in, mr_namesakes *names, mr_error *err)
{
    pass p = {.in = in, .names = names};
    unsigned jobs = in->options->jobs ? in->options->jobs : 1;
    MR_TRY(mr_leak_reader_open(in, &p.reader, err));
    p.lookers = mr_alloc(jobs, sizeof *p.lookers);
    if (!p.lookers) {
        mr_leak_reader_free(&p.reader);
        return mr_fail_memory(err, "looking for leaks");
    }
    p.progress = mr_progress_begin("comparing", names->file_count / mr_ranks_world(in->ranks), mr_ingest_progress(in));
    mr_status status = mr_pool_run(names->group_count, jobs, look_at_group, &p, err);
    mr_progress_end(p.progress);
    mr_leak_reader_free(&p.reader);
    free(p.lookers);
    return status;
}

mr_status mr_leak_look(mr_ingest *in, mr_namesakes *names, mr_error *err)
{
    if (names->group_count == 0)
        return MR_OK;
    MR_TRY(mr_ranks_agree(in->ranks, look_at_groups(in, names, err), err));
    return exchange(in, names, err);
}
