/* leak_near.c - --near-duplicates: every image is compared with those that have a similar hash.
 * Invariant: each image is noted at most once: as a leak, if one of an earlier split looks like it; else as a
 * duplicate, if an earlier one of its own split does.
 *
 * Equal bytes are not looked for here: in two splits they are a leak that leak.c reports, in one split they are
 * stored once. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/leaks/leak_parts.h"

typedef struct pass {
    mr_leak_reader reader;
    mr_near_picture *pictures;
    uint32_t *samples; /* the first of each image in its split; parallel to images */
    mr_near_found *found;
    size_t count;
} pass;

static int by_split(const void *a, const void *b)
{
    const mr_leak_member *x = a, *y = b;
    int order = (x->split > y->split) - (x->split < y->split);
    return order ? order : (x->sample > y->sample) - (x->sample < y->sample);
}

/* The first sample of each content in each split. */
static mr_status list_pictures(const mr_ingest *in, pass *p, mr_error *err)
{
    size_t samples = in->plan.sample_count;
    MR_AUTO(mr_scope_free) mr_leak_member *members = mr_alloc(samples, sizeof *members);
    p->pictures = mr_alloc(samples, sizeof *p->pictures);
    p->samples = mr_alloc(samples, sizeof *p->samples);
    p->found = mr_alloc(samples, sizeof *p->found);
    if (!members || !p->pictures || !p->samples || !p->found)
        return mr_fail_memory(err, "looking for near-duplicates");
    size_t all = mr_leak_members(in, false, members);
    mr_leak_member last = {0};
    for (size_t i = 0; i < all; i++) {
        mr_leak_member m = members[i];
        if (i == 0 || m.split != last.split || memcmp(m.key, last.key, sizeof m.key) != 0)
            members[p->count++] = m;
        last = m;
    }
    if (p->count)
        qsort(members, p->count, sizeof *members, by_split);
    for (size_t i = 0; i < p->count; i++) {
        uint32_t file = in->file_of[in->plan.samples[members[i].sample].entry];
        p->samples[i] = members[i].sample;
        p->pictures[i] = in->looks[file];
        p->pictures[i].split = members[i].split;
        p->pictures[i].content = in->examined[file].content;
    }
    return MR_OK;
}

static mr_status load(void *ctx, size_t i, unsigned worker, mr_alike *out, mr_error *err)
{
    pass *p = ctx;
    return mr_leak_reader_shrink(&p->reader, p->reader.in->plan.samples[p->samples[i]].entry, worker, out, err);
}

/* This rank's share. */
static mr_status search(mr_ingest *in, pass *p, mr_error *err)
{
    unsigned world = mr_ranks_world(in->ranks);
    MR_TRY(list_pictures(in, p, err));
    MR_TRY(mr_leak_reader_open(in, &p->reader, err));
    mr_near_search s = {.pictures = p->pictures,
                        .count = p->count,
                        .distance = in->options->near_distance,
                        .jobs = in->options->jobs,
                        .rank = mr_ranks_rank(in->ranks),
                        .world = world,
                        .load = load,
                        .ctx = p};
    s.progress = mr_progress_begin("comparing", p->count / world, mr_ingest_progress(in));
    mr_status status = mr_near_find(&s, p->found, err);
    mr_progress_end(s.progress);
    return status;
}

/* Every rank's results, joined on all. */
static mr_status exchange(const mr_ingest *in, pass *p, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf part = {0};
    MR_AUTO(mr_buf_free) mr_buf all = {0};
    unsigned world = mr_ranks_world(in->ranks);
    size_t at = 0;
    if (world == 1)
        return MR_OK;
    for (size_t i = mr_ranks_rank(in->ranks); i < p->count; i += world)
        mr_buf_add(&part, &p->found[i], sizeof p->found[i]);
    MR_TRY(mr_ranks_agree(in->ranks, mr_buf_status(&part, err, "looking for near-duplicates"), err));
    MR_TRY(mr_ranks_gather(in->ranks, &part, &all, NULL, err));
    if (all.len != p->count * sizeof *p->found)
        return mr_fail(err, MR_SYSTEM, MR_RANKS_DIFFER("listed different files"));
    for (unsigned rank = 0; rank < world; rank++)
        for (size_t i = rank; i < p->count; i += world, at += sizeof p->found[i])
            memcpy(&p->found[i], all.data + at, sizeof p->found[i]);
    return MR_OK;
}

static void note_found(mr_ingest *in, const pass *p)
{
    for (size_t i = 0; i < p->count; i++) {
        const mr_near_found *f = &p->found[i];
        uint32_t sample = p->samples[i], earlier = p->samples[f->other];
        in->near.pictures++;
        in->near.plain += p->pictures[i].state == MR_NEAR_PLAIN;
        in->near.unreadable += p->pictures[i].state == MR_NEAR_UNREADABLE;
        in->near.crowded += f->crowded;
        if (f->kind == MR_NEAR_UNIQUE || in->leaked[sample])
            continue;
        mr_leak_note(in, f->kind == MR_NEAR_LEAK ? MR_NOTE_LEAK : MR_NOTE_DUPLICATE, earlier, sample,
                     mr_leak_other_label(in, earlier, sample) ? "looks alike (with different labels)" : "looks alike");
    }
}

static void note_count(mr_ingest *in, uint64_t count, const char *words)
{
    char number[32];
    if (count)
        mr_note_add(&in->notes, MR_NOTE_INFO, "", 0, 0, "near-duplicates: %s image%s %s", mr_text_count(count, number),
                    count == 1 ? "" : "s", words);
}

static mr_status find(mr_ingest *in, pass *p, mr_error *err)
{
    MR_TRY(mr_ranks_agree(in->ranks, search(in, p, err), err));
    return exchange(in, p, err);
}

static void release(pass *p)
{
    if (p->reader.in)
        mr_leak_reader_free(&p->reader);
    free(p->pictures);
    free(p->samples);
    free(p->found);
}

mr_status mr_leak_near(mr_ingest *in, mr_error *err)
{
    pass p = {0};
    mr_status status = find(in, &p, err);
    if (status == MR_OK) {
        note_found(in, &p);
        note_count(in, in->near.plain, "of uniform colour not compared");
        note_count(in, in->near.unreadable, "not compared: the pixels cannot be decoded (--check decode rejects them)");
        note_count(in, in->near.crowded, "not compared with all that have a similar hash: there are too many");
    }
    release(&p);
    return status;
}

mr_status mr_leak_near_links(mr_ingest *in, uint32_t *earlier, mr_error *err)
{
    pass p = {0};
    mr_status status = find(in, &p, err);
    for (uint32_t i = 0; i < in->plan.sample_count; i++)
        earlier[i] = i;
    for (size_t i = 0; status == MR_OK && i < p.count; i++)
        if (p.found[i].kind != MR_NEAR_UNIQUE)
            earlier[p.samples[i]] = p.samples[p.found[i].other];
    release(&p);
    return status;
}
