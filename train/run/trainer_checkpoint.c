/* trainer_checkpoint.c - the state of a run on disk, as it is between two updates.
 * Invariant: rank 0 writes, and all ranks learn whether it could. */
#include <stdlib.h>

#include "base/scope.h"
#include "train/run/trainer.h"

/* Host memory as it is; of other memory a copy, which the caller frees by copies[]. */
static mr_status to_host(mr_trainer *t, float *values, float **copy, float **out, mr_error *err)
{
    *out = values;
    if (t->device->iface->host_memory)
        return MR_OK;
    *out = *copy = mr_alloc(t->params.total, sizeof **copy);
    if (!*copy)
        return mr_fail_memory(err, "writing a checkpoint");
    t->device->iface->download(t->device, *copy, values, t->params.total * sizeof **copy);
    return MR_OK;
}

static mr_status write_checkpoint(mr_trainer *t, mr_error *err)
{
    mr_checkpoint c = {
        .model = t->config,
        .params = t->params,
        .optimizer = t->update_rule.kind,
        .ema = t->settings->ema,
        .slots = mr_checkpoint_slots(t->update_rule.kind, t->mean),
        .update = t->done,
        .cursor = t->cursor,
        .seed = t->settings->seed,
        .accuracy = t->accuracy,
        .best_accuracy = t->best_accuracy,
        .threshold = t->threshold,
        .best_update = t->best_update,
        .evaluation_due = t->evaluation_due,
        .facts = t->facts,
        .tokenizer = t->pairs.file,
        .claim = t->claim,
    };
    float *copies[1 + MR_CHECKPOINT_STATES] = {NULL};
    mr_status status = to_host(t, t->mean ? t->mean : t->values, &copies[0], &c.values, err);
    for (unsigned i = 0; i < c.slots && status == MR_OK; i++)
        status =
            to_host(t, i < t->optimizer.slots ? t->optimizer.state[i] : t->values, &copies[1 + i], &c.state[i], err);
    if (status == MR_OK)
        status = mr_checkpoint_write(&c, t->settings->output, (unsigned)t->settings->keep, NULL, err);
    for (size_t i = 0; i < MR_COUNT(copies); i++)
        free(copies[i]);
    return status;
}

mr_status mr_trainer_save(mr_trainer *t, mr_error *err)
{
    mr_status status = MR_OK;
    if (*t->settings->output && mr_ranks_rank(t->ranks) == 0)
        status = mr_owner_check(t->owner, err);
    if (status == MR_OK && *t->settings->output && mr_ranks_rank(t->ranks) == 0)
        status = write_checkpoint(t, err);
    return mr_ranks_agree(t->ranks, status, err);
}
