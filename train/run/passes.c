/* passes.c - passes queued by the model, or recorded and replayed.
 * Invariant: a forward pass and its backward pass go the same way, as the model keeps on the host what the one leaves
 * for the other. */
#include "train/run/passes.h"

#include <stdlib.h>

#include "base/buf.h"

/* A backward pass is recorded in parts, split where progress is reported. */
typedef struct part {
    mr_recording *recording;
    uint64_t from;
} part;

struct mr_pass {
    mr_model_input in;
    mr_model_output out;
    bool tells;    /* its backward pass calls ready */
    bool complete; /* all of it was recorded */
    mr_recording *forward;
    part *backward;
    size_t count, capacity;
};

static void forget(mr_passes *p, mr_pass *k)
{
    const mr_recorder *r = p->device->iface->recorder;
    r->free(p->device, k->forward);
    for (size_t i = 0; i < k->count; i++)
        r->free(p->device, k->backward[i].recording);
    k->forward = NULL;
    k->count = 0;
    k->complete = false;
}

void mr_passes_close(mr_passes *p)
{
    for (size_t i = 0; i < p->count; i++) {
        forget(p, &p->kept[i]);
        free(p->kept[i].backward);
    }
    free(p->kept);
    *p = (mr_passes){0};
}

/* ---- which way --------------------------------------------------------------------------------------------------- */

static bool same(const mr_model_input *a, const mr_model_input *b)
{
    return a->count == b->count && a->training == b->training && a->images == b->images && a->labels == b->labels &&
           a->weights == b->weights && a->targets == b->targets && a->positive == b->positive &&
           !(a->smoothing < b->smoothing) && !(a->smoothing > b->smoothing) && a->keys == b->keys &&
           a->tokens == b->tokens && a->places == b->places && a->seen == b->seen && a->length == b->length &&
           a->groups == b->groups;
}

static mr_pass *find(mr_passes *p, const mr_model_input *in, bool tells)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->kept[i].tells == tells && same(&p->kept[i].in, in))
            return &p->kept[i];
    return NULL;
}

/* Sets p->now and p->replays. */
static void choose(mr_passes *p, const mr_model_input *in, bool tells)
{
    const mr_recorder *r = p->device->iface->recorder;
    p->now = r && !in->peers ? find(p, in, tells) : NULL;
    p->replays = p->now && p->now->complete && r->holds(p->device, p->now->forward);
    if (p->now && !p->replays) {
        forget(p, p->now);
        if (!r->begin(p->device))
            p->now = NULL;
    } else if (!p->now && r && !in->peers && p->count < MR_PASSES_KEPT && MR_GROW(p->kept, p->count, p->capacity)) {
        p->kept[p->count++] = (mr_pass){.in = *in, .tells = tells};
    }
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

void mr_passes_forward(mr_passes *p, const mr_model_input *in, bool last, mr_model_output *out)
{
    const mr_recorder *r = p->device->iface->recorder;
    p->last = last && p->ready;
    choose(p, in, p->last);
    if (!p->replays)
        p->model->iface->forward(p->model, p->values, in, out);
    if (p->now && !p->replays) {
        p->now->forward = r->end(p->device);
        p->now->out = *out;
    }
    if (p->now) {
        r->replay(p->device, p->now->forward);
        *out = p->now->out;
    }
}

/* What was recorded until here runs, and someone is told; the rest is recorded after it. */
static void end_part(mr_passes *p, uint64_t from)
{
    const mr_recorder *r = p->device->iface->recorder;
    mr_pass *k = p->now;
    mr_recording *made = r->end(p->device);
    r->replay(p->device, made);
    k->complete = k->complete && made && MR_GROW(k->backward, k->count, k->capacity);
    if (k->complete)
        k->backward[k->count++] = (part){made, from};
    else
        r->free(p->device, made);
    if (p->last)
        p->ready(p->ctx, from);
}

static void cut(void *passes, uint64_t from)
{
    mr_passes *p = passes;
    end_part(p, from);
    if (from)
        p->device->iface->recorder->begin(p->device);
}

static void record(mr_passes *p)
{
    p->now->complete = p->now->forward && p->device->iface->recorder->begin(p->device);
    p->model->iface->backward(p->model, p->values, p->gradients, p->last ? cut : NULL, p);
    if (!p->last)
        end_part(p, 0);
}

void mr_passes_backward(mr_passes *p)
{
    if (!p->now)
        p->model->iface->backward(p->model, p->values, p->gradients, p->last ? p->ready : NULL, p->ctx);
    else if (!p->replays)
        record(p);
    for (size_t i = 0; p->now && p->replays && i < p->now->count; i++) {
        p->device->iface->recorder->replay(p->device, p->now->backward[i].recording);
        if (p->last)
            p->ready(p->ctx, p->now->backward[i].from);
    }
}
