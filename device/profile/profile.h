/* profile.h - what each family of operations takes on a device.
 * Invariant: a measured device computes the same, to the bit.  Where it has a clock of its own (device.h), operations
 * are queued as usual, and only results that are read are waited for; otherwise each is waited for, so that its time is
 * its own.
 *
 * FLOPs count products alone, 2 per multiply-add.  Bytes are those of the operands and results, once each: what has to
 * move if nothing is found in a cache. */
#ifndef MR_PROFILE_H
#define MR_PROFILE_H

#include "device/device.h"

typedef struct mr_family_facts {
    const char *word, *what;
    bool computes;
} mr_family_facts;

extern const mr_family_facts mr_families[MR_FAMILY_COUNT];

typedef struct mr_family_sums {
    uint64_t calls;
    double seconds, flops, bytes;
} mr_family_sums;

typedef struct mr_profile mr_profile;

/* Measures `d` from now on; *out is freed when it is closed. */
mr_status mr_profile_open(mr_device *d, mr_profile **out, mr_error *err);
/* Off at first: operations are neither counted nor waited for. */
void mr_profile_count(mr_profile *p, bool on);
const mr_family_sums *mr_profile_sums(mr_profile *p, mr_family family);

#endif
