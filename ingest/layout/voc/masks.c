/* masks.c - the masks of Pascal VOC: a PNG for some images, of classes and of objects.
 * Source: "Segmentation" in the development kit of VOC2012: SegmentationClass/NAME.png has the number of the class of
 * each pixel, SegmentationObject/NAME.png that of the object, 0 background and 255 the border. Invariant: a mask
 * belongs to the image of its name. */
#include <stdio.h>
#include <string.h>

#include "base/scope.h"
#include "voc/voc.h"

static const char *const folders[MR_MASKS_MAX] = {"SegmentationClass", "SegmentationObject"};

bool mr_voc_is_mask(const char *path)
{
    for (size_t i = 0; i < MR_COUNT(folders); i++)
        if (!strncmp(path, folders[i], strlen(folders[i])) && path[strlen(folders[i])] == '/')
            return true;
    return false;
}

size_t mr_voc_masks(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_mask out[MR_MASKS_MAX])
{
    const mr_voc_state *st = plan->state;
    char path[4200];
    size_t len, count = 0;
    const char *image = mr_tree_path(t, sample->entry, &len), *dot = memrchr(image, '.', len);
    if (!st->images || !dot || (size_t)(dot - image) < st->images)
        return 0;
    image += st->images;
    for (size_t i = 0; i < MR_COUNT(folders); i++) {
        int n = snprintf(path, sizeof path, "%s/%.*s.png", folders[i], (int)(dot - image), image);
        uint32_t entry = n > 0 && (size_t)n < sizeof path ? mr_tree_find(t, path, (size_t)n) : MR_NO_ENTRY;
        if (entry != MR_NO_ENTRY)
            out[count++] = (mr_mask){folders[i], entry};
    }
    return count;
}
