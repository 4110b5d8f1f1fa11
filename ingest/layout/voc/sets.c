/* sets.c - the lists of ImageSets/: which image is in which split.
 * Source: "Image sets" in the development kit of VOC2012: Main/, Segmentation/, Layout/ and Action/ have train.txt,
 * val.txt, trainval.txt, perhaps test.txt, one name without its extension per line; Main/CLASS_train.txt has flags as
 * well. Any other list of names in Main/ is a split of its name.
 * Invariant: the first list that names an image decides; trainval counts only for what no other list names. */
#include <stdio.h>
#include <string.h>

#include "base/scope.h"
#include "voc/voc.h"

enum { LIST_MAX = 64 << 20, NAME_MAX_LEN = 1024 };

static const char *const folders[] = {"Main", "Segmentation", "Layout", "Action", ""};
static const char *const splits[] = {"train", "val", "test", "trainval"};

typedef struct sets {
    const mr_tree *tree;
    const mr_voc_places *places;
    mr_plan *plan;
    uint32_t *split_of;
    mr_error *err;
} sets;

static uint32_t find_image(const sets *s, const char *name, size_t len)
{
    static const char *const endings[] = {"", ".jpg", ".jpeg", ".png", ".JPG", ".JPEG", ".PNG", ".webp"};
    char path[NAME_MAX_LEN + 64];
    for (size_t i = 0; i < MR_COUNT(endings); i++) {
        int n = snprintf(path, sizeof path, "%s/%.*s%s", s->places->images, (int)len, name, endings[i]);
        uint32_t entry = n > 0 && (size_t)n < sizeof path ? mr_tree_find(s->tree, path, (size_t)n) : MR_NO_ENTRY;
        if (entry != MR_NO_ENTRY && mr_name_is_image(path, (size_t)n))
            return entry;
    }
    return MR_NO_ENTRY;
}

/* The name of a line ends with the first blank: lists of a class have a flag after it. */
static void take_line(const sets *s, const char *list, const char *line, size_t len, uint32_t split)
{
    size_t name = 0;
    while (name < len && !strchr(" \t\r", line[name]))
        name++;
    if (!name)
        return;
    uint32_t entry = name <= NAME_MAX_LEN && !memchr(line, '\0', name) ? find_image(s, line, name) : MR_NO_ENTRY;
    if (entry == MR_NO_ENTRY) {
        mr_note_add(s->plan->notes, MR_NOTE_MISSING, line, name, 0, "%s names it: no such image in %s/", list,
                    s->places->images);
        return;
    }
    uint32_t *place = &s->split_of[entry - s->tree->begin];
    if (*place == MR_VOC_IN_NO_SET)
        *place = split;
}

static mr_status take_list(const sets *s, const mr_layout_options *o, const char *split, size_t split_len,
                           const char *path)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    uint32_t entry = mr_tree_find(s->tree, path, strlen(path)), number;
    if (entry == MR_NO_ENTRY)
        return MR_OK;
    s->plan->used[entry] = 1;
    if (mr_source_entry(s->tree->source, entry)->size > LIST_MAX)
        return mr_fail(s->err, MR_BAD_DATA, "%s: longer than the 64 MiB that a list of images may have", path);
    MR_TRY(mr_source_read(s->tree->source, entry, &text, s->err));
    if (!text.len)
        return MR_OK;
    MR_TRY(mr_plan_split_get(s->plan, o, split, split_len, &number, s->err));
    for (const char *at = (const char *)text.data, *end = at + text.len; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
        take_line(s, path, at, (size_t)(stop - at), number);
        at = newline ? newline + 1 : end;
    }
    return MR_OK;
}

static const char main_folder[] = "ImageSets/Main/";

/* Whether a list in Main/ is named after what can be a split; "default" is CVAT's word for none. */
static bool names_split(const char *path, size_t len)
{
    char name[64];
    size_t before = strlen(main_folder), count = len > before + 4 ? len - before - 4 : 0;
    if (!count || count > 63 || memcmp(path, main_folder, before) != 0 || !mr_name_ends(path, len, ".txt"))
        return false;
    memcpy(name, path + before, count);
    name[count] = '\0';
    return mr_split_name_ok(name) && strcmp(name, "default") != 0;
}

/* ImageSets/Main/NAME.txt with names alone is a split NAME; lists of a class have a flag after each name. */
static mr_status take_other(const sets *s, const mr_layout_options *o, uint32_t entry)
{
    char head[NAME_MAX_LEN + 64];
    size_t len;
    const char *path = mr_tree_path(s->tree, entry, &len);
    if (s->plan->used[entry] || !names_split(path, len))
        return MR_OK;
    uint64_t size = mr_source_entry(s->tree->source, entry)->size;
    size_t got = size < sizeof head ? (size_t)size : sizeof head;
    mr_status status = got ? mr_source_pread(s->tree->source, entry, head, got, 0, s->err) : MR_OK;
    const char *newline = got ? memchr(head, '\n', got) : NULL;
    size_t line = newline ? (size_t)(newline - head) : got;
    while (line && strchr(" \t\r", head[line - 1]))
        line--;
    if (status != MR_OK || !line || memchr(head, ' ', line) || memchr(head, '\t', line))
        return status == MR_SYSTEM ? status : MR_OK;
    /* The name lives as long as the tree, as the plan wants it. */
    return take_list(s, o, path + strlen(main_folder), len - strlen(main_folder) - 4, path);
}

/* The annotations contain what the lists of classes say. */
static void use_others(const sets *s)
{
    static const char folder[] = "ImageSets/";
    for (uint32_t e = s->tree->begin; e < s->tree->end; e++) {
        size_t len;
        const char *path = mr_tree_path(s->tree, e, &len);
        if (len > strlen(folder) && !memcmp(path, folder, strlen(folder)) && mr_name_ends(path, len, ".txt"))
            s->plan->used[e] = 1;
    }
}

mr_status mr_voc_sets(const mr_tree *t, const mr_layout_options *o, const mr_voc_places *places, mr_plan *plan,
                      uint32_t *split_of, mr_error *err)
{
    const sets s = {t, places, plan, split_of, err};
    for (uint32_t e = t->begin; e < t->end; e++)
        split_of[e - t->begin] = MR_VOC_IN_NO_SET;
    for (size_t k = 0; k < MR_COUNT(splits); k++)
        for (size_t f = 0; f < MR_COUNT(folders); f++) {
            const char *split = strcmp(splits[k], "trainval") ? splits[k] : "train";
            char path[100];
            snprintf(path, sizeof path, "ImageSets/%s%s%s.txt", folders[f], *folders[f] ? "/" : "", splits[k]);
            MR_TRY(take_list(&s, o, split, strlen(split), path));
        }
    for (uint32_t e = t->begin; e < t->end; e++)
        MR_TRY(take_other(&s, o, e));
    use_others(&s);
    return MR_OK;
}
