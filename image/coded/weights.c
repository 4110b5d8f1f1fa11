/* weights.c - the weights of axes, kept by their sides; see weights.h.
 *
 * Crops of random size have a few hundred widths and heights, and weights take longer to compute than all else that a
 * description needs.  A place of the table holds the last axis that fell on it. */
#include "image/coded/weights.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"

enum { PLACES = 8192, KEPT_BYTES = 16 << 20, EACH_BYTES = 256 << 10 };

struct mr_coded_weights {
    mr_coded_axis places[PLACES];
    mr_coded_axis other; /* too large to keep */
    size_t bytes;
    mr_resize_axis axis;
};

mr_coded_weights *mr_coded_weights_new(void)
{
    return mr_alloc(1, sizeof(mr_coded_weights));
}

static size_t bytes_of(const mr_coded_axis *a)
{
    return a->starts ? (size_t)a->side.count * (a->taps + 1) * sizeof(uint32_t) : 0;
}

static void drop_all(mr_coded_weights *w)
{
    for (size_t i = 0; i < PLACES; i++)
        free(w->places[i].starts);
    memset(w->places, 0, sizeof w->places);
    w->bytes = 0;
}

void mr_coded_weights_free(mr_coded_weights *w)
{
    if (!w)
        return;
    drop_all(w);
    free(w->other.starts);
    mr_resize_axis_free(&w->axis);
    free(w);
}

static bool same(const mr_resize_side *a, const mr_resize_side *b)
{
    return a->in == b->in && a->out == b->out && a->first == b->first && a->count == b->count &&
           a->held.from == b->held.from && a->held.count == b->held.count && a->bicubic == b->bicubic &&
           a->mirrored == b->mirrored;
}

static size_t place_of(const mr_resize_side *s)
{
    const uint32_t numbers[] = {s->in, s->out, s->first, s->count, s->held.from, s->held.count};
    uint32_t h = (uint32_t)s->bicubic * 2 + s->mirrored;
    for (size_t i = 0; i < MR_COUNT(numbers); i++)
        h = (h ^ numbers[i]) * 0x9E3779B1U ^ h >> 15;
    return (h >> 7) % PLACES;
}

/* One number for each tap of axis->k's split pairs. */
static mr_status make(mr_coded_axis *out, mr_resize_axis *axis, const mr_resize_side *side, mr_error *err)
{
    size_t pairs;
    MR_TRY(mr_resize_axis_set(axis, side, err));
    pairs = axis->outputs * axis->pairs;
    *out = (mr_coded_axis){.side = *side, .taps = (uint32_t)(axis->pairs * 2)};
    out->starts = mr_alloc(axis->outputs + pairs * 2, sizeof *out->starts);
    if (!out->starts)
        return mr_fail_memory(err, "describing an image");
    memcpy(out->starts, axis->start, axis->outputs * sizeof *axis->start);
    out->weights = (int32_t *)out->starts + axis->outputs;
    for (size_t i = 0; i < pairs; i++) {
        const int16_t *k = axis->k + i * 4;
        out->weights[2 * i] = k[2] * (1 << MR_RESIZE_SPLIT) + k[0];
        out->weights[2 * i + 1] = k[3] * (1 << MR_RESIZE_SPLIT) + k[1];
    }
    return MR_OK;
}

mr_status mr_coded_weights_get(mr_coded_weights *w, const mr_resize_side *side, const mr_coded_axis **out,
                               mr_error *err)
{
    mr_coded_axis *place = &w->places[place_of(side)], made;
    if (place->starts && same(&place->side, side)) {
        *out = place;
        return MR_OK;
    }
    MR_TRY(make(&made, &w->axis, side, err));
    size_t bytes = bytes_of(&made);
    if (bytes > EACH_BYTES)
        place = &w->other;
    else if (w->bytes - bytes_of(place) + bytes > KEPT_BYTES)
        drop_all(w);
    if (place != &w->other)
        w->bytes += bytes - bytes_of(place);
    free(place->starts);
    *place = made;
    *out = place;
    return MR_OK;
}
