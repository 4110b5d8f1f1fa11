/* exchange.c - one update over all ranks: agreeing to do it, and waiting for its sum.
 * Invariant: a rank waits only in wait_until(), where it sleeps, drives MPI's pending sums and checks on its peers; so
 * a peer that is gone is a failure there, never a hang.
 *
 *      begin   each rank writes its entry; the first of each host merges them with the other hosts'; all read them all
 *      ready   drives pieces (pieces.c)
 *      finish  the rest of the pieces, and waiting for the other ranks' */
#include <string.h>

#include "base/cli/term.h"
#include "train/exchange/parts.h"

enum {
    TRIES = 32,           /* checks before sleeping */
    MOVE_NS = 20000,      /* between two checks while MPI has bytes to move */
    WATCH_NS = 100000000, /* between two checks of the peers */
};

float *mr_exchange_gradients(mr_exchange *x)
{
    return mr_window_gradients(&x->w, x->w.local);
}

bool mr_exchange_speaks(const mr_exchange *x)
{
    return x->speaks;
}

double mr_exchange_seconds(const mr_exchange *x)
{
    return x->seconds;
}

/* ---- waiting ---------------------------------------------------------------------------------------------------- */

static bool all_begun(const mr_exchange *x)
{
    for (unsigned i = 0; i < x->w.locals; i++)
        if (atomic_load(&x->w.lines[i].begun) < x->update)
            return false;
    return true;
}

static bool all_agreed(const mr_exchange *x)
{
    return atomic_load(&x->w.head->agreed) >= x->update;
}

static bool all_arrived(const mr_exchange *x)
{
    return mr_exchange_arrived(x) >= x->pieces;
}

static bool merged(const mr_exchange *x)
{
    return !x->agreeing;
}

static void drive_merge(mr_exchange *x)
{
    mr_status status;
    void *request = x->agreeing;
    if (!request || !mr_ranks_reduce_test(x->leaders, &x->agreeing, &status, &x->why))
        return;
    x->agreeing = NULL;
    if (status != MR_OK)
        x->failure = status;
}

enum { ALL = -1, LEADER = 0 }; /* ranks of this host that are watched */

static int wait_here(mr_exchange *x, bool (*met)(const mr_exchange *), int watched)
{
    double looked = mr_seconds();
    for (unsigned tries = 0;; tries++) {
        uint32_t bell = mr_window_bell(&x->w);
        bool mine = mr_exchange_mover_rests(x);
        if (mine)
            drive_merge(x);
        if (mine && mr_exchange_drive(x))
            tries = 0;
        if (mine && (met(x) || x->failure != MR_OK))
            return -1;
        if (tries < TRIES)
            continue;
        mr_window_sleep(&x->w, bell, x->elsewhere || (mine && mr_exchange_moves(x)) ? MOVE_NS : WATCH_NS);
        if (mr_seconds() - looked < WATCH_NS * 1e-9)
            continue;
        looked = mr_seconds();
        int gone = mr_window_gone(&x->w, watched);
        if (gone >= 0 && !met(x)) /* it may have ended after doing its part */
            return gone;
    }
}

/* -1 when `met` holds or work has failed, otherwise the rank of this host that is gone, so that it cannot hold. */
static int wait_until(mr_exchange *x, bool (*met)(const mr_exchange *), int watched)
{
    mr_ranks_waits(x->ranks, true);
    int gone = wait_here(x, met, watched);
    mr_ranks_waits(x->ranks, false);
    return gone;
}

/* ---- one update ------------------------------------------------------------------------------------------------- */

static mr_window_entry *entries_of(const mr_exchange *x, uint64_t update)
{
    return x->w.entries + (update % 2) * x->w.world;
}

static mr_window_entry *entries(const mr_exchange *x)
{
    return entries_of(x, x->update);
}

static mr_window_text *texts(const mr_exchange *x)
{
    return x->w.texts + (x->update % 2) * (x->w.locals + 1);
}

/* A rank that has left waits for all others in mr_ranks_end(), so the run ends without MPI_Abort(), on which mpirun of
 * Open MPI 4.1 sometimes hangs.  Only one that was killed makes that necessary. */
static mr_status rank_gone(mr_exchange *x, unsigned rank, bool left, bool speaks, mr_error *err)
{
    const mr_ranks_name name = mr_ranks_name_of(x->ranks, rank);
    x->speaks = speaks;
    if (left)
        return mr_fail(err, MR_SYSTEM, "%s exited before the run was finished", name.text);
    mr_ranks_break(x->ranks, speaks);
    return mr_fail(err, MR_SYSTEM, "%s was killed, perhaps because memory ran out", name.text);
}

/* Noticed on this host only: ranks of other hosts would not reach mr_ranks_end(). */
static mr_status local_gone(mr_exchange *x, int gone, mr_error *err)
{
    bool speaks = mr_window_claim(&x->w, gone);
    gone = mr_window_gone(&x->w, ALL);
    return rank_gone(x, x->world_rank[gone], !x->hosts && mr_window_left(&x->w, gone), speaks, err);
}

static mr_status failed(mr_exchange *x, mr_error *err)
{
    mr_ranks_break(x->ranks, x->speaks);
    return mr_fail(err, x->failure, "%s", x->why.text);
}

/* The first failing entry, `world` if there is none. */
static unsigned first_failure(const mr_exchange *x, const mr_window_entry *all)
{
    unsigned i = 0;
    while (i < x->w.world && all[i].status >= 0)
        i++;
    return i;
}

static bool merge(mr_exchange *x, void *values, size_t bytes)
{
    uint64_t count = bytes / sizeof(uint64_t);
    if (x->failure == MR_OK)
        x->failure = mr_ranks_reduce_begin(x->leaders, MR_RANKS_OR, values, count, &x->agreeing, &x->why);
    while (x->failure == MR_OK && x->agreeing)
        wait_until(x, merged, ALL); /* ranks of this host that are gone are in the entries by now */
    return x->failure == MR_OK;
}

/* The first rank of a host: its entries with those of the other hosts, zeros elsewhere, so that a bitwise or joins them
 * unchanged; then, if one of them is a failure, the error of the rank that failed. */
static void agree_with_hosts(mr_exchange *x, int gone)
{
    _Static_assert(sizeof(mr_window_entry) % 8 == 0 && sizeof(mr_window_text) % 8 == 0, "merged as integers");
    memset(&x->text, 0, sizeof x->text);
    memset(x->merged, 0, x->w.world * sizeof *x->merged);
    for (unsigned i = 0; i < x->w.locals; i++)
        x->merged[x->world_rank[i]] = entries(x)[x->world_rank[i]];
    if (gone >= 0)
        x->merged[x->world_rank[gone]] = (mr_window_entry){
            .status = MR_SYSTEM, .gone = mr_window_left(&x->w, gone) ? MR_WINDOW_LEFT : MR_WINDOW_KILLED};
    if (!merge(x, x->merged, x->w.world * sizeof *x->merged))
        return;
    unsigned broken = first_failure(x, x->merged);
    for (unsigned i = 0; i < x->w.locals; i++)
        if (x->world_rank[i] == broken)
            x->text = texts(x)[i];
    if (broken < x->w.world && !merge(x, &x->text, sizeof x->text))
        return;
    memcpy(entries(x), x->merged, x->w.world * sizeof *x->merged);
    texts(x)[x->w.locals] = x->text;
    atomic_store(&x->w.head->agreed, x->update);
    mr_window_ring(&x->w);
}

/* Every rank reads the same entries and returns the same status. */
static mr_status evaluate(mr_exchange *x, unsigned count, double *sums, mr_error *err)
{
    const mr_window_entry *all = entries(x);
    unsigned broken = first_failure(x, all), speaker = 0;
    int32_t worst = MR_OK;
    while (speaker < x->w.world && all[speaker].gone)
        speaker++;
    if (broken < x->w.world && all[broken].gone)
        return rank_gone(x, broken, all[broken].gone == MR_WINDOW_LEFT, speaker == mr_ranks_rank(x->ranks), err);
    if (broken < x->w.world) {
        const mr_window_text *error = &texts(x)[x->w.locals];
        for (unsigned i = 0; !x->hosts && i < x->w.locals; i++)
            if (x->world_rank[i] == broken)
                error = &texts(x)[i];
        if (x->w.world == 1)
            return (mr_status)all[broken].status; /* err is as it was given */
        return mr_fail(err, (mr_status)all[broken].status, "%s: %s", mr_ranks_name_of(x->ranks, broken).text,
                       error->text);
    }
    for (unsigned k = 0; k < count; k++)
        sums[k] = 0;
    for (unsigned i = 0; i < x->w.world; i++) {
        worst = all[i].status > worst ? all[i].status : worst;
        for (unsigned k = 0; k < count; k++)
            sums[k] += all[i].numbers[k];
    }
    return (mr_status)worst;
}

static mr_status begin(mr_exchange *x, unsigned count, double *sums, mr_error *err)
{
    /* The first rank of the host reports a rank that is gone to all hosts; the others here wait for it. */
    bool follows = x->hosts && !x->leaders;
    int gone = wait_until(x, follows ? all_agreed : all_begun, follows ? LEADER : ALL);
    if (x->leaders)
        agree_with_hosts(x, gone);
    else if (gone >= 0)
        return local_gone(x, gone, err);
    return x->failure != MR_OK ? failed(x, err) : evaluate(x, count, sums, err);
}

mr_status mr_exchange_begin(mr_exchange *x, mr_status mine, const double *numbers, unsigned numbers_count, double *sums,
                            mr_error *err)
{
    double started = mr_seconds();
    x->update++;
    x->ready = x->summed = x->begun = x->spread = x->reduced = 0;
    atomic_store(&x->mover.awaited, false);
    mr_window_entry *entry = &entries(x)[mr_ranks_rank(x->ranks)];
    memset(entry, 0, sizeof *entry);
    entry->status = mine;
    for (unsigned k = 0; k < numbers_count; k++)
        entry->numbers[k] = numbers[k];
    memset(&texts(x)[x->w.local], 0, sizeof(mr_window_text));
    if (mine < 0 && err)
        memcpy(texts(x)[x->w.local].text, err->text, sizeof err->text);
    atomic_store(&x->w.lines[x->w.local].begun, x->update);
    mr_window_ring(&x->w);
    mr_status status = begin(x, numbers_count, sums, err);
    x->seconds += mr_seconds() - started;
    return status;
}

const double *mr_exchange_numbers(const mr_exchange *x, unsigned rank)
{
    return entries(x)[rank].numbers;
}

void mr_exchange_ready(mr_exchange *x, uint64_t from)
{
    if (x->kind != MR_EXCHANGE_BUCKETS)
        return;
    double started = mr_seconds();
    mr_exchange_mark(x, from);
    if (!x->mover.started)
        mr_exchange_drive(x);
    x->seconds += mr_seconds() - started;
}

mr_status mr_exchange_finish(mr_exchange *x, const float **sum, mr_error *err)
{
    double started = mr_seconds();
    mr_exchange_mark(x, 0);
    atomic_store(&x->mover.awaited, true);
    int gone = wait_until(x, all_arrived, ALL);
    x->seconds += mr_seconds() - started;
    if (gone >= 0)
        return local_gone(x, gone, err);
    if (x->failure != MR_OK)
        return failed(x, err);
    *sum = mr_window_sum(&x->w);
    return MR_OK;
}

/* ---- sums by other means ---------------------------------------------------------------------------------------- */

/* A rank of this host has entered the next begin with a failure: it takes part in no sum any more. */
static bool one_failed(const mr_exchange *x)
{
    for (unsigned i = 0; i < x->w.locals; i++)
        if (atomic_load(&x->w.lines[i].begun) > x->update && entries_of(x, x->update + 1)[x->world_rank[i]].status < 0)
            return true;
    return false;
}

static bool decided(const mr_exchange *x)
{
    return x->elsewhere(x->ctx) || one_failed(x);
}

mr_status mr_exchange_watch(mr_exchange *x, bool (*done)(void *ctx), void *ctx, mr_error *err)
{
    double started = mr_seconds();
    x->elsewhere = done;
    x->ctx = ctx;
    int gone = wait_until(x, decided, ALL);
    bool over = gone < 0 && done(ctx);
    x->elsewhere = NULL;
    x->seconds += mr_seconds() - started;
    if (gone >= 0)
        return local_gone(x, gone, err);
    if (x->failure != MR_OK)
        return failed(x, err);
    return over ? MR_OK : MR_AGAIN;
}
