/* known_classes.h - the classes that a checkpoint's model knows, found by name.
 * Invariant: if several classes share a name, the first one is found, and the others follow it. */
#ifndef MR_KNOWN_CLASSES_H
#define MR_KNOWN_CLASSES_H

#include "train/checkpoint/checkpoint.h"

typedef struct mr_known_class {
    const char *name; /* the name in the checkpoint's facts */
    int32_t class;
} mr_known_class;

typedef struct mr_known_classes { /* a zeroed one is empty */
    mr_known_class *sorted;       /* by name, then by number */
    size_t count;
} mr_known_classes;

/* Lends names of `c`, which must outlive it.  MR_BAD_DATA: not as many as the model has; `path`: the checkpoint's. */
mr_status mr_known_classes_list(const mr_checkpoint *c, const char *path, mr_known_classes *out, mr_error *err);
void mr_known_classes_release(mr_known_classes *k);
/* The name of one class; "" for -1. */
const char *mr_known_class_name(const mr_checkpoint *c, int32_t class);
/* The first class of this name; NULL: none. */
const mr_known_class *mr_known_classes_find(const mr_known_classes *k, const char *name);

#endif
