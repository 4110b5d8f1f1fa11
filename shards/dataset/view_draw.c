/* view_draw.c - how often the samples of a view's split are seen in an epoch, from its weights, balance and repetition.
 * Invariant: the items of a group are what its weight says, rounded; those of balanced classes differ by one at
 * most. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "shards/dataset/parts.h"

/* Items of a part; a loader accepts far fewer, and says so. */
#define ITEMS_MOST 1e15

void mr_draw_free(mr_draw *d)
{
    if (!d)
        return;
    free(d->groups);
    free(d->numbers);
    free(d);
}

static void free_draw(mr_draw **d)
{
    mr_draw_free(*d);
}

static void add_group(mr_draw *d, mr_draw_group g)
{
    g.first_item = d->items;
    d->items += g.items;
    d->groups[d->group_count++] = g;
}

/* A group for each part that sees something: a stranger's view may have others. */
static void weigh(const mr_view_split *from, mr_draw *d)
{
    uint64_t first = 0;
    for (size_t i = 0; i < from->part_count; first += from->parts[i++].samples) {
        const mr_view_part *p = &from->parts[i];
        double items = (double)p->samples * (p->weight ? strtod(p->weight, NULL) : 1) * (double)from->repeat;
        if (p->samples)
            add_group(d, (mr_draw_group){.samples = p->samples,
                                         .items = (uint64_t)llround(fmin(fmax(items, 1), ITEMS_MOST)),
                                         .first = first});
    }
}

/* A group for each class that has samples; `labels`: those of all samples, each of which has one. */
static void balance(const mr_split *split, const mr_view_split *from, const int32_t *labels, size_t classes,
                    uint64_t *counts, mr_draw *d)
{
    uint64_t used = 0, all = split->samples * from->repeat, place = 0, k = 0;
    for (uint64_t n = 0; n < split->samples; n++)
        counts[labels[n]]++;
    for (size_t c = 0; c < classes; c++)
        used += counts[c] > 0;
    for (size_t c = 0; c < classes; c++) {
        uint64_t count = counts[c];
        counts[c] = place; /* from here on: where the class's next number goes */
        if (!count)
            continue;
        uint64_t items = all / used + (k++ < all % used);
        add_group(d, (mr_draw_group){.samples = count, .items = items ? items : 1, .numbers = d->numbers + place});
        place += count;
    }
    for (uint64_t n = 0; n < split->samples; n++)
        d->numbers[counts[labels[n]]++] = (uint32_t)n;
}

static mr_status balance_classes(const mr_dataset *ds, const mr_split *split, const mr_view_split *from, mr_draw *d,
                                 mr_error *err)
{
    size_t classes = mr_dataset_class_count(ds);
    MR_AUTO(mr_scope_free) int32_t *labels = mr_alloc(split->samples + 1, sizeof *labels);
    MR_AUTO(mr_scope_free) uint64_t *counts = mr_alloc(classes + 1, sizeof *counts);
    d->numbers = mr_alloc(split->samples + 1, sizeof *d->numbers);
    if (!labels || !counts || !d->numbers)
        return mr_fail_memory(err, "balancing classes");
    if (split->samples > UINT32_MAX)
        return mr_fail(err, MR_MISUSE, "%s: more samples than can be balanced (4,294,967,295)", from->name);
    MR_TRY(mr_dataset_labels(ds, split->name, labels, err));
    for (uint64_t n = 0; n < split->samples; n++)
        if (labels[n] < 0 || (size_t)labels[n] >= classes)
            return mr_fail(err, MR_MISUSE, "--balance class: sample %llu of %s has no label, or several",
                           (unsigned long long)n, from->name);
    balance(split, from, labels, classes, counts, d);
    return MR_OK;
}

static bool is_weighted(const mr_view_split *s)
{
    for (size_t i = 0; i < s->part_count; i++)
        if (s->parts[i].weight)
            return true;
    return s->balance || s->repeat > 1;
}

mr_status mr_view_draw_make(const mr_dataset *ds, const mr_view_split *from, mr_split *split, mr_error *err)
{
    size_t groups = from->balance ? mr_dataset_class_count(ds) : from->part_count;
    if (!is_weighted(from))
        return MR_OK;
    MR_AUTO(free_draw) mr_draw *d = mr_alloc(1, sizeof *d);
    if (!d)
        return mr_fail_memory(err, "a view");
    d->groups = mr_alloc(groups + 1, sizeof *d->groups);
    if (!d->groups)
        return mr_fail_memory(err, "a view");
    if (from->balance)
        MR_TRY(balance_classes(ds, split, from, d, err));
    else
        weigh(from, d);
    split->draw = d;
    d = NULL;
    return MR_OK;
}
