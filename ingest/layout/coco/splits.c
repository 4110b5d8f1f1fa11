/* splits.c - COCO: the split of a group of annotation files, and of an image in it.
 * Invariant: a split without its year is used only if no other split of the source would share the name. */
#include <string.h>

#include "base/scope.h"
#include "ingest/layout/coco/coco.h"
#include "ingest/layout/folder_names.h"

bool mr_coco_same_split(const mr_coco_part *a, const char *split, size_t len)
{
    return a->split_len == len && !memcmp(a->split, split, len);
}

/* Whether two splits of the source would share the name without its digits; one without images does not count. */
static bool is_shared(const mr_coco_build *b, const mr_coco_group *g, size_t cut)
{
    for (size_t i = 0; i < b->st->group_count; i++) {
        const mr_coco_group *other = &b->st->groups[i];
        const mr_coco_part *part = &b->st->parts[other->first];
        if (other->first != g->first &&
            !mr_coco_same_split(part, b->st->parts[g->first].split, b->st->parts[g->first].split_len) &&
            (other->any || !g->any) && mr_coco_without_year(part->split, part->split_len) == cut &&
            !memcmp(part->split, b->st->parts[g->first].split, cut) &&
            !mr_split_map_find(b->options, part->split, part->split_len))
            return true;
    }
    return false;
}

mr_status mr_coco_get_split(const mr_coco_build *b, mr_plan *plan, const mr_coco_group *g, uint32_t *split)
{
    const mr_coco_part *part = &b->st->parts[g->first];
    size_t len = part->split_len, cut = mr_coco_without_year(part->split, len);
    if (!mr_split_map_find(b->options, part->split, len) &&
        (mr_split_map_find(b->options, part->split, cut) || !is_shared(b, g, cut)))
        len = cut;
    return mr_plan_split_get(plan, b->options, part->split, len, split, b->err);
}

const char *mr_coco_split_folder(const char *path, size_t len, size_t *folder_len)
{
    for (const char *at = path, *end = path + len, *slash; (slash = memchr(at, '/', (size_t)(end - at)));
         at = slash + 1) {
        *folder_len = (size_t)(slash - at);
        if (mr_split_word(at, mr_coco_without_year(at, *folder_len)))
            return at;
    }
    return NULL;
}

mr_status mr_coco_image_split(const mr_coco_build *b, mr_coco_group *g, uint32_t entry, uint32_t *split)
{
    size_t len, folder_len;
    const char *path = mr_tree_path(b->tree, entry, &len);
    const char *folder = g->by_folder ? mr_coco_split_folder(path, len, &folder_len) : NULL;
    if (folder)
        return mr_plan_split_get(b->plan, b->options, folder, mr_coco_without_year(folder, folder_len), split, b->err);
    const char *token = g->by_token ? mr_split_token_of_path(path, len, &folder, &folder_len).split : NULL;
    if (token)
        return mr_plan_split_get(b->plan, b->options, token, strlen(token), split, b->err);
    if (g->split == MR_NO_ENTRY)
        MR_TRY(mr_coco_get_split(b, b->plan, g, &g->split));
    *split = g->split;
    return MR_OK;
}
