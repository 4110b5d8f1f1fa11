/* tree.c - a layout's view: the part of a source under a root.
 * Invariant: entries are sorted by path, so a folder is one run and children are found by binary search. */
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/source/names.h"
#include "ingest/source/source.h"

/* First entry at or after `from` whose path does not start with the prefix. */
static uint32_t run_end(const mr_source *s, const char *prefix, size_t len, uint32_t from, uint32_t limit)
{
    uint32_t low = from, high = limit;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const mr_entry *e = mr_source_entry(s, middle);
        if (e->path_len >= len && memcmp(e->path, prefix, len) == 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

mr_tree mr_tree_at(const mr_source *s, const char *root, size_t root_len)
{
    mr_tree t = {.source = s, .root = root, .root_len = root_len};
    t.begin = mr_source_lower(s, root, root_len);
    t.end = run_end(s, root, root_len, t.begin, mr_source_count(s));
    return t;
}

/* root + path (+ "/") into `full`; 0 if it is too long to be a path of the tree. */
static size_t join(const mr_tree *t, const char *path, size_t len, bool as_dir, char full[8192])
{
    if (t->root_len + len + 1 >= 8192)
        return 0;
    if (t->root_len)
        memcpy(full, t->root, t->root_len);
    if (len)
        memcpy(full + t->root_len, path, len);
    size_t n = t->root_len + len;
    if (as_dir && len)
        full[n++] = '/';
    full[n] = '\0';
    return n;
}

bool mr_tree_next(const mr_tree *t, const char *dir, size_t dir_len, mr_child *child)
{
    char prefix[8192];
    size_t n = join(t, dir, dir_len, true, prefix);
    uint32_t at = child->name ? child->end : 0;
    if (!child->name) {
        if (n == 0 && dir_len)
            return false;
        at = n == t->root_len ? t->begin : mr_source_lower(t->source, prefix, n);
    }
    if (at >= t->end)
        return false;
    const mr_entry *e = mr_source_entry(t->source, at);
    if (e->path_len <= n || memcmp(e->path, prefix, n) != 0)
        return false;
    const char *name = e->path + n;
    const char *slash = memchr(name, '/', e->path_len - n);
    child->name = name;
    child->name_len = slash ? (size_t)(slash - name) : e->path_len - n;
    child->is_dir = slash != NULL;
    child->entry = at;
    child->end = slash ? run_end(t->source, e->path, n + child->name_len + 1, at, t->end) : at + 1;
    return true;
}

uint32_t mr_tree_run_end(const mr_tree *t, uint32_t entry, size_t len)
{
    return run_end(t->source, mr_source_entry(t->source, entry)->path, t->root_len + len, entry, t->end);
}

uint32_t mr_tree_find(const mr_tree *t, const char *path, size_t len)
{
    char full[8192];
    size_t n = join(t, path, len, false, full);
    if (n == 0)
        return MR_NO_ENTRY;
    uint32_t at = mr_source_lower(t->source, full, n);
    if (at >= t->end)
        return MR_NO_ENTRY;
    const mr_entry *e = mr_source_entry(t->source, at);
    return e->path_len == n && memcmp(e->path, full, n) == 0 ? at : MR_NO_ENTRY;
}

uint32_t mr_tree_find_alike(const mr_tree *t, uint32_t entry, const char *name, size_t len)
{
    for (; entry < t->end; entry++) {
        size_t path_len;
        const char *path = mr_tree_path(t, entry, &path_len), *slash = memrchr(path, '/', path_len);
        const char *last = slash ? slash + 1 : path;
        if (mr_name_alike(last, path_len - (size_t)(last - path), name, len))
            return entry;
    }
    return MR_NO_ENTRY;
}

bool mr_tree_has_dir(const mr_tree *t, const char *path, size_t len)
{
    mr_child child = {0};
    return mr_tree_next(t, path, len, &child);
}

const char *mr_tree_path(const mr_tree *t, uint32_t entry, size_t *len)
{
    const mr_entry *e = mr_source_entry(t->source, entry);
    *len = e->path_len - t->root_len;
    return e->path + t->root_len;
}

void mr_source_quote(const char *path, size_t len, mr_buf *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+=:,@%";
    MR_AUTO(mr_buf_free) mr_buf escaped = {0};
    mr_text_escape(&escaped, path, len);
    const char *text = mr_buf_text(&escaped);
    bool quoted = !*text || text[strspn(text, plain)];
    mr_buf_add_text(out, quoted ? "'" : "");
    for (; *text; text++)
        mr_buf_add(out, *text == '\'' ? "'\\''" : text, *text == '\'' ? 4 : 1);
    mr_buf_add_text(out, quoted ? "'" : "");
    out->failed = out->failed || escaped.failed;
}

void mr_source_leave_out(const char *path, size_t len, mr_buf *out)
{
    mr_buf_add_text(out, "--exclude ");
    mr_source_quote(path, len, out);
}

mr_status mr_source_dispensable(const mr_source *s, uint32_t entry, const char *what, mr_status status, mr_error *err)
{
    const mr_entry *e = mr_source_entry(s, entry);
    MR_AUTO(mr_buf_free) mr_buf option = {0};
    if (status != MR_BAD_DATA || !err)
        return status;
    mr_source_leave_out(e->path, e->path_len, &option);
    return mr_fail(err, status, "%s; %s %s", err->text, mr_buf_text(&option), what);
}
