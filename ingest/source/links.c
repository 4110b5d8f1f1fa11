/* links.c - links of folders and archives: other names for files of the same tree.
 * Invariant: a link is resolved by names alone, inside the tree, so it cannot lead out of it, and a folder and its
 * archive give the same files.  Absolute links and links to folders are not followed: what they lead to has no name in
 * the tree.  What the file system knows about a link is used only for messages. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "ingest/source/names.h"
#include "ingest/source/list.h"

enum { HOPS_MAX = 40 }; /* links that lead to links; the kernel's limit */

static mr_status keep(list *l, const pending_link *link, mr_error *err)
{
    char *path = mr_list_keep(l->source, link->path, link->path_len);
    char *target = mr_list_keep(l->source, link->target, link->target_len);
    if (!path || !target || !MR_GROW(l->links, l->link_count, l->link_capacity))
        return mr_fail_memory(err, "listing the source");
    pending_link *kept = &l->links[l->link_count++];
    *kept = *link;
    kept->path = path;
    kept->target = target;
    kept->order = l->arrived++;
    kept->part = (uint32_t)l->part_count - 1;
    return MR_OK;
}

mr_status mr_list_link(list *l, const char *path, size_t len, const char *target, mr_error *err)
{
    size_t target_len = strlen(target);
    if (!mr_list_name_ok(l, path, len))
        return MR_OK;
    if (mr_list_unsafe(target, target_len)) {
        target = "";
        target_len = 0;
    }
    return keep(
        l,
        &(pending_link){.path = path, .path_len = (uint32_t)len, .target = target, .target_len = (uint32_t)target_len},
        err);
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

mr_status mr_list_symlink(list *l, const char *path, size_t len, const char *target, link_end end, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf full = {0};
    pending_link link = {.path = path, .path_len = (uint32_t)len, .target = "", .end = end, .symbolic = true};
    if (!mr_list_name_ok(l, path, len))
        return MR_OK;
    if (mr_path_beside(path, len, target, &full) && !mr_list_unsafe((const char *)full.data, full.len)) {
        link.target = (const char *)full.data;
        link.target_len = (uint32_t)full.len;
    }
    MR_TRY(mr_buf_status(&full, err, "listing the source"));
    return keep(l, &link, err);
}

/* ---- equal names ------------------------------------------------------------------------------------------------- */

static listed as_listed(const pending_link *link)
{
    return (listed){
        .entry = {.path = link->path, .path_len = link->path_len}, .order = link->order, .part = link->part};
}

static int by_listed(const void *a, const void *b)
{
    return mr_list_compare_listed(a, b);
}

/* The first of the sorted items that does not come before `key`; l->count: there is none. */
static size_t lower_item(const list *l, const listed *key)
{
    size_t low = 0, high = l->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (mr_list_compare_listed(&l->items[middle], key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A hard link is the file that had its target's name at the link's place in its archive: a later entry of that name
 * is another file. */
void mr_list_bind(list *l)
{
    if (l->link_count && l->count)
        qsort(l->items, l->count, sizeof *l->items, by_listed);
    for (size_t i = 0; i < l->link_count; i++) {
        pending_link *link = &l->links[i];
        listed key = as_listed(link);
        key.entry.path = link->target;
        key.entry.path_len = link->target_len;
        size_t at = link->symbolic || !link->target_len ? l->count : lower_item(l, &key);
        const listed *found = at < l->count ? &l->items[at] : NULL;
        link->bound = found && found->part == link->part && found->entry.path_len == link->target_len &&
                      memcmp(found->entry.path, link->target, link->target_len) == 0;
        if (link->bound)
            link->bytes = found->entry;
    }
}

static int by_place(const void *a, const void *b)
{
    const listed x = as_listed(a), y = as_listed(b);
    return mr_list_compare_listed(&x, &y);
}

/* Whether the link's archive has files in a folder of its name later. */
static bool became_folder(const list *l, const pending_link *link)
{
    char folder[LIST_PATH_MAX + 2];
    size_t len = link->path_len + 1;
    memcpy(folder, link->path, link->path_len);
    folder[len - 1] = '/';
    for (size_t at = mr_source_lower(l->source, folder, len); at < l->source->count; at++) {
        const listed *item = &l->items[at];
        if (item->entry.path_len < len || memcmp(item->entry.path, folder, len) != 0)
            return false;
        if (item->part == link->part && item->order > link->order)
            return true;
    }
    return false;
}

/* Marks a link that a later entry of its archive replaces as done, and finds an entry that it replaces: that is gone
 * even if the link is not followed. */
static void replace(list *l, pending_link *link, const pending_link *later, bool *gone)
{
    uint32_t at = mr_list_find(l->source, link->path, link->path_len);
    const listed *item = at == MR_NO_ENTRY || l->items[at].part != link->part ? NULL : &l->items[at];
    bool again = later && later->part == link->part &&
                 mr_list_compare(later->path, later->path_len, link->path, link->path_len) == 0;
    if (again || (item && item->order > link->order) || became_folder(l, link)) {
        link->done = true;
        mr_list_count_replaced(l, link->part, link->path);
    } else if (item && (link->symbolic || link->bound)) {
        gone[at] = true;
        mr_list_count_replaced(l, link->part, link->path);
    }
}

/* What is replaced in one archive; the list is settled.  Sorts the links. */
static mr_status drop_replaced(list *l, mr_error *err)
{
    MR_AUTO(mr_scope_free) bool *gone = mr_alloc(l->source->count, sizeof *gone);
    if (!gone)
        return mr_fail_memory(err, "listing the source");
    qsort(l->links, l->link_count, sizeof *l->links, by_place); /* among those of one name, the last comes first */
    for (size_t i = 0; i < l->link_count; i++)
        replace(l, &l->links[i], i ? &l->links[i - 1] : NULL, gone);
    mr_list_keep_only(l, gone);
    return MR_OK;
}

/* Which entries have a name that a link claims with more right; the list is settled. */
static void find_contested(const list *l, bool *contested)
{
    for (size_t i = 0; i < l->link_count; i++) {
        const pending_link *link = &l->links[i];
        uint32_t at =
            link->done || !link->target_len ? MR_NO_ENTRY : mr_list_find(l->source, link->path, link->path_len);
        const listed claim = as_listed(link);
        if (at != MR_NO_ENTRY && mr_list_compare_listed(&claim, &l->items[at]) < 0)
            contested[at] = true;
    }
}

/* Adds the links whose targets are listed by now and, unless `contested` is NULL, not contested. */
static mr_status resolve_once(list *l, const bool *contested, mr_error *err)
{
    for (size_t i = 0; i < l->link_count; i++) {
        pending_link *link = &l->links[i];
        bool by_name = !link->done && !link->bound;
        uint32_t target = by_name ? mr_list_find(l->source, link->target, link->target_len) : MR_NO_ENTRY;
        if (by_name ? target == MR_NO_ENTRY || (contested && contested[target]) : link->done)
            continue;
        mr_entry e = by_name ? l->source->entries[target] : link->bytes;
        e.path = link->path;
        e.path_len = link->path_len;
        size_t before = l->count;
        MR_TRY(mr_list_add(l, &e, err));
        if (l->count > before) {
            l->items[before].order = link->order;
            l->items[before].part = link->part;
        }
        link->done = true;
    }
    return MR_OK;
}

/* ---- links that are not followed --------------------------------------------------------------------------------- */

static int by_path(const void *a, const void *b)
{
    const pending_link *x = *(pending_link *const *)a, *y = *(pending_link *const *)b;
    return mr_list_compare(x->path, x->path_len, y->path, y->path_len);
}

typedef struct unresolved { /* links, sorted by path */
    const list *list;
    const pending_link **items;
    size_t count;
} unresolved;

static const pending_link *find_unresolved(const unresolved *l, const char *path, size_t len)
{
    const pending_link key = {.path = path, .path_len = (uint32_t)len}, *wanted = &key;
    const pending_link **found = l->count ? bsearch(&wanted, l->items, l->count, sizeof *l->items, by_path) : NULL;
    return found ? *found : NULL;
}

/* Whether one of the folders above the target is a link. */
static bool through_link(const unresolved *l, const pending_link *link)
{
    for (size_t i = 1; i < link->target_len; i++)
        if (link->target[i] == '/' && find_unresolved(l, link->target, i))
            return true;
    return false;
}

typedef struct reason { /* why a link is not followed */
    const char *text;
    bool folder; /* it leads, or may lead, to a folder */
} reason;

/* For a link whose target is unknown: by its name, "bird" may be a folder, "notes.txt" is not. */
static bool named_as_folder(const pending_link *link)
{
    const char *slash = memrchr(link->path, '/', link->path_len), *name = slash ? slash + 1 : link->path;
    return !memchr(name, '.', link->path_len - (size_t)(name - link->path));
}

static reason outside(const pending_link *link)
{
    switch (link->end) {
    case LINK_FOLDER:
        return (reason){"a link to a folder outside the tree: not followed; `cp -rL` copies what it leads to", true};
    case LINK_FILE:
        return (reason){"a link to a file outside the tree: not followed", false};
    case LINK_DEVICE:
        return (reason){"a link to a device, socket or FIFO outside the tree", false};
    case LINK_NOTHING:
        return (reason){"a dangling link out of the tree", named_as_folder(link)};
    default:
        return (reason){"a link out of the tree: not followed", named_as_folder(link)};
    }
}

/* Why a link inside the tree, whose target is not a link, is not followed. */
static reason inside(const unresolved *l, const pending_link *link)
{
    mr_tree whole = mr_tree_at(l->list->source, "", 0);
    if (mr_list_find(l->list->source, link->target, link->target_len) != MR_NO_ENTRY)
        return (reason){"more than 40 links to its target", false};
    if (mr_tree_has_dir(&whole, link->target, link->target_len) || link->end == LINK_FOLDER)
        return (reason){"a link to a folder: not followed; `cp -rL` copies what it leads to", true};
    if (through_link(l, link))
        return (reason){"a link through a link that is not followed; `cp -rL` copies what it leads to", true};
    if (link->end == LINK_DEVICE)
        return (reason){"a link to a device, socket or FIFO", false};
    return (reason){"a link to something that is not a file of the tree", named_as_folder(link)};
}

static reason why_unresolved(const unresolved *l, const pending_link *link)
{
    const pending_link *seen[HOPS_MAX + 1] = {NULL}, *next = link;
    if (!link->symbolic)
        return (reason){link->target_len ? "a hard link to a missing file" : "a hard link out of the tree", false};
    for (size_t hop = 0; hop <= HOPS_MAX; hop++) {
        for (size_t i = 0; i < hop; i++)
            if (seen[i] == next)
                return (reason){"a link to itself, or into a loop of links", false};
        seen[hop] = next;
        const pending_link *after = next->target_len ? find_unresolved(l, next->target, next->target_len) : NULL;
        if (!after)
            return next->target_len ? inside(l, next) : outside(next);
        next = after;
    }
    return (reason){"more than 40 links to its target", false};
}

/* A link that the options leave out is reported by mr_list_leave_out(). */
static mr_status note_one(list *l, const unresolved *rest, const pending_link *link, mr_error *err)
{
    mr_source *s = l->source;
    reason why = why_unresolved(rest, link);
    if (mr_list_left_out(l, link->path, link->path_len) < l->options.leave_out_count)
        return MR_OK;
    mr_note_add(l->notes, MR_NOTE_LINK, link->path, link->path_len, 0, "%s", why.text);
    if (!why.folder && !mr_name_is_image(link->path, link->path_len))
        return MR_OK;
    if (!MR_GROW(s->unfollowed, s->unfollowed_count, s->unfollowed_capacity))
        return mr_fail_memory(err, "listing the source");
    s->unfollowed[s->unfollowed_count++] = (mr_unfollowed_link){link->path, link->path_len};
    return MR_OK;
}

static mr_status note_unresolved(list *l, mr_error *err)
{
    MR_AUTO(mr_scope_free) const pending_link **items = mr_alloc(l->link_count, sizeof *items);
    unresolved rest = {.list = l, .items = items};
    if (!items)
        return mr_fail_memory(err, "listing the source");
    for (size_t i = 0; i < l->link_count; i++)
        if (!l->links[i].done)
            rest.items[rest.count++] = &l->links[i];
    if (rest.count)
        qsort(rest.items, rest.count, sizeof *rest.items, by_path);
    for (size_t i = 0; i < rest.count; i++)
        MR_TRY(note_one(l, &rest, rest.items[i], err));
    return MR_OK;
}

mr_status mr_list_resolve(list *l, mr_error *err)
{
    if (!l->link_count)
        return MR_OK;
    MR_TRY(drop_replaced(l, err));
    for (int hop = 0; hop < HOPS_MAX; hop++) {
        size_t before = l->count;
        MR_AUTO(mr_scope_free) bool *contested = mr_alloc(l->source->count, sizeof *contested);
        if (!contested)
            return mr_fail_memory(err, "listing the source");
        find_contested(l, contested);
        MR_TRY(resolve_once(l, contested, err));
        if (l->count == before) /* the links that contest a name have no target */
            MR_TRY(resolve_once(l, NULL, err));
        if (l->count == before)
            break;
        MR_TRY(mr_list_settle(l, err));
    }
    return note_unresolved(l, err);
}
