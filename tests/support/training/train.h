/* train.h - small training runs through the program, and what they left.
 * Invariant: every run uses one tiny drawn dataset and a tiny model, so that a run takes a second.  Of an option that
 * is given again the last one counts, so that a test can change any of them. */
#ifndef MR_SUPPORT_TRAIN_H
#define MR_SUPPORT_TRAIN_H

#include <jansson.h>

#include "tests/support/support.h"

/* A drawn dataset of `images` pictures at DIR/data (train and val). */
void train_make_dataset(const char *dir, unsigned images);

/* `millrace train DIR/data` with a tiny model and these further arguments, in DIR, under mpirun if ranks > 0. */
support_result train_run(const char *dir, unsigned ranks, const char *arg, ...) __attribute__((sentinel));
/* The same, with this exit status expected (both outputs are shown otherwise). */
void train_expect(int status, const char *dir, unsigned ranks, const char *arg, ...) __attribute__((sentinel));

/* DIR/data with pictures and words (train 96, val 6 and test 2 samples; cartoons come several times in train) and
 * DIR/tok.json, learned from it. */
void train_make_pairs(const char *dir);
/* The same for COCO, with five captions per image: train 50 pairs of 11 samples, val 4 of 5 with captions. */
void train_make_captions(const char *dir);
/* `millrace train data` with a tiny BridgeTower, batches of 8, no dropout, no evaluations before the end. */
support_result train_pairs_run(const char *dir, unsigned ranks, const char *arg, ...) __attribute__((sentinel));
void train_pairs_expect(int status, const char *dir, unsigned ranks, const char *arg, ...) __attribute__((sentinel));
/* `millrace ARG ...` in DIR, under mpirun if ranks > 0, that has to end with this status; the caller frees. */
support_result train_command(int status, const char *dir, unsigned ranks, const char *arg, ...)
    __attribute__((sentinel));
/* "DIR/NAME" for the rest of a block.  Runs of a test program write into one folder, `dir`; each has names of its
 * own. */
#define TRAIN_PATH(variable, dir, name)                                                                                \
    char *variable __attribute__((cleanup(train_path_free))) = support_path("%s/%s", (const char *)(dir), name)
#define IN(variable, name) TRAIN_PATH(variable, dir, name)
void train_path_free(char **path);

/* The lines of a --log file that have this member, in order: an array of objects.  Of updates that a resumed run
 * repeated, only the last lines. */
json_t *train_log(const char *path, const char *member);
/* Largest difference between two runs' members; fails if they have not the same number of lines. */
double train_log_distance(const char *a, const char *b, const char *member);

/* Largest difference between two checkpoints' weights. */
double train_weights_distance(const char *a, const char *b);
/* The same for the arrays whose names begin with `prefix`. */
double train_arrays_distance(const char *a, const char *b, const char *prefix);
/* The same for two .safetensors, or for the tensors whose names begin with `prefix`; *count: how many (may be NULL). */
double train_tensors_distance(const char *a, const char *b, const char *prefix, size_t *count);

#endif
