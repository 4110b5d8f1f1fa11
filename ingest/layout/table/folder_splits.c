/* folder_splits.c - splits of images that no table assigns: by the folders that they are in.
 * Invariant: the splits are train, val and test in this order, and an image in no such folder is train. */
#include <string.h>

#include "base/scope.h"
#include "ingest/layout/table/table.h"

static const char *const words[] = {"train", "val", "test"};

static size_t number_of(const mr_picture_index *index, uint32_t entry)
{
    const char *word = mr_picture_split(index, entry);
    size_t n = MR_COUNT(words);
    while (word && n-- > 1)
        if (!strcmp(words[n], word))
            return n;
    return 0;
}

mr_status mr_folder_splits_open(const mr_layout_options *o, const mr_picture_index *index, mr_plan *plan,
                                mr_folder_splits *out, mr_error *err)
{
    mr_picture_note_splits(index, plan->notes);
    out->index = index;
    bool present[MR_COUNT(words)] = {false};
    for (size_t i = 0; i < index->count; i++)
        present[number_of(index, index->entries[i])] = true;
    for (size_t n = 0; n < MR_COUNT(words); n++) {
        out->split[n] = MR_NO_ENTRY;
        if (present[n])
            MR_TRY(mr_plan_split_get(plan, o, words[n], strlen(words[n]), &out->split[n], err));
        if (present[n] && out->split[n] == MR_NO_ENTRY)
            mr_note_add(plan->notes, MR_NOTE_INFO, words[n], strlen(words[n]), 0, "split left out by --split-map");
    }
    return MR_OK;
}

bool mr_folder_splits_get(const mr_folder_splits *splits, uint32_t entry, mr_plan *plan, uint32_t *split)
{
    *split = splits->split[number_of(splits->index, entry)];
    if (*split != MR_NO_ENTRY)
        return true;
    plan->used[entry] = MR_USE_LEFT_OUT;
    return false;
}
