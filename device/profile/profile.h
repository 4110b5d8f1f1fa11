/* profile.h - a device that measures another one: what each family of operations takes.
 * Invariant: it computes what the other device computes, to the bit; each operation is waited for, so that its time is
 * its own.  Closing it closes the other device.
 *
 * FLOPs count products alone, 2 per multiply-add.  Bytes are those of the operands and results, once each: what has to
 * move if nothing is found in a cache. */
#ifndef MR_PROFILE_H
#define MR_PROFILE_H

#include "device/device.h"

/* X(word, what, whether its rate is in FLOPs; else in bytes) */
#define MR_FAMILIES(X)                                                                                                 \
    X(matrix, "matrix products", true)                                                                                 \
    X(attention, "attention", true)                                                                                    \
    X(norm, "layer norms", false)                                                                                      \
    X(elements, "activations, dropout, sums", false)                                                                   \
    X(bias, "gradients of biases", false)                                                                              \
    X(rows, "patches, tokens, rows of tables", false)                                                                  \
    X(loss, "losses, unit vectors", false)                                                                             \
    X(update, "clipping, updates", false)                                                                              \
    X(copies, "zeroing, copying", false)                                                                               \
    X(decode, "decoding JPEGs", false)

typedef enum mr_family {
#define X(word, ...) MR_FAMILY_##word,
    MR_FAMILIES(X)
#undef X
        MR_FAMILY_COUNT
} mr_family;

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

/* Takes over `measured`, which is closed with the profile; after a failure as well. */
mr_status mr_profile_open(mr_device *measured, mr_profile **out, mr_error *err);
mr_device *mr_profile_device(mr_profile *p); /* to work with, and to close */
/* Off at first: operations are passed on without being counted or waited for. */
void mr_profile_count(mr_profile *p, bool on);
const mr_family_sums *mr_profile_sums(const mr_profile *p, mr_family family);

#endif
