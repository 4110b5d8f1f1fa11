/* support_train.h - small training runs through the program, and what they left.
 * Invariant: every run uses one tiny drawn dataset and a tiny model, so that a run takes a second. */
#ifndef MR_SUPPORT_TRAIN_H
#define MR_SUPPORT_TRAIN_H

#include <jansson.h>

#include "support.h"

/* A drawn dataset of `images` pictures at DIR/data (train and val). */
void train_make_dataset(const char *dir, unsigned images);

/* `millrace train DIR/data` with a tiny model and these further arguments, in DIR, under mpirun if ranks > 0. */
support_result train_run(const char *dir, unsigned ranks, const char *arg, ...) __attribute__((sentinel));
/* The same, with this exit status expected (both outputs are shown otherwise). */
void train_expect(int status, const char *dir, unsigned ranks, const char *arg, ...) __attribute__((sentinel));

/* The lines of a --log file that have this member, in order: an array of objects. */
json_t *train_log(const char *path, const char *member);
/* Largest difference between two runs' members; fails if they have not the same number of lines. */
double train_log_distance(const char *a, const char *b, const char *member);

/* Largest difference between two checkpoints' weights. */
double train_weights_distance(const char *a, const char *b);

#endif
