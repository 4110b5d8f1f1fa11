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

typedef enum mr_status {                     /* what the caller can do next:                 */
                         MR_OK = 0,          /* go on                                        */
                         MR_END = 1,         /* go on; there is no more (not a failure)      */
                         MR_BAD_SAMPLE = -1, /* skip this record, the next may be read       */
                         MR_BAD_DATA = -2,   /* give up this file                            */
                         MR_SYSTEM = -3,     /* disk, memory, permission: stop               */
                         MR_MISUSE = -4      /* mend the call; nothing was begun             */
} mr_status;

/* Owned by the caller; needs no initialisation before a call and no release after it. */
typedef struct mr_error {
    mr_status status;
    char text[1000]; /* one sentence, "WHERE: WHAT", no newline      */
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
    const uint8_t *image; /* encoded bytes exactly as found in the source */
    size_t image_len;
    const char *meta; /* one JSON object, not NUL-terminated          */
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
/* The same without the image, of which no byte is read or judged: `image` is NULL, `image_len` 0. */
mr_status mr_dataset_read_meta(const mr_dataset *ds, const char *split, uint64_t n, mr_sample_view *view,
                               mr_error *err);
void mr_sample_view_free(mr_sample_view *view);

/* ---- the loader: batches of a split, for one rank ---------------------------------------------------------------- */

typedef enum mr_shuffle {
    MR_SHUFFLE_FULL = 0, /* a new random order each epoch */
    MR_SHUFFLE_NONE,     /* the dataset's order */
    MR_SHUFFLE_WINDOW,   /* blocks of neighbours in random order, shuffled within window_bytes: slow disks */
} mr_shuffle;

typedef enum mr_tail {                   /* when the global batch does not divide the split */
                       MR_TAIL_DROP = 0, /* leave the rest out of this epoch */
                       MR_TAIL_PAD,      /* fill up with the epoch's first samples, weight 0 */
                       MR_TAIL_PARTIAL,  /* a shorter last batch */
} mr_tail;

typedef enum mr_delivery {
    MR_DELIVER_ENCODED = 0, /* the encoded bytes, in one slab */
    MR_DELIVER_U8_NHWC,     /* decoded, uint8, count x size x size x 3 */
    MR_DELIVER_F32_NCHW,    /* decoded and normalised, float32, count x 3 x size x size */
    MR_DELIVER_BF16_NCHW,   /* the same in bfloat16 */
} mr_delivery;

typedef enum mr_transform_kind {
    MR_TRANSFORM_TRAIN = 0, /* RandomResizedCrop to size x size, flip */
    MR_TRANSFORM_SQUARE,    /* the whole picture to size x size, ratio not kept */
    MR_TRANSFORM_CENTER,    /* short side to `resize`, central size x size */
} mr_transform_kind;

typedef struct mr_transform { /* all zero: train at 224, scale 0.08 to 1, ratio 3/4 to 4/3, no flip, bilinear */
    mr_transform_kind kind;
    uint32_t size, resize;      /* pixels; 0: 224, and size * 256 / 224 */
    float scale_min, scale_max; /* share of the picture's area; 0, 0: 0.08 to 1 */
    float flip;                 /* probability of mirroring */
    int bicubic;                /* 0: bilinear; both antialiased */
    int apply_orientation;      /* 1: EXIF orientation applied; 0: ignored, as the reference trainers do */
    float mean[3], std[3];      /* of pixel / 255; std all 0: 0.5, 0.5, 0.5 for both */
    int libjpeg;                /* 1: libjpeg-turbo decodes every JPEG; 0: only those that millrace's own decoder
                                   leaves to it; the pixels are the same */
    int unrounded;              /* 1: resized in float32 as torchvision does with tensors: neither rounded to 8 bits
                                   nor clamped (float delivery only) */
} mr_transform;

typedef enum mr_on_bad {                     /* a sample that is damaged or cannot be decoded; the steps never change */
                         MR_ON_BAD_FAIL = 0, /* the batch fails, saying which sample of which shard */
                         MR_ON_BAD_REPLACE,  /* the next good sample of the epoch's order takes its place */
                         MR_ON_BAD_MASK,     /* zeros, weight 0 */
} mr_on_bad;

/* Memory for batches, for instance pinned.  Called by the loader's threads; alignment at least 64. */
typedef struct mr_allocator {
    void *(*alloc)(void *ctx, size_t bytes);
    void (*free)(void *ctx, void *memory, size_t bytes);
    void *ctx;
} mr_allocator;

typedef struct mr_cursor {    /* a place in the plan: the next batch to come */
    uint64_t epoch, position; /* samples of the epoch that are behind it, all ranks together */
} mr_cursor;

typedef struct mr_loader_options { /* all zero but split and global_batch works */
    const char *split;
    uint64_t global_batch; /* samples a step, all ranks together */
    unsigned rank, world;  /* world 0: alone */
    unsigned threads;      /* 0: the work is done in mr_loader_next() */
    unsigned prefetch;     /* batches in flight beside the caller's; 0: 2 */
    uint64_t seed;
    mr_shuffle shuffle;
    uint64_t window_bytes; /* for MR_SHUFFLE_WINDOW */
    mr_tail tail;
    mr_delivery deliver;
    mr_transform transform; /* also for encoded delivery: it gives each sample's view */
    mr_on_bad on_bad;
    uint64_t max_bad; /* bad samples taken before giving up, each counted once; 0: no limit */
    int with_meta;    /* 1: batches carry each sample's meta */
    mr_cursor start;
    uint64_t epochs;               /* MR_END after so many from start.epoch; 0: 1 */
    const mr_allocator *allocator; /* NULL: huge-page backed memory; must outlive the loader */
    uint64_t max_pixels;           /* decoded delivery: a larger picture is a bad sample; 0: 178,956,970 */
    /* What the order runs over instead of the split: sample numbers, of which any may come several times or not at all
     * (a picture with several captions).  Then whatever counts samples counts items: the order, tails, cursors, steps.
     * Lent, must outlive the loader; NULL: the split's samples. */
    const uint64_t *items;
    uint64_t item_count;
} mr_loader_options;

typedef struct mr_sample_facts {
    uint64_t sample;        /* number in the split */
    float weight;           /* 1; 0: padding or masked */
    int32_t label;          /* -1: none */
    uint32_t width, height; /* as stored */
    uint8_t codec, orientation, components, bits;
    uint32_t flags;
    uint64_t offset, length;                     /* of the encoded bytes in the slab (encoded delivery) */
    uint32_t left, top, crop_width, crop_height; /* the view: box in the picture as seen (all of it for
                                                    MR_TRANSFORM_CENTER: the middle is kept after resizing) */
    uint32_t flip;                               /* 1: mirrored */
    const char *meta;                            /* with_meta: one JSON object, lent by the batch */
    size_t meta_len;
    uint64_t hash; /* XXH3-64 of the encoded image */
    uint64_t item; /* number in options.items, else the sample's: what chance is keyed by */
} mr_sample_facts;

/* Read-only, lent until mr_batch_release(). */
typedef struct mr_batch {
    uint64_t epoch, step; /* step k of the epoch */
    uint64_t count;       /* samples of this rank; 0 is possible in the last step of MR_TAIL_PARTIAL */
    const mr_sample_facts *samples;
    const void *data; /* slab or tensor, 64-byte aligned */
    size_t data_bytes;
    uint64_t replaced; /* bad samples replaced or masked in it */
} mr_batch;

typedef struct mr_loader mr_loader;

/* The dataset must outlive the loader.  MR_MISUSE: options that do not fit (the message says which and the nearest that
 * do).  Memory: at most (prefetch + 2) batches, plus for each thread an encoded file, twice, and a decoded picture. */
mr_status mr_loader_open(const mr_dataset *ds, const mr_loader_options *options, mr_loader **out, mr_error *err);
/* Waits for the next batch in order; a caller that holds all (prefetch + 2) batches waits until one is released.
 * MR_END: the last epoch is over.  A failure is final: the same one comes again.  MR_MISUSE: a loader with threads in a
 * child of fork(), which has none of them; there it can only be freed, which leaves its memory and files to
 * the child's end. */
mr_status mr_loader_next(mr_loader *l, const mr_batch **out, mr_error *err);
void mr_batch_release(mr_loader *l, const mr_batch *batch); /* NULL is fine; any thread */
uint64_t mr_loader_steps(const mr_loader *l);               /* of an epoch, the same on every rank */
/* Where to go on after the batches that mr_loader_next() has given. */
mr_cursor mr_loader_cursor(const mr_loader *l);
/* Stops the threads, also in the middle of work (within 100 ms), and frees all batches.  May be called while another
 * thread waits in mr_loader_next(), which then returns MR_END; not twice. */
void mr_loader_free(mr_loader *l);

#ifdef __cplusplus
}
#endif
#endif
