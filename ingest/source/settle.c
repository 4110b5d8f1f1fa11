/* settle.c - the listing in its final form: sorted, one entry per name, no entry under the name of a file.
 * Invariant: the work is proportional to the bytes of the names, even for long common prefixes or deep nesting. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/source/list.h"

int mr_list_compare_listed(const listed *a, const listed *b)
{
    int order = mr_list_compare(a->entry.path, a->entry.path_len, b->entry.path, b->entry.path_len);
    if (order == 0)
        order = (a->part > b->part) - (a->part < b->part);
    return order ? order : (a->order < b->order) - (a->order > b->order);
}

static int by_path(const void *a, const void *b)
{
    return mr_list_compare_listed(a, b);
}

void mr_list_count_replaced(list *l, uint32_t part, const char *path)
{
    if (!l->parts[part].replaced++)
        l->parts[part].first = path;
}

/* `loser` has the name of `kept`, and `before` it in order; both may be one. */
static void note_double(list *l, const listed *kept, const listed *before, const listed *loser)
{
    const mr_entry *e = &loser->entry;
    if (before->part == loser->part) {
        mr_list_count_replaced(l, loser->part, e->path);
        return;
    }
    mr_note_add(l->notes, MR_NOTE_COLLISION, e->path, e->path_len, e->size,
                "an earlier file of this name (%llu bytes) is kept", (unsigned long long)kept->entry.size);
}

void mr_list_note_replaced(list *l)
{
    for (size_t i = 0; i < l->part_count; i++) {
        const list_part *part = &l->parts[i];
        MR_AUTO(mr_buf_free) mr_buf first = {0};
        char count[32];
        if (!part->replaced)
            continue;
        mr_text_escape(&first, part->first, strlen(part->first));
        mr_note_add(l->notes, MR_NOTE_INFO, part->name, strlen(part->name), 0,
                    "%s of its entries %s replaced by a later one of the same name, as when it is unpacked; first: %s",
                    mr_text_count(part->replaced, count), part->replaced == 1 ? "is" : "are", mr_buf_text(&first));
        l->notes->failed = l->notes->failed || first.failed;
    }
}

mr_status mr_list_settle(list *l, mr_error *err)
{
    mr_source *s = l->source;
    if (l->count)
        qsort(l->items, l->count, sizeof *l->items, by_path);
    free(s->entries);
    s->entries = mr_alloc(l->count, sizeof *s->entries);
    s->count = 0;
    if (!s->entries)
        return mr_fail_memory(err, "listing the source");
    listed before = {.order = 0};
    for (size_t i = 0; i < l->count; i++) {
        const listed item = l->items[i];
        const listed *kept = s->count ? &l->items[s->count - 1] : NULL;
        if (kept &&
            mr_list_compare(kept->entry.path, kept->entry.path_len, item.entry.path, item.entry.path_len) == 0) {
            note_double(l, kept, &before, &item);
        } else {
            l->items[s->count] = item;
            s->entries[s->count++] = item.entry;
        }
        before = item;
    }
    l->count = s->count; /* without duplicates, so that links may be added and the list settled again */
    return MR_OK;
}

static bool begins(const mr_entry *name, const mr_entry *with)
{
    return name->path_len >= with->path_len && memcmp(name->path, with->path, with->path_len) == 0;
}

/* Names with a common prefix are neighbors, so the prefixes of the current one are a stack of entries.
 *
 *   a  a-b  a-b/c  a/d      at a-b/c it holds a and a-b; at a/d only a                                              */
static size_t pop_others(const mr_source *s, const uint32_t *stack, size_t depth, const mr_entry *e)
{
    while (depth && !begins(e, &s->entries[stack[depth - 1]]))
        depth--;
    return depth;
}

static bool is_folder_of(const mr_entry *prefix, const mr_entry *e)
{
    return e->path[prefix->path_len] == '/';
}

void mr_list_keep_only(list *l, const bool *gone)
{
    mr_source *s = l->source;
    size_t kept = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (gone[i])
            continue;
        l->items[kept] = l->items[i];
        s->entries[kept++] = s->entries[i];
    }
    l->count = s->count = kept;
}

mr_status mr_list_drop_replaced_files(list *l, mr_error *err)
{
    mr_source *s = l->source;
    size_t depth = 0, capacity = 0;
    MR_AUTO(mr_scope_free) uint32_t *stack = NULL;
    MR_AUTO(mr_scope_free) bool *gone = mr_alloc(s->count, sizeof *gone);
    if (!gone)
        return mr_fail_memory(err, "listing the source");
    for (size_t i = 0; i < s->count; i++) {
        const listed *item = &l->items[i];
        depth = pop_others(s, stack, depth, &item->entry);
        for (size_t k = 0; k < depth; k++) {
            const listed *file = &l->items[stack[k]];
            if (gone[stack[k]] || !is_folder_of(&file->entry, &item->entry) || file->part != item->part ||
                file->order > item->order)
                continue;
            gone[stack[k]] = true;
            mr_list_count_replaced(l, file->part, file->entry.path);
        }
        if (!MR_GROW(stack, depth, capacity))
            return mr_fail_memory(err, "listing the source");
        stack[depth++] = (uint32_t)i;
    }
    mr_list_keep_only(l, gone);
    return MR_OK;
}

/* "a" and "a/b" cannot both be exported: otherwise the file "a" is kept, what is under its name is dropped. */
mr_status mr_list_drop_under_files(list *l, mr_error *err)
{
    mr_source *s = l->source;
    size_t kept = 0, depth = 0, capacity = 0;
    MR_AUTO(mr_scope_free) uint32_t *stack = NULL; /* entries, each a prefix of the next */
    for (size_t i = 0; i < s->count; i++) {
        const mr_entry e = s->entries[i];
        bool under = false;
        depth = pop_others(s, stack, depth, &e);
        for (size_t k = 0; k < depth && !under; k++)
            under = is_folder_of(&s->entries[stack[k]], &e);
        if (under) {
            mr_note_add(l->notes, MR_NOTE_COLLISION, e.path, e.path_len, e.size, "a file has the name of its folder");
            continue;
        }
        if (!MR_GROW(stack, depth, capacity))
            return mr_fail_memory(err, "listing the source");
        stack[depth++] = (uint32_t)kept;
        s->entries[kept++] = e;
    }
    s->count = kept;
    return MR_OK;
}
