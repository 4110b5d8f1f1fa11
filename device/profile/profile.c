/* profile.c - a device's interface with a clock around operations and copies: its own, so that the host need not
 * wait in between, otherwise the host's.
 * Invariant: all other members are the device's own: the profile is found by the address of its interface. */
#include "device/profile/profile.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/scope.h"
#include "base/cli/term.h"

enum { STAMPED_MAX = 4096 }; /* operations that may be under way */

struct mr_profile {
    mr_device_iface iface;
    const mr_device_iface *measured;
    mr_device *device;
    bool counts;
    mr_family_sums sums[MR_FAMILY_COUNT];
    mr_family stamped[STAMPED_MAX]; /* number i is between the stamps 2 i and 2 i + 1, and its seconds are not known */
    size_t stamped_count;
};

const mr_family_facts mr_families[MR_FAMILY_COUNT] = {
#define X(word, what, computes) {#word, what, computes},
    MR_FAMILIES(X)
#undef X
};

static mr_profile *profile_of(const mr_device *d)
{
    return (mr_profile *)(uintptr_t)d->iface;
}

/* The seconds of what was stamped. */
static void settle(mr_profile *p)
{
    for (size_t i = 0; i < p->stamped_count; i++)
        p->sums[p->stamped[i]].seconds += p->measured->clock->between(p->device, 2 * i, 2 * i + 1);
    p->stamped_count = 0;
}

/* What is done from here to end() is the device's own: what an operation copies is its own time.  The host's clock. */
static double begin(mr_device *d)
{
    mr_profile *p = profile_of(d);
    d->iface = p->measured;
    if (p->counts && d->iface->clock) {
        if (p->stamped_count == STAMPED_MAX)
            settle(p);
        d->iface->clock->stamp(d, 2 * p->stamped_count);
    }
    return mr_seconds();
}

static void end(mr_device *d, mr_profile *p, double since, mr_family family, double flops, double bytes)
{
    mr_family_sums *s = &p->sums[family];
    if (p->counts && d->iface->clock) {
        d->iface->clock->stamp(d, 2 * p->stamped_count + 1);
        p->stamped[p->stamped_count++] = family;
    } else if (p->counts) {
        /* A failure stays for the caller's own wait, as devices report it until they are closed. */
        if (!d->iface->host_memory)
            d->iface->wait(d, NULL);
        s->seconds += mr_seconds() - since;
    }
    d->iface = &p->iface;
    if (!p->counts)
        return;
    s->calls++;
    s->flops += flops;
    s->bytes += bytes;
}

static void run(mr_device *d, const mr_op *op)
{
    mr_profile *p = profile_of(d);
    double since = begin(d);
    d->iface->run(d, op);
    end(d, p, since, mr_op_family(op->kind), mr_op_flops(op), mr_op_bytes(op));
}

static void upload(mr_device *d, void *to, const void *from, size_t bytes)
{
    mr_profile *p = profile_of(d);
    double since = begin(d);
    d->iface->upload(d, to, from, bytes);
    end(d, p, since, MR_FAMILY_copies, 0, 2 * (double)bytes);
}

static void download(mr_device *d, void *to, const void *from, size_t bytes)
{
    mr_profile *p = profile_of(d);
    double since = begin(d);
    d->iface->download(d, to, from, bytes);
    end(d, p, since, MR_FAMILY_copies, 0, 2 * (double)bytes);
}

static void zero(mr_device *d, void *memory, size_t bytes)
{
    mr_profile *p = profile_of(d);
    double since = begin(d);
    d->iface->zero(d, memory, bytes);
    end(d, p, since, MR_FAMILY_copies, 0, (double)bytes);
}

static void close_both(mr_device *d)
{
    mr_profile *p = profile_of(d);
    p->measured->close(d);
    free(p);
}

mr_status mr_profile_open(mr_device *d, mr_profile **out, mr_error *err)
{
    mr_profile *p = mr_alloc(1, sizeof *p);
    if (!p)
        return mr_fail_memory(err, "measuring a device");
    *p = (mr_profile){.iface = *d->iface, .measured = d->iface, .device = d};
    p->iface.close = close_both;
    p->iface.upload = upload;
    p->iface.download = download;
    p->iface.zero = zero;
    p->iface.run = run;
    p->iface.recorder = NULL; /* what is replayed is not counted */
    p->iface.second = NULL;   /* a moment would be that of the queue which is entered */
    p->iface.sums = NULL;
    d->iface = &p->iface;
    *out = p;
    return MR_OK;
}

void mr_profile_count(mr_profile *p, bool on)
{
    p->counts = on;
}

const mr_family_sums *mr_profile_sums(mr_profile *p, mr_family family)
{
    settle(p);
    return &p->sums[family];
}
