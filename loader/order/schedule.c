/* schedule.c - global batches, and each rank's part of them: arithmetic on positions, nothing stored.
 * Invariant: the slots of ranks 0, 1, 2 ... of step k, joined, are the positions from k * global_batch, for any
 * world. */
#include "loader/order/schedule.h"

#include "base/scope.h"

typedef unsigned long long ull;

static const uint64_t max_batch = (uint64_t)1 << 40;

static mr_status check_world(uint64_t batch, unsigned world, mr_error *err)
{
    uint64_t below = batch / world * world, above = below + world;
    if (below == batch)
        return MR_OK;
    if (below == 0)
        return mr_fail(err, MR_MISUSE,
                       "a global batch of %llu cannot be divided among %u ranks; the nearest that can is %llu",
                       (ull)batch, world, (ull)above);
    return mr_fail(err, MR_MISUSE,
                   "a global batch of %llu cannot be divided among %u ranks; the nearest that can are %llu and %llu",
                   (ull)batch, world, (ull)below, (ull)above);
}

mr_status mr_schedule_make(const mr_order *order, uint64_t global_batch, unsigned world, mr_tail tail, mr_schedule *out,
                           mr_error *err)
{
    mr_schedule s = {.order = *order, .global_batch = global_batch, .world = world ? world : 1, .tail = tail};
    if (global_batch == 0)
        return mr_fail(err, MR_MISUSE, "a global batch of 0 samples; the minimum is one per rank, %u", s.world);
    if (global_batch > max_batch)
        return mr_fail(err, MR_MISUSE, "a global batch of %llu samples; the maximum is 2^40", (ull)global_batch);
    if (tail != MR_TAIL_DROP && tail != MR_TAIL_PAD && tail != MR_TAIL_PARTIAL)
        return mr_fail(err, MR_MISUSE, "tail %d is neither drop, pad nor partial", (int)tail);
    MR_TRY(check_world(global_batch, s.world, err));
    s.steps = order->samples / global_batch;
    if (tail != MR_TAIL_DROP && order->samples % global_batch)
        s.steps++;
    *out = s;
    return MR_OK;
}

/* Slots of all ranks together in an existing step. */
static uint64_t step_slots(const mr_schedule *s, uint64_t step)
{
    uint64_t rest = s->order.samples - step * s->global_batch;
    return s->tail == MR_TAIL_PARTIAL && rest < s->global_batch ? rest : s->global_batch;
}

uint64_t mr_schedule_count(const mr_schedule *s, uint64_t step, unsigned rank)
{
    if (step >= s->steps || rank >= s->world)
        return 0;
    uint64_t slots = step_slots(s, step);
    return slots / s->world + (rank < slots % s->world);
}

uint64_t mr_schedule_sample(const mr_schedule *s, uint64_t epoch, uint64_t item)
{
    return s->draw ? mr_draw_sample(s->draw, s->order.seed, epoch, item) : item;
}

mr_slot mr_schedule_slot(const mr_schedule *s, uint64_t epoch, uint64_t step, unsigned rank, uint64_t i)
{
    uint64_t slots = step_slots(s, step), longer = slots % s->world;
    uint64_t before = rank * (slots / s->world) + (rank < longer ? rank : longer);
    uint64_t position = step * s->global_batch + before + i, samples = s->order.samples;
    bool padding = position >= samples; /* a batch may be larger than the whole split: padding wraps around */
    uint64_t item = mr_order_at(&s->order, epoch, padding ? (position - samples) % samples : position);
    return (mr_slot){item, mr_schedule_sample(s, epoch, item), padding ? 0 : 1};
}

mr_status mr_schedule_step_at(const mr_schedule *s, uint64_t position, uint64_t *step, mr_error *err)
{
    uint64_t samples = s->order.samples, below = position / s->global_batch * s->global_batch;
    if (position > samples)
        return mr_fail(err, MR_MISUSE, "position %llu is past the end of an epoch of %llu samples", (ull)position,
                       (ull)samples);
    if (position == samples) {
        *step = s->steps;
        return MR_OK;
    }
    if (position != below) {
        uint64_t above = mr_schedule_position(s, position / s->global_batch + 1);
        return mr_fail(err, MR_MISUSE,
                       "no step begins at position %llu with a global batch of %llu; the nearest are %llu and %llu",
                       (ull)position, (ull)s->global_batch, (ull)below, (ull)(above > position ? above : samples));
    }
    *step = position / s->global_batch;
    return MR_OK;
}

uint64_t mr_schedule_position(const mr_schedule *s, uint64_t step)
{
    if (step > s->steps)
        step = s->steps;
    uint64_t position = step * s->global_batch;
    return position < s->order.samples ? position : s->order.samples;
}
