/* leak.c - the same image in two splits: proven by equal bytes, or by a name and pixels that look alike; with
 * --near-duplicates by pixels alone.
 * Invariant: a leak is reported once, with one file of each of two splits; samples stay in the split that the source
 * gives them. */
#include <string.h>

#include "base/scope.h"
#include "ingest/leaks/leaks.h"
#include "ingest/leaks/leak_parts.h"

/* Reports runs of equal keys that span splits: the members are sorted, so the first and last are in different ones. */
static void report_equal_bytes(mr_ingest *in, const mr_leak_member *members, size_t count)
{
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && memcmp(members[i].key, members[end].key, 16) == 0;)
            end++;
        uint32_t a = members[i].sample, b = members[end - 1].sample;
        if (members[i].split != members[end - 1].split)
            mr_leak_note(in, MR_NOTE_LEAK, a, b,
                         mr_leak_other_label(in, a, b) ? "equal bytes (with different labels)" : "equal bytes");
    }
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
