/* listed.c - which splits an image is in, where several lists of ImageSets/ name it.
 * Invariant: an image is in every split whose list names it, so that ingest finds what two lists share as a leak;
 * trainval counts only for what neither train nor val names, and of several folders of lists the first decides. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "ingest/layout/voc/voc.h"

static int by_entry(const void *a, const void *b)
{
    const mr_voc_listed *x = a, *y = b;
    if (x->entry != y->entry)
        return x->entry < y->entry ? -1 : 1;
    if (x->folder != y->folder)
        return x->folder < y->folder ? -1 : 1;
    return (x->split > y->split) - (x->split < y->split);
}

static int by_split(const void *a, const void *b)
{
    const mr_voc_listed *x = a, *y = b;
    if (x->split != y->split)
        return x->split < y->split ? -1 : 1;
    return (x->entry > y->entry) - (x->entry < y->entry);
}

/* Keeps one record for each split of an image, at items[*kept]; true: a folder that does not count says otherwise. */
static bool settle_image(const mr_voc_listed *from, size_t count, mr_voc_listed *items, size_t *kept)
{
    bool half = false, differs = false;
    size_t first = *kept, own = 0;
    const mr_voc_listed whole = *from;
    for (; own < count && from[own].folder == whole.folder; own++)
        half = half || from[own].half;
    for (size_t i = 0; i < own; i++) {
        const mr_voc_listed one = from[i];
        bool again = *kept > first && items[*kept - 1].split == one.split;
        if (one.split != MR_NO_ENTRY && !again && !(one.whole && half))
            items[(*kept)++] = one;
    }
    for (size_t i = own; i < count; i++) {
        bool same = false;
        for (size_t k = first; k < *kept; k++)
            same = same || items[k].split == from[i].split;
        differs = differs || (!same && !from[i].whole);
    }
    if (*kept == first) {
        items[*kept] = whole;
        items[(*kept)++].split = MR_NO_ENTRY;
    }
    return differs;
}

mr_status mr_voc_lists_settle(mr_voc_lists *lists, mr_plan *plan, mr_error *err)
{
    size_t kept = 0, differ = 0, several = 0;
    MR_AUTO(mr_scope_free) mr_voc_listed *from = mr_alloc(lists->count + 1, sizeof *from);
    if (!from)
        return mr_fail_memory(err, "reading image lists");
    if (lists->count) {
        memcpy(from, lists->items, lists->count * sizeof *from);
        qsort(from, lists->count, sizeof *from, by_entry);
    }
    for (size_t i = 0, end; i < lists->count; i = end) {
        for (end = i + 1; end < lists->count && from[end].entry == from[i].entry; end++)
            ;
        size_t before = kept;
        differ += settle_image(from + i, end - i, lists->items, &kept);
        several += kept > before + 1;
    }
    lists->count = kept;
    if (kept)
        qsort(lists->items, kept, sizeof *lists->items, by_split);
    if (several)
        mr_note_add(
            plan->notes, MR_NOTE_INFO, "ImageSets", strlen("ImageSets"), 0,
            "images that lists of several splits name, stored in each: %zu; --split-map SPLIT= leaves a split out",
            several);
    if (differ)
        mr_note_add(
            plan->notes, MR_NOTE_INFO, "ImageSets", strlen("ImageSets"), 0,
            "images that a list of another folder puts in another split: %zu; Main/ decides, then Segmentation/, "
            "Layout/, Action/",
            differ);
    return MR_OK;
}

void mr_voc_lists_free(mr_voc_lists *lists)
{
    free(lists->items);
    *lists = (mr_voc_lists){0};
}
