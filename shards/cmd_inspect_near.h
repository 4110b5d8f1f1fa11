/* cmd_inspect_near.h - the pictures of a dataset that look like another of them, for `millrace inspect
 * --near-duplicates`.
 * Invariant: a picture is decoded once for its hash, and again only to be compared. */
#ifndef MR_CMD_INSPECT_NEAR_H
#define MR_CMD_INSPECT_NEAR_H

#include "alike/near.h"
#include "dataset/dataset.h"

typedef struct cmd_near_picture { /* the first sample of a split with these bytes */
    uint64_t hash, number;        /* of the image; in the split */
    uint32_t len, split;
    int32_t label;
    uint32_t equal; /* the picture of an earlier split with the same bytes; its own number: there is none */
    uint32_t content;
    bool large; /* one such picture is decoded at a time */
} cmd_near_picture;

typedef struct cmd_near {
    unsigned distance;
    cmd_near_picture *pictures; /* split by split */
    mr_near_found *found;
    size_t count;
    uint64_t repeated; /* samples with the same bytes as an earlier one of their split */
    uint64_t plain, unreadable, crowded, equal, leaks, duplicates;
} cmd_near;

/* MR_BAD_DATA: an index or an image is damaged. */
mr_status cmd_near_read(const char *dir, const mr_dataset *ds, unsigned jobs, cmd_near *out, mr_error *err);
void cmd_near_free(cmd_near *n);

mr_status cmd_near_print(const mr_dataset *ds, const cmd_near *n, mr_error *err);
mr_status cmd_near_json(const mr_dataset *ds, const cmd_near *n, json_t *doc, mr_error *err); /* adds a member */

#endif
