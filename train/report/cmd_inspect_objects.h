/* cmd_inspect_objects.h - the objects of a dataset, counted for `millrace inspect --objects`.
 * Invariant: every meta is read and compared with its hash; no image is. */
#ifndef MR_CMD_INSPECT_OBJECTS_H
#define MR_CMD_INSPECT_OBJECTS_H

#include "shards/manifest/manifest.h"
#include "shards/format/objects.h"

/* By the area of their boxes: below 32 x 32 pixels, below 96 x 96, and larger, as COCO evaluates them. */
enum { CMD_SMALL, CMD_MEDIUM, CMD_LARGE, CMD_SIZES };

typedef struct cmd_objects {
    size_t width;             /* classes, and one for objects without a class */
    uint64_t *counts;         /* [split * width + class] */
    uint64_t *sizes;          /* [(split * width + class) * CMD_SIZES + size]: objects with a box */
    mr_object_tally *tallies; /* [split] */
} cmd_objects;

/* MR_BAD_DATA: a meta or an index is damaged; MR_MISUSE: too many classes to count. */
mr_status mr_cmd_objects_read(const char *dir, const mr_dataset *ds, cmd_objects *out, mr_error *err);
void mr_cmd_objects_free(cmd_objects *o);

mr_status mr_cmd_objects_print(const mr_manifest *m, const cmd_objects *o, mr_error *err);
json_t *mr_cmd_objects_json(const mr_manifest *m, const cmd_objects *o); /* NULL: no memory */

#endif
