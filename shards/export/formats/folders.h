/* folders.h - SPLIT/CLASS/ folders of images, for the formats that have them.
 * Invariant: the class names are the same in every split. */
#ifndef MR_EXPORT_FOLDERS_H
#define MR_EXPORT_FOLDERS_H

#include "shards/export/format.h"

typedef struct mr_export_folders { /* the first member of the format's state, or the state itself */
    char **classes;                /* their folders */
    size_t class_count;
    char *split;    /* the folder of the current one */
    bool only_used; /* no folders for classes without a sample */
} mr_export_folders;

/* Makes run->state, unless it is there, and names the classes. */
mr_status mr_export_folders_begin(mr_export_run *run, mr_error *err);
/* Makes the folders of a split and its classes. */
mr_status mr_export_folders_split(mr_export_run *run, const mr_split *split, mr_error *err);
/* Writes the image of a sample; `folder`: its class's folder under the split's, "" unless it has exactly one label. */
mr_status mr_export_folders_picture(mr_export_run *run, const mr_export_sample *s, mr_buf *folder, mr_buf *name,
                                    mr_error *err);
void mr_export_folders_free(void *state);

#endif
