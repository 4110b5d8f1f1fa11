/* groups.h - the files of one key: which of them is the image, which the label, the JSON and the text.
 * Invariant: if there are two files for one purpose, neither is preferred: the group says so, and its sample is not
 * made. */
#ifndef MR_WEBDATASET_GROUPS_H
#define MR_WEBDATASET_GROUPS_H

#include "ingest/layout/layout.h"

typedef struct mr_webdataset_group {
    const char *key; /* not NUL-terminated; NULL: no file yet */
    size_t key_len;
    uint32_t first, image, json, cls, text;
    uint32_t second; /* a second file of the same purpose as `rival`; MR_NO_ENTRY: there is none */
    uint32_t rival;
    uint32_t odd, odd_after; /* images of other members, such as left.jpg: the first and the second */
} mr_webdataset_group;

extern const mr_webdataset_group mr_webdataset_no_files;

/* The image of a sample: the requested member, or one of a supported kind. */
bool mr_webdataset_is_image(const mr_layout_options *o, const char *name, size_t len);
/* Takes a file of the group's key. */
void mr_webdataset_group_add(const mr_layout_options *o, mr_webdataset_group *g, const mr_child *child);
/* The name of the member that an entry of the group is: "left.jpg". */
const char *mr_webdataset_member(const mr_tree *t, const mr_webdataset_group *g, uint32_t entry);
/* MR_BAD_DATA: two images, or two files whose names differ only in case; names both. */
mr_status mr_webdataset_group_check(const mr_tree *t, const mr_webdataset_group *g, mr_error *err);

#endif
