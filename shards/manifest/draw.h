/* draw.h - how often each sample of a split is seen in an epoch, if that is not once: the result of a view's weights,
 * class balance or repetition.  loader/order/draw.h says which sample an item is.
 * Invariant: the groups have all items, one after another, and each has at least one sample and one item. */
#ifndef MR_DRAW_H
#define MR_DRAW_H

#include <stddef.h>
#include <stdint.h>

typedef struct mr_draw_group { /* in which all samples are seen equally often, within one */
    uint64_t samples;          /* in the group */
    uint64_t items;            /* of an epoch */
    uint64_t first_item;
    uint64_t first;          /* number in the split of its first sample, if they follow one another */
    const uint32_t *numbers; /* or the numbers of all its samples; NULL: they do */
} mr_draw_group;

typedef struct mr_draw {
    mr_draw_group *groups;
    size_t group_count;
    uint64_t items;    /* of an epoch */
    uint32_t *numbers; /* the numbers of all groups; NULL: none has any */
} mr_draw;

void mr_draw_free(mr_draw *d); /* NULL is fine */

#endif
