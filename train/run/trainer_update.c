/* trainer_update.c - one update: passes are queued, gradients summed, and only then results read.
 * Invariant: nothing waits for the device between the first forward pass and the gradients. */
#include "train/run/trainer_update.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "loader/batch/loader.h"

static mr_status peers_status(const mr_trainer *t, mr_error *err)
{
    if (t->peers.status != MR_OK && err)
        *err = t->peers.why;
    return t->peers.status;
}

/* The next micro-batch.  With negatives of other ranks all continue or none does: `before` is a failure of this rank
 * that the others, which would wait for its negatives, do not know of. */
static mr_status next(mr_trainer *t, mr_status before, mr_model_input *in, double *weight, mr_error *err)
{
    mr_status status = before == MR_OK ? mr_feed_next(&t->feed, in, weight, err) : before;
    if (!t->peers.all)
        return status;
    if (status != MR_OK)
        mr_fail(err, status, "rank %u: %s", mr_ranks_rank(t->ranks), err->text);
    return mr_ranks_agree(t->ranks, status, err);
}

static mr_status forward(mr_trainer *t, mr_trainer_update *u, mr_model_input *in, double weight, bool last,
                         mr_error *err)
{
    mr_model_output out;
    bool gather = t->peers.all != NULL;
    if (in->count == 0 && gather)
        mr_peers_idle(&t->peers, true);
    if (in->count == 0)
        return peers_status(t, err);
    in->training = true;
    in->peers = gather ? &t->peers : NULL;
    mr_passes_forward(&t->passes, in, last, &out);
    MR_TRY(peers_status(t, err));
    mr_losses_keep(&u->losses, out.losses, in->count);
    u->numbers[MR_UPDATE_WEIGHT] += weight;
    u->numbers[MR_UPDATE_SAMPLES] += (double)in->count;
    return MR_OK;
}

/* The micro-steps of one update; gradients are exchanged while the last one computes them.  Does not wait for the
 * device. */
static mr_status accumulate(mr_trainer *t, mr_trainer_update *u, mr_error *err)
{
    mr_gradients *g = &t->gradients;
    mr_model_input in = {0};
    mr_status status = u->carried;
    if (status != MR_OK && err)
        *err = u->why;
    mr_gradients_zero(g);
    mr_losses_clear(&u->losses);
    for (uint64_t micro = 1;; micro++) {
        double weight = 0;
        status = next(t, status, &in, &weight, err);
        if (status != MR_OK && t->peers.all)
            return status; /* known to all ranks */
        if (status != MR_OK)
            break;
        bool last =
            micro == t->settings->grad_accum || t->feed.batch->step + 1 == t->steps; /* an epoch ends with an update */
        status = forward(t, u, &in, weight, last, err);
        if (last || (status != MR_OK && !t->peers.all))
            break;
        if (status == MR_OK && in.count) {
            mr_passes_backward(&t->passes);
            mr_feed_look_ahead(&t->feed);
        }
    }
    MR_TRY(mr_exchange_begin(t->exchange, status, NULL, 0, NULL, err));
    if (in.count)
        mr_passes_backward(&t->passes);
    mr_feed_look_ahead(&t->feed);
    return MR_OK;
}

/* After the gradients: where a device has failed, all ranks learn of it before they use them. */
static mr_status sum_numbers(mr_trainer *t, mr_trainer_update *u, mr_error *err)
{
    mr_status status = mr_losses_sum(&u->losses, &u->numbers[MR_UPDATE_LOSS], err);
    u->numbers[MR_UPDATE_SECONDS] = u->use.seconds;
    u->numbers[MR_UPDATE_WAIT] = u->use.wait;
    u->numbers[MR_UPDATE_EXCHANGE] = u->use.exchange;
    u->numbers[MR_UPDATE_READ] = u->use.read;
    u->numbers[MR_UPDATE_DECODE] = u->use.decode;
    mr_pause_numbers(&u->pause, u->numbers + MR_UPDATE_PAUSE);
    return mr_exchange_begin(t->exchange, status, u->numbers, MR_UPDATE_NUMBERS, u->sums, err);
}

/* mean = D mean + (1 - D) values, which is the momentum of an update that moves nothing.  Source: Polyak and Juditsky
 * 1992, in the exponential form of PyTorch's get_ema_avg_fn. */
static void update_mean(mr_trainer *t)
{
    const mr_update u = {.count = t->params.total,
                         .w = t->values,
                         .g = t->values,
                         .m = t->mean,
                         .g_scale = 1 - t->settings->ema,
                         .momentum = t->settings->ema};
    if (t->mean)
        mr_run_sgd(t->device, &u);
}

mr_status mr_trainer_update_make(mr_trainer *t, mr_trainer_update *u, mr_error *err)
{
    const float *sum;
    memset(u->numbers, 0, sizeof u->numbers);
    MR_TRY(accumulate(t, u, err));
    MR_TRY(mr_gradients_finish(&t->gradients, &sum, err));
    MR_TRY(sum_numbers(t, u, err));
    /* With masked samples only there is no gradient, and the update is momentum and decay. */
    double weight = u->sums[MR_UPDATE_WEIGHT] > 0 ? u->sums[MR_UPDATE_WEIGHT] : 1;
    MR_TRY(mr_optimizer_update(&t->optimizer, t->done + 1, weight, sum, t->values, &u->facts, err));
    update_mean(t);
    t->done++;
    t->cursor = mr_feed_cursor(&t->feed);
    return MR_OK;
}

mr_rank_uses mr_trainer_update_uses(const mr_trainer *t, mr_trainer_update *u)
{
    for (unsigned i = 0; i < u->uses.world; i++) {
        const double *numbers = mr_exchange_numbers(t->exchange, i);
        u->uses.each[i] = (mr_rank_use){.seconds = numbers[MR_UPDATE_SECONDS],
                                        .wait = numbers[MR_UPDATE_WAIT],
                                        .exchange = numbers[MR_UPDATE_EXCHANGE],
                                        .read = numbers[MR_UPDATE_READ],
                                        .decode = numbers[MR_UPDATE_DECODE]};
    }
    return u->uses;
}

mr_status mr_trainer_update_open(const mr_trainer *t, mr_trainer_update *u, mr_error *err)
{
    unsigned world = mr_ranks_world(t->ranks);
    uint64_t accum = t->settings->grad_accum < t->steps ? t->settings->grad_accum : t->steps;
    MR_TRY(mr_losses_open(t->device, t->settings->batch, accum, &u->losses, err));
    if (mr_ranks_rank(t->ranks) == 0)
        u->uses = (mr_rank_uses){.world = world, .each = mr_alloc(world, sizeof *u->uses.each), .ranks = t->ranks};
    return u->uses.each || !u->uses.world ? MR_OK : mr_fail_memory(err, "training");
}

void mr_trainer_update_close(mr_trainer_update *u)
{
    mr_rank_uses_release(&u->uses);
    mr_losses_close(&u->losses);
}
