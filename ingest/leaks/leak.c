/* leak.c - the same image in two splits: proven by equal bytes, or by a name and pixels that look alike; with
 * --near-duplicates by pixels alone.
 * Invariant: a leak is reported once, with one file of each of two splits; samples stay in the split that the source
 * gives them. */
#include <stdio.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/leaks/leaks.h"
#include "ingest/leaks/leak_parts.h"

/* Two files of one split with equal bytes, of which at most one has the right label. */
typedef struct contradiction {
    uint32_t sample, other;
    size_t count;
} contradiction;

/* In a run of equal keys, whose members are sorted by split. */
static void find_contradictions(const mr_ingest *in, const mr_leak_member *run, size_t count, contradiction *found)
{
    for (size_t i = 1; i < count && !in->plan.answers; i++) {
        uint32_t sample = run[i - 1].sample, other = run[i].sample;
        if (run[i - 1].split != run[i].split || !mr_leak_other_label(in, sample, other))
            continue;
        if (!found->count++ || other < found->other) {
            found->sample = sample;
            found->other = other;
        }
    }
}

static void report_contradictions(mr_ingest *in, const contradiction *found)
{
    char what[96] = "equal bytes, but different labels", number[32];
    if (!found->count)
        return;
    if (found->count > 1)
        snprintf(what, sizeof what, "equal bytes, but different labels (%s such images in total)",
                 mr_text_count(found->count, number));
    mr_leak_note(in, MR_NOTE_INFO, found->sample, found->other, what);
}

/* Reports runs of equal keys that span splits: the members are sorted, so the first and last are in different ones. */
static void report_equal_bytes(mr_ingest *in, const mr_leak_member *members, size_t count)
{
    contradiction found = {0};
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && memcmp(members[i].key, members[end].key, 16) == 0;)
            end++;
        uint32_t a = members[i].sample, b = members[end - 1].sample;
        find_contradictions(in, members + i, end - i, &found);
        if (members[i].split != members[end - 1].split)
            mr_leak_note(in, MR_NOTE_LEAK, a, b,
                         mr_leak_other_label(in, a, b) ? "equal bytes (with different labels)" : "equal bytes");
    }
    report_contradictions(in, &found);
}

/* Reports equal bytes, and lists the files of one name. */
static mr_status group_samples(mr_ingest *in, mr_namesakes *names, mr_error *err)
{
    MR_AUTO(mr_scope_free) mr_leak_member *members = mr_alloc(in->plan.sample_count, sizeof *members);
    in->leaked = mr_alloc(in->plan.sample_count, sizeof *in->leaked);
    if (!members || !in->leaked)
        return mr_fail_memory(err, "looking for leaks");
    report_equal_bytes(in, members, mr_leak_members(in, false, members));
    in->equal_leaks = in->notes.counts[MR_NOTE_LEAK];
    return mr_leak_names_find(in, members, mr_leak_members(in, true, members), names, err);
}

mr_status mr_find_leaks(mr_ingest *in, mr_error *err)
{
    MR_AUTO(mr_leak_names_free) mr_namesakes names = {0};
    size_t noted = in->notes.count;
    MR_TRY(mr_ranks_agree(in->ranks, group_samples(in, &names, err), err));
    MR_TRY(mr_leak_look(in, &names, err));
    mr_leak_names_report(in, &names);
    if (in->options->near)
        MR_TRY(mr_leak_near(in, err));
    mr_notes_sort(&in->notes, noted); /* until here in the order of hashes */
    in->leaks = in->notes.counts[MR_NOTE_LEAK];
    return MR_OK;
}
