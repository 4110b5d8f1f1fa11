/* source_links.c - links of folders and archives: other names for files of the same tree.
 * Invariant: a link is resolved by names alone, inside the tree, so it cannot lead out of it; a folder and its archive
 * give the same files.  An absolute link has no name in the tree, and nothing has a name behind a link to a folder:
 * neither is followed. */
#include <stdlib.h>
#include <string.h>

#include "source_list.h"

enum { MOST_HOPS = 40 };            /* links that lead to links; the kernel stops there, too */

static mr_status keep(list *l, const char *path, size_t len, const char *target, size_t target_len, bool symbolic,
                      mr_error *err)
{
    char *kept = list_keep(l->source, path, len), *kept_target = list_keep(l->source, target, target_len);
    if (!kept || !kept_target || !MR_GROW(l->links, l->link_count, l->link_room))
        return mr_fail_memory(err, "listing the source");
    l->links[l->link_count++] =
        (pending_link){kept, kept_target, (uint32_t)len, (uint32_t)target_len, l->arrived++, symbolic, false};
    return MR_OK;
}

mr_status list_link(list *l, const char *path, size_t len, const char *target, mr_error *err)
{
    size_t target_len = strlen(target);
    if (!list_name_ok(l, path, len))
        return MR_OK;
    if (list_unsafe(target, target_len)) {
        mr_note_add(l->notes, MR_NOTE_LINK, path, len, 0, "a hard link out of the tree");
        return MR_OK;
    }
    return keep(l, path, len, target, target_len, false, err);
}

bool mr_path_beside(const char *path, size_t len, const char *target, mr_buf *out)
{
    const char *slash = memrchr(path, '/', len);
    mr_buf_clear(out);
    if (!target || *target == '/')
        return false;
    mr_buf_add(out, path, slash ? (size_t)(slash - path) : 0);
    while (*target) {
        size_t part = strcspn(target, "/");
        if (part == 2 && memcmp(target, "..", 2) == 0) {
            if (out->len == 0)
                return false;
            const uint8_t *up = memrchr(out->data, '/', out->len);
            out->len = up ? (size_t)(up - out->data) : 0;
        } else if (part > 0 && !(part == 1 && *target == '.')) {
            if (out->len)
                mr_buf_add(out, "/", 1);
            mr_buf_add(out, target, part);
        }
        target += part;
        target += strspn(target, "/");
    }
    return out->len > 0;
}

mr_status list_symlink(list *l, const char *path, size_t len, const char *target, mr_error *err)
{
    mr_buf full = {0};
    mr_status status = MR_OK;
    if (!list_name_ok(l, path, len))
        return MR_OK;
    if (!mr_path_beside(path, len, target, &full) || list_unsafe((const char *)full.data, full.len))
        mr_note_add(l->notes, MR_NOTE_LINK, path, len, 0, "a link out of the tree");
    else if ((status = mr_buf_status(&full, err, "listing the source")) == MR_OK)
        status = keep(l, path, len, (const char *)full.data, full.len, true, err);
    mr_buf_free(&full);
    return status;
}

/* Which entries would have to give their names to links that came before them; the list is settled. */
static void find_contested(const list *l, bool *contested)
{
    for (size_t i = 0; i < l->link_count; i++) {
        const pending_link *link = &l->links[i];
        uint32_t at = link->done ? MR_NO_ENTRY : list_find(l->source, link->path, link->path_len);
        if (at != MR_NO_ENTRY && link->order < l->items[at].order)
            contested[at] = true;
    }
}

/* Adds the links whose targets are listed by now, and whose targets' names nobody contests: NULL, or he could not. */
static mr_status resolve_once(list *l, const bool *contested, mr_error *err)
{
    for (size_t i = 0; i < l->link_count; i++) {
        pending_link *link = &l->links[i];
        uint32_t target = link->done ? MR_NO_ENTRY : list_find(l->source, link->target, link->target_len);
        if (target == MR_NO_ENTRY || (contested && contested[target]))
            continue;
        mr_entry e = l->source->entries[target];
        e.path = link->path;
        e.path_len = link->path_len;
        size_t before = l->count;
        mr_status status = list_add(l, &e, err);
        if (status != MR_OK)
            return status;
        if (l->count > before)
            l->items[before].order = link->order;
        link->done = true;
    }
    return MR_OK;
}

mr_status list_resolve(list *l, mr_error *err)
{
    mr_status status = MR_OK;
    int hop = 0;
    for (; hop < MOST_HOPS && l->link_count && status == MR_OK; hop++) {
        size_t before = l->count;
        bool *contested = mr_alloc(l->source->count, sizeof *contested);
        if (!contested)
            return mr_fail_memory(err, "listing the source");
        find_contested(l, contested);
        status = resolve_once(l, contested, err);
        if (status == MR_OK && l->count == before)      /* those who contest a name lead nowhere */
            status = resolve_once(l, NULL, err);
        free(contested);
        if (l->count == before)
            break;
        if (status == MR_OK)
            status = list_settle(l, err);
    }
    for (size_t i = 0; i < l->link_count && status == MR_OK; i++) {
        const pending_link *link = &l->links[i];
        if (!link->done)
            mr_note_add(l->notes, MR_NOTE_LINK, link->path, link->path_len, 0, "%s",
                        hop == MOST_HOPS ? "behind more than 40 links, or a link to nothing"
                        : link->symbolic ? "a link to nothing that is a file of the tree"
                                         : "a hard link to a file that is not there");
    }
    return status;
}
