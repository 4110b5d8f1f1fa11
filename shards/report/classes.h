/* classes.h - splits and classes as tables with bars.
 * Invariant: each bar's value is also a number in its row. */
#ifndef MR_REPORT_CLASSES_H
#define MR_REPORT_CLASSES_H

#include "shards/report/facts.h"

/* Appends the section "Splits and classes". */
mr_status mr_splits_add(const mr_report_facts *f, mr_buf *out, mr_error *err);

/* Bars of `classes` classes, the largest first.  The bar of a class has `parts` parts, counts[part * stride + class],
 * of columns called heads[part]; heads is not read for one part.  All counts 0: nothing. */
mr_status mr_class_bars(const mr_report_facts *f, const char *title, const uint64_t *counts, size_t stride,
                        size_t parts, size_t classes, const char *const *heads, mr_buf *out, mr_error *err);

#endif
