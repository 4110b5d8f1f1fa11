/* options.c - mr_loader_options checked, and every 0 that means a default replaced by it. */
#include "batch/options.h"

#include <math.h>

#include "base/scope.h"
#include "codec/image.h"

typedef unsigned long long ull;

static bool sides_ok(uint32_t size, uint32_t resize)
{
    return size <= MR_MAX_SIDE && resize <= MR_MAX_SIDE;
}

static mr_status fill_normalisation(mr_transform *t, mr_error *err)
{
    if (t->std[0] == 0 && t->std[1] == 0 && t->std[2] == 0) {
        for (int i = 0; i < 3; i++)
            t->mean[i] = t->std[i] = 0.5f;
        return MR_OK;
    }
    for (int i = 0; i < 3; i++)
        if (!isfinite(t->mean[i]) || !isfinite(t->std[i]) || t->std[i] <= 0)
            return mr_fail(err, MR_MISUSE, "transform: mean and std of channel %d are %g and %g; std must be above 0",
                           i, (double)t->mean[i], (double)t->std[i]);
    return MR_OK;
}

mr_status mr_transform_fill(const mr_transform *from, mr_transform *out, mr_error *err)
{
    mr_transform t = *from;
    if ((unsigned)t.kind > MR_TRANSFORM_CENTER)
        return mr_fail(err, MR_MISUSE, "transform: kind %u does not exist", (unsigned)t.kind);
    if (t.size == 0)
        t.size = 224;
    if (t.resize == 0)
        t.resize = (uint32_t)((uint64_t)t.size * 256 / 224);
    if (!sides_ok(t.size, t.resize))
        return mr_fail(err, MR_MISUSE, "transform: size %u and resize %u; a side has %d pixels at most", t.size,
                       t.resize, MR_MAX_SIDE);
    if (t.kind == MR_TRANSFORM_CENTER && t.resize < t.size)
        return mr_fail(err, MR_MISUSE, "transform: resize %u is smaller than the part that is kept, size %u", t.resize,
                       t.size);
    if (t.scale_min == 0 && t.scale_max == 0) {
        t.scale_min = 0.08f;
        t.scale_max = 1;
    }
    if (!(t.scale_min > 0 && t.scale_min <= t.scale_max && t.scale_max <= 1))
        return mr_fail(err, MR_MISUSE, "transform: scale %g to %g; it is a share of the picture, above 0 and up to 1",
                       (double)t.scale_min, (double)t.scale_max);
    if (!(t.flip >= 0 && t.flip <= 1))
        return mr_fail(err, MR_MISUSE, "transform: flip %g; it is a probability, from 0 to 1", (double)t.flip);
    MR_TRY(fill_normalisation(&t, err));
    *out = t;
    return MR_OK;
}

static mr_status check_items(const mr_loader_options *o, uint64_t samples, mr_error *err)
{
    if (!o->items && o->item_count)
        return mr_fail(err, MR_MISUSE, "%llu items without a list of them", (ull)o->item_count);
    for (uint64_t i = 0; i < o->item_count; i++)
        if (o->items[i] >= samples)
            return mr_fail(err, MR_MISUSE, "item %llu is sample %llu, and %s has %llu samples", (ull)i,
                           (ull)o->items[i], o->split, (ull)samples);
    return MR_OK;
}

mr_status mr_loader_options_fill(const mr_loader_options *from, const mr_manifest *m, mr_loader_options *out,
                                 mr_error *err)
{
    mr_loader_options o = *from;
    const mr_split *split;
    MR_TRY(mr_manifest_find_split(m, NULL, o.split ? o.split : "", &split, err));
    if (o.global_batch == 0)
        return mr_fail(err, MR_MISUSE, "global batch of 0 samples; give the samples of a step, all ranks together");
    if (o.world == 0)
        o.world = 1;
    if (o.rank >= o.world)
        return mr_fail(err, MR_MISUSE, "rank %u of a world of %u; ranks count from 0", o.rank, o.world);
    if (o.threads > MR_MAX_THREADS)
        return mr_fail(err, MR_MISUSE, "%u threads; at most %d", o.threads, MR_MAX_THREADS);
    if (o.prefetch == 0)
        o.prefetch = 2;
    if (o.prefetch > MR_MAX_PREFETCH)
        return mr_fail(err, MR_MISUSE, "prefetch of %u batches; at most %d", o.prefetch, MR_MAX_PREFETCH);
    if (o.epochs == 0)
        o.epochs = 1;
    if (o.max_pixels == 0)
        o.max_pixels = MR_DEFAULT_MAX_PIXELS;
    if ((unsigned)o.shuffle > MR_SHUFFLE_WINDOW || (unsigned)o.tail > MR_TAIL_PARTIAL ||
        (unsigned)o.deliver > MR_DELIVER_BF16_NCHW || (unsigned)o.on_bad > MR_ON_BAD_MASK)
        return mr_fail(err, MR_MISUSE, "shuffle, tail, deliver or on_bad has a value that millrace.h does not name");
    if (o.allocator && (!o.allocator->alloc || !o.allocator->free))
        return mr_fail(err, MR_MISUSE, "allocator: needs both alloc and free");
    if (o.transform.unrounded && o.deliver == MR_DELIVER_U8_NHWC)
        return mr_fail(err, MR_MISUSE,
                       "transform: unrounded pixels cannot be delivered in 8 bits; take float32 or "
                       "bfloat16");
    MR_TRY(mr_transform_fill(&from->transform, &o.transform, err));
    MR_TRY(check_items(&o, split->samples, err));
    *out = o;
    return MR_OK;
}
