/* optimizer.c - learning rate, clipping and the update of all parameters at once.
 * Invariant: nothing is changed unless the norm of all gradients is finite, which is checked here, in a file that is
 * compiled without -ffast-math, where the check works. */
#include "train/model/optimizer.h"

#include <math.h>

#include "base/scope.h"

/* Factor of the learning rate before update number `done` + 1.  The order of operations is that of the schedules'
 * source: 1 + cos() loses digits at the end of a run, and only the same roundings give the same last learning rates. */
static double factor(const mr_schedule_lr *s, uint64_t done)
{
    if (done < s->warmup)
        return (double)done / (double)s->warmup;
    if (s->decay == MR_DECAY_NONE)
        return 1;
    if (done >= s->steps)
        return 0;
    double span = s->steps > s->warmup ? (double)(s->steps - s->warmup) : 1;
    if (s->decay == MR_DECAY_LINEAR)
        return (double)(s->steps - done) / span;
    return fmax(0, 0.5 * (1 + cos(3.14159265358979323846 * ((double)(done - s->warmup) / span))));
}

double mr_lr_at(const mr_schedule_lr *s, uint64_t update)
{
    return s->base * factor(s, update ? update - 1 : 0);
}

static bool below(double x, double low, double end)
{
    return x >= low && x < end; /* false for NaN */
}

static mr_status check_schedule(const mr_schedule_lr *s, mr_error *err)
{
    if (!below(s->base, 0, HUGE_VAL))
        return mr_fail(err, MR_MISUSE, "--lr: %g is not a learning rate; give a number >= 0", s->base);
    if (!s->steps && s->decay != MR_DECAY_NONE)
        return mr_fail(err, MR_MISUSE, "--steps: the schedule needs at least 1 update");
    if (s->steps && s->warmup > s->steps)
        return mr_fail(err, MR_MISUSE, "--warmup: %llu updates are more than the run's %llu; give at most those",
                       (unsigned long long)s->warmup, (unsigned long long)s->steps);
    return MR_OK;
}

static mr_status check_options(const mr_optimizer_options *o, mr_error *err)
{
    MR_TRY(check_schedule(&o->lr, err));
    if (!below(o->weight_decay, 0, HUGE_VAL))
        return mr_fail(err, MR_MISUSE, "--weight-decay: %g: give a number >= 0", o->weight_decay);
    if (!below(o->clip, 0, HUGE_VAL))
        return mr_fail(err, MR_MISUSE, "--clip: %g: give a number > 0, or 0 for no clipping", o->clip);
    if (o->kind == MR_SGD && !below(o->momentum, 0, 1))
        return mr_fail(err, MR_MISUSE, "--momentum: %g must be at least 0 and below 1", o->momentum);
    if (o->kind == MR_ADAMW && !below(o->beta1, 0, 1))
        return mr_fail(err, MR_MISUSE, "--beta1: %g must be at least 0 and below 1", o->beta1);
    if (o->kind == MR_ADAMW && !below(o->beta2, 0, 1))
        return mr_fail(err, MR_MISUSE, "--beta2: %g must be at least 0 and below 1", o->beta2);
    /* Without any gradient the update is 0 / (0 + eps): eps must be above 0 in float32 too. */
    if (o->kind == MR_ADAMW && !below(o->eps, 1e-30, 1))
        return mr_fail(err, MR_MISUSE, "--eps: %g must be at least 1e-30 and below 1", o->eps);
    return MR_OK;
}

mr_status mr_optimizer_open(const mr_optimizer_options *options, const mr_params *params, mr_device *device,
                            mr_optimizer *out, mr_error *err)
{
    MR_TRY(check_options(options, err));
    MR_AUTO(mr_optimizer_close) mr_optimizer o = {.device = device};
    o.options = *options;
    o.params = params;
    for (o.slots = 0; o.slots < (options->kind == MR_ADAMW ? 2 : 1); o.slots++)
        MR_TRY(device->iface->alloc(device, params->total * sizeof(float), "the optimizer", (void **)&o.state[o.slots],
                                    err));
    *out = o;
    o = (mr_optimizer){0};
    return MR_OK;
}

void mr_optimizer_close(mr_optimizer *o)
{
    for (unsigned i = 0; i < o->slots; i++)
        o->device->iface->free(o->device, o->state[i]);
    *o = (mr_optimizer){0};
}

/* ---- one update ------------------------------------------------------------------------------------------------- */

typedef struct run { /* neighbours in the flat buffers with the same decay */
    uint64_t from, end;
    bool decays;
} run;

/* The part that begins with parameter *next, which moves past it; gaps belong to the parameter before them. */
static bool next_part(const mr_params *p, bool decay, size_t *next, run *out)
{
    size_t i = *next;
    if (i >= p->count)
        return false;
    *out = (run){.from = i ? p->items[i].offset : 0, .end = p->total, .decays = decay && p->items[i].decays};
    while (++i < p->count && (decay && p->items[i].decays) == out->decays)
        ;
    if (i < p->count)
        out->end = p->items[i].offset;
    *next = i;
    return true;
}

static void update_part(const mr_optimizer *o, const mr_update *whole, const run *part)
{
    mr_update u = *whole;
    u.count = part->end - part->from;
    u.w += part->from;
    u.g += part->from;
    u.m += part->from;
    u.v = u.v ? u.v + part->from : NULL;
    u.decay = part->decays ? o->options.weight_decay : 0;
    if (o->options.kind == MR_ADAMW)
        mr_run_adamw(o->device, &u);
    else
        mr_run_sgd(o->device, &u);
}

mr_status mr_optimizer_update(mr_optimizer *o, uint64_t update, double divisor, const float *gradients, float *values,
                              mr_update_facts *facts, mr_error *err)
{
    const mr_optimizer_options *how = &o->options;
    unsigned long long number = update;
    if (update == 0)
        return mr_fail(err, MR_MISUSE, "optimizer: updates are counted from 1");
    if (!(divisor > 0) || !isfinite(divisor))
        return mr_fail(err, MR_MISUSE, "update %llu: the samples have a weight of %g; it must be above 0", number,
                       divisor);
    double norm = sqrt(mr_squares_of(o->device, o->params->total, gradients)) / divisor;
    if (!isfinite(norm))
        MR_TRY(o->device->iface->wait(o->device, err)); /* the reason may be a device that was lost */
    if (!isfinite(norm))
        return mr_fail(
            err, MR_BAD_DATA,
            "update %llu: the gradients are not finite (norm %s): the run diverged; resume from a checkpoint "
            "with a lower --lr, a longer --warmup or a --clip",
            number, isnan(norm) ? "nan" : "inf");

    /* torch clips by clamp(clip / (norm + 1e-6), max=1): the factor is below 1 just under the limit, too. */
    double clipping = how->clip > 0 ? fmin(1, how->clip / (norm + 1e-6)) : 1;
    const mr_update whole = {
        .w = values,
        .g = gradients,
        .m = o->state[0],
        .v = o->state[1],
        .g_scale = clipping / divisor,
        .lr = mr_lr_at(&how->lr, update),
        .momentum = how->momentum,
        .beta1 = how->beta1,
        .beta2 = how->beta2,
        .eps = how->eps,
        .correction1 = 1 - pow(how->beta1, (double)update),
        .correction2 = 1 - pow(how->beta2, (double)update),
    };
    run part;
    for (size_t next = 0; next_part(o->params, how->weight_decay > 0, &next, &part);)
        update_part(o, &whole, &part);
    if (facts)
        *facts = (mr_update_facts){.lr = whole.lr, .grad_norm = norm};
    return MR_OK;
}
