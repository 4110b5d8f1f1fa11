/* profile.c - a device's card with a clock around operations and copies.
 * Invariant: all other members are the device's own: what finds the profile is the address of the card. */
#include "profile/profile.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/scope.h"
#include "base/term.h"

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

/* A failure of the device stays for the caller's own wait, as devices report it until it is closed. */
static void count(mr_device *d, double since, mr_family family, double flops, double bytes)
{
    mr_profile *p = profile_of(d);
    mr_family_sums *s = &p->sums[family];
    if (!p->counts)
        return;
    if (!p->card.host_memory)
        p->card.wait(d, NULL);
    s->calls++;
    s->seconds += mr_seconds() - since;
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
    count(d, since, mr_op_family(op->kind), mr_op_flops(op), mr_op_bytes(op));
}

static void upload(mr_device *d, void *to, const void *from, size_t bytes)
{
    double since = mr_seconds();
    profile_of(d)->measured->upload(d, to, from, bytes);
    count(d, since, MR_FAMILY_copies, 0, 2 * (double)bytes);
}

static void download(mr_device *d, void *to, const void *from, size_t bytes)
{
    double since = mr_seconds();
    profile_of(d)->measured->download(d, to, from, bytes);
    count(d, since, MR_FAMILY_copies, 0, 2 * (double)bytes);
}

static void zero(mr_device *d, void *memory, size_t bytes)
{
    double since = mr_seconds();
    profile_of(d)->measured->zero(d, memory, bytes);
    count(d, since, MR_FAMILY_copies, 0, (double)bytes);
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
