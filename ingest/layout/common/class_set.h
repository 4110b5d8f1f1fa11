/* class_set.h - classes that annotations name one by one: each once.
 * Invariant: the plan's classes are those that were added, in the order of their first mention, until they are
 * sorted. */
#ifndef MR_CLASS_SET_H
#define MR_CLASS_SET_H

#include "base/string_map.h"
#include "ingest/layout/layout.h"

typedef struct mr_class_set { /* a zeroed one is empty */
    mr_string_map map;
    mr_buf text;
} mr_class_set;

enum { MR_CLASS_SET_MAX = 65536 };

/* Adds the class, any bytes, unless it is already in the set.  MR_BAD_DATA: there are MR_CLASS_SET_MAX classes
 * already. */
mr_status mr_class_set_add(mr_class_set *set, mr_plan *plan, const char *name, size_t len, mr_error *err);
void mr_class_set_free(mr_class_set *set);

#endif
