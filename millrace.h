/* millrace.h - the public API of libmillrace: open a prepared dataset and read its samples.
 *
 * A call that can fail returns mr_status and, if `err` is not NULL, says why in words fit to print; its results are
 * then untouched.  Nothing here prints, exits or keeps global state.  Every *_free() accepts NULL.
 *
 *      mr_error err;
 *      mr_dataset *ds;
 *      if (mr_dataset_open("imagenette", &ds, &err) != MR_OK) { fprintf(stderr, "%s\n", err.text); return 3; }
 *      mr_sample_view v = {0};
 *      if (mr_dataset_read(ds, "train", 0, &v, &err) == MR_OK) use(v.image, v.image_len, v.label);
 *      mr_sample_view_free(&v);
 *      mr_dataset_free(ds);
 */
#ifndef MILLRACE_H
#define MILLRACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mr_status {    /* what the caller can do next:                 */
    MR_OK = 0,              /* go on                                        */
    MR_END = 1,             /* go on; there is no more (not a failure)      */
    MR_BAD_SAMPLE = -1,     /* skip this record, the next may be read       */
    MR_BAD_DATA = -2,       /* give up this file                            */
    MR_SYSTEM = -3,         /* disk, memory, permission: stop               */
    MR_MISUSE = -4          /* mend the call; nothing was begun             */
} mr_status;

/* Owned by the caller; needs no initialisation before a call and no release after it. */
typedef struct mr_error {
    mr_status status;
    char text[1000];        /* one sentence, "WHERE: WHAT", no newline      */
} mr_error;

typedef struct mr_dataset mr_dataset;

/* Reads manifest.json of the dataset directory `path` and the header of each index, and checks the size of each file;
 * rows are read when they are asked for, so a million samples open in milliseconds.  The files are taken at their word
 * beyond that; `millrace verify` proves them.  Thread-safe once open.
 * MR_MISUSE: no dataset there; MR_BAD_DATA: damaged manifest or index; MR_SYSTEM: cannot be read. */
mr_status mr_dataset_open(const char *path, mr_dataset **out, mr_error *err);
void mr_dataset_free(mr_dataset *ds);

/* Number of samples of a split; 0 if there is no such split. */
uint64_t mr_dataset_samples(const mr_dataset *ds, const char *split);

/* One sample.  `image` and `meta` point into `storage`, which mr_dataset_read() reuses from call to call and
 * mr_sample_view_free() releases; zero the struct before first use.  One view must not be shared by threads. */
typedef struct mr_sample_view {
    const uint8_t *image;   /* encoded bytes exactly as found in the source */
    size_t image_len;
    const char *meta;       /* one JSON object, not NUL-terminated          */
    size_t meta_len;
    uint32_t width, height; /* pixels, as stored (EXIF orientation not applied) */
    int32_t label;          /* class number; -1: none                       */
    uint8_t codec;          /* 1 JPEG, 2 PNG, 3 WebP                        */
    uint8_t orientation;    /* EXIF, 1 to 8; 1 if the image names none      */
    uint8_t components;     /* colour channels: 1, 2, 3 or 4                */
    uint8_t bits;           /* bits a channel                               */
    uint32_t flags;         /* FORMAT.md, "flags"                           */
    uint8_t *storage;
    size_t storage_len;
} mr_sample_view;

/* Reads sample `n` (from 0) of `split`, bounds-checked, and checks the bytes against their hash before returning.
 * MR_MISUSE: no such split or sample; MR_BAD_SAMPLE: the bytes or the index row differ from what was ingested;
 * MR_BAD_DATA: a file of the shard is missing or of another size.  After a failure the view holds no sample, and its
 * storage may be reused. */
mr_status mr_dataset_read(const mr_dataset *ds, const char *split, uint64_t n, mr_sample_view *view, mr_error *err);
void mr_sample_view_free(mr_sample_view *view);

#ifdef __cplusplus
}
#endif
#endif
