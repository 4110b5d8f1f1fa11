/* jpeg_odd.h - JPEGs of every process with one thing wrong, and what is to be said about each.
 * Invariant: what a case expects comes from what was done to the file, not from what a decoder says about it. */
#ifndef MR_SUPPORT_JPEG_ODD_H
#define MR_SUPPORT_JPEG_ODD_H

#include "tests/support/images/pixels.h"

/* Kinds of files, a bit each. */
enum {
    ODD_BASELINE = 1,
    ODD_RESTARTS = 2,
    ODD_GRAY = 4,
    ODD_CMYK = 8,
    ODD_YCCK = 16,
    ODD_SCANS = 32,
    ODD_PROGRESSIVE = 64,
    ODD_PROGRESSIVE_RESTARTS = 128,
    ODD_PROGRESSIVE_CMYK = 256,
    ODD_ARITHMETIC = 512,
    ODD_KINDS = 10
};

typedef enum odd_verdict {
    ODD_FINE,    /* not even a warning */
    ODD_QUIET,   /* so little that the decoder may overlook it: fine, or as below */
    ODD_TOLD,    /* decodes; reported */
    ODD_DAMAGED, /* no decode */
    ODD_REFUSED, /* by its structure */
} odd_verdict;

typedef enum odd_act {
    ODD_SPLICE, /* `cut` bytes away, `len` bytes in; NULL: zeros */
    ODD_DROP,   /* the segment and the coded bytes that follow it away */
    ODD_DOUBLE, /* the same once more */
} odd_act;

typedef struct odd_case {
    const char *name;
    unsigned kinds; /* that it is done to, where they have the marker */
    odd_verdict verdict;
    mr_oddity oddity;  /* of ODD_QUIET and ODD_TOLD */
    bool other_pixels; /* than the file had before */
    uint8_t marker;    /* where: at this marker; 0: at the end of the file */
    int nth;           /* of them, from 0; -1: the last */
    int at;            /* bytes after it; negative: in front of its segment's end */
    odd_act act;
    size_t cut, len;
    const char *bytes;
} odd_case;

extern const odd_case odd_cases[];
extern const size_t odd_case_count;

/* A sound picture of kind 1 << i. */
picture odd_good(mr_random *r, unsigned i);
/* The case done to it; false: it has no such marker, or the case is not for its kind. */
bool odd_make(const odd_case *c, unsigned kind, picture good, picture *out);

#endif
