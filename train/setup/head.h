/* head.h - the head of an older run, for a model that learns further classes.
 * Invariant: classes are matched by name; one that the older run does not have stays as it started.  */
#ifndef MR_HEAD_H
#define MR_HEAD_H

#include "train/checkpoint/checkpoint.h"
#include "shards/manifest/manifest.h"

/* Copies the columns of `from`'s head to those of classes of the same name in values[params->total], whose body is that
 * of the same checkpoint.  `said` gets a line.  MR_MISUSE: it knows none of the classes' names, or `from` is not a
 * model of the same kind and width. */
mr_status mr_head_take(const mr_checkpoint *from, const char *path, const mr_manifest *m, const mr_params *params,
                       float *values, mr_buf *said, mr_error *err);

#endif
