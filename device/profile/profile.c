/* profile.c - a device's card with a clock around operations and copies.
 * Invariant: all other members are the device's own: what finds the profile is the address of the card. */
#include "device/profile/profile.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/scope.h"
#include "base/cli/term.h"

struct mr_profile {
    mr_device_card card;
    const mr_device_card *measured;
    bool counts;
    mr_family_sums sums[MR_FAMILY_COUNT];
};

const mr_family_facts mr_families[MR_FAMILY_COUNT] = {
#define X(word, what, computes) {#word, what, computes},
    MR_FAMILIES(X)
#undef X
};

static mr_profile *profile_of(const mr_device *d)
{
    return (mr_profile *)(uintptr_t)d->card;
}

/* Seconds since then, once the device is done.  Its failure stays for the caller's own wait, as devices report it until
 * they are closed. */
static double seconds_since(mr_device *d, double since)
{
    const mr_profile *p = profile_of(d);
    if (p->counts && !p->card.host_memory)
        p->card.wait(d, NULL);
    return mr_seconds() - since;
}

static void add(mr_profile *p, mr_family family, double seconds, double flops, double bytes)
{
    mr_family_sums *s = &p->sums[family];
    s->calls++;
    s->seconds += seconds;
    s->flops += flops;
    s->bytes += bytes;
}

static void run(mr_device *d, const mr_op *op)
{
    mr_profile *p = profile_of(d);
    double since = mr_seconds();
    d->card = p->measured; /* what an operation copies is its own time */
    d->card->run(d, op);
    d->card = &p->card;
    double seconds = seconds_since(d, since);
    if (p->counts)
        add(p, mr_op_family(op->kind), seconds, mr_op_flops(op), mr_op_bytes(op));
}

static void add_copy(mr_device *d, double since, double bytes)
{
    mr_profile *p = profile_of(d);
    double seconds = seconds_since(d, since);
    if (p->counts)
        add(p, MR_FAMILY_copies, seconds, 0, bytes);
}

static void upload(mr_device *d, void *to, const void *from, size_t bytes)
{
    double since = mr_seconds();
    profile_of(d)->measured->upload(d, to, from, bytes);
    add_copy(d, since, 2 * (double)bytes);
}

static void download(mr_device *d, void *to, const void *from, size_t bytes)
{
    double since = mr_seconds();
    profile_of(d)->measured->download(d, to, from, bytes);
    add_copy(d, since, 2 * (double)bytes);
}

static void zero(mr_device *d, void *memory, size_t bytes)
{
    double since = mr_seconds();
    profile_of(d)->measured->zero(d, memory, bytes);
    add_copy(d, since, (double)bytes);
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
    *p = (mr_profile){.card = *d->card, .measured = d->card};
    p->card.close = close_both;
    p->card.upload = upload;
    p->card.download = download;
    p->card.zero = zero;
    p->card.run = run;
    p->card.recorder = NULL; /* what is replayed is not counted */
    p->card.sums = NULL;
    d->card = &p->card;
    *out = p;
    return MR_OK;
}

void mr_profile_count(mr_profile *p, bool on)
{
    p->counts = on;
}

const mr_family_sums *mr_profile_sums(const mr_profile *p, mr_family family)
{
    return &p->sums[family];
}
