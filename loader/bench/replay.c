/* replay.c - loads batches again and digests each over all ranks.
 *
 *   round        0      1      2      3              each process has one rank, a single process all of them;
 *   rank 0     b0 ->  b1 ->  b2 ->                   between rounds unfinished digests and texts move to the next rank
 *   rank 1           b0 ->  b1 ->  b2 -> done
 *
 * Invariant: every process takes part in every round, so all of them agree on a failure, and none waits forever. */
#include "loader/bench/replay.h"

#include <stdlib.h>

#include "base/scope.h"
#include "loader/bench/digest.h"
#include "device/images/images.h"
#include "loader/order/schedule.h"

typedef struct run {
    const mr_replay *replay;
    mr_ranks *ranks;
    mr_loader **loaders; /* the loaders of this process's ranks, in order */
    unsigned count;
    mr_running_digest *digest;
    mr_images *images; /* images of coded batches, with their memory on the device and here */
    void *decoded;
    size_t capacity;
    mr_buf pixels;
    mr_damage *damage;
    mr_buf mine, all; /* passed between ranks: the digest's state, then text */
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
                       "--ranks %u under a launcher of %u ranks; omit --ranks, or run without the launcher", o.world,
                       processes);
    r->loaders = mr_alloc(o.world, sizeof *r->loaders);
    if (!r->loaders)
        return mr_fail_memory(err, "replaying");
    for (; r->count < (processes > 1 ? 1 : o.world); r->count++) {
        o.rank = first + r->count;
        MR_TRY(mr_loader_open_beside(r->loaders[0], ds, &o, &r->loaders[r->count], err));
    }
    return MR_OK;
}

static mr_status begin(run *r, const mr_dataset *ds, mr_error *err)
{
    r->digest = mr_running_digest_new();
    r->lens = mr_alloc(mr_ranks_world(r->ranks), sizeof *r->lens);
    if (!r->digest || !r->lens)
        return mr_fail_memory(err, "replaying");
    if (r->replay->options.deliver == MR_DELIVER_CODED)
        MR_TRY(mr_images_new(r->replay->device, &r->images, err));
    return open_loaders(r, ds, err);
}

/* Decodes a coded batch on the device and adds its pixels. */
static mr_status add_coded(run *r, mr_loader *l, const mr_batch *b, mr_error *err)
{
    mr_device *d = r->replay->device;
    size_t side = r->replay->options.transform.size, bytes = b->count * 3 * side * side * sizeof(float);
    if (bytes > r->capacity) {
        d->iface->free(d, r->decoded);
        r->decoded = NULL;
        r->capacity = 0;
        MR_TRY(d->iface->alloc(d, bytes, "decoding", &r->decoded, err));
        r->capacity = bytes;
    }
    MR_TRY(mr_images_make(r->images, l, b, mr_batch_decode, r->decoded, err));
    mr_buf_clear(&r->pixels);
    if (!mr_buf_reserve(&r->pixels, bytes))
        return mr_fail_memory(err, "replaying");
    d->iface->download(d, r->pixels.data, r->decoded, bytes);
    MR_TRY(d->iface->wait(d, err));
    mr_running_digest_add(r->digest, r->pixels.data, bytes);
    return MR_OK;
}

/* Adds the samples of one rank, in order, to the digest and the text. */
static mr_status add_batch(run *r, mr_loader *l, const mr_batch *b, mr_error *err)
{
    const mr_replay *p = r->replay;
    bool encoded = p->options.deliver == MR_DELIVER_ENCODED;
    if (r->images) /* may find more bad slots */
        MR_TRY(add_coded(r, l, b, err));
    const mr_bad_slot *bad = mr_batch_bad_slots(b);
    const mr_bad_slot *bad_end = bad + b->replaced;
    MR_TRY(mr_damage_note(r->damage, b, err));
    if (!encoded && !r->images)
        mr_running_digest_add(r->digest, b->data, b->data_bytes);
    for (uint64_t i = 0; i < b->count; i++) {
        const mr_sample_facts *f = &b->samples[i];
        if (encoded)
            mr_running_digest_add(r->digest, (const uint8_t *)b->data + f->offset, f->length);
        bool is_bad = bad < bad_end && bad->slot == i;
        if (p->describe)
            MR_TRY(p->describe(p->ctx, f, is_bad ? bad : NULL, &r->mine, err));
        bad += is_bad;
    }
    return MR_OK;
}

/* Continues the digest and the text of the previous rank, which follow those of the ranks before it in `all`. */
static mr_status resume(run *r, mr_error *err)
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
        return mr_fail(err, MR_SYSTEM, "mpirun: rank %u sent no digest", rank - 1);
    mr_buf_add(&r->mine, r->all.data + at + size, r->lens[rank - 1] - size);
    return MR_OK;
}

/* Loads the next batch of each of this process's ranks; `mine` holds the text until pack() puts the state before it. */
static mr_status work(run *r, mr_error *err)
{
    MR_TRY(resume(r, err));
    for (unsigned i = 0; i < r->count; i++) {
        const mr_batch *b = NULL;
        mr_status status = mr_loader_next(r->loaders[i], &b, err);
        if (status == MR_END)
            return mr_fail(err, MR_SYSTEM, "replay: the epoch ended early");
        if (status == MR_OK)
            status = add_batch(r, r->loaders[i], b, err);
        mr_batch_release(r->loaders[i], b);
        MR_TRY(status);
    }
    return MR_OK;
}

/* Fills `mine` with [state][text] of this round; empty if this process had no batch. */
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

/* In rank 0's process: delivers what the last rank has finished. */
static mr_status deliver(run *r, uint64_t step, mr_error *err)
{
    unsigned last = mr_ranks_world(r->ranks) - 1;
    size_t at = r->all.len - r->lens[last], size = mr_running_digest_size();
    mr_replay_batch b = {.epoch = r->replay->options.start.epoch, .step = step};
    if (!mr_running_digest_load(r->digest, r->all.data + at, r->lens[last]))
        return mr_fail(err, MR_SYSTEM, "mpirun: rank %u sent no digest", last);
    mr_running_digest_end(r->digest, b.digest);
    b.text = (const char *)r->all.data + at + size;
    b.text_len = r->lens[last] - size;
    return r->replay->take(r->replay->ctx, &b, err);
}

static mr_status run_round(run *r, uint64_t round, mr_error *err)
{
    const mr_replay *p = r->replay;
    uint64_t batches = p->end - p->first, rank = mr_ranks_rank(r->ranks), delay = mr_ranks_world(r->ranks) - 1;
    bool mine = round >= rank && round - rank < batches;
    mr_status status = mine ? work(r, err) : MR_OK;
    mr_status packed = pack(r, mine && status == MR_OK, status == MR_OK ? err : NULL);
    MR_TRY(mr_ranks_agree(r->ranks, status != MR_OK ? status : packed, err));
    mr_buf_clear(&r->all);
    status = mr_ranks_gather(r->ranks, &r->mine, &r->all, r->lens, err);
    if (status == MR_OK && rank == 0 && round >= delay)
        status = deliver(r, p->first + round - delay, err);
    return mr_ranks_agree(r->ranks, status, err);
}

static void release(run *r)
{
    for (unsigned i = 0; i < r->count; i++)
        mr_loader_free(r->loaders[i]);
    free(r->loaders);
    free(r->lens);
    mr_running_digest_free(r->digest);
    mr_images_free(r->images);
    if (r->decoded)
        r->replay->device->iface->free(r->replay->device, r->decoded);
    mr_buf_free(&r->pixels);
    mr_buf_free(&r->mine);
    mr_buf_free(&r->all);
}

mr_status mr_replay_run(const mr_replay *replay, const mr_dataset *ds, mr_ranks *ranks, mr_damage *damage,
                        mr_error *err)
{
    MR_AUTO(release) run r = {.replay = replay, .ranks = ranks, .damage = damage};
    uint64_t rounds = replay->end > replay->first ? replay->end - replay->first + mr_ranks_world(ranks) - 1 : 0;
    MR_TRY(mr_ranks_agree(ranks, begin(&r, ds, err), err));
    for (uint64_t round = 0; round < rounds; round++) /* each round ends in an agreement: all ranks leave together */
        MR_TRY(run_round(&r, round, err));
    return mr_damage_join(damage, ranks, err);
}
