/* folder_splits.c - splits of images by the folders that they are in, where no table assigns them.
 * Invariant: the splits are train, val and test in this order, and an image in no such folder is train. */
#include <string.h>

#include "base/scope.h"
#include "ingest/layout/folder_names.h"
#include "ingest/layout/table/table.h"

/* ---- one image --------------------------------------------------------------------------------------------------- */

const char *mr_folder_split(const mr_tree *t, uint32_t entry)
{
    size_t len;
    const char *path = mr_tree_path(t, entry, &len);
    return mr_split_of_path(path, len);
}

typedef struct named {  /* by a folder that is named like a split, else by one word of a longer name */
    const char *split;  /* NULL: there is none */
    const char *folder; /* the longer name; NULL: it is the split's */
    size_t len;
} named;

static named split_of(const mr_picture_index *index, uint32_t entry, bool tokens)
{
    size_t len;
    const char *path = mr_tree_path(index->tree, entry, &len);
    named n = {.split = mr_split_of_path(path, len)};
    if (!n.split && tokens)
        n.split = mr_split_token_of_path(path, len, &n.folder, &n.len).split;
    return n;
}

const char *mr_picture_split(const mr_picture_index *index, uint32_t entry)
{
    return split_of(index, entry, index->tokens).split;
}

/* Whether an image is in the folder of the one before it. */
static bool same_folder(const mr_picture_index *index, size_t picture)
{
    size_t len, before;
    const char *path = mr_tree_path(index->tree, index->entries[picture], &len);
    const char *last = picture ? mr_tree_path(index->tree, index->entries[picture - 1], &before) : NULL;
    const char *slash = memrchr(path, '/', len);
    size_t dir = slash ? (size_t)(slash - path) + 1 : 0;
    return last && before > dir && !memcmp(path, last, dir) && !memchr(last + dir, '/', before - dir);
}

bool mr_folder_tokens(const mr_picture_index *index)
{
    bool train = false, other = false;
    for (size_t i = 0; i < index->count && !(train && other); i++) {
        if (same_folder(index, i))
            continue;
        named n = split_of(index, index->entries[i], true);
        bool is_train = n.split && !strcmp(n.split, "train");
        train = train || is_train;
        other = other || (n.split && n.folder && !is_train);
    }
    return train && other;
}

/* A folder of one split in that of another: val/train/. */
static void note_nested(const mr_picture_index *index, mr_notes *notes)
{
    for (size_t i = 0; i < index->count; i++) {
        size_t len;
        const char *path = mr_tree_path(index->tree, index->entries[i], &len), *split = NULL, *slash;
        if (same_folder(index, i))
            continue;
        for (const char *part = path; (slash = memchr(part, '/', len - (size_t)(part - path))); part = slash + 1) {
            const char *word = mr_split_word(part, (size_t)(slash - part));
            if (split && word && strcmp(split, word) != 0)
                mr_note_add(notes, MR_NOTE_INFO, path, (size_t)(slash - path), 0,
                            "its folders name the splits %s and %s: its images are in the first", split, word);
            split = split ? split : word;
        }
    }
}

void mr_picture_note_splits(const mr_picture_index *index, mr_notes *notes)
{
    named last = {0};
    note_nested(index, notes);
    for (size_t i = 0; i < index->count && index->tokens; i++) {
        if (same_folder(index, i))
            continue;
        named n = split_of(index, index->entries[i], true);
        if (!n.split || !n.folder || (last.folder && last.len == n.len && !memcmp(last.folder, n.folder, n.len)))
            continue;
        last = n;
        mr_note_add(notes, MR_NOTE_INFO, n.folder, n.len, 0, "by its name, a folder of the split %s", n.split);
    }
}

/* ---- all images -------------------------------------------------------------------------------------------------- */

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
