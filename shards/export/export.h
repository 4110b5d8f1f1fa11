/* export.h - a dataset turned back into files: those of its source, or those that other programs read.
 * Invariant: nothing is written outside OUT, whatever names the dataset has, and OUT appears complete or not at all.
 *
 * This module, on top of dataset; only commands use it.  Its files use those above them:
 *   parts names      what a format may be unable to hold; file names that are safe and unique
 *   facts survey     what one sample, and what all of them, say besides the image
 *   temp made target the temporary file or folder next to OUT; what an export made; how it takes OUT's place
 *   out              files in the temporary folder
 *   format           what a format supplies; a word in MR_EXPORTS and a file NAME.c add one
 *   losses pictures  what a sample loses; its image as a file
 *   export           from the dataset to OUT, for any format
 *   folder imagenette imagefolder coco yolo voc parquet tar */
#ifndef MR_EXPORT_H
#define MR_EXPORT_H

#include <string.h>

#include "shards/dataset/dataset.h"
#include "shards/export/parts.h"

/* The formats: their names, and what is in them, for help. */
#define MR_EXPORTS(X)                                                                                                  \
    X(folder, "every file of the source at its path")                                                                  \
    X(imagenette, "SPLIT/CLASS/image, as torchvision and Keras read it")                                               \
    X(imagefolder, "the hub's: SPLIT/CLASS/image with SPLIT/metadata.jsonl")                                           \
    X(coco, "annotations/instances_SPLIT.json, captions_SPLIT.json, SPLIT/image")                                      \
    X(yolo, "data.yaml, SPLIT/images/image, SPLIT/labels/image.txt")                                                   \
    X(voc, "Pascal VOC: JPEGImages/, Annotations/, ImageSets/Main/SPLIT.txt")                                          \
    X(parquet, "the hub's: data/SPLIT-00000-of-00001.parquet, written by Python's pyarrow")                            \
    X(tar, "WebDataset: image, .json (the meta) and .cls (the label); webdataset: numbered tars in a folder")

typedef enum mr_export_task { /* what labels of yolo describe */
                              MR_TASK_AUTO,
                              MR_TASK_DETECT,
                              MR_TASK_SEGMENT,
                              MR_TASK_OBB,
                              MR_TASK_POSE
} mr_export_task;

typedef struct mr_export_options {
    const char *split;   /* NULL: all */
    bool force;          /* replace OUT */
    bool quiet;          /* no progress line */
    uint64_t shard_size; /* bytes of images in a tar or Parquet file; 0: the format's own */
    mr_export_task task; /* yolo: the kind of its labels */
    const char *link;    /* a folder with the source's images, to be hard-linked where equal; NULL: none */
} mr_export_options;

typedef struct mr_export_loss { /* what the format did not keep of one part */
    uint64_t count;
    char split[64]; /* the sample that was counted first; "": none in particular */
    uint64_t sample;
} mr_export_loss;

typedef struct mr_export_result {
    uint64_t samples, files, bytes;
    uint64_t linked;                      /* how many of the files are hard links */
    mr_export_loss losses[MR_PART_COUNT]; /* count 0: kept */
    const char *instead[MR_PART_COUNT];   /* what the format has in place of it; NULL: left out */
    char remark[120];                     /* what the format chose by itself; "": nothing */
} mr_export_result;

/* Writes the dataset as `format`, one of the names, or "webdataset".  MR_MISUSE: `out` exists and is not empty, or
 * mr_export_check_out() rejects it, or an option is not the format's. */
mr_status mr_export(const char *dataset, const char *out, const char *format, const mr_export_options *o,
                    mr_export_result *result, mr_error *err);

/* One tar: __millrace__/dataset.json (splits and classes), then SPLIT/NNNNNNNN.jpg, .json (the meta) and, if it has one
 * label, .cls per sample; the same bytes on every run.  out "-": standard output. */
mr_status mr_export_tar(const char *dataset, const char *out, const mr_export_options *o, mr_export_result *result,
                        mr_error *err);

/* MR_MISUSE: there is no such format, or one of the options is not for it. */
mr_status mr_export_check_options(const char *format, const mr_export_options *o, mr_error *err);

/* ---- for the module ---------------------------------------------------------------------------------------------- */

/* Opens the dataset; MR_MISUSE: it does not have the split that the options name. */
mr_status mr_export_open(const char *dataset, const mr_export_options *o, mr_dataset **out, mr_error *err);

static inline bool mr_export_wants(const mr_export_options *o, const mr_split *split)
{
    return !o->split || strcmp(o->split, split->name) == 0;
}

/* MR_MISUSE: `out` is inside the dataset's folder, or the dataset inside `out`. */
mr_status mr_export_check_out(const char *dataset, const char *out, mr_error *err);

/* A folder or a file next to OUT, with a name of its own until it is complete and gets OUT's name. */
typedef struct mr_export_temp {
    char *path;
    int fd;    /* the folder, or the file, for writing */
    bool made; /* `path` exists and is ours */
} mr_export_temp;

/* Removes what killed exports to `out` left, and creates a new one.  To be closed after a failure, too. */
mr_status mr_export_temp_open(const char *out, bool folder, mr_export_temp *t, mr_error *err);
/* Removes its path with all contents if it is still `made`. */
mr_status mr_export_temp_close(mr_export_temp *t, mr_error *err);

typedef struct mr_export_target { /* where a folder goes */
    char *path;                   /* OUT without links and ".."; to be freed */
    bool replace;                 /* a folder that is not empty is there */
} mr_export_target;

/* MR_MISUSE: OUT is a file, or a folder that is not empty, without `force` or with files that no export made. */
mr_status mr_export_target_find(const char *out, bool force, mr_export_target *t, mr_error *err);
/* Lists what is in the temporary folder, syncs it and gives it OUT's name.  MR_MISUSE: see above. */
mr_status mr_export_target_publish(mr_export_temp *temp, const mr_export_target *t, mr_error *err);

#endif
