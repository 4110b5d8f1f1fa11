/* groups.c - COCO: annotation files of one split are a group, and each group a split.
 * Invariant: a group has at most one file of a kind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "coco/coco.h"

/* Whether two splits of the source would share the name without its digits; one without pictures does not count. */
static bool is_shared(const mr_coco_build *b, const mr_coco_group *g, size_t cut)
{
    for (size_t i = 0; i < b->st->group_count; i++) {
        const mr_coco_group *other = &b->st->groups[i];
        const mr_coco_part *part = &b->st->parts[other->first];
        if (other->first != g->first && (other->any || !g->any) &&
            mr_coco_without_year(part->split, part->split_len) == cut &&
            !memcmp(part->split, b->st->parts[g->first].split, cut) &&
            !mr_split_map_find(b->options, part->split, part->split_len))
            return true;
    }
    return false;
}

/* train2017 is stored as train, unless the split map names it in full, or there is train2014, too. */
static mr_status get_split(const mr_coco_build *b, mr_plan *plan, const mr_coco_group *g, uint32_t *split)
{
    const mr_coco_part *part = &b->st->parts[g->first];
    size_t len = part->split_len, cut = mr_coco_without_year(part->split, len);
    if (!mr_split_map_find(b->options, part->split, len) &&
        (mr_split_map_find(b->options, part->split, cut) || !is_shared(b, g, cut)))
        len = cut;
    return mr_plan_split_get(plan, b->options, part->split, len, split, b->err);
}

mr_status mr_coco_group_split(const mr_coco_build *b, mr_coco_group *g)
{
    return g->split == MR_NO_ENTRY ? get_split(b, b->plan, g, &g->split) : MR_OK;
}

/* Called on an empty plan first: a split whose images are all missing must not appear in the dataset. */
static mr_status is_left_out(const mr_coco_build *b, const mr_coco_group *g, bool *out)
{
    mr_plan probe = {0};
    uint32_t split = 0;
    mr_status status = get_split(b, &probe, g, &split);
    *out = split == MR_NO_ENTRY;
    b->plan->maps_used |= probe.maps_used;
    free(probe.splits);
    return status;
}

static bool same_split(const mr_coco_part *a, const char *split, size_t len)
{
    return a->split_len == len && !memcmp(a->split, split, len);
}

/* Parts are sorted by their split, bytewise. */
static bool has_parts(const mr_coco_build *b, const char *folder)
{
    size_t low = 0, high = b->st->part_count, len = strlen(folder);
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const mr_coco_part *p = &b->st->parts[mid];
        int order = memcmp(p->split, folder, p->split_len < len ? p->split_len : len);
        if (!order && p->split_len == len)
            return true;
        if (order < 0 || (!order && p->split_len < len))
            low = mid + 1;
        else
            high = mid;
    }
    return false;
}

/* Images of train2017 may be in train/, unless that is another split's. */
static void use_short_folder(const mr_coco_build *b, mr_coco_group *g)
{
    char shorter[sizeof g->folder], path[300];
    size_t len = strlen(g->folder), cut = mr_coco_without_year(g->folder, len);
    if (cut == len || mr_coco_folder(b->tree, g->folder, len, path) || !mr_coco_folder(b->tree, g->folder, cut, path))
        return;
    memcpy(shorter, g->folder, cut);
    shorter[cut] = '\0';
    if (!has_parts(b, shorter))
        memcpy(g->folder, shorter, cut + 1);
}

static void set_beside(const mr_coco_build *b, const mr_coco_part *part, mr_coco_group *g)
{
    size_t len;
    g->beside = mr_tree_path(b->tree, part->entry, &len);
    const char *slash = memrchr(g->beside, '/', len);
    g->beside_len = slash ? (size_t)(slash - g->beside) + 1 : 0;
    if (g->beside_len >= 1024)
        g->beside_len = 0;
}

/* image_info_test-dev2017.json lists some of the images of test2017/ again, where there is no test-dev2017/. */
static mr_status add_group(mr_coco_build *b, size_t first, size_t count)
{
    mr_coco_state *st = b->st;
    if (st->group_count == MR_SPLITS_MAX)
        return mr_fail(b->err, MR_BAD_DATA, "annotation files of more than the %d splits that a dataset may have",
                       MR_SPLITS_MAX);
    const mr_coco_part *part = &st->parts[first];
    mr_coco_group g = {.first = first, .count = count, .split = MR_NO_ENTRY};
    if (part->split_len >= sizeof g.folder)
        return mr_fail(b->err, MR_BAD_DATA, "a split's name of %zu bytes in annotation files", part->split_len);
    memcpy(g.folder, part->split, part->split_len);
    set_beside(b, part, &g);
    char *dev = strstr(g.folder, "-dev"), own[300];
    if (dev && (dev[4 + strspn(dev + 4, "0123456789")] || mr_coco_folder(b->tree, part->split, part->split_len, own)))
        dev = NULL;
    if (dev)
        memmove(dev, dev + 4, strlen(dev + 4) + 1);
    for (size_t i = 0; i < count; i++)
        b->plan->used[part[i].entry] = 1;
    if (!dev)
        use_short_folder(b, &g);
    if (dev && has_parts(b, g.folder)) {
        mr_note_add(b->plan->notes, MR_NOTE_INFO, part->split, part->split_len, 0,
                    "left out: it lists images of %s again", g.folder);
        return MR_OK;
    }
    MR_TRY(is_left_out(b, &g, &g.left_out));
    for (size_t i = 0; i < count && g.left_out; i++) {
        mr_coco_free(st->parts[first + i].file);
        st->parts[first + i].file = NULL;
    }
    if (g.left_out)
        mr_note_add(b->plan->notes, MR_NOTE_INFO, part->split, part->split_len, 0, "left out by --split-map");
    if (!MR_GROW(st->groups, st->group_count, st->group_room))
        return mr_fail_memory(b->err, "listing annotation files");
    st->groups[st->group_count++] = g;
    return MR_OK;
}

/* instances_train.json and instances_train.JSON: which of them counts is unknown. */
static mr_status check_kinds(const mr_coco_build *b, size_t first, size_t end)
{
    const mr_coco_part *p = b->st->parts;
    const mr_source *s = b->tree->source;
    for (size_t i = first + 1; i < end; i++) {
        if (p[i].kind != p[i - 1].kind)
            continue;
        mr_fail(b->err, MR_BAD_DATA, "%s and %s are both the %s of split %.*s",
                mr_source_entry(s, p[i - 1].entry)->path, mr_source_entry(s, p[i].entry)->path,
                mr_coco_kinds[p[i].kind], (int)p[i].split_len, p[i].split);
        return mr_source_dispensable(s, p[i].entry, "takes the other", MR_BAD_DATA, b->err);
    }
    return MR_OK;
}

/* What a file with a name of its own holds, its annotations say. */
static mr_status settle_kinds(const mr_coco_build *b)
{
    for (size_t i = 0; i < b->st->part_count; i++) {
        mr_coco_part *part = &b->st->parts[i];
        if (part->kind != MR_COCO_UNKNOWN)
            continue;
        MR_TRY(mr_coco_open_part(b, part));
        const mr_coco_file *f = part->file;
        part->kind = f->has & MR_COCO_HAS_SEGMENTS                        ? MR_COCO_PANOPTIC
                     : f->has & MR_COCO_HAS_CAPTION && !f->category_count ? MR_COCO_CAPTIONS
                                                                          : MR_COCO_INSTANCES;
    }
    qsort(b->st->parts, b->st->part_count, sizeof *b->st->parts, mr_coco_part_order);
    return MR_OK;
}

mr_status mr_coco_make_groups(mr_coco_build *b)
{
    MR_TRY(settle_kinds(b));
    const mr_coco_part *p = b->st->parts;
    mr_status status = MR_OK;
    for (size_t i = 0, end; i < b->st->part_count && status == MR_OK; i = end) {
        for (end = i + 1; end < b->st->part_count && same_split(&p[end], p[i].split, p[i].split_len); end++)
            ;
        status = check_kinds(b, i, end);
        if (status == MR_OK)
            status = add_group(b, i, end - i);
    }
    return status;
}
