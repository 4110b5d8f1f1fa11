/* folders.c - the folder of a split's images, and the name of a split without its year.
 * Invariant: a name that is all digits is kept. */
#include <stdio.h>
#include <string.h>

#include "ingest/layout/coco/coco.h"

const char *mr_coco_folder(const mr_tree *t, const char *split, size_t len, char out[300])
{
    if (len > 255)
        return NULL;
    for (int i = 0; i < 2; i++) {
        snprintf(out, 300, "%s%.*s", i ? "images/" : "", (int)len, split);
        if (mr_tree_has_dir(t, out, strlen(out)))
            return strcat(out, "/");
    }
    return NULL;
}

size_t mr_coco_without_year(const char *split, size_t len)
{
    size_t cut = len;
    while (cut && split[cut - 1] >= '0' && split[cut - 1] <= '9')
        cut--;
    while (cut && cut < len && (split[cut - 1] == '_' || split[cut - 1] == '-'))
        cut--;
    return cut ? cut : len;
}
