/* share.c - the checkpoint of rank 0 on all ranks.
 * Invariant: every rank reaches every collective call, whatever failed on one of them. */
#include <stdlib.h>

#include "base/scope.h"
#include "train/checkpoint/parts.h"

/* state.json, which also gives the sizes of the arrays. */
static mr_status share_state(mr_ranks *ranks, mr_checkpoint *c, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    mr_digest digests[MR_FILES] = {{.bytes = 0}};
    bool first = mr_ranks_rank(ranks) == 0;
    MR_TRY(mr_ranks_agree(ranks, first ? mr_state_write(c, digests, &text, err) : MR_OK, err));
    MR_TRY(mr_ranks_share(ranks, &text, err));
    mr_status status = first ? MR_OK : mr_state_parse(text.data, text.len, "the checkpoint of rank 0", c, digests, err);
    if (!first && status == MR_OK)
        status = c->model.iface->params(&c->model, &c->params, err);
    return mr_ranks_agree(ranks, status, err);
}

/* One buffer of all parameters; NULL, if it is NULL on rank 0. */
static mr_status share_buffer(mr_ranks *ranks, const mr_params *params, float **buffer, mr_error *err)
{
    mr_buf bytes = {.data = (uint8_t *)*buffer, .len = *buffer ? params->total * sizeof **buffer : 0};
    mr_status status = mr_ranks_share(ranks, &bytes, err);
    if (bytes.len == 0)
        mr_buf_free(&bytes);
    *buffer = (float *)(void *)bytes.data;
    return status;
}

mr_status mr_checkpoint_share(mr_ranks *ranks, mr_checkpoint *c, mr_error *err)
{
    if (mr_ranks_world(ranks) == 1)
        return MR_OK;
    MR_TRY(share_state(ranks, c, err));
    MR_TRY(mr_ranks_share(ranks, &c->tokenizer, err));
    MR_TRY(share_buffer(ranks, &c->params, &c->values, err));
    for (unsigned i = 0; i < MR_CHECKPOINT_STATES; i++)
        MR_TRY(share_buffer(ranks, &c->params, &c->state[i], err));
    return MR_OK;
}
