/* sets.c - the lists of ImageSets/: which image is in which splits.
 * Source: "Image sets" in the development kit of VOC2012: Main/, Segmentation/, Layout/ and Action/ have train.txt,
 * val.txt, trainval.txt, perhaps test.txt, one name without its extension per line; Main/CLASS_train.txt has flags as
 * well. Any other list of names is a split of its name.
 * Invariant: every name of every list is looked up; lists of a class are read only where their split has no list. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/tables/lines.h"
#include "ingest/source/names.h"
#include "ingest/layout/folder_names.h"
#include "ingest/layout/voc/voc.h"

enum { LIST_MAX = 64 << 20, NAME_MAX_LEN = 1024, PATH_MAX_LEN = 1200, HEAD = 4096 };

/* The folders that decide for an image, in this order; the last is the root, where other tools put train.txt. */
static const char *const folders[] = {
    "ImageSets/Main/", "ImageSets/Segmentation/", "ImageSets/Layout/", "ImageSets/Action/", "ImageSets/", ""};

typedef struct list {
    uint32_t entry, folder;
    const char *name; /* without .txt */
    size_t len;
    const char *split; /* how it is stored: trainval is train */
    size_t split_len;
    bool half, whole; /* see mr_voc_listed */
} list;

typedef struct sets {
    const mr_tree *tree;
    const mr_layout_options *options;
    const mr_voc_spot *spot;
    mr_plan *plan;
    mr_voc_lists *lists;
    mr_error *err;
} sets;

/* ---- names ------------------------------------------------------------------------------------------------------- */

static mr_status add(const sets *s, const list *l, uint32_t entry, uint32_t split)
{
    mr_voc_lists *lists = s->lists;
    if (!MR_GROW(lists->items, lists->count, lists->capacity))
        return mr_fail_memory(s->err, "reading image lists");
    lists->items[lists->count++] = (mr_voc_listed){entry, split, l->folder, l->half, l->whole};
    return MR_OK;
}

/* "./JPEGImages/a.jpg", as other tools write it, is "a.jpg". */
static const char *without_folder(const sets *s, const char *name, size_t *len)
{
    size_t folder = strlen(s->spot->images);
    const char *from = name;
    for (const char *at = name; at + folder < name + *len; at++)
        if ((at == name || at[-1] == '/') && !memcmp(at, s->spot->images, folder) && at[folder] == '/')
            from = at + folder + 1;
    *len -= (size_t)(from - name);
    return from;
}

/* The images of that name, with or without their ending; several differ in it. */
static mr_status add_images(const sets *s, const list *l, const char *name, size_t len, uint32_t split, size_t *found)
{
    char path[PATH_MAX_LEN];
    const mr_tree *t = s->tree;
    name = without_folder(s, name, &len);
    int n = len <= NAME_MAX_LEN ? snprintf(path, sizeof path, "%s/%.*s", s->spot->images, (int)len, name) : -1;
    *found = 0;
    if (n < 0 || (size_t)n >= sizeof path - 1 || memchr(name, '\0', len))
        return MR_OK;
    uint32_t entry = mr_tree_find(t, path, (size_t)n);
    if (entry != MR_NO_ENTRY && mr_name_is_image(path, (size_t)n)) {
        *found = 1;
        return add(s, l, entry, split);
    }
    MR_AUTO(mr_buf_free) mr_buf whole = {0};
    mr_buf_add(&whole, t->root, t->root_len);
    mr_buf_printf(&whole, "%s.", path);
    const char *prefix = mr_buf_text(&whole);
    MR_TRY(mr_buf_status(&whole, s->err, "reading image lists"));
    for (entry = mr_source_lower(t->source, prefix, whole.len); entry < t->end; entry++) {
        const mr_entry *e = mr_source_entry(t->source, entry);
        if (e->path_len < whole.len || memcmp(e->path, prefix, whole.len) != 0)
            break;
        if (memchr(e->path + whole.len, '.', e->path_len - whole.len) || !mr_name_is_image(e->path, e->path_len))
            continue;
        ++*found;
        MR_TRY(add(s, l, entry, split));
    }
    return MR_OK;
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static size_t first_word(const char *line, size_t len)
{
    size_t word = 0;
    while (word < len && line[word] != ' ' && line[word] != '\t')
        word++;
    return word;
}

/* What follows the name of a line of a class's list: "1", "-1", "0", or two numbers. */
static bool is_flagged(const char *line, size_t len)
{
    size_t word = first_word(line, len);
    for (size_t i = word; i < len; i++)
        if (!strchr(" \t+-0123456789", line[i]))
            return false;
    return word < len;
}

/* A name may have blanks of its own. */
static mr_status take_line(const sets *s, const list *l, const char *line, size_t len, uint32_t split)
{
    size_t found, words = first_word(line, len), path_len;
    MR_TRY(add_images(s, l, line, len, split, &found));
    if (!found && words < len)
        MR_TRY(add_images(s, l, line, words, split, &found));
    if (!found)
        mr_note_add(s->plan->notes, MR_NOTE_MISSING, line, is_flagged(line, len) ? words : len, 0,
                    "%s names it: no such image in %s/", mr_tree_path(s->tree, l->entry, &path_len), s->spot->images);
    return MR_OK;
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

static mr_status read_list(const sets *s, uint32_t entry, mr_buf *text)
{
    size_t len;
    s->plan->used[entry] = MR_USE_TAKEN;
    if (mr_source_entry(s->tree->source, entry)->size > LIST_MAX)
        return mr_fail(s->err, MR_BAD_DATA, "%s: longer than 64 MiB, the limit for an image list",
                       mr_tree_path(s->tree, entry, &len));
    MR_TRY(mr_source_read(s->tree->source, entry, text, s->err));
    if (text->len >= 2 && (!memcmp(text->data, "\xFF\xFE", 2) || !memcmp(text->data, "\xFE\xFF", 2)))
        return mr_fail(s->err, MR_BAD_DATA, "%s: the text is UTF-16; write it as UTF-8 (iconv -f UTF-16 -t UTF-8)",
                       mr_tree_path(s->tree, entry, &len));
    return MR_OK;
}

static mr_status take_list(const sets *s, const list *l)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    uint32_t split = MR_NO_ENTRY;
    MR_TRY(read_list(s, l->entry, &text));
    mr_lines at = mr_lines_of(text.data, text.len);
    for (bool first = true; mr_lines_next(&at); first = false) {
        if (first)
            MR_TRY(mr_plan_split_get(s->plan, s->options, l->split, l->split_len, &split, s->err));
        s->lists->any = true;
        MR_TRY(take_line(s, l, at.line, at.len, split));
    }
    return MR_OK;
}

/* Whether the lines of the list have flags; a number that is part of an image's name is not one. */
static mr_status has_flags(const sets *s, const list *l, bool *yes)
{
    MR_AUTO(mr_buf_free) mr_buf head = {0};
    uint64_t size = mr_source_entry(s->tree->source, l->entry)->size;
    size_t len = size < HEAD ? (size_t)size : HEAD, found, kept = s->lists->count;
    *yes = false;
    if (!len || !mr_buf_reserve(&head, len))
        return len ? mr_fail_memory(s->err, "reading image lists") : MR_OK;
    MR_TRY(mr_source_pread(s->tree->source, l->entry, head.data, len, 0, s->err));
    head.len = len;
    mr_lines at = mr_lines_of(head.data, head.len);
    if (!mr_lines_next(&at) || !is_flagged(at.line, at.len))
        return MR_OK;
    MR_TRY(add_images(s, l, at.line, at.len, MR_NO_ENTRY, &found));
    s->lists->count = kept;
    *yes = !found;
    return MR_OK;
}

static bool has_list(const sets *s, const list *l, const char *name, size_t len)
{
    char path[PATH_MAX_LEN];
    int n = snprintf(path, sizeof path, "%s%.*s.txt", folders[l->folder], (int)len, name);
    return n > 0 && (size_t)n < sizeof path && mr_tree_find(s->tree, path, (size_t)n) != MR_NO_ENTRY;
}

static bool is_trainval(const char *name, size_t len)
{
    return len == 8 && !memcmp(name, "trainval", 8);
}

/* Which split the list is of, by its name or by what follows the class's name. */
static void set_split(list *l, const char *name, size_t len)
{
    const char *word = mr_split_word(name, len);
    l->whole = is_trainval(name, len);
    l->half = word && strcmp(word, "test") != 0;
    l->split = l->whole ? "train" : name;
    l->split_len = l->whole ? 5 : len;
}

/* CLASS_SPLIT: false: it does not end with a split.  *redundant: the split has a list of its own. */
static bool set_class_split(const sets *s, list *l, bool *redundant)
{
    for (size_t i = l->len; i > 1; i--) {
        const char *name = l->name + i;
        size_t len = l->len - i;
        if (l->name[i - 1] != '_' || !len)
            continue;
        *redundant = has_list(s, l, name, len);
        if (*redundant || is_trainval(name, len) || (mr_split_word(name, len) && !memchr(name, '_', len))) {
            set_split(l, name, len);
            return true;
        }
    }
    return false;
}

/* PaddleDetection's "train_list" is "train". */
static size_t without_list(const char *name, size_t len)
{
    size_t cut =
        len > 5 && (!memcmp(name + len - 5, "_list", 5) || !memcmp(name + len - 5, "-list", 5)) ? len - 5 : len;
    return is_trainval(name, cut) || mr_split_word(name, cut) ? cut : len;
}

/* Only the names of a split make a list of a text at the root: others may be anything. */
static bool is_list(const sets *s, uint32_t entry, list *out)
{
    size_t len;
    const char *path = mr_tree_path(s->tree, entry, &len), *slash = memrchr(path, '/', len);
    size_t dir = slash ? (size_t)(slash - path) + 1 : 0;
    if (!mr_name_ends(path, len, ".txt") || len - dir < 5)
        return false;
    for (uint32_t k = 0; k < MR_COUNT(folders); k++)
        if (strlen(folders[k]) == dir && !memcmp(path, folders[k], dir)) {
            *out = (list){.entry = entry, .folder = k, .name = path + dir};
            out->len = without_list(path + dir, len - dir - 4);
            return dir || is_trainval(out->name, out->len) || mr_split_word(out->name, out->len);
        }
    return false;
}

typedef struct all {
    list *items;
    size_t count, capacity;
} all;

static void free_all(all *a)
{
    free(a->items);
}

static mr_status list_entry(const sets *s, uint32_t entry, all *a)
{
    list l;
    bool flags, redundant = false;
    if (!is_list(s, entry, &l))
        return MR_OK;
    size_t len;
    const char *path = mr_tree_path(s->tree, entry, &len);
    set_split(&l, l.name, l.len);
    MR_TRY(has_flags(s, &l, &flags));
    if (flags && !l.whole && !l.half && !set_class_split(s, &l, &redundant)) {
        mr_note_add(s->plan->notes, MR_NOTE_INFO, path, len, 0,
                    "not read: its lines have flags, as class lists do, but its name does not end with a split");
        return MR_OK;
    }
    if (redundant) {
        s->plan->used[entry] = MR_USE_TAKEN; /* the split's own list says the same */
        return MR_OK;
    }
    if (!MR_GROW(a->items, a->count, a->capacity))
        return mr_fail_memory(s->err, "reading image lists");
    a->items[a->count++] = l;
    return MR_OK;
}

/* train, val, test, then the others in order of their paths: splits are numbered so. */
static int by_rank(const void *a, const void *b)
{
    const list *x = a, *y = b;
    size_t i = mr_split_rank(mr_split_word(x->split, x->split_len));
    size_t j = mr_split_rank(mr_split_word(y->split, y->split_len));
    return i != j ? (i > j) - (i < j) : (x->entry > y->entry) - (x->entry < y->entry);
}

mr_status mr_voc_sets(const mr_tree *t, const mr_layout_options *o, const mr_voc_places *places, mr_plan *plan,
                      mr_voc_lists *lists, mr_error *err)
{
    const sets s = {t, o, &places->spots[0], plan, lists, err};
    MR_AUTO(free_all) all a = {0};
    for (uint32_t e = t->begin; e < t->end; e++)
        MR_TRY(list_entry(&s, e, &a));
    if (a.count)
        qsort(a.items, a.count, sizeof *a.items, by_rank);
    for (size_t i = 0; i < a.count; i++)
        MR_TRY(take_list(&s, &a.items[i]));
    return mr_voc_lists_settle(lists, plan, err);
}
