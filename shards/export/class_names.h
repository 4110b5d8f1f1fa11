/* class_names.h - class names for formats in which a name stands for one class.
 * Invariant: where they have to differ, no two are equal; a name that no earlier class has is kept as it is. */
#ifndef MR_CLASS_NAMES_H
#define MR_CLASS_NAMES_H

#include "shards/export/format.h"

typedef struct mr_class_names { /* a zeroed one is empty */
    mr_buf text;
    size_t *ends; /* where each ends in `text` */
    size_t count;
} mr_class_names;

/* Those of the run's dataset.  `differ`: among equal names the first stays, and class 5 becomes "NAME (5)"; changes are
 * counted.  Otherwise they are kept as they are. */
mr_status mr_class_names_make(mr_export_run *run, bool differ, mr_class_names *names, mr_error *err);
/* Not NUL-terminated. */
const char *mr_class_name(const mr_class_names *names, size_t class, size_t *len);
void mr_class_names_free(mr_class_names *names);

#endif
