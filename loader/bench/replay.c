/* replay.c - batches loaded again, and one digest for each over all ranks.
 *
 *   round        0      1      2      3              each process has one rank, but alone it has them all;
 *   rank 0     b0 ->  b1 ->  b2 ->                   between rounds the unfinished digests (and texts) move on by one
 *   rank 1           b0 ->  b1 ->  b2 -> done
 *
 * Invariant: every process takes part in every round, so that a failure is agreed on and none waits for another. */
#include "bench/replay.h"

#include <stdlib.h>

#include "bench/digest.h"
#include "order/schedule.h"

typedef struct run {
    const mr_replay *replay;
    mr_ranks *ranks;
    mr_loader **loaders; /* of this process's ranks, in order */
    unsigned count;
    mr_running_digest *digest;
    mr_damage *damage;
    mr_buf mine, all; /* what is handed on: state of the digest, text */
    uint64_t *lens;
} run;

static mr_status open_loaders(run *r, const mr_dataset *ds, mr_error *err)
{
    mr_loader_options o = r->replay->options;
    unsigned processes = mr_ranks_world(r->ranks), first = processes > 1 ? mr_ranks_rank(r->ranks) : 0;
    o.world = r->replay->world;
    o.epochs = 1;
    if (processes > 1 && processes != o.world)
        return mr_fail(err, MR_MISUSE,
                       "--ranks %u under a launcher of %u ranks; leave --ranks out, or run without the "
                       "launcher",
                       o.world, processes);
    r->loaders = mr_alloc(o.world, sizeof *r->loaders);
    if (!r->loaders)
        return mr_fail_memory(err, "replaying");
    for (; r->count < (processes > 1 ? 1 : o.world); r->count++) {
        o.rank = first + r->count;
        mr_status status = mr_loader_open_beside(r->loaders[0], ds, &o, &r->loaders[r->count], err);
        if (status != MR_OK)
            return status;
    }
    return MR_OK;
}

static mr_status begin(run *r, const mr_dataset *ds, mr_error *err)
{
    r->digest = mr_running_digest_new();
    r->lens = mr_alloc(mr_ranks_world(r->ranks), sizeof *r->lens);
    if (!r->digest || !r->lens)
        return mr_fail_memory(err, "replaying");
    return open_loaders(r, ds, err);
}

/* The samples of one rank, in order, into the digest and the text. */
static mr_status add_batch(run *r, const mr_batch *b, mr_error *err)
{
    const mr_replay *p = r->replay;
    const mr_bad_slot *bad = mr_batch_bad(b);
    uint64_t met = 0;
    bool encoded = p->options.deliver == MR_DELIVER_ENCODED;
    mr_status noted = mr_damage_note(r->damage, b, err);
    if (noted != MR_OK)
        return noted;
    if (!encoded)
        mr_running_digest_add(r->digest, b->data, b->data_bytes);
    for (uint64_t i = 0; i < b->count; i++) {
        const mr_sample_facts *f = &b->samples[i];
        if (encoded)
            mr_running_digest_add(r->digest, (const uint8_t *)b->data + f->offset, f->length);
        bool hit = met < b->replaced && bad[met].slot == i;
        mr_status status = p->describe ? p->describe(p->ctx, f, hit ? &bad[met] : NULL, &r->mine, err) : MR_OK;
        met += hit;
        if (status != MR_OK)
            return status;
    }
    return MR_OK;
}

/* What the rank before had, taken up again: its place in `all` is behind those of the ranks before it. */
static mr_status take_up(run *r, mr_error *err)
{
    unsigned rank = mr_ranks_rank(r->ranks);
    size_t at = 0, size = mr_running_digest_size();
    mr_buf_clear(&r->mine);
    if (rank == 0) {
        mr_running_digest_begin(r->digest);
        return MR_OK;
    }
    for (unsigned i = 0; i + 1 < rank; i++)
        at += r->lens[i];
    if (!mr_running_digest_load(r->digest, r->all.data + at, r->lens[rank - 1]))
        return mr_fail(err, MR_SYSTEM, "mpirun: rank %u handed on no digest", rank - 1);
    mr_buf_add(&r->mine, r->all.data + at + size, r->lens[rank - 1] - size);
    return MR_OK;
}

/* Batch `step` through this process's ranks; `mine` holds the text until the state goes in front of it. */
static mr_status work(run *r, mr_error *err)
{
    mr_status status = take_up(r, err);
    for (unsigned i = 0; status == MR_OK && i < r->count; i++) {
        const mr_batch *b = NULL;
        status = mr_loader_next(r->loaders[i], &b, err);
        if (status == MR_OK)
            status = add_batch(r, b, err);
        mr_batch_release(r->loaders[i], b);
    }
    if (status == MR_END)
        status = mr_fail(err, MR_SYSTEM, "replay: the epoch ended early");
    return status;
}

/* [state][text] of this round, empty for a process that had nothing to do. */
static mr_status pack(run *r, bool worked, mr_error *err)
{
    mr_buf text = r->mine;
    r->mine = (mr_buf){0};
    if (worked) {
        mr_running_digest_save(r->digest, &r->mine);
        mr_buf_add(&r->mine, text.data, text.len);
    }
    bool failed = text.failed;
    mr_buf_free(&text);
    return failed ? mr_fail_memory(err, "replaying") : mr_buf_status(&r->mine, err, "replaying");
}

/* In rank 0's process: what the last rank has finished. */
static mr_status deliver(run *r, uint64_t step, mr_error *err)
{
    unsigned last = mr_ranks_world(r->ranks) - 1;
    size_t at = r->all.len - r->lens[last], size = mr_running_digest_size();
    mr_replay_batch b = {.epoch = r->replay->options.start.epoch, .step = step};
    if (!mr_running_digest_load(r->digest, r->all.data + at, r->lens[last]))
        return mr_fail(err, MR_SYSTEM, "mpirun: rank %u handed on no digest", last);
    mr_running_digest_end(r->digest, b.digest);
    b.text = (const char *)r->all.data + at + size;
    b.text_len = r->lens[last] - size;
    return r->replay->take(r->replay->ctx, &b, err);
}

static mr_status run_round(run *r, uint64_t round, mr_error *err)
{
    const mr_replay *p = r->replay;
    uint64_t batches = p->end - p->first, rank = mr_ranks_rank(r->ranks), behind = mr_ranks_world(r->ranks) - 1;
    bool mine = round >= rank && round - rank < batches;
    mr_status status = MR_OK;
    if (mine)
        status = work(r, err);
    mr_status packed = pack(r, mine && status == MR_OK, status == MR_OK ? err : NULL);
    status = mr_ranks_agree(r->ranks, status != MR_OK ? status : packed, err);
    if (status != MR_OK)
        return status;
    mr_buf_clear(&r->all);
    status = mr_ranks_gather(r->ranks, &r->mine, &r->all, r->lens, err);
    if (status == MR_OK && rank == 0 && round >= behind)
        status = deliver(r, p->first + round - behind, err);
    return mr_ranks_agree(r->ranks, status, err);
}

mr_status mr_replay_run(const mr_replay *replay, const mr_dataset *ds, mr_ranks *ranks, mr_damage *damage,
                        mr_error *err)
{
    run r = {.replay = replay, .ranks = ranks, .damage = damage};
    uint64_t rounds = replay->end > replay->first ? replay->end - replay->first + mr_ranks_world(ranks) - 1 : 0;
    mr_status status = mr_ranks_agree(ranks, begin(&r, ds, err), err);
    for (uint64_t round = 0; status == MR_OK && round < rounds; round++)
        status = run_round(&r, round, err);
    if (status == MR_OK)
        status = mr_damage_join(damage, ranks, err);
    for (unsigned i = 0; i < r.count; i++)
        mr_loader_free(r.loaders[i]);
    free(r.loaders);
    free(r.lens);
    mr_running_digest_free(r.digest);
    mr_buf_free(&r.mine);
    mr_buf_free(&r.all);
    return status;
}
