/* export.h - a dataset turned back into files, or into a WebDataset tar.
 * Invariant: nothing is written outside OUT, whatever the source paths in the dataset say, and OUT appears whole or
 * not at all.
 *
 * The export room, on top of dataset; only commands use it.  Its files use those above them:
 *   temp       the temporary file or folder next to OUT
 *   export     samples in order; a folder of source files
 *   tar        a WebDataset tar */
#ifndef MR_EXPORT_H
#define MR_EXPORT_H

#include "dataset/dataset.h"

typedef struct mr_export_options {
    const char *split; /* NULL: all */
    bool force;        /* replace OUT */
    bool quiet;        /* no progress line */
} mr_export_options;

typedef struct mr_export_result {
    uint64_t samples, files, bytes;
} mr_export_result;

/* Every source path once, with its bytes.  MR_MISUSE: `out` exists and is not empty, or
 * mr_export_check_out() rejects it. */
mr_status mr_export_folder(const char *dataset, const char *out, const mr_export_options *o, mr_export_result *result,
                           mr_error *err);

/* __millrace__/dataset.json (splits and classes), then SPLIT/NNNNNNNN.jpg, .json (the meta) and, if it has one label,
 * .cls per sample; the same bytes on every run. out "-": standard output. */
mr_status mr_export_tar(const char *dataset, const char *out, const mr_export_options *o, mr_export_result *result,
                        mr_error *err);

/* MR_MISUSE: `out` is inside the dataset's folder, or the dataset inside `out`. */
mr_status mr_export_check_out(const char *dataset, const char *out, mr_error *err);

/* ---- between the two ------------------------------------------------------------------------------------------ */

typedef struct mr_export_sample {
    const char *split;
    uint64_t sample;
    const mr_sample_view *view;
} mr_export_sample;

typedef mr_status (*mr_export_fn)(void *ctx, const mr_export_sample *sample, mr_error *err);

/* Opens the dataset; MR_MISUSE: it does not have the split that the options name. */
mr_status mr_export_open(const char *dataset, const mr_export_options *o, mr_dataset **out, mr_error *err);

bool mr_export_wants(const mr_export_options *o, const mr_split *split);

/* Calls fn for every sample asked for, each checked against its hashes, in order. */
mr_status mr_export_each(const mr_dataset *ds, const mr_export_options *o, mr_export_fn fn, void *ctx,
                         mr_export_result *result, mr_error *err);

/* A folder or a file next to OUT, with a name of its own until it is complete and gets OUT's name. */
typedef struct mr_export_temp {
    char *path;
    int fd;    /* of the folder, or of the file, for writing */
    bool made; /* `path` exists and is ours */
} mr_export_temp;

/* Removes what killed exports to `out` left, and creates a new one.  To be closed after a failure, too. */
mr_status mr_export_temp_open(const char *out, bool folder, mr_export_temp *t, mr_error *err);
/* Removes its path with all contents if it is still `made`. */
mr_status mr_export_temp_close(mr_export_temp *t, mr_error *err);

#endif
