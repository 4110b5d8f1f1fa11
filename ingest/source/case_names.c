/* case_names.c - names that differ only in the case of their letters: two files here, one on a host where case does not
 * matter.
 * Invariant: the only result is a remark; the layouts decide which file belongs to what. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/hash.h"
#include "base/scope.h"
#include "base/text.h"
#include "ingest/source/list.h"

typedef struct folded {
    uint64_t hash; /* hash of the name in lower case */
    uint32_t entry;
} folded;

static uint64_t hash_of(const mr_entry *e)
{
    char lower[LIST_PATH_MAX];
    for (uint32_t i = 0; i < e->path_len; i++)
        lower[i] = (char)(e->path[i] >= 'A' && e->path[i] <= 'Z' ? e->path[i] + 'a' - 'A' : e->path[i]);
    return mr_hash64(lower, e->path_len);
}

static int by_hash(const void *a, const void *b)
{
    const folded *x = a, *y = b;
    int order = (x->hash > y->hash) - (x->hash < y->hash);
    return order ? order : (x->entry > y->entry) - (x->entry < y->entry);
}

static bool same(const mr_source *s, const folded *a, const folded *b)
{
    const mr_entry *x = &s->entries[a->entry], *y = &s->entries[b->entry];
    return a->hash == b->hash && x->path_len == y->path_len && strcasecmp(x->path, y->path) == 0;
}

mr_status mr_list_note_case(list *l, mr_error *err)
{
    const mr_source *s = l->source;
    size_t count = 0;
    uint32_t first[2] = {MR_NO_ENTRY, 0};
    MR_AUTO(mr_scope_free) folded *names = mr_alloc(s->count, sizeof *names);
    if (!names)
        return mr_fail_memory(err, "listing the source");
    for (size_t i = 0; i < s->count; i++)
        names[i] = (folded){hash_of(&s->entries[i]), (uint32_t)i};
    if (s->count)
        qsort(names, s->count, sizeof *names, by_hash);
    for (size_t i = 1; i < s->count; i++) {
        if (!same(s, &names[i - 1], &names[i]))
            continue;
        count++;
        if (names[i - 1].entry < first[0]) {
            first[0] = names[i - 1].entry;
            first[1] = names[i].entry;
        }
    }
    if (!count)
        return MR_OK;
    MR_AUTO(mr_buf_free) mr_buf other = {0};
    char text[32];
    const mr_entry *a = &s->entries[first[0]], *b = &s->entries[first[1]];
    mr_text_escape(&other, b->path, b->path_len);
    mr_note_add(l->notes, MR_NOTE_INFO, a->path, a->path_len, 0,
                "%s differs only in case (%s such name%s in total): two files here, but only one on a case-insensitive "
                "file system",
                mr_buf_text(&other), mr_text_count(count, text), count == 1 ? "" : "s");
    return mr_buf_status(&other, err, "listing the source");
}
