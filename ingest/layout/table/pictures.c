/* pictures.c - which image of a tree the cell of a table names.
 * Invariant: an answer depends on the names alone, and if a cell may mean two images, neither is chosen. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "ingest/source/names.h"
#include "ingest/layout/folder_names.h"
#include "ingest/layout/image_names.h"
#include "ingest/layout/table/table.h"

/* The name without folder and ending. */
static const char *stem_of(const char *path, size_t len, size_t *stem_len)
{
    const char *slash = memrchr(path, '/', len), *base = slash ? slash + 1 : path;
    size_t base_len = len - (size_t)(base - path);
    const char *dot = memrchr(base, '.', base_len);
    *stem_len = dot && dot > base ? (size_t)(dot - base) : base_len;
    return base;
}

static const void *text_of(const void *list, size_t number, size_t *len)
{
    const mr_picture_index *index = list;
    size_t path_len;
    const char *path = mr_tree_path(index->tree, index->entries[index->first[number]], &path_len);
    return stem_of(path, path_len, len);
}

static mr_status link_stems(mr_picture_index *index, mr_error *err)
{
    index->first = mr_alloc(index->count + 1, sizeof *index->first);
    index->next = mr_alloc(index->count + 1, sizeof *index->next);
    if (!index->first || !index->next)
        return mr_fail_memory(err, "listing the images");
    for (uint32_t i = 0; i < index->count; i++) {
        size_t len, stem_len;
        const char *path = mr_tree_path(index->tree, index->entries[i], &len), *stem = stem_of(path, len, &stem_len);
        size_t number = mr_string_map_find(&index->stems, text_of, index, stem, stem_len);
        bool known = number != SIZE_MAX;
        number = known ? number : index->stems.count;
        index->next[i] = known ? index->first[number] : MR_NO_ENTRY;
        index->first[number] = i;
        if (!known && !mr_string_map_add(&index->stems, text_of, index, stem, stem_len))
            return mr_fail_memory(err, "listing the images");
    }
    return MR_OK;
}

/* A sure name of such a folder, or the last word of it: "train_masks". */
static bool holds_masks(const char *name, size_t len)
{
    size_t last = len;
    while (last && !strchr("_- ", name[last - 1]))
        last--;
    return mr_folder_of_others(name, len) || mr_folder_of_others(name + last, len - last);
}

/* masks/, annotations/trimaps/, SegmentationClass/ ... */
static bool in_mask_folder(const mr_tree *t, uint32_t entry)
{
    size_t len;
    const char *path = mr_tree_path(t, entry, &len), *slash;
    for (const char *part = path; (slash = memchr(part, '/', len - (size_t)(part - path))); part = slash + 1)
        if (holds_masks(part, (size_t)(slash - part)))
            return true;
    return false;
}

static mr_status list_pictures(const mr_tree *t, const mr_picture_index *others, mr_picture_index *out, mr_error *err)
{
    *out = (mr_picture_index){.tree = t};
    for (uint32_t e = t->begin; e < t->end; e++) {
        if (!mr_folder_image(t, e, 0))
            continue;
        bool apart = in_mask_folder(t, e);
        out->masks += apart;
        if (apart && !others)
            continue;
        size_t len, stem_len;
        const char *path = mr_tree_path(t, e, &len), *stem = stem_of(path, len, &stem_len);
        if (apart && mr_string_map_find(&others->stems, text_of, others, stem, stem_len) != SIZE_MAX)
            continue;
        if (!MR_GROW(out->entries, out->count, out->capacity))
            return mr_fail_memory(err, "listing the images");
        out->entries[out->count++] = e;
    }
    return link_stems(out, err);
}

/* An image in a folder of masks, of the name of another that is not, is its mask. */
mr_status mr_picture_index_make(const mr_tree *t, mr_picture_index *out, mr_error *err)
{
    MR_TRY(list_pictures(t, NULL, out, err));
    if (out->masks) {
        MR_AUTO(mr_picture_index_free) mr_picture_index others = *out;
        MR_TRY(list_pictures(t, &others, out, err));
    }
    out->tokens = mr_folder_tokens(out);
    return MR_OK;
}

void mr_picture_index_free(mr_picture_index *index)
{
    free(index->entries);
    free(index->first);
    free(index->next);
    mr_string_map_release(&index->stems);
    *index = (mr_picture_index){0};
}

size_t mr_picture_place(const mr_picture_index *index, uint32_t entry)
{
    size_t low = 0, high = index->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (index->entries[mid] < entry)
            low = mid + 1;
        else
            high = mid;
    }
    return low < index->count && index->entries[low] == entry ? low : index->count;
}

bool mr_folder_word(const char *name, size_t len)
{
    return mr_split_like(name, len) || mr_folder_container(name, len) != MR_CONTAINER_NONE;
}

bool mr_root_is_split(const mr_tree *t)
{
    size_t len = t->root_len ? t->root_len - 1 : 0;
    const char *slash = len ? memrchr(t->root, '/', len) : NULL, *name = slash ? slash + 1 : t->root;
    return len && mr_split_word(name, len - (size_t)(name - t->root));
}

/* ---- cells ---------------------------------------------------------------------------------------------------- */

static bool leads_out(const char *cell, size_t len)
{
    const char *end = cell + len;
    if (*cell == '/' || (len > 2 && cell[1] == ':' && (cell[2] == '\\' || cell[2] == '/')))
        return true;
    for (const char *part = cell; part < end;) {
        const char *slash = memchr(part, '/', (size_t)(end - part));
        size_t part_len = (size_t)((slash ? slash : end) - part);
        if (part_len == 2 && !memcmp(part, "..", 2))
            return true;
        part += part_len + 1;
    }
    return false;
}

/* Whether the path is the cell, or ends in it after a '/'. `whole`: the cell has the ending of an image. */
static bool fits(const char *path, size_t len, const char *cell, size_t cell_len, bool whole, bool *exact)
{
    if (!whole) {
        const char *dot = memrchr(path, '.', len);
        len = dot ? (size_t)(dot - path) : len;
    }
    *exact = len == cell_len;
    return len >= cell_len && !memcmp(path + len - cell_len, cell, cell_len) &&
           (*exact || path[len - cell_len - 1] == '/');
}

typedef struct matching {
    unsigned count;  /* of images with the best claim */
    unsigned best;   /* claim */
    uint32_t *found; /* [2] */
} matching;

static void take(matching *m, uint32_t picture, unsigned claim)
{
    if (claim < m->best)
        return;
    if (claim > m->best)
        m->count = 0;
    m->best = claim;
    if (m->count < 2)
        m->found[m->count] = picture;
    m->count++;
}

/* 2: a folder's name is the split; 1: one word of it is; 0: none. */
static unsigned split_claim(const char *path, size_t len, const char *split)
{
    const char *word = split ? mr_split_of_path(path, len) : NULL, *folder;
    size_t folder_len;
    if (word || !split)
        return word && !strcmp(word, split) ? 2 : 0;
    word = mr_split_token_of_path(path, len, &folder, &folder_len).split;
    return word && !strcmp(word, split);
}

static mr_picture_match find_cell(const mr_picture_index *index, const char *cell, const char *split, uint32_t found[2])
{
    size_t cell_len = strlen(cell), stem_len;
    matching m = {.found = found};
    for (; cell_len > 2 && !memcmp(cell, "./", 2); cell_len -= 2)
        cell += 2;
    if (!cell_len)
        return MR_PICTURE_NONE;
    if (leads_out(cell, cell_len))
        return MR_PICTURE_OUTSIDE;
    bool whole = mr_name_is_image(cell, cell_len), path_given = memchr(cell, '/', cell_len) != NULL;
    const char *slash = memrchr(cell, '/', cell_len), *stem = slash ? slash + 1 : cell;
    stem_len = cell_len - (size_t)(stem - cell);
    if (whole)
        stem = stem_of(cell, cell_len, &stem_len);
    size_t number = mr_string_map_find(&index->stems, text_of, index, stem, stem_len);
    uint32_t at = number == SIZE_MAX ? MR_NO_ENTRY : index->first[number];
    for (; at != MR_NO_ENTRY; at = index->next[at]) {
        size_t len;
        bool exact;
        const char *path = mr_tree_path(index->tree, index->entries[at], &len);
        if (!fits(path, len, cell, cell_len, whole, &exact))
            continue;
        take(&m, at, exact && path_given ? 2 : split_claim(path, len, split));
    }
    return m.count > 1 ? MR_PICTURE_SEVERAL : m.count ? MR_PICTURE_ONE : MR_PICTURE_NONE;
}

/* ---- paths of another machine ------------------------------------------------------------------------------------ */

/* Whether an image may be the one of this name in a folder that is not here: it is in none of its own, or in that of a
 * split or container, and not in another split. */
static bool may_be(const mr_picture_index *index, uint32_t picture, const char *cell)
{
    size_t len;
    uint32_t entry = index->entries[picture];
    const char *path = mr_tree_path(index->tree, entry, &len), *slash = memrchr(path, '/', len);
    const char *before = slash && slash > path ? memrchr(path, '/', (size_t)(slash - path)) : NULL;
    const char *folder = before ? before + 1 : path, *mine = mr_picture_split(index, entry);
    const char *theirs = mr_split_of_path(cell, strlen(cell));
    return (!slash || mr_folder_word(folder, (size_t)(slash - folder))) && (!mine || !theirs || !strcmp(mine, theirs));
}

/* An absolute path, an address without its scheme, or a path with backslashes: by the longest end of it that is an
 * image's path; one that begins with "..": by all of the rest. */
static mr_picture_match find_foreign(const mr_picture_index *index, const char *cell, const char *split,
                                     uint32_t found[2])
{
    char path[1024] = "";
    size_t len = strlen(cell);
    if (len >= sizeof path)
        return MR_PICTURE_NONE;
    for (size_t i = 0, n = 0; i <= len; i++) {
        path[n] = (char)(cell[i] == '\\' ? '/' : cell[i]);
        n += n < 2 || path[n] != '/' || path[n - 1] != '/'; /* "a//b" is a/b */
    }
    bool up = !strncmp(path, "../", 3), absolute = leads_out(path, strlen(path));
    const char *at = path + (len > 1 && path[1] == ':' ? 2 : 0);
    at += strspn(at, "/");
    while (!strncmp(at, "../", 3)) /* from the folder of the table */
        at += 3;
    if (leads_out(at, strlen(at)))
        return MR_PICTURE_OUTSIDE;
    if (up) {
        mr_picture_match match = find_cell(index, at, split, found);
        bool sure = strchr(at, '/') || (match == MR_PICTURE_ONE && may_be(index, found[0], path));
        return match == MR_PICTURE_NONE || !sure ? MR_PICTURE_OUTSIDE : match;
    }
    if (!absolute)
        return find_cell(index, at, split, found);
    for (const char *slash;; at = slash + 1) {
        slash = strchr(at, '/');
        mr_picture_match match = find_cell(index, at, split, found);
        if (match != MR_PICTURE_NONE)
            return slash || match == MR_PICTURE_SEVERAL || may_be(index, found[0], path) ? match : MR_PICTURE_NONE;
        if (!slash)
            return MR_PICTURE_NONE;
    }
}

/* The length of the cell without "#0" after the ending of an image. */
static size_t without_number(const char *cell)
{
    size_t len = strlen(cell), at = len;
    while (at && cell[at - 1] >= '0' && cell[at - 1] <= '9')
        at--;
    return at > 1 && at < len && cell[at - 1] == '#' && mr_name_is_image(cell, at - 1) ? at - 1 : len;
}

bool mr_cell_is_image(const char *cell)
{
    return mr_name_is_image(cell, without_number(cell));
}

/* Whether the folders may be those of the root: "b/" and "x/a/b/" may for a/b/, as the source's own name is not known.
 */
static bool may_be_root(const mr_tree *t, const char *folders, size_t len)
{
    bool shorter = len < t->root_len;
    size_t same = shorter ? len : t->root_len, rest = (shorter ? t->root_len : len) - same;
    return !memcmp(t->root + t->root_len - same, folders + len - same, same) &&
           (!rest || (shorter ? t->root : folders)[rest - 1] == '/');
}

size_t mr_picture_above(const mr_picture_index *index, const char *cell)
{
    const mr_tree *t = index->tree;
    const char *slash = strchr(cell, '/');
    if (!slash || slash == cell || leads_out(cell, strlen(cell)) || mr_tree_has_dir(t, cell, (size_t)(slash - cell)))
        return 0;
    for (const char *part = cell; slash; part = slash + 1, slash = strchr(part, '/')) {
        size_t above = (size_t)(slash + 1 - cell), len = strlen(slash + 1);
        if (mr_folder_word(part, (size_t)(slash - part)))
            return 0;
        if (t->root_len ? !may_be_root(t, cell, above) : !strchr(slash + 1, '/'))
            continue;
        if (mr_picture_place(index, mr_tree_find(t, slash + 1, len)) < index->count)
            return above;
    }
    return 0;
}

mr_picture_match mr_picture_find(const mr_picture_index *index, const char *cell, const char *split, uint32_t found[2])
{
    char whole[1024] = "";
    size_t len = without_number(cell), above;
    mr_picture_match match = find_cell(index, cell, split, found);
    if (match == MR_PICTURE_NONE && (above = mr_picture_above(index, cell)))
        return find_cell(index, cell + above, split, found);
    if (match == MR_PICTURE_NONE && cell[len] && len < sizeof whole) {
        memcpy(whole, cell, len);
        whole[len] = '\0';
        return mr_picture_find(index, whole, split, found);
    }
    if (match == MR_PICTURE_NONE && strchr(cell, '%')) {
        MR_AUTO(mr_buf_free) mr_buf plain = {0};
        mr_buf_add(&plain, cell, strlen(cell));
        if (mr_name_decode(&plain) && !plain.failed)
            match = mr_picture_find(index, mr_buf_text(&plain), split, found);
        if (match != MR_PICTURE_NONE)
            return match;
    }
    mr_value id = mr_value_of(cell, len);
    if (match == MR_PICTURE_NONE && id.kind == MR_VALUE_WHOLE && strcmp(id.name, cell) != 0)
        return find_cell(index, id.name, split, found); /* 7.0, as pandas writes ids where one is missing */
    const char *scheme = strstr(cell, "://"), *query = scheme ? strchr(scheme, '?') : NULL;
    if (match == MR_PICTURE_NONE && query && (len = (size_t)(query - cell)) < sizeof whole) {
        memcpy(whole, cell, len);
        whole[len] = '\0';
        return mr_picture_find(index, whole, split, found);
    }
    bool elsewhere = match == MR_PICTURE_OUTSIDE ||
                     (match == MR_PICTURE_NONE && (scheme || strchr(cell, '\\') || strstr(cell, "//")));
    cell = scheme ? scheme + 2 : cell;
    return elsewhere ? find_foreign(index, cell, split, found) : match;
}
