/* missing.c - COCO: the notes on a split whose images are all missing, or all somewhere else.
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
    uint32_t found = mr_tree_find_alike(b->tree, b->tree->begin, base, len);
    size_t path_len;
    return found == MR_NO_ENTRY ? NULL : mr_tree_path(b->tree, found, &path_len);
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

void mr_coco_note_anywhere(const mr_coco_build *b, const mr_coco_group *g, uint32_t first)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    size_t len;
    const char *found = mr_tree_path(b->tree, first, &len);
    mr_text_escape(&path, found, len);
    mr_note_add(b->plan->notes, MR_NOTE_INFO, g->folder, strlen(g->folder), 0,
                "none of its images is in a usual place; they are found by their names alone, the first is %.300s",
                mr_buf_text(&path));
    b->plan->notes->failed = b->plan->notes->failed || path.failed;
}
