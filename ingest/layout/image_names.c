/* image_names.c - see image_names.h.
 * Invariant: images are sorted by the last part of their paths, then by their order, so a lookup is a binary search. */
#include "ingest/layout/image_names.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "ingest/source/names.h"

/* ---- names ------------------------------------------------------------------------------------------------------- */

bool mr_name_decode(mr_buf *path)
{
    size_t to = 0;
    for (size_t i = 0; i < path->len; i++, to++) {
        uint8_t byte = path->data[i];
        char hex[3] = "";
        if (byte == '%' && i + 2 < path->len && isxdigit(path->data[i + 1]) && isxdigit(path->data[i + 2]))
            memcpy(hex, path->data + i + 1, 2);
        uint8_t coded = (uint8_t)strtoul(hex, NULL, 16);
        path->data[to] = coded ? coded : byte;
        i += coded ? 2 : 0;
    }
    bool any = to < path->len;
    path->len = to;
    return any;
}

/* The path in a URL, or of a Windows path; true: it was a URL. */
static bool cut_place(const char **name, size_t *len)
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
    return scheme || query;
}

mr_name_kind mr_name_clean(const char *name, size_t len, mr_buf *out)
{
    MR_AUTO(mr_buf_free) mr_buf slashes = {0}, clean = {0};
    if (memchr(name, '\0', len))
        return MR_NAME_BAD;
    mr_buf_add(&slashes, name, len);
    for (size_t i = 0; i < slashes.len; i++)
        if (slashes.data[i] == '\\')
            slashes.data[i] = '/';
    const char *at = mr_buf_text(&slashes);
    size_t left = slashes.len, whole;
    bool url = cut_place(&at, &left);
    bool relative = at == (const char *)slashes.data && left == len && *at != '/';
    if (relative && mr_path_beside("", 0, at, out))
        return out->failed ? MR_NAME_BAD : MR_NAME_PLAIN;
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
    if (url)
        mr_name_decode(&clean);
    mr_buf_clear(out);
    mr_buf_add(out, clean.data, clean.len);
    mr_buf_text(out);
    return clean.len && !out->failed && !clean.failed ? MR_NAME_FOREIGN : MR_NAME_BAD;
}

/* ---- the images -------------------------------------------------------------------------------------------------- */

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

mr_status mr_image_names_list(mr_image_names *names, const mr_tree *t, uint32_t begin, uint32_t end, mr_error *err)
{
    if (names->ready)
        return MR_OK;
    *names = (mr_image_names){.tree = *t, .items = mr_alloc(end - begin + 1, sizeof *names->items)};
    if (!names->items)
        return mr_fail_memory(err, "listing images");
    for (uint32_t e = begin; e < end; e++) {
        size_t len;
        const char *path = mr_tree_path(t, e, &len);
        if (mr_name_is_image(path, len))
            names->items[names->count++] = e;
    }
    if (names->count)
        qsort_r(names->items, names->count, sizeof *names->items, by_base, &names->tree);
    names->ready = true;
    return MR_OK;
}

void mr_image_names_free(mr_image_names *names)
{
    free(names->items);
    *names = (mr_image_names){0};
}

static size_t first_with(const mr_image_names *names, const char *base, size_t len)
{
    size_t low = 0, high = names->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2, name_len;
        const char *name = base_of(&names->tree, names->items[mid], &name_len);
        if (compare(name, name_len, base, len) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

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

mr_name_match mr_image_names_find(const mr_image_names *names, const char *name, size_t len, mr_name_judge *judge,
                                  void *ctx)
{
    const char *slash = memrchr(name, '/', len), *base = slash ? slash + 1 : name;
    size_t base_len = len - (size_t)(base - name), best = 0;
    mr_name_match match = {MR_NO_ENTRY, MR_NO_ENTRY};
    int best_rank = -1;
    for (size_t i = first_with(names, base, base_len); i < names->count; i++) {
        size_t path_len, its_len;
        const char *path = mr_tree_path(&names->tree, names->items[i], &path_len);
        const char *its = base_of(&names->tree, names->items[i], &its_len);
        if (compare(its, its_len, base, base_len) != 0)
            break;
        size_t same = shared_end(name, len, path, path_len);
        int rank = judge ? judge(ctx, path, path_len, same) : 0;
        if (rank < 0)
            continue;
        if (same > best || (same == best && rank > best_rank)) {
            match = (mr_name_match){names->items[i], MR_NO_ENTRY};
            best = same;
            best_rank = rank;
        } else if (same == best && rank == best_rank) {
            match.rival = names->items[i];
        }
    }
    return match;
}

typedef struct asked {
    size_t base;  /* bytes of the name's last part */
    bool folders; /* the name has some of this tree */
} asked;

static int judge_below(void *ctx, const char *path, size_t len, size_t same)
{
    const asked *a = ctx;
    (void)path;
    return !a->folders || same > a->base || same == len ? 0 : -1;
}

mr_status mr_image_names_below(mr_image_names *names, const mr_tree *t, uint32_t begin, uint32_t end, const char *name,
                               size_t len, mr_name_match *out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    mr_name_kind kind = mr_name_clean(name, len, &path);
    *out = (mr_name_match){MR_NO_ENTRY, MR_NO_ENTRY};
    MR_TRY(mr_buf_status(&path, err, "looking up images"));
    if (kind == MR_NAME_BAD)
        return MR_OK;
    const char *text = mr_buf_text(&path), *slash = memrchr(text, '/', path.len);
    asked a = {slash ? path.len - (size_t)(slash - text) - 1 : path.len, slash && kind == MR_NAME_PLAIN};
    MR_TRY(mr_image_names_list(names, t, begin, end, err));
    *out = mr_image_names_find(names, text, path.len, judge_below, &a);
    return MR_OK;
}
