/* leave_out.c - files and folders that the user leaves out, before anybody looks at the tree.
 * Invariant: links are resolved before, so a link to a file that is left out still leads to its bytes. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "source/list.h"

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

/* Names are given in bytes, as a pattern, or as reports write them. */
static bool fits(const char *option, const char *path, size_t len)
{
    size_t n = trimmed(option, strlen(option));
    if (is_under(path, len, option, n))
        return true;
    if (strpbrk(option, "*?["))
        return fnmatch(option, path, FNM_PATHNAME | FNM_LEADING_DIR) == 0;
    mr_buf bytes = {0};
    bool yes = strchr(option, '\\') && mr_text_unescape(&bytes, option, n) &&
               is_under(path, len, (const char *)bytes.data, bytes.len);
    mr_buf_free(&bytes);
    return yes;
}

size_t list_left_out(const list *l, const char *path, size_t len)
{
    size_t i = 0;
    while (i < l->options.leave_out_count && !fits(l->options.leave_out[i], path, len))
        i++;
    return i;
}

mr_status list_leave_out(list *l, mr_error *err)
{
    struct dropped {
        size_t files, images;
        uint64_t bytes;
    } *sums = mr_alloc(l->options.leave_out_count, sizeof *sums);
    mr_source *s = l->source;
    mr_status status = sums ? MR_OK : mr_fail_memory(err, "listing the source");
    size_t kept = 0;
    for (size_t i = 0; status == MR_OK && l->options.leave_out_count && i < s->count; i++) {
        const mr_entry *e = &s->entries[i];
        size_t option = list_left_out(l, e->path, e->path_len);
        if (option == l->options.leave_out_count) {
            s->entries[kept++] = *e;
            continue;
        }
        sums[option].files++;
        sums[option].images += mr_name_is_image(e->path, e->path_len);
        sums[option].bytes += e->size;
    }
    for (size_t i = 0; status == MR_OK && l->options.leave_out_count && i < l->link_count; i++) {
        size_t option =
            l->links[i].done ? l->options.leave_out_count : list_left_out(l, l->links[i].path, l->links[i].path_len);
        if (option < l->options.leave_out_count)
            sums[option].files++;
    }
    for (size_t i = 0; status == MR_OK && i < l->options.leave_out_count; i++) {
        const char *option = l->options.leave_out[i];
        char files[32], images[32];
        if (!sums[i].files)
            status = mr_fail(err, MR_MISUSE, "--leave-out %s: the source has no such file or folder", option);
        else
            mr_note_add(l->notes, MR_NOTE_INFO, option, strlen(option), sums[i].bytes,
                        "left out by --leave-out: %s file%s, %s of them images", mr_text_count(sums[i].files, files),
                        sums[i].files == 1 ? "" : "s", mr_text_count(sums[i].images, images));
    }
    if (l->options.leave_out_count)
        s->count = kept;
    free(sums);
    return status;
}
