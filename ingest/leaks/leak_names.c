/* leak_names.c - files in several splits that have the same name before ".rf.": which are compared, and what is
 * reported. Invariant: only the same label and pixels that look alike make a leak; every other group gets one line. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/leaks/leak_parts.h"

/* ---- which are compared ---------------------------------------------------------------------------------------- */

static size_t count_splits(const mr_leak_member *members, size_t count)
{
    size_t splits = 1;
    for (size_t i = 1; i < count; i++)
        splits += members[i].split != members[i - 1].split;
    return splits;
}

static bool all_equal(const mr_ingest *in, const mr_leak_member *members, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (!mr_leak_equal_bytes(in, members[0].sample, members[i].sample))
            return false;
    return true;
}

/* If a group is too large, the first files of each split are kept, so that every split has its share. */
static mr_status add_group(mr_namesakes *names, const mr_leak_member *members, size_t count, size_t splits)
{
    size_t share = count <= MR_GROUP_MAX ? count : MR_GROUP_MAX / splits + (splits > MR_GROUP_MAX), of_split = 0;
    if (!MR_GROW(names->groups, names->group_count, names->group_capacity))
        return MR_SYSTEM;
    struct mr_name_group *g = &names->groups[names->group_count];
    *g = (struct mr_name_group){.begin = names->file_count, .all = count};
    for (size_t i = 0; i < count; i++) {
        of_split = i && members[i].split == members[i - 1].split ? of_split + 1 : 0;
        if (of_split >= share || names->file_count - g->begin == MR_GROUP_MAX)
            continue;
        if (!MR_GROW(names->files, names->file_count, names->file_capacity))
            return MR_SYSTEM;
        names->files[names->file_count++] = (mr_namesake){members[i].split, members[i].sample, MR_LOOK_UNCOMPARED};
    }
    g->count = names->file_count - g->begin;
    names->group_count++;
    return MR_OK;
}

mr_status mr_leak_names_find(const mr_ingest *in, const mr_leak_member *members, size_t count, mr_namesakes *out,
                             mr_error *err)
{
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && memcmp(members[i].key, members[end].key, sizeof members[i].key) == 0;)
            end++;
        size_t splits = count_splits(members + i, end - i);
        if (splits == 1 || all_equal(in, members + i, end - i)) /* equal bytes have been reported */
            continue;
        if (add_group(out, members + i, end - i, splits) != MR_OK)
            return mr_fail_memory(err, "looking for leaks");
    }
    return MR_OK;
}

void mr_leak_names_free(mr_namesakes *names)
{
    free(names->files);
    free(names->groups);
    *names = (mr_namesakes){0};
}

/* ---- what is reported -------------------------------------------------------------------------------------------- */

enum { ANY_LOOK = -1 };

/* Two files in two splits with this look and different bytes. */
static bool find_pair(const mr_ingest *in, const mr_namesake *files, size_t count, int look, bool same_label,
                      const mr_namesake *pair[2])
{
    for (size_t i = 0; i < count; i++) {
        if (look != ANY_LOOK && files[i].look != look)
            continue;
        for (size_t j = count - 1; j > i && files[j].split != files[i].split; j--) {
            uint32_t a = files[i].sample, b = files[j].sample;
            if ((look != ANY_LOOK && files[j].look != look) || mr_leak_equal_bytes(in, a, b) ||
                (same_label && mr_leak_other_label(in, a, b)))
                continue;
            pair[0] = &files[i];
            pair[1] = &files[j];
            return true;
        }
    }
    return false;
}

/* Why two files of one name are not a leak. */
static const char *difference(const mr_ingest *in, const mr_namesake *a, const mr_namesake *b)
{
    bool compared = a->look < MR_LOOKS && b->look < MR_LOOKS;
    if (mr_leak_other_label(in, a->sample, b->sample))
        return compared ? "same name, but different labels and images" : "same name, but different labels";
    if (a->look == MR_LOOK_UNREADABLE || b->look == MR_LOOK_UNREADABLE)
        return "same name, but one image cannot be decoded";
    if (a->look == MR_LOOK_PLAIN || b->look == MR_LOOK_PLAIN)
        return "same name, but one image has a uniform colour";
    if (a->look == MR_LOOK_UNCOMPARED || b->look == MR_LOOK_UNCOMPARED)
        return "same name";
    return "same name, but different images";
}

static void note_pair(mr_ingest *in, mr_note_kind kind, const mr_namesake *pair[2], const char *what, const char *rest)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    mr_buf_printf(&text, "%s%s", what, rest);
    mr_leak_note(in, kind, pair[0]->sample, pair[1]->sample, mr_buf_text(&text));
    in->notes.failed = in->notes.failed || text.failed;
}

static void report_group(mr_ingest *in, const struct mr_name_group *g, const mr_namesake *files)
{
    const mr_namesake *pair[2];
    bool reported = false, uncompared = g->count < g->all;
    char number[32], rest[96] = "";
    for (size_t i = 0; i < g->count; i++)
        uncompared = uncompared || files[i].look == MR_LOOK_UNCOMPARED;
    if (uncompared)
        snprintf(rest, sizeof rest, " (%s files have it, too many to compare them all)", mr_text_count(g->all, number));
    for (int look = 0; look < MR_LOOKS; look++) {
        bool leak = find_pair(in, files, g->count, look, true, pair);
        if (!leak && !find_pair(in, files, g->count, look, false, pair))
            continue;
        reported = true;
        if (leak)
            note_pair(in, MR_NOTE_LEAK, pair, "copies of one image (they look alike)", "");
        else
            note_pair(in, MR_NOTE_SAME_NAME, pair, "same name, and the images look alike, but different labels", "");
    }
    if (reported && !uncompared)
        return;
    if (find_pair(in, files, g->count, ANY_LOOK, true, pair) || find_pair(in, files, g->count, ANY_LOOK, false, pair))
        note_pair(in, MR_NOTE_SAME_NAME, pair, reported ? "same name" : difference(in, pair[0], pair[1]), rest);
}

void mr_leak_names_report(mr_ingest *in, const mr_namesakes *names)
{
    for (size_t i = 0; i < names->group_count; i++)
        report_group(in, &names->groups[i], names->files + names->groups[i].begin);
}
