/* names.c - COCO: files that a JSON names by a path of another machine: absolute, a URL, with backslashes, from above.
 * Invariant: such a name is looked up by its last parts, and one that fits several files is an error, never a guess.
 *
 *      "images\\a.jpg"   "/home/me/data/images/a.jpg"   "C:\\data\\a.jpg"   "../images/a.jpg"
 *      "http://images.cocodataset.org/val2017/a.jpg"    "/data/local-files/?d=images/a.jpg"                          */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "coco/coco.h"
#include "layout/folder_names.h"

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* What of a URL or of a path of Windows is a path. */
static void cut_place(const char **name, size_t *len)
{
    const char *at = *name, *end = at + *len;
    const char *scheme = memmem(at, *len, "://", 3), *query = memmem(at, *len, "?d=", 3);
    if (query) {
        at = query + 3;
    } else if (scheme) {
        const char *path = memchr(scheme + 3, '/', (size_t)(end - scheme - 3));
        const char *stop = memchr(scheme, '?', (size_t)(end - scheme));
        at = path ? path : end;
        end = stop && stop > at ? stop : end;
    } else if (*len > 2 && isalpha((unsigned char)at[0]) && at[1] == ':' && at[2] == '/') {
        at += 2;
    }
    *name = at;
    *len = (size_t)(end - at);
}

mr_coco_name_kind mr_coco_name_of(const char *name, size_t len, mr_buf *out)
{
    MR_AUTO(mr_buf_free) mr_buf slashes = {0}, clean = {0};
    if (memchr(name, '\0', len))
        return MR_COCO_NAME_BAD;
    mr_buf_add(&slashes, name, len);
    for (size_t i = 0; i < slashes.len; i++)
        if (slashes.data[i] == '\\')
            slashes.data[i] = '/';
    const char *at = mr_buf_text(&slashes);
    size_t left = slashes.len, whole;
    cut_place(&at, &left);
    bool relative = at == (const char *)slashes.data && left == len && *at != '/';
    if (relative && mr_path_beside("", 0, at, out))
        return out->failed ? MR_COCO_NAME_BAD : MR_COCO_NAME_PLAIN;
    for (const char *end = at + left; at < end; at += whole + 1) {
        const char *slash = memchr(at, '/', (size_t)(end - at));
        whole = (size_t)((slash ? slash : end) - at);
        if (whole == 2 && !memcmp(at, "..", 2)) {
            const char *last = clean.len ? memrchr(clean.data, '/', clean.len) : NULL;
            clean.len = last ? (size_t)(last - (const char *)clean.data) : 0;
        } else if (whole && !(whole == 1 && *at == '.')) {
            mr_buf_add_text(&clean, clean.len ? "/" : "");
            mr_buf_add(&clean, at, whole);
        }
    }
    mr_buf_clear(out);
    mr_buf_add(out, clean.data, clean.len);
    mr_buf_text(out);
    return clean.len && !out->failed && !clean.failed ? MR_COCO_NAME_FOREIGN : MR_COCO_NAME_BAD;
}

/* ---- the images by their names ----------------------------------------------------------------------------------- */

static const char *base_of(const mr_tree *t, uint32_t entry, size_t *len)
{
    const char *path = mr_tree_path(t, entry, len), *slash = memrchr(path, '/', *len);
    *len -= slash ? (size_t)(slash - path) + 1 : 0;
    return slash ? slash + 1 : path;
}

static int compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);
    return order ? order : (a_len > b_len) - (a_len < b_len);
}

static int by_base(const void *a, const void *b, void *tree)
{
    size_t a_len, b_len;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const char *x_name = base_of(tree, x, &a_len), *y_name = base_of(tree, y, &b_len);
    int order = compare(x_name, a_len, y_name, b_len);
    return order ? order : (x > y) - (x < y);
}

static mr_status index_images(const mr_coco_build *b)
{
    mr_coco_state *st = b->st;
    mr_tree tree = *b->tree;
    if (st->by_base)
        return MR_OK;
    st->by_base = mr_alloc(tree.end - tree.begin + 1, sizeof *st->by_base);
    if (!st->by_base)
        return mr_fail_memory(b->err, "listing COCO images");
    for (uint32_t e = tree.begin; e < tree.end; e++) {
        size_t len;
        const char *path = mr_tree_path(&tree, e, &len);
        if (mr_name_is_image(path, len))
            st->by_base[st->by_base_count++] = e;
    }
    if (st->by_base_count)
        qsort_r(st->by_base, st->by_base_count, sizeof *st->by_base, by_base, &tree);
    return MR_OK;
}

static size_t first_with(const mr_coco_build *b, const char *base, size_t len)
{
    size_t low = 0, high = b->st->by_base_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2, name_len;
        const char *name = base_of(b->tree, b->st->by_base[mid], &name_len);
        if (compare(name, name_len, base, len) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* ---- which of them ----------------------------------------------------------------------------------------------- */

/* How many bytes at the end are equal, in whole parts. */
static size_t shared_end(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t same = 0, whole = 0;
    while (same < a_len && same < b_len && a[a_len - same - 1] == b[b_len - same - 1]) {
        same++;
        if (a[a_len - same] == '/')
            whole = same - 1;
    }
    bool a_ends = same == a_len || a[a_len - same - 1] == '/', b_ends = same == b_len || b[b_len - same - 1] == '/';
    return a_ends && b_ends ? same : whole;
}

static const char *split_word(const char *part, size_t len)
{
    return mr_split_word(part, mr_coco_without_year(part, len));
}

/* Whether folders that name and path do not share speak against each other: another split's in the path. */
static bool contradicts(const mr_coco_build *b, const mr_coco_group *g, const char *name, size_t name_len,
                        const char *path, size_t len)
{
    const char *said = split_word(g->folder, strlen(g->folder));
    for (size_t i = 0, end; i < name_len; i = end + 1) {
        const char *slash = memchr(name + i, '/', name_len - i);
        end = slash ? (size_t)(slash - name) : name_len;
        const char *word = split_word(name + i, end - i);
        said = word ? word : said;
    }
    for (size_t i = 0, end; i < len; i = end + 1) {
        const char *slash = memchr(path + i, '/', len - i);
        end = slash ? (size_t)(slash - path) : len;
        const char *word = split_word(path + i, end - i);
        if (word && said && strcmp(word, said) != 0)
            return true;
        for (size_t k = 0; k < b->st->group_count; k++) {
            const char *folder = b->st->groups[k].folder;
            if (&b->st->groups[k] != g && strcmp(folder, g->folder) != 0 && strlen(folder) == end - i &&
                !memcmp(folder, path + i, end - i))
                return true;
        }
    }
    return false;
}

static bool in_own_folder(const mr_coco_group *g, const char *path, size_t len)
{
    size_t folder = strlen(g->folder), skip = len > 7 && !memcmp(path, "images/", 7) ? 7 : 0;
    return len - skip > folder && !memcmp(path + skip, g->folder, folder) && path[skip + folder] == '/';
}

static mr_status several(const mr_coco_build *b, const char *name, uint32_t a, uint32_t c)
{
    const mr_source *s = b->tree->source;
    return mr_fail(b->err, MR_BAD_DATA,
                   "\"file_name\" %.150s of the annotation files may be %.250s or %.250s: let the JSON name its images "
                   "by their paths from the root of the dataset",
                   name, mr_source_entry(s, a)->path, mr_source_entry(s, c)->path);
}

mr_status mr_coco_look_up(const mr_coco_build *b, const mr_coco_group *g, bool foreign, const char *name, size_t len,
                          uint32_t *found)
{
    const char *slash = memrchr(name, '/', len), *base = slash ? slash + 1 : name;
    size_t base_len = len - (size_t)(base - name), best = 0, rivals = 0;
    uint32_t other = MR_NO_ENTRY;
    bool own = false;
    MR_TRY(index_images(b));
    *found = MR_NO_ENTRY;
    for (size_t i = first_with(b, base, base_len); i < b->st->by_base_count; i++) {
        uint32_t entry = b->st->by_base[i];
        size_t path_len, name_len;
        const char *path = mr_tree_path(b->tree, entry, &path_len), *its = base_of(b->tree, entry, &name_len);
        if (compare(its, name_len, base, base_len) != 0)
            break;
        size_t same = shared_end(name, len, path, path_len);
        bool near = foreign || same == path_len || same > base_len;
        if (!near || contradicts(b, g, name, len - same, path, path_len - same))
            continue;
        bool mine = in_own_folder(g, path, path_len);
        if (same > best || (same == best && mine && !own)) {
            *found = entry;
            best = same;
            own = mine;
            rivals = 0;
        } else if (same == best && mine == own) {
            other = entry;
            rivals++;
        }
    }
    return rivals ? several(b, name, *found, other) : MR_OK;
}
