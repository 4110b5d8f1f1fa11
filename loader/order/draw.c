/* draw.c - which sample an item of an epoch is, if samples are not seen exactly once.
 * Invariant: no state but the draw's groups, which are as many as a view has parts or classes. */
#include "loader/order/draw.h"

#include <stdlib.h>

#include "loader/order/mix.h"
#include "loader/order/order.h"

const mr_draw *mr_draw_of(const mr_split *split, mr_shuffle shuffle)
{
    return shuffle == MR_SHUFFLE_NONE ? NULL : split->draw;
}

uint64_t mr_draw_items(const mr_split *split, mr_shuffle shuffle)
{
    const mr_draw *d = mr_draw_of(split, shuffle);
    return d ? d->items : split->samples;
}

/* Whether an item comes before, in or after a group. */
static int by_item(const void *key, const void *group)
{
    uint64_t item = *(const uint64_t *)key;
    const mr_draw_group *g = group;
    return item < g->first_item ? -1 : item - g->first_item >= g->items;
}

uint64_t mr_draw_sample(const mr_draw *d, uint64_t seed, uint64_t epoch, uint64_t item)
{
    const mr_draw_group *g = bsearch(&item, d->groups, d->group_count, sizeof *d->groups, by_item);
    if (!g) /* cannot be: the groups have all items */
        return 0;
    unsigned __int128 count = (unsigned __int128)epoch * g->items + (item - g->first_item);
    uint64_t round = (uint64_t)(count / g->samples), place = (uint64_t)(count % g->samples);
    uint64_t at = mr_permute(g->samples, seed ^ mr_mix((uint64_t)(g - d->groups)), round, place);
    return g->numbers ? g->numbers[at] : g->first + at;
}
