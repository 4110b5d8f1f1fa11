/* leave_out.c - files and folders that the user leaves out, before any layout sees the tree.
 * Invariant: links are resolved first, so a link to a file that is left out still has its bytes. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/source/names.h"
#include "ingest/source/list.h"

/* The file itself, or a folder above it. */
static bool is_under(const char *path, size_t len, const char *name, size_t name_len)
{
    return name_len && len >= name_len && !memcmp(path, name, name_len) && (len == name_len || path[name_len] == '/');
}

static size_t trimmed(const char *name, size_t len)
{
    while (len && name[len - 1] == '/')
        len--;
    return len;
}

/* "**" at its start stands for any folders, or none. */
static bool fits_pattern(const char *pattern, const char *path)
{
    bool anywhere = !strncmp(pattern, "**/", 3);
    pattern += anywhere ? 3 : 0;
    while (fnmatch(pattern, path, FNM_PATHNAME | FNM_LEADING_DIR) != 0) {
        const char *slash = anywhere ? strchr(path, '/') : NULL;
        if (!slash)
            return false;
        path = slash + 1;
    }
    return true;
}

/* The option is a path in bytes, a pattern, or a path as reports write it. */
static bool matches(const char *option, const char *path, size_t len)
{
    size_t n = trimmed(option, strlen(option));
    if (is_under(path, len, option, n))
        return true;
    if (strpbrk(option, "*?["))
        return fits_pattern(option, path);
    MR_AUTO(mr_buf_free) mr_buf bytes = {0};
    return strchr(option, '\\') && mr_text_unescape(&bytes, option, n) &&
           is_under(path, len, (const char *)bytes.data, bytes.len);
}

size_t mr_list_left_out(const list *l, const char *path, size_t len)
{
    size_t i = 0;
    while (i < l->options.leave_out_count && !matches(l->options.leave_out[i], path, len))
        i++;
    return i;
}

typedef struct dropped { /* by one option */
    size_t files, images;
    uint64_t bytes;
} dropped;

static void drop(list *l, dropped *sums)
{
    mr_source *s = l->source;
    size_t kept = 0, options = l->options.leave_out_count;
    for (size_t i = 0; i < s->count; i++) {
        const mr_entry *e = &s->entries[i];
        size_t option = mr_list_left_out(l, e->path, e->path_len);
        if (option == options) {
            s->entries[kept++] = *e;
            continue;
        }
        sums[option].files++;
        sums[option].images += mr_name_is_image(e->path, e->path_len);
        sums[option].bytes += e->size;
    }
    s->count = kept;
    for (size_t i = 0; i < l->link_count; i++) {
        const pending_link *link = &l->links[i];
        size_t option = link->done ? options : mr_list_left_out(l, link->path, link->path_len);
        if (option < options)
            sums[option].files++;
    }
}

mr_status mr_list_leave_out(list *l, mr_error *err)
{
    if (!l->options.leave_out_count)
        return MR_OK;
    MR_AUTO(mr_scope_free) dropped *sums = mr_alloc(l->options.leave_out_count, sizeof *sums);
    if (!sums)
        return mr_fail_memory(err, "listing the source");
    drop(l, sums);
    for (size_t i = 0; i < l->options.leave_out_count; i++) {
        const char *option = l->options.leave_out[i];
        char files[32], images[32];
        if (!sums[i].files)
            return mr_fail(err, MR_MISUSE, "--exclude %s: the source has no such file or folder", option);
        mr_note_add(l->notes, MR_NOTE_INFO, option, strlen(option), sums[i].bytes,
                    "left out by --exclude: %s file%s, %s of them images", mr_text_count(sums[i].files, files),
                    sums[i].files == 1 ? "" : "s", mr_text_count(sums[i].images, images));
    }
    return MR_OK;
}
