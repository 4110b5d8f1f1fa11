/* build_parts.h - private to build*.c: one shard on its way from the plan into the staging folder.
 *
 *   begin -> row, row, ... (image, meta, index row)  ->  rewritten (build.c)                  ->  index: where LMDB
 *                                                        or compared with what is there (build_resume.c)   put them
 *
 * Invariant: rows and counts come from mr_build_row() alone, whichever way the shard goes. */
#ifndef MR_BUILD_PARTS_H
#define MR_BUILD_PARTS_H

#include "ingest/pipeline/ingest_state.h"

typedef struct mr_build {
    mr_ingest *in;
    const mr_shard_plan *cut;
    const mr_stage *stage;
    int dir; /* its folder */
    char mdb[128], idx[128], done[128], path[4096];
    uint32_t *holders; /* row -> first row of the shard with the same content, by its hash */
    mr_row *rows;
    mr_buf image, other, meta;
    mr_shard shard;
    mr_objects objects; /* objects of the current row */
    mr_object_tally tally;
} mr_build;

/* build_rows.c: fills the holders and allocates the rows. */
mr_status mr_build_begin(mr_build *b, mr_error *err);
/* Fills b->rows[row] except its offsets, b->meta and, unless another row stores the image, b->image, which is counted
 * in b->shard.  Called for each row in order. */
mr_status mr_build_row(mr_build *b, size_t row, mr_error *err);

/* masks.c: appends the masks of a sample, which is `number` in the plan, to b->meta; b->other is used. */
mr_status mr_build_masks(mr_build *b, const mr_sample *s, const mr_image_facts *picture, uint64_t number,
                         mr_error *err);

/* build_resume.c: NAME.done, which has the digest of the .mdb. */
void mr_build_done_name(const char *shard, char name[128]);
mr_status mr_build_write_done(int dir, const mr_shard *shard, mr_error *err);
bool mr_build_resume(mr_build *b); /* an earlier run left exactly what this one would write */

#endif
