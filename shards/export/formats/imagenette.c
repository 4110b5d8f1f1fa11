/* imagenette.c - the export `imagenette`: a folder for each split, and in it one for each class.
 *
 *      train/n01440764/n01440764_11.JPEG       val/n01440764/n01440764_2.JPEG       train/no_label.JPEG
 *
 * Invariant: each split has a folder for each class, even an empty one: readers number classes by their folders. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "shards/export/formats/folders.h"

static mr_status begin(mr_export_run *run, mr_error *err)
{
    run->result->instead[MR_PART_UNLABELLED] = "in the folder of their split";
    run->result->instead[MR_PART_LABELS] = "in the folder of their split";
    run->result->instead[MR_PART_CLASS_NUMBERS] = "sorted by name";
    return mr_export_folders_begin(run, err);
}

static mr_status sample(mr_export_run *run, const mr_export_sample *s, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf folder = {0}, name = {0};
    return mr_export_folders_picture(run, s, &folder, &name, err);
}

const mr_export_format mr_export_format_imagenette = {
    .name = "imagenette",
    .holds = MR_HOLDS(LABEL) | MR_HOLDS(EMPTY_CLASSES),
    .begin = begin,
    .begin_split = mr_export_folders_split,
    .sample = sample,
    .free_state = mr_export_folders_free,
};
