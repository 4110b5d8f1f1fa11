/* missing.c - COCO: what is said where all images of a split are missing.
 * Invariant: one note replaces a hundred thousand, and names one of them. */
#include <inttypes.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/layout/coco/coco.h"
#include "ingest/source/names.h"

/* A file whose name is the image's as another system may write it; NULL. */
static const char *find_alike(const mr_coco_build *b, const mr_coco_image *image)
{
    const char *slash = memrchr(image->file_name, '/', image->name_len), *base = slash ? slash + 1 : image->file_name;
    size_t len = image->name_len - (size_t)(base - image->file_name);
    for (uint32_t e = b->tree->begin; e < b->tree->end; e++) {
        size_t path_len;
        const char *path = mr_tree_path(b->tree, e, &path_len), *last = memrchr(path, '/', path_len);
        const char *name = last ? last + 1 : path;
        if (mr_name_alike(name, path_len - (size_t)(name - path), base, len))
            return path;
    }
    return NULL;
}

void mr_coco_note_missing(mr_coco_build *b, const mr_coco_group *g, const mr_coco_image *first, uint64_t count)
{
    MR_AUTO(mr_buf_free) mr_buf name = {0}, other = {0};
    const char *near = find_alike(b, first);
    mr_text_escape(&name, first->file_name, first->name_len);
    if (near)
        mr_text_escape(&other, near, strlen(near));
    mr_note_add(b->plan->notes, MR_NOTE_MISSING, g->folder, strlen(g->folder), 0,
                "none of the %" PRIu64
                " images of this split exist, such as %.200s (looked in %s/, images/%s/, images/ "
                "and beside the annotation files)%s%.200s%s",
                count, mr_buf_text(&name), g->folder, g->folder, near ? "; " : "", mr_buf_text(&other),
                near ? " is there, but differs " MR_NAME_ALIKE : "");
    b->plan->notes->failed = b->plan->notes->failed || name.failed || other.failed;
}
