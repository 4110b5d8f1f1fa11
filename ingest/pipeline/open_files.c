/* open_files.c - files that contain rows are opened by a program, shared among ranks, and their rows added to the tree.
 * Invariant: every rank ends with the same tree; a spool file of rows is in DATASET.partial, and unlinked before
 * anything else is written there. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "ingest/pipeline/ingest_state.h"
#include "ingest/source/expand.h"

enum { THREADS_MAX = 1024 }; /* the limit of --jobs; spool files per rank */

typedef struct opening {
    mr_ingest *in;
    const mr_stage *stage; /* NULL on a dry run: what is unpacked goes to unlinked files */
    mr_layout_files files;
    mr_source *mine; /* this rank's part */
    mr_notes notes;
} opening;

static mr_status open_spool(void *ctx, unsigned worker, int *fd, char path[4096], mr_error *err)
{
    opening *o = ctx;
    unsigned number = mr_ranks_rank(o->in->ranks) * THREADS_MAX + worker;
    *path = '\0';
    if (!o->stage)
        return MR_OK; /* -1: one in TMPDIR */
    MR_TRY(mr_stage_rows(o->stage, number, fd, path, err));
    if (mr_ranks_world(o->in->ranks) == 1) {
        mr_stage_rows_unlink(o->stage, number);
        *path = '\0';
    }
    return MR_OK;
}

static mr_status open_mine(opening *o, mr_error *err)
{
    mr_ingest *in = o->in;
    mr_expand x = {
        .argv = o->files.argv,
        .memory = o->files.memory,
        .entries = o->files.entries,
        .count = o->files.count,
        .jobs = in->options->jobs,
        .rank = mr_ranks_rank(in->ranks),
        .world = mr_ranks_world(in->ranks),
        .options = &in->options->for_source,
        .spool = open_spool,
        .ctx = o,
    };
    return mr_source_expand(in->source, &x, &o->notes, &o->mine, err);
}

/* This rank's part as bytes: u64 length of the entries, entries, notes. */
static mr_status pack_part(const opening *o, mr_buf *out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf entries = {0};
    MR_TRY(mr_source_pack(o->mine, &entries, err));
    uint64_t len = entries.len;
    mr_buf_add(out, &len, sizeof len);
    mr_buf_add(out, entries.data, entries.len);
    mr_notes_pack(&o->notes, out);
    return mr_buf_status(out, err, "sharing the listing");
}

static mr_status exchange(opening *o, mr_buf *all, uint64_t *lens, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf mine = {0};
    MR_TRY(mr_ranks_agree(o->in->ranks, pack_part(o, &mine, err), err));
    return mr_ranks_gather(o->in->ranks, &mine, all, lens, err);
}

static mr_status take_part(opening *o, const uint8_t *bytes, uint64_t len, mr_source **part, mr_error *err)
{
    uint64_t entries;
    memcpy(&entries, bytes, sizeof entries);
    mr_buf packed = {.data = (uint8_t *)bytes + sizeof entries, .len = (size_t)entries};
    if (mr_ranks_rank(o->in->ranks) == 0) /* its notes are the ones that are printed */
        mr_notes_unpack(&o->in->notes, bytes + sizeof entries + entries, (size_t)(len - sizeof entries - entries));
    return mr_source_unpack(&packed, -1, part, err);
}

static mr_status join_parts(opening *o, const mr_buf *all, const uint64_t *lens, mr_source **parts, mr_error *err)
{
    unsigned world = mr_ranks_world(o->in->ranks);
    uint64_t at = 0;
    for (unsigned r = 0; r < world; at += lens[r++])
        MR_TRY(take_part(o, all->data + at, lens[r], &parts[r], err));
    return mr_source_join(o->in->source, parts, world, &o->in->options->for_source, &o->in->notes, err);
}

static mr_status join_ranks(opening *o, mr_error *err)
{
    unsigned world = mr_ranks_world(o->in->ranks);
    MR_AUTO(mr_buf_free) mr_buf all = {0};
    MR_AUTO(mr_scope_free) uint64_t *lens = mr_alloc(world, sizeof *lens);
    MR_AUTO(mr_scope_free) mr_source **parts = mr_alloc(world, sizeof *parts);
    mr_status status = lens && parts ? MR_OK : mr_fail_memory(err, "sharing the listing");
    MR_TRY(mr_ranks_agree(o->in->ranks, status, err));
    MR_TRY(exchange(o, &all, lens, err));
    status = join_parts(o, &all, lens, parts, err);
    for (unsigned r = 0; r < world; r++)
        mr_source_free(parts[r]);
    return status;
}

static mr_status join_alone(opening *o, mr_error *err)
{
    mr_notes_move(&o->in->notes, &o->notes);
    return mr_source_join(o->in->source, &o->mine, 1, &o->in->options->for_source, &o->in->notes, err);
}

static mr_status open_and_join(opening *o, mr_error *err)
{
    mr_ingest *in = o->in;
    bool alone = mr_ranks_world(in->ranks) == 1;
    mr_status status = in->choice.layout->open(&in->choice.tree, &in->options->for_layout, &in->plan, &o->files, err);
    MR_TRY(mr_ranks_agree(in->ranks, status, err));
    MR_TRY(mr_ranks_agree(in->ranks, open_mine(o, err), err));
    return mr_ranks_agree(in->ranks, alone ? join_alone(o, err) : join_ranks(o, err), err);
}

mr_status mr_open_files(mr_ingest *in, const mr_stage *stage, mr_error *err)
{
    opening o = {.in = in, .stage = stage};
    bool alone = mr_ranks_world(in->ranks) == 1;
    mr_tree *t = &in->choice.tree;
    mr_status status = open_and_join(&o, err);
    /* All ranks have opened them; on failure rank 0 removes the folder, which must be empty by then. */
    for (unsigned i = 0; stage && !alone && i < (in->options->jobs ? in->options->jobs : 1); i++)
        mr_stage_rows_unlink(stage, mr_ranks_rank(in->ranks) * THREADS_MAX + i);
    if (stage && !alone && mr_ranks_barrier(in->ranks, status == MR_OK ? err : NULL) != MR_OK)
        status = status == MR_OK ? MR_SYSTEM : status;
    if (status == MR_OK)
        *t = mr_tree_at(in->source, t->root, t->root_len);
    mr_source_free(o.mine);
    mr_notes_free(&o.notes);
    free(o.files.entries);
    for (size_t i = 0; i < MR_COUNT(o.files.owned); i++)
        free(o.files.owned[i]);
    return status;
}
