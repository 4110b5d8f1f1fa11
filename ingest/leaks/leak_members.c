/* leak_members.c - samples by their bytes or names, and what is noted of two that are alike.
 * Invariant: members are sorted by key, split, sample. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/scope.h"
#include "base/text.h"
#include "ingest/leaks/leak_parts.h"

static int by_key(const void *a, const void *b)
{
    const mr_leak_member *x = a, *y = b;
    int order = memcmp(x->key, y->key, sizeof x->key);
    if (order == 0)
        order = (x->split > y->split) - (x->split < y->split);
    return order ? order : (x->sample > y->sample) - (x->sample < y->sample);
}

bool mr_leak_equal_bytes(const mr_ingest *in, uint32_t sample, uint32_t other)
{
    const mr_sample *s = in->plan.samples;
    return in->examined[in->file_of[s[sample].entry]].content == in->examined[in->file_of[s[other].entry]].content;
}

bool mr_leak_other_label(const mr_ingest *in, uint32_t sample, uint32_t other)
{
    const mr_sample *a = &in->plan.samples[sample], *b = &in->plan.samples[other];
    if ((a->flags | b->flags) & MR_FLAG_UNANNOTATED) /* a missing label contradicts none */
        return false;
    return a->label != b->label || a->labels != b->labels;
}

void mr_leak_note(mr_ingest *in, mr_note_kind kind, uint32_t sample, uint32_t other, const char *what)
{
    const mr_sample *a = &in->plan.samples[sample], *b = &in->plan.samples[other];
    size_t first_len, other_len;
    const char *first_path = mr_tree_path(&in->choice.tree, a->entry, &first_len);
    const char *other_path = mr_tree_path(&in->choice.tree, b->entry, &other_len);
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    mr_text_escape(&text, first_path, first_len);
    bool one = a->split == b->split, same = a->entry == b->entry; /* annotations of two splits list it */
    mr_note_add(
        &in->notes, kind, other_path, other_len, mr_source_entry(in->source, b->entry)->size, "%s, in %s%s%s: %s%s",
        what, in->plan.splits[a->split].name, one ? "" : " and ", one ? "" : in->plan.splits[b->split].name,
        same ? "one file, listed in both; --exclude takes it out of both" : "also ", same ? "" : mr_buf_text(&text));
    in->notes.failed = in->notes.failed || text.failed;
    in->leaked[other] = in->leaked[other] || kind == MR_NOTE_LEAK;
}

size_t mr_leak_members(const mr_ingest *in, bool by_name, mr_leak_member *members)
{
    const mr_plan *plan = &in->plan;
    size_t count = 0;
    for (size_t i = 0; i < plan->sample_count; i++) {
        const mr_sample *s = &plan->samples[i];
        const mr_examined *x = &in->examined[in->file_of[s->entry]];
        if (x->why || (by_name && !s->group_len))
            continue;
        mr_leak_member *m = &members[count++];
        *m = (mr_leak_member){.split = s->split, .sample = (uint32_t)i};
        if (by_name)
            mr_hash128(mr_source_entry(in->source, s->entry)->path + s->group_at, s->group_len, m->key);
        else
            memcpy(m->key, x->hash128, sizeof m->key);
    }
    if (count)
        qsort(members, count, sizeof *members, by_key);
    return count;
}
