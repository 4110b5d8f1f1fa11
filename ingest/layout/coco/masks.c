/* masks.c - the PNGs of COCO's panoptic and stuff annotations.
 * Source: "Data format" on cocodataset.org: the annotation of an image in panoptic_SPLIT.json names a PNG in the folder
 * panoptic_SPLIT/, whose colours are the ids of its segments; the pixel maps of stuff_SPLIT.json are
 * stuff_SPLIT_pixelmaps/NAME.png.
 * Invariant: a PNG is looked for beside its JSON, and then at the root, in a folder that has the JSON's name. */
#include <stdio.h>
#include <string.h>

#include "base/scope.h"
#include "ingest/source/names.h"
#include "ingest/layout/coco/coco.h"

enum { PATH_MAX_LEN = 4200 };

/* The JSON's path without its ending and its first `skip` bytes; the PNG's name. */
static uint32_t find_png(const mr_tree *t, const mr_coco_part *part, size_t skip, const char *name, size_t len)
{
    char path[PATH_MAX_LEN];
    size_t json_len;
    const char *json = mr_tree_path(t, part->entry, &json_len);
    const char *suffix = part->kind == MR_COCO_STUFF ? "_pixelmaps" : "";
    size_t stem = json_len - (mr_name_ends(json, json_len, ".json") ? 5 : 0);
    int n = snprintf(path, sizeof path, "%.*s%s/%.*s", (int)(stem - skip), json + skip, suffix, (int)len, name);
    return n > 0 && (size_t)n < sizeof path ? mr_tree_find(t, path, (size_t)n) : MR_NO_ENTRY;
}

/* What the annotation names, else the image's name with .png. */
static bool png_name(const mr_coco_part *part, uint32_t n, mr_buf *out)
{
    const mr_coco_file *f = part->file;
    const mr_coco_image *image = &f->images[n];
    for (uint32_t i = 0; i < image->count; i++) {
        uint32_t png = f->annotations[image->first + i].png;
        if (png)
            return mr_path_beside("", 0, f->pngs[png - 1], out);
    }
    const char *slash = memrchr(image->file_name, '/', image->name_len);
    const char *name = slash ? slash + 1 : image->file_name;
    size_t len = image->name_len - (size_t)(name - image->file_name);
    const char *dot = memrchr(name, '.', len);
    mr_buf_clear(out);
    mr_buf_add(out, name, dot ? (size_t)(dot - name) : len);
    mr_buf_add_text(out, ".png");
    return !memchr(out->data, '\0', out->len);
}

uint32_t mr_coco_png(const mr_tree *t, const mr_coco_part *part, uint32_t n)
{
    MR_AUTO(mr_buf_free) mr_buf name = {0};
    if ((part->kind != MR_COCO_PANOPTIC && part->kind != MR_COCO_STUFF) || n == MR_COCO_NONE ||
        !png_name(part, n, &name) || name.failed)
        return MR_NO_ENTRY;
    size_t len;
    const char *json = mr_tree_path(t, part->entry, &len), *slash = memrchr(json, '/', len);
    uint32_t entry = find_png(t, part, 0, (const char *)name.data, name.len);
    if (entry == MR_NO_ENTRY && slash)
        entry = find_png(t, part, (size_t)(slash - json) + 1, (const char *)name.data, name.len);
    return entry;
}

size_t mr_coco_masks(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_mask out[MR_MASKS_MAX])
{
    const mr_coco_state *st = plan->state;
    if (sample->aux == MR_COCO_UNLISTED)
        return 0;
    const uint32_t *where = st->where + sample->aux;
    const mr_coco_group *g = &st->groups[*where++];
    size_t count = 0;
    for (size_t i = 0; i < g->count; i++) {
        const mr_coco_part *part = &st->parts[g->first + i];
        uint32_t entry = mr_coco_png(t, part, where[i]);
        if (entry != MR_NO_ENTRY)
            out[count++] = (mr_mask){mr_coco_kinds[part->kind], entry};
    }
    return count;
}
