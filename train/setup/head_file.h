/* head_file.h - the head of a plain .npz, whose classes a text file names.
 * Invariant: nothing is loaded unless the file names each of the head's classes once. */
#ifndef MR_HEAD_FILE_H
#define MR_HEAD_FILE_H

#include "train/checkpoint/checkpoint.h"

/* Fills in what mr_head_take() needs of an older model: head/kernel and head/bias of `weights`, and their classes, one
 * a line of `names`, in the order of the head's columns.  The caller releases in any case.  MR_BAD_DATA: no head, or
 * another number of names than classes; a name twice, or none in a line: file and line are named. */
mr_status mr_head_file_read(const char *weights, const char *names, mr_checkpoint *out, mr_error *err);

#endif
