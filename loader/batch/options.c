/* options.c - checks mr_loader_options and replaces every 0 that means a default. */
#include "loader/batch/options.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/scope.h"
#include "loader/augment/changes.h"
#include "image/codec/image.h"
#include "loader/order/augment.h"
#include "loader/order/draw.h"

typedef unsigned long long ull;

/* Size of mr_loader_options in version 0.1, which a struct_size of 0 means. */
enum { FIRST_SIZE = offsetof(mr_loader_options, item_count) + sizeof((mr_loader_options *)0)->item_count };

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

static mr_status fill_transform(const mr_transform *from, mr_transform *out, mr_error *err)
{
    mr_transform t = *from;
    if ((unsigned)t.kind > MR_TRANSFORM_PATCH)
        return mr_fail(err, MR_MISUSE, "transform: unknown kind %u", (unsigned)t.kind);
    if (t.size == 0)
        t.size = 224;
    if (t.resize == 0 && t.kind != MR_TRANSFORM_PATCH)
        t.resize = (uint32_t)((uint64_t)t.size * 256 / 224);
    if (t.size > MR_MAX_SIDE || t.resize > MR_MAX_SIDE)
        return mr_fail(err, MR_MISUSE, "transform: size %u and resize %u; a side may have at most %d pixels", t.size,
                       t.resize, MR_MAX_SIDE);
    if (t.kind == MR_TRANSFORM_CENTER && t.resize < t.size)
        return mr_fail(err, MR_MISUSE, "transform: resize %u is smaller than the part kept, size %u", t.resize, t.size);
    if (t.scale_min == 0 && t.scale_max == 0) {
        t.scale_min = 0.08f;
        t.scale_max = 1;
    }
    bool ratio = t.ratio_min != 0 || t.ratio_max != 0;
    if (ratio && !(t.ratio_min >= 0.01f && t.ratio_min <= t.ratio_max && t.ratio_max <= 100))
        return mr_fail(err, MR_MISUSE, "transform: ratio %g to %g; give a range of width to height within 0.01 to 100",
                       (double)t.ratio_min, (double)t.ratio_max);
    if (!(t.scale_min > 0 && t.scale_min <= t.scale_max && t.scale_max <= 1))
        return mr_fail(err, MR_MISUSE,
                       "transform: scale %g to %g; give fractions of the image's area, above 0 and at most 1",
                       (double)t.scale_min, (double)t.scale_max);
    if (!(t.flip >= 0 && t.flip <= 1))
        return mr_fail(err, MR_MISUSE, "transform: flip %g is not a probability, 0 to 1", (double)t.flip);
    MR_TRY(fill_normalisation(&t, err));
    *out = t;
    return MR_OK;
}

static mr_status fill_height(mr_loader_options *o, mr_error *err)
{
    if (o->height == 0)
        o->height = o->transform.size;
    if (o->height > MR_MAX_SIDE)
        return mr_fail(err, MR_MISUSE, "height of %u pixels; the maximum is %d", o->height, MR_MAX_SIDE);
    const mr_transform *t = &o->transform;
    if (mr_view_is_framed(t->kind) && (o->deliver == MR_DELIVER_CODED || t->unrounded))
        return mr_fail(err, MR_MISUSE, "transform: a letterbox or patch is made of bytes: neither coded nor unrounded");
    if (t->kind == MR_TRANSFORM_PATCH && (t->resize >= t->size || t->resize >= o->height))
        return mr_fail(err, MR_MISUSE, "transform: padding of %u pixels around a patch of %u x %u; give fewer",
                       t->resize, t->size, o->height);
    if (o->height == o->transform.size)
        return MR_OK;
    if (o->transform.kind == MR_TRANSFORM_CENTER || o->deliver == MR_DELIVER_CODED)
        return mr_fail(err, MR_MISUSE, "height %u and size %u: %s makes only squares", o->height, o->transform.size,
                       o->deliver == MR_DELIVER_CODED ? "coded delivery" : "a central crop");
    return MR_OK;
}

static mr_status check_range(const char *name, const float range[2], float low, float high, mr_error *err)
{
    if (range[0] >= low && range[0] <= range[1] && range[1] <= high)
        return MR_OK;
    return mr_fail(err, MR_MISUSE, "augment: %s %g to %g; give a range within %g to %g", name, (double)range[0],
                   (double)range[1], (double)low, (double)high);
}

static mr_status check_policy(const mr_loader_options *o, mr_error *err)
{
    const mr_augment *a = &o->augment;
    if (a->randaugment > MR_POLICY_MOST || a->magnitude >= MR_POLICY_BINS)
        return mr_fail(err, MR_MISUSE, "augment: RandAugment of %u operations, magnitude %u; at most %d and %d",
                       a->randaugment, a->magnitude, MR_POLICY_MOST, MR_POLICY_BINS - 1);
    if (a->randaugment && a->trivial)
        return mr_fail(err, MR_MISUSE, "augment: RandAugment and TrivialAugment cannot be combined; choose one");
    if ((a->randaugment || a->trivial) && o->with_objects)
        return mr_fail(err, MR_MISUSE,
                       "augment: RandAugment and TrivialAugment move pixels, but not the objects; leave "
                       "one of them out");
    return MR_OK;
}

static mr_status check_augment(const mr_loader_options *o, mr_error *err)
{
    enum { MOST = 100 }; /* the largest factor */
    const mr_augment *a = &o->augment;
    MR_TRY(check_range("brightness", a->brightness, 0, MOST, err));
    MR_TRY(check_range("contrast", a->contrast, 0, MOST, err));
    MR_TRY(check_range("saturation", a->saturation, 0, MOST, err));
    MR_TRY(check_range("hue", a->hue, -0.5f, 0.5f, err));
    const float chances[] = {a->grey, a->erase, a->blur};
    for (size_t i = 0; i < MR_COUNT(chances); i++)
        if (!(chances[i] >= 0 && chances[i] <= 1))
            return mr_fail(err, MR_MISUSE, "augment: grey %g, erase %g and blur %g; give probabilities, 0 to 1",
                           (double)a->grey, (double)a->erase, (double)a->blur);
    if (a->sigma[0] != 0 || a->sigma[1] != 0)
        MR_TRY(check_range("sigma", a->sigma, 0.05f, MR_BLUR_SIGMA_MOST, err));
    MR_TRY(check_policy(o, err));
    if (!mr_augment_is_set(a))
        return MR_OK;
    if (o->deliver == MR_DELIVER_ENCODED || o->deliver == MR_DELIVER_CODED)
        return mr_fail(err, MR_MISUSE, "augment: changes pixels; deliver uint8 or floats");
    if (o->transform.unrounded)
        return mr_fail(err, MR_MISUSE, "augment: changes bytes, and unrounded pixels are not; leave one of them out");
    return MR_OK;
}

static mr_status check_blend(const mr_loader_options *o, mr_error *err)
{
    enum { MOST = 1000 };
    if (!(o->mixup >= 0 && o->mixup <= MOST && o->cutmix >= 0 && o->cutmix <= MOST))
        return mr_fail(err, MR_MISUSE, "mixup %g and cutmix %g; give alphas from 0 to %d", (double)o->mixup,
                       (double)o->cutmix, MOST);
    if (!(o->mixup > 0 || o->cutmix > 0))
        return MR_OK;
    if (o->deliver == MR_DELIVER_ENCODED || o->deliver == MR_DELIVER_CODED)
        return mr_fail(err, MR_MISUSE, "mixup and cutmix: mix pixels; deliver uint8 or floats");
    if (o->global_batch % (2 * (uint64_t)o->world))
        return mr_fail(err, MR_MISUSE,
                       "mixup and cutmix: mix neighbours, so the batch of each rank must be even; the global batch is "
                       "%llu on %u rank%s",
                       (ull)o->global_batch, o->world, o->world == 1 ? "" : "s");
    if (o->tail == MR_TAIL_PARTIAL && o->world > 1)
        return mr_fail(err, MR_MISUSE,
                       "mixup and cutmix: a partial last batch would split pairs across ranks; drop or pad it");
    return MR_OK;
}

static mr_status check_items(const mr_loader_options *o, uint64_t samples, mr_error *err)
{
    if (!o->items && o->item_count)
        return mr_fail(err, MR_MISUSE, "item_count is %llu without a list of items", (ull)o->item_count);
    for (uint64_t i = 0; i < o->item_count; i++)
        if (o->items[i] >= samples)
            return mr_fail(err, MR_MISUSE, "item %llu is sample %llu, but %s has %llu samples", (ull)i,
                           (ull)o->items[i], o->split, (ull)samples);
    return MR_OK;
}

/* The caller's struct as this library knows it: members that an older caller lacks are 0, and those that only a newer
 * one has must be 0. */
static mr_status copy_options(const mr_loader_options *from, mr_loader_options *out, mr_error *err)
{
    size_t size = from->struct_size ? from->struct_size : FIRST_SIZE;
    if (size < FIRST_SIZE)
        return mr_fail(err, MR_MISUSE, "options: a struct_size of %zu bytes; at least %zu, as sizeof returns", size,
                       (size_t)FIRST_SIZE);
    for (size_t i = sizeof *out; i < size; i++)
        if (((const uint8_t *)from)[i])
            return mr_fail(err, MR_MISUSE,
                           "options: a member is set that this libmillrace, version " MILLRACE_VERSION
                           ", does not have; install a newer one");
    *out = (mr_loader_options){.struct_size = 0};
    memcpy(out, from, size < sizeof *out ? size : sizeof *out);
    return MR_OK;
}

mr_status mr_loader_options_fill(const mr_loader_options *from, const mr_manifest *m, mr_loader_options *out,
                                 mr_error *err)
{
    mr_loader_options o;
    const mr_split *split;
    MR_TRY(copy_options(from, &o, err));
    MR_TRY(mr_manifest_find_split(m, NULL, o.split ? o.split : "", &split, err));
    if (o.global_batch == 0)
        return mr_fail(err, MR_MISUSE, "global batch of 0 samples; give the samples per step, all ranks together");
    if (o.world == 0)
        o.world = 1;
    if (o.rank >= o.world)
        return mr_fail(err, MR_MISUSE, "rank %u of a world of %u; ranks count from 0", o.rank, o.world);
    if (o.threads > MR_MAX_THREADS)
        return mr_fail(err, MR_MISUSE, "%u threads; the maximum is %d", o.threads, MR_MAX_THREADS);
    if (o.prefetch == 0)
        o.prefetch = 2;
    if (o.prefetch > MR_MAX_PREFETCH)
        return mr_fail(err, MR_MISUSE, "prefetch of %u batches; the maximum is %d", o.prefetch, MR_MAX_PREFETCH);
    if (o.epochs == 0)
        o.epochs = 1;
    if (o.max_pixels == 0)
        o.max_pixels = MR_DEFAULT_MAX_PIXELS;
    if ((unsigned)o.shuffle > MR_SHUFFLE_WINDOW || (unsigned)o.tail > MR_TAIL_PARTIAL ||
        (unsigned)o.deliver > MR_DELIVER_F16_NCHW || (unsigned)o.on_bad > MR_ON_BAD_MASK)
        return mr_fail(err, MR_MISUSE, "shuffle, tail, deliver or on_bad is not a value defined in millrace.h");
    if (o.allocator && (!o.allocator->alloc || !o.allocator->free))
        return mr_fail(err, MR_MISUSE, "allocator: needs both alloc and free");
    if (o.with_masks)
        o.with_objects = 1;
    if (!memchr(o.mask, '\0', sizeof o.mask))
        return mr_fail(err, MR_MISUSE, "mask: a name of at most %zu bytes", sizeof o.mask - 1);
    if (o.object_side == 0)
        o.object_side = 1;
    if (!(o.object_side > 0) || !(o.object_visible >= 0 && o.object_visible <= 1))
        return mr_fail(err, MR_MISUSE,
                       "object_side %g and object_visible %g; give pixels of the view, and a share from 0 to 1",
                       (double)o.object_side, (double)o.object_visible);
    if (o.transform.unrounded && o.deliver == MR_DELIVER_U8_NHWC)
        return mr_fail(err, MR_MISUSE, "transform: unrounded pixels cannot be delivered in 8 bits; use floats");
    if (o.transform.unrounded && o.deliver == MR_DELIVER_CODED)
        return mr_fail(err, MR_MISUSE, "transform: unrounded pixels cannot be delivered coded; use float32");
    MR_TRY(fill_transform(&o.transform, &o.transform, err));
    MR_TRY(fill_height(&o, err));
    MR_TRY(check_augment(&o, err));
    MR_TRY(check_blend(&o, err));
    MR_TRY(check_items(&o, split->samples, err));
    if (o.items && mr_draw_of(split, o.shuffle))
        return mr_fail(
            err, MR_MISUSE,
            "%s: a view with weights cannot be combined with a list of items or captions; name a view without weights",
            o.split);
    *out = o;
    return MR_OK;
}
