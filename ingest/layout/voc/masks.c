/* masks.c - the masks of Pascal VOC: a PNG for some images, of classes and of objects.
 * Source: "Segmentation" in the development kit of VOC2012: SegmentationClass/NAME.png has the number of the class of
 * each pixel, SegmentationObject/NAME.png that of the object, 0 background and 255 the border. Invariant: a mask
 * belongs to the image of its name. */
#include <stdio.h>
#include <string.h>

#include "base/scope.h"
#include "ingest/layout/voc/voc.h"

static const char *const folders[] = {"SegmentationClass", "SegmentationObject"};
_Static_assert(MR_COUNT(folders) <= MR_MASKS_MAX, "an image has a mask in each");

bool mr_voc_is_mask(const char *path, size_t len)
{
    for (size_t i = 0; i < MR_COUNT(folders); i++) {
        size_t word = strlen(folders[i]);
        for (const char *at = path; at + word < path + len; at++)
            if ((at == path || at[-1] == '/') && !memcmp(at, folders[i], word) && at[word] == '/')
                return true;
    }
    return false;
}

size_t mr_voc_masks(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_mask out[MR_MASKS_MAX])
{
    const mr_voc_state *st = plan->state;
    char path[4200];
    size_t len, skip, count = 0;
    const char *image = mr_tree_path(t, sample->entry, &len), *dot = memrchr(image, '.', len);
    const mr_voc_spot *spot = mr_voc_spot_of(&st->places, image, len, &skip);
    if (!spot || !*spot->images || !dot || dot < image + skip)
        return 0;
    for (size_t i = 0; i < MR_COUNT(folders); i++) {
        int n = snprintf(path, sizeof path, "%.*s%s%s/%.*s.png", (int)spot->len, spot->dir, spot->len ? "/" : "",
                         folders[i], (int)(dot - image - (ptrdiff_t)skip), image + skip);
        uint32_t entry = n > 0 && (size_t)n < sizeof path ? mr_tree_find(t, path, (size_t)n) : MR_NO_ENTRY;
        if (entry != MR_NO_ENTRY)
            out[count++] = (mr_mask){folders[i], entry};
    }
    return count;
}
