/* detached.c - a batch that a caller keeps: its memory leaves the loader, which takes new memory in its place.
 * Invariant: a detached batch holds whatever its `lent` points at, and nothing of the loader. */
#include <stdlib.h>

#include "base/scope.h"
#include "loader/batch/batch.h"

typedef struct detached {
    mr_loading loading; /* first: the caller has a pointer to its `lent` */
    mr_allocator allocator;
    bool allocated; /* the data is from the allocator */
} detached;

mr_status mr_loading_detach(mr_loading *b, const mr_work *w, mr_batch **out, mr_error *err)
{
    uint64_t max = mr_schedule_count(&w->schedule, 0, w->o.rank);
    mr_sample_facts *facts = mr_alloc(max ? max : 1, sizeof *facts);
    detached *d = mr_alloc(1, sizeof *d);
    if (!facts || !d) {
        free(facts);
        free(d);
        return mr_fail_memory(err, "detaching a batch");
    }
    d->loading = (mr_loading){.lent = b->lent, .facts = b->facts, .data = b->data, .meta = b->meta, .bad = b->bad};
    d->loading.joined = b->joined;
    d->loading.masks = b->masks;
    d->loading.bad_count = b->bad_count;
    d->allocated = w->o.allocator != NULL;
    if (d->allocated)
        d->allocator = *w->o.allocator;
    b->facts = facts;
    b->data = b->meta = b->joined = b->masks = (mr_slab){0};
    b->bad = NULL;
    b->bad_count = b->bad_capacity = 0;
    *out = &d->loading.lent;
    return MR_OK;
}

void mr_batch_free(mr_batch *batch)
{
    detached *d = (detached *)batch;
    if (!d)
        return;
    mr_slab_free(&d->loading.data, d->allocated ? &d->allocator : NULL);
    mr_slab_free(&d->loading.meta, NULL);
    mr_slab_free(&d->loading.joined, NULL);
    mr_slab_free(&d->loading.masks, NULL);
    free(d->loading.facts);
    free(d->loading.bad);
    free(d);
}
