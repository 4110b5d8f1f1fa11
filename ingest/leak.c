/* leak.c - the same picture in two splits: equal bytes, or copies of one original.
 * Invariant: a leak is reported once, with one file of each of two splits; the samples stay where the source has them. */
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "ingest.h"
#include "text.h"

typedef struct member {
    uint8_t key[16];
    uint32_t split, sample;
} member;

static int by_key(const void *a, const void *b)
{
    const member *x = a, *y = b;
    int order = memcmp(x->key, y->key, sizeof x->key);
    if (order == 0)
        order = (x->split > y->split) - (x->split < y->split);
    return order ? order : (x->sample > y->sample) - (x->sample < y->sample);
}

static uint32_t entry_of(const mr_ingest *in, const member *m)
{
    return in->plan.samples[m->sample].entry;
}

/* Runs of equal keys that span splits; sorted, so the first and last member of a run lie in different ones. */
static void report_runs(mr_ingest *in, const member *members, size_t count, const char *what)
{
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && memcmp(members[i].key, members[end].key, 16) == 0;)
            end++;
        const member *a = &members[i], *b = &members[end - 1];
        if (a->split == b->split)
            continue;
        size_t first_len, other_len;
        const char *first = mr_tree_path(&in->choice.tree, entry_of(in, a), &first_len);
        const char *other = mr_tree_path(&in->choice.tree, entry_of(in, b), &other_len);
        mr_buf text = {0};
        mr_text_escape(&text, first, first_len);
        /* Cameras number their files alike: copies under two labels may be two pictures.  People should look. */
        bool labels = in->plan.samples[a->sample].label != in->plan.samples[b->sample].label;
        mr_note_add(&in->notes, MR_NOTE_LEAK, other, other_len, mr_source_entry(in->source, entry_of(in, b))->size,
                    "%s%s, in %s and %s: also %s", what, labels ? " (with another label)" : "",
                    in->plan.splits[a->split].name, in->plan.splits[b->split].name, mr_buf_text(&text));
        mr_buf_free(&text);
    }
}

mr_status mr_find_leaks(mr_ingest *in, mr_error *err)
{
    const mr_plan *plan = &in->plan;
    member *members = mr_alloc(plan->sample_count, sizeof *members);
    if (!members)
        return mr_fail_memory(err, "looking for leaks");
    size_t count = 0;
    for (size_t i = 0; i < plan->sample_count; i++) {
        const mr_examined *x = &in->examined[in->file_of[plan->samples[i].entry]];
        if (x->why)
            continue;
        members[count] = (member){.split = plan->samples[i].split, .sample = (uint32_t)i};
        memcpy(members[count++].key, x->hash128, 16);
    }
    if (count)
        qsort(members, count, sizeof *members, by_key);
    report_runs(in, members, count, "equal bytes");

    count = 0;
    for (size_t i = 0; i < plan->sample_count; i++) {
        const mr_sample *s = &plan->samples[i];
        if (!s->group_len || in->examined[in->file_of[s->entry]].why)
            continue;
        members[count] = (member){.split = s->split, .sample = (uint32_t)i};
        mr_hash128(mr_source_entry(in->source, s->entry)->path + s->group_at, s->group_len, members[count++].key);
    }
    if (count)
        qsort(members, count, sizeof *members, by_key);
    report_runs(in, members, count, "copies of one original");
    free(members);
    in->leaks = in->notes.counts[MR_NOTE_LEAK];
    return MR_OK;
}
