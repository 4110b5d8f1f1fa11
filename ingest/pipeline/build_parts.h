/* build_parts.h - between the files of build: one shard on its way from the plan into the staging folder.
 *
 *   begin -> row, row, ... (image, meta, index row)  ->  rewritten (build.c)                  ->  index: where LMDB
 *                                                        or compared with what is there (build_resume.c)   put them
 *
 * Invariant: rows and counts come from mr_build_row() alone, whichever way the shard goes. */
#ifndef MR_BUILD_PARTS_H
#define MR_BUILD_PARTS_H

#include "pipeline/ingest.h"

typedef struct mr_build {
    mr_ingest *in;
    const mr_shard_plan *cut;
    const mr_stage *stage;
    int dir; /* its folder */
    char mdb[128], idx[128], done[128], path[4096];
    uint32_t *holders; /* row -> first row of the shard with the same content, as far as hashes tell */
    mr_row *rows;
    mr_buf image, other, meta;
    mr_shard shard;
    mr_objects objects; /* of the row at hand */
    mr_object_tally tally;
} mr_build;

/* build_rows.c: holders and room for the rows; then row after row, each into b->rows[row] but for the offsets, its meta
 * in b->meta, its image, unless another row stores it, in b->image and counted in b->shard. */
mr_status mr_build_begin(mr_build *b, mr_error *err);
mr_status mr_build_row(mr_build *b, size_t row, mr_error *err);

/* build.c: the offsets by the pages of the .mdb, the whole index in `index`, its digest in b->shard.idx. */
mr_status mr_build_index(mr_build *b, int mdb, uint64_t size, mr_buf *index, mr_error *err);

/* build_resume.c: NAME.done; what it says of the .mdb, and whether what an earlier run left is what this one would
 * write.
 */
void mr_build_done_name(const char *shard, char name[128]);
mr_status mr_build_write_done(int dir, const mr_shard *shard, mr_error *err);
bool mr_build_resume(mr_build *b);

#endif
