/* settle.c - the listing in its final form: sorted, one entry per name, no entry under the name of a file.
 * Invariant: the work is proportional to the bytes of the names, even for long common prefixes or deep nesting. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "source/list.h"

static int by_path(const void *a, const void *b)
{
    const listed *x = a, *y = b;
    int order = list_compare(x->entry.path, x->entry.path_len, y->entry.path, y->entry.path_len);
    return order ? order : (x->order > y->order) - (x->order < y->order);
}

mr_status list_settle(list *l, mr_error *err)
{
    mr_source *s = l->source;
    if (l->count)
        qsort(l->items, l->count, sizeof *l->items, by_path);
    free(s->entries);
    s->entries = mr_alloc(l->count, sizeof *s->entries);
    s->count = 0;
    if (!s->entries)
        return mr_fail_memory(err, "listing the source");
    for (size_t i = 0; i < l->count; i++) {
        const mr_entry *e = &l->items[i].entry, *last = s->count ? &s->entries[s->count - 1] : NULL;
        if (last && list_compare(last->path, last->path_len, e->path, e->path_len) == 0) {
            mr_note_add(l->notes, MR_NOTE_COLLISION, e->path, e->path_len, e->size,
                        "an earlier file of this name (%llu bytes) is kept", (unsigned long long)last->size);
        } else {
            l->items[s->count] = l->items[i];
            s->entries[s->count++] = *e;
        }
    }
    l->count = s->count; /* without duplicates, so that links may be added and the list settled again */
    return MR_OK;
}

static bool begins(const mr_entry *name, const mr_entry *with)
{
    return name->path_len >= with->path_len && memcmp(name->path, with->path, with->path_len) == 0;
}

/* "a" and "a/b" cannot both be exported: the file "a" is kept, what is under its name is dropped.
 *
 *   a  a-b  a-b/c  a/d      names with a common prefix are neighbors, so the prefixes of the current one are a stack:
 *                           at a-b/c it holds a and a-b; at a/d only a                                              */
mr_status list_drop_under_files(list *l, mr_error *err)
{
    mr_source *s = l->source;
    size_t kept = 0, depth = 0, room = 0;
    MR_AUTO(mr_scope_free) uint32_t *stack = NULL; /* entries, each a prefix of the next */
    for (size_t i = 0; i < s->count; i++) {
        const mr_entry e = s->entries[i];
        bool under = false;
        while (depth && !begins(&e, &s->entries[stack[depth - 1]]))
            depth--;
        for (size_t k = 0; k < depth && !under; k++)
            under = e.path[s->entries[stack[k]].path_len] == '/';
        if (under) {
            mr_note_add(l->notes, MR_NOTE_COLLISION, e.path, e.path_len, e.size, "a file has the name of its folder");
            continue;
        }
        if (!MR_GROW(stack, depth, room))
            return mr_fail_memory(err, "listing the source");
        stack[depth++] = (uint32_t)kept;
        s->entries[kept++] = e;
    }
    s->count = kept;
    return MR_OK;
}
