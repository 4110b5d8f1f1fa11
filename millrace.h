/* millrace.h - the public API of libmillrace: opens a prepared dataset and reads its samples.
 *
 * A call that can fail returns mr_status and, if `err` is not NULL, a message fit to print; its results are then
 * untouched.  Nothing here prints, exits or keeps global state.  Every *_free() accepts NULL.
 *
 *      mr_error err;
 *      mr_dataset *ds;
 *      if (mr_dataset_open("imagenette", &ds, &err) != MR_OK) { fprintf(stderr, "%s\n", err.text); return 3; }
 *      mr_sample_view v = {0};
 *      if (mr_dataset_read(ds, "train", 0, &v, &err) == MR_OK) use(v.image, v.image_len, v.label);
 *      mr_sample_view_free(&v);
 *      mr_dataset_free(ds); */
#ifndef MILLRACE_H
#define MILLRACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of these declarations; mr_version() is that of the library that was loaded, as text like MR_VERSION. */
#define MR_VERSION_MAJOR 0
#define MR_VERSION_MINOR 1
#define MR_VERSION_PATCH 0
#define MR_VERSION       "0.1.0"
const char *mr_version(void);

/* The result of a call: what the caller can do next. */
typedef enum mr_status {
    MR_OK = 0,          /* go on */
    MR_END = 1,         /* go on; nothing is left (not a failure) */
    MR_AGAIN = 2,       /* go on; nothing is ready yet, call again (not a failure) */
    MR_BAD_SAMPLE = -1, /* skip this record; the next one may be good */
    MR_BAD_DATA = -2,   /* give up this file */
    MR_SYSTEM = -3,     /* disk, memory or permissions: stop */
    MR_MISUSE = -4      /* fix the call; nothing was done */
} mr_status;

/* Owned by the caller; needs no initialisation before a call and no release after it. */
typedef struct mr_error {
    mr_status status;
    char text[1000]; /* one sentence, "WHERE: WHAT", without a newline */
} mr_error;

typedef struct mr_dataset mr_dataset;

/* Opens the dataset directory `path`: reads manifest.json and the header of each index, and checks the size of each
 * file; beyond 10,000 shards, of each shard when it is first read.  Rows are read on demand, so a million samples open
 * in milliseconds.  An index is compared with the digest in the manifest when it is first read, and each record with
 * its hash; `millrace verify` checks everything else.  Thread-safe once open. MR_MISUSE: no dataset there, or one of a
 * later format; MR_BAD_DATA: damaged manifest or index; MR_SYSTEM: cannot be read.  `path` may be a URL (http, https,
 * s3, gs, hf): what is needed is fetched, checked and kept, as docs/remote.md says. */
mr_status mr_dataset_open(const char *path, mr_dataset **out, mr_error *err);
void mr_dataset_free(mr_dataset *ds);

/* Staging: loaders that are opened later read shards from copies in `dir`, a folder on a disk of this host, as soon
 * as there are any; until then, and for single samples, from the dataset.  Copies are named by their SHA-256, which
 * is verified, so any number of programs and datasets may share the folder, and the next run finds them.  `copies`
 * 1: a thread of this process copies shards in the order in which they are first read (one process per host is
 * enough); 0: only uses what is there.  Above `max_bytes` of copies (0: as much as the disk holds) those that no one
 * has used since this call are removed, the longest unused first.  What goes wrong with the copies changes no
 * result: mr_dataset_stage_remark() tells it (MR_END: nothing to tell).  MR_MISUSE: called twice, or `dir` is in the
 * dataset. */
mr_status mr_dataset_stage(mr_dataset *ds, const char *dir, uint64_t max_bytes, int copies, mr_error *err);
mr_status mr_dataset_stage_remark(const mr_dataset *ds, mr_error *out);

/* Number of samples of a split; 0 for an unknown split. */
uint64_t mr_dataset_samples(const mr_dataset *ds, const char *split);

/* What the manifest says.  Texts are lent by the dataset; NULL for a number beyond the count. */
const char *mr_dataset_sha256(const mr_dataset *ds); /* the dataset's digest, 64 hexadecimal digits */
const char *mr_dataset_folder(const mr_dataset *ds); /* where manifest.json is: its path, or what stands for a URL */
const char *mr_dataset_layout(const mr_dataset *ds); /* "imagenette", "coco" ... */
size_t mr_dataset_split_count(const mr_dataset *ds);
const char *mr_dataset_split_name(const mr_dataset *ds, size_t i);
size_t mr_dataset_class_count(const mr_dataset *ds);
const char *mr_dataset_class_name(const mr_dataset *ds, size_t label);
/* The label of every sample of a split, -1 for none, from the indexes alone: no image or meta is read.  `labels`:
 * room for mr_dataset_samples().  MR_MISUSE: no such split; MR_BAD_SAMPLE, MR_BAD_DATA: an index is damaged, or
 * another's. */
mr_status mr_dataset_labels(const mr_dataset *ds, const char *split, int32_t *labels, mr_error *err);
/* Width and height of every sample in pixels, from the indexes alone; `apply_orientation` 1: as seen with the EXIF
 * orientation, 0: as stored.  `sizes`: room for two per sample.  Errors as of mr_dataset_labels(). */
mr_status mr_dataset_sizes(const mr_dataset *ds, const char *split, int apply_orientation, uint32_t *sizes,
                           mr_error *err);

/* One sample.  `image` and `meta` point into `storage`, which mr_dataset_read() reuses from call to call and
 * mr_sample_view_free() releases; zero the struct before first use.  Threads must not share a view. */
typedef struct mr_sample_view {
    const uint8_t *image; /* encoded bytes exactly as found in the source */
    size_t image_len;
    const char *meta; /* one JSON object, not NUL-terminated */
    size_t meta_len;
    uint32_t width, height; /* pixels, as stored (EXIF orientation not applied) */
    int32_t label;          /* class number; -1: none */
    uint8_t codec;          /* 1 JPEG, 2 PNG, 3 WebP */
    uint8_t orientation;    /* EXIF, 1 to 8; 1 if the image has none */
    uint8_t components;     /* colour channels: 1, 2, 3 or 4 */
    uint8_t bits;           /* per channel */
    uint32_t flags;         /* FORMAT.md, "flags" */
    uint8_t *storage;
    size_t storage_len;
} mr_sample_view;

/* Reads sample `n` (from 0) of `split`, bounds-checked, and verifies the hash of its bytes before returning.
 * MR_MISUSE: no such split or sample; MR_BAD_SAMPLE: the bytes differ from what was ingested; MR_BAD_DATA: a file of
 * the shard is missing or has another size, or the index is not the manifest's.  After a failure the view holds no
 * sample; it can be used again. */
mr_status mr_dataset_read(const mr_dataset *ds, const char *split, uint64_t n, mr_sample_view *view, mr_error *err);
/* The same without the image, which is neither read nor checked: `image` is NULL, `image_len` 0. */
mr_status mr_dataset_read_meta(const mr_dataset *ds, const char *split, uint64_t n, mr_sample_view *view,
                               mr_error *err);
void mr_sample_view_free(mr_sample_view *view);

/* The captions in a meta, of this column; NULL: of "image_description" if the meta has it, otherwise of "captions".
 * Each is given to take(), in order: UTF-8, lent for the call, not NUL-terminated.  None is not a failure.  Allocates
 * no more than what it gives.  MR_BAD_DATA: not a meta. */
typedef void mr_take_text(void *ctx, const char *text, size_t len);
mr_status mr_meta_captions(const char *meta, size_t meta_len, const char *column, mr_take_text *take, void *ctx,
                           mr_error *err);

/* ---- the loader: batches of a split, for one rank ---------------------------------------------------------------- */

typedef enum mr_shuffle {
    MR_SHUFFLE_FULL = 0, /* a new random order each epoch */
    MR_SHUFFLE_NONE,     /* the dataset's order */
    MR_SHUFFLE_WINDOW,   /* blocks of neighbours in random order, shuffled within window_bytes: for slow disks */
} mr_shuffle;

/* What happens to the rest if the global batch does not divide the split. */
typedef enum mr_tail {
    MR_TAIL_DROP = 0, /* left out of this epoch */
    MR_TAIL_PAD,      /* padded with the epoch's first samples, weight 0 */
    MR_TAIL_PARTIAL,  /* a shorter last batch */
} mr_tail;

typedef enum mr_delivery {
    MR_DELIVER_ENCODED = 0, /* the encoded bytes, in one slab */
    MR_DELIVER_U8_NHWC,     /* decoded, uint8, count x height x size x 3 */
    MR_DELIVER_F32_NCHW,    /* decoded and normalised, float32, count x 3 x height x size */
    MR_DELIVER_BF16_NCHW,   /* the same in bfloat16 */
    MR_DELIVER_CODED,       /* what a device needs to compute MR_DELIVER_F32_NCHW, in one slab: see mr_coded */
    MR_DELIVER_F16_NCHW,    /* as MR_DELIVER_F32_NCHW, in IEEE 754's half precision */
} mr_delivery;

typedef enum mr_transform_kind {
    MR_TRANSFORM_TRAIN = 0, /* RandomResizedCrop to size x size, flip */
    MR_TRANSFORM_SQUARE,    /* the whole image to size x size, aspect ratio not kept */
    MR_TRANSFORM_CENTER,    /* short side to `resize`, central size x size */
    MR_TRANSFORM_LETTERBOX, /* the whole image, aspect ratio kept, in the middle; around it the colour `mean`: not of
                               coded delivery nor of unrounded pixels */
    MR_TRANSFORM_PATCH,     /* RandomCrop at the image's own scale, flip: up to `resize` pixels beyond its edges, or
                               where the image is smaller, the colour `mean`; not of the same two */
} mr_transform_kind;

/* All zero: train at 224, scale 0.08 to 1, ratio 3/4 to 4/3, no flip, bilinear. */
typedef struct mr_transform {
    mr_transform_kind kind;
    uint32_t size, resize;      /* pixels; 0: 224, and size * 256 / 224 (of a patch: 0) */
    float scale_min, scale_max; /* share of the image's area; 0, 0: 0.08 to 1 */
    float ratio_min, ratio_max; /* of the part's width to its height, 1/100 to 100; 0, 0: 3/4 to 4/3 */
    float flip;                 /* probability of mirroring */
    int bicubic;                /* 0: bilinear; both antialiased */
    int apply_orientation;      /* 1: applies the EXIF orientation; 0: ignores it, as the reference trainers do */
    float mean[3], std[3];      /* of pixel / 255; std all 0: 0.5, 0.5, 0.5 for both */
    int libjpeg;                /* 1: libjpeg-turbo decodes every JPEG; 0: only those that millrace's own decoder
                                   does not support; the pixels are the same */
    int unrounded;              /* 1: resized in float32 as torchvision resizes tensors: neither rounded to 8 bits
                                   nor clamped (float delivery only) */
} mr_transform;

/* Changes of a sample's pixels after it was resized, drawn again in each epoch; decoded delivery only, and not of
 * unrounded pixels.  Ranges are from, to; 0, 0: unchanged.  As torchvision's transforms of uint8 tensors, in this
 * order: RandAugment or TrivialAugmentWide, ColorJitter, RandomGrayscale, GaussianBlur, RandomErasing; what is erased
 * gets the colour `mean`. */
typedef struct mr_augment {
    float brightness[2], contrast[2], saturation[2]; /* factors, at least 0; 1: unchanged */
    float hue[2];                                    /* share of the circle, -0.5 to 0.5 */
    float grey, erase, blur;                         /* probabilities */
    float sigma[2];                                  /* of the blur, in pixels, 0.05 to 10; 0, 0: 0.1 to 2 */
    uint32_t randaugment, magnitude;                 /* RandAugment's operations, at most 16, and magnitude, 0 to 30 */
    int trivial;                                     /* 1: TrivialAugment; it and RandAugment are not with_objects */
} mr_augment;

/* What happens to a sample that is damaged or cannot be decoded.  The number of steps never changes. */
typedef enum mr_on_bad {
    MR_ON_BAD_FAIL = 0, /* the batch fails; the message names sample and shard */
    MR_ON_BAD_REPLACE,  /* the next good sample of the epoch's order replaces it */
    MR_ON_BAD_MASK,     /* zeros, weight 0 */
} mr_on_bad;

/* Memory for batches, for instance pinned.  Called by the loader's threads; aligned to at least 64 bytes. */
typedef struct mr_allocator {
    void *(*alloc)(void *ctx, size_t bytes);
    void (*free)(void *ctx, void *memory, size_t bytes);
    void *ctx;
} mr_allocator;

/* Where a run is: the next batch to load. */
typedef struct mr_cursor {
    uint64_t epoch, position; /* position: samples of the epoch that all ranks together have consumed */
} mr_cursor;

/* All zero is valid, except split and global_batch. */
typedef struct mr_loader_options {
    size_t struct_size; /* sizeof(mr_loader_options): a later library leaves members beyond it at their defaults; 0: the
                           size that the struct had in version 0.1 */
    const char *split;
    uint64_t global_batch; /* samples per step, all ranks together */
    unsigned rank, world;  /* world 0: a single rank */
    unsigned threads;      /* 0: the work is done in mr_loader_next() */
    unsigned prefetch;     /* batches loaded ahead of the caller's; 0: 2 */
    uint64_t seed;
    mr_shuffle shuffle;
    uint64_t window_bytes; /* for MR_SHUFFLE_WINDOW */
    mr_tail tail;
    mr_delivery deliver;
    mr_transform transform; /* with encoded delivery, too: it determines each sample's view */
    mr_on_bad on_bad;
    uint64_t max_bad; /* bad samples tolerated, each counted once; 0: no limit */
    int with_meta;    /* 1: batches include each sample's meta */
    mr_cursor start;
    uint64_t epochs;               /* MR_END after this many epochs from start.epoch; 0: 1 */
    const mr_allocator *allocator; /* NULL: memory backed by huge pages; must outlive the loader */
    uint64_t max_pixels;           /* decoded delivery: a larger image is a bad sample; 0: 178,956,970 */
    /* A list of sample numbers to load instead of the whole split, for instance an image once per caption; a sample
     * may occur any number of times.  The order, tails, cursors and steps then count items instead of samples.  Lent,
     * must outlive the loader; NULL: the split's samples. */
    const uint64_t *items;
    uint64_t item_count;
    int with_objects;     /* 1: batches include what the samples show, as mr_batch_objects */
    float object_side;    /* pixels of the view: an object whose box is narrower or lower there is left out; 0: 1 */
    float object_visible; /* share of an object's box that must be in the view, 0 to 1 */
    mr_augment augment;
    int with_masks;  /* 1: with_objects, and each sample's polygons as a mask */
    uint32_t height; /* of the view, whose width is transform.size; 0: the same.  Another one: not of coded delivery,
                        and not of MR_TRANSFORM_CENTER */
    /* Alphas of mixup and cutmix, above 0 to 1,000; 0: off.  Neighbours in the epoch's order, 2k and 2k + 1, are mixed
     * with one another after all else, by shares from Beta(alpha, alpha); with both alphas, each pair by one of them.
     * Decoded delivery only; masked samples and padding stay as they are.  The samples per rank and step must be even,
     * and of several ranks the tail must not be MR_TAIL_PARTIAL, so that pairs are the same for any world. */
    float mixup, cutmix;
    uint32_t view; /* loaders that differ in it, and in transform and augment, give the same samples in the same order,
                      seen in other ways: several views of each sample */
    char mask[64]; /* with_masks: the member of the meta's "masks" that masks are made of, for instance
                      "SegmentationClass", instead of polygons; NUL-terminated, "": polygons */
} mr_loader_options;

typedef struct mr_sample_facts {
    uint64_t sample;        /* number in the split */
    float weight;           /* 1; 0: padding or masked */
    int32_t label;          /* -1: none */
    uint32_t width, height; /* as stored */
    uint8_t codec, orientation, components, bits;
    uint32_t flags;
    uint64_t offset, length;                     /* of the encoded bytes in the slab (encoded delivery; coded
                                                    delivery: length 0 if there are none) */
    uint32_t left, top, crop_width, crop_height; /* the view: a box in the image as seen (for MR_TRANSFORM_CENTER the
                                                    whole image, which is cropped after resizing) */
    uint32_t flip;                               /* 1: mirrored */
    const char *meta;                            /* with_meta: one JSON object, lent by the batch */
    size_t meta_len;
    uint64_t hash;       /* XXH3-64 of the encoded image */
    uint64_t item;       /* index in options.items; of a view with weights, the number among an epoch's items; otherwise
                          `sample`; random numbers depend on it */
    float share;         /* of this sample in its image and label, 0 to 1; 1: not mixed */
    int32_t other_label; /* of the sample that has the rest; not mixed, or none: -1 */
    uint64_t other;      /* number of that sample; not mixed: `sample` */
} mr_sample_facts;

/* What the samples of a batch show: the objects of their metas (FORMAT.md), moved as the image is: cut to
 * its view, scaled, mirrored, and turned if EXIF is applied.  Coordinates are pixels of the view,
 * also with encoded delivery; what is outside is cut off.  Object k of sample i is number first_object[i] + k of the
 * batch, and its polygons are first_polygon[n] to first_polygon[n + 1] - 1. */
typedef struct mr_batch_objects {
    uint64_t objects, polygons, points, keypoints;
    const uint64_t *first_object;   /* count + 1, by sample */
    const int32_t *labels;          /* of each object; -1: none */
    const float *boxes;             /* 4 of each: left, top, right, bottom */
    const uint8_t *crowd;           /* 1: a group of objects that are not separated */
    const uint32_t *number;         /* its number among the objects of the meta */
    const uint64_t *first_polygon;  /* objects + 1, by object; an oriented box is a polygon of four corners */
    const uint64_t *first_point;    /* polygons + 1, by polygon */
    const float *point;             /* 2 of each: x, y */
    const uint64_t *first_keypoint; /* objects + 1, by object: all that the meta has, in its order */
    const float *keypoint;          /* 3 of each: x, y, visibility; zeros if it is not labelled or outside */
    const uint8_t *masks; /* with_masks: count x height x size: label + 1 where a polygon is, a later object over
                             an earlier one; 0: nothing; 255: a crowd, or no label below 254.  Of a member of the
                             meta: its numbers, the nearest one of each pixel; 255: no such mask, or beside the image */
} mr_batch_objects;

/* Read-only, lent until mr_batch_release(). */
typedef struct mr_batch {
    uint64_t epoch, step; /* step: from 0 in each epoch */
    uint64_t count;       /* samples of this rank; may be 0 in the last step of MR_TAIL_PARTIAL */
    const mr_sample_facts *samples;
    const void *data; /* slab or tensor, 64-byte aligned */
    size_t data_bytes;
    uint64_t replaced;               /* bad samples replaced or masked in this batch */
    const mr_batch_objects *objects; /* with_objects; otherwise NULL */
} mr_batch;

typedef struct mr_loader mr_loader;

/* Opens a loader; the dataset must outlive it.  MR_MISUSE: invalid options (the message says which, and the nearest
 * valid value).  Memory: at most (prefetch + 2) batches, and for each thread two encoded files and a decoded image;
 * with coded delivery also 16 MiB for each thread. */
mr_status mr_loader_open(const mr_dataset *ds, const mr_loader_options *options, mr_loader **out, mr_error *err);
/* Waits for the next batch in order; a caller that holds all (prefetch + 2) batches waits until one is released.
 * MR_END: the last epoch is over.  A failure is final: later calls return it again.  MR_MISUSE: a child of
 * fork(), which has none of the threads: there a loader opened before, if it has threads or another thread was in a
 * call of it, can only be freed, which keeps its memory and files until the child exits. */
mr_status mr_loader_next(mr_loader *l, const mr_batch **out, mr_error *err);
/* The same, but waits at most about this many milliseconds (0: not at all): MR_AGAIN if no batch is ready by then.  A
 * loader without threads works in this call and looks at the time between two pieces of work. */
mr_status mr_loader_next_for(mr_loader *l, unsigned milliseconds, const mr_batch **out, mr_error *err);
void mr_batch_release(mr_loader *l, const mr_batch *batch); /* NULL is fine; any thread */
/* Makes a batch of mr_loader_next() the caller's own: it may be kept for ever, outlives the loader, and the loader
 * takes new memory in its place.  The data stay where they are; *out replaces `batch`, which is no longer valid.  Any
 * thread. MR_SYSTEM: out of memory, MR_MISUSE: a child of fork(); the batch is still lent then. */
mr_status mr_batch_detach(mr_loader *l, const mr_batch *batch, mr_batch **out, mr_error *err);
void mr_batch_free(mr_batch *batch); /* of mr_batch_detach(); NULL is fine; any thread */

typedef struct mr_bad_sample {
    size_t struct_size;    /* set by the caller: sizeof(mr_bad_sample) */
    uint64_t slot, sample; /* where in the batch; the damaged sample, not its replacement */
    int padding;           /* 1: the slot only fills up the batch: the sample counts in another slot */
    mr_error error;        /* what is wrong with it */
} mr_bad_sample;
/* Bad sample `i` of a batch, below batch->replaced, in the order of slots: fills the members that fit into
 * out->struct_size.  MR_MISUSE: there is no such one. */
mr_status mr_batch_bad(const mr_batch *batch, uint64_t i, mr_bad_sample *out, mr_error *err);

uint64_t mr_loader_steps(const mr_loader *l); /* per epoch, the same on every rank */
/* Where to continue after the batches that mr_loader_next() has returned. */
mr_cursor mr_loader_cursor(const mr_loader *l);
/* Continues at `cursor`, as a loader opened with it as `start` would, without opening anything: prefetched batches are
 * dropped, lent ones stay valid, and an earlier failure or end is forgotten.  Not while another thread is in
 * mr_loader_next().  MR_MISUSE: no step of the plan begins there, the loader is stopped, or a child of fork(). */
mr_status mr_loader_seek(mr_loader *l, const mr_cursor *cursor, mr_error *err);

typedef struct mr_loader_stats {
    size_t struct_size;        /* set by the caller: sizeof(mr_loader_stats) */
    uint64_t batches, samples; /* returned so far */
    uint64_t replaced;         /* bad samples replaced or masked in them */
    double waited;             /* seconds that callers spent in mr_loader_next() */
    double reading, decoding;  /* seconds of all threads together: reading and hashing; decoding and resizing */
} mr_loader_stats;
/* Fills the members that fit into stats->struct_size. */
void mr_loader_get_stats(const mr_loader *l, mr_loader_stats *stats);

/* ---- coded delivery: batches that a device decodes ---------------------------------------------------------------
 *
 * With MR_DELIVER_CODED a batch's data is a slab that begins with an mr_coded.  All `..._at` count bytes from the start
 * of the slab and are multiples of 64; numbers have the byte order of the host.  The slab is lent with its batch.
 *
 *      mr_coded | records | tensors | images | parts | codes | quants | weights | starts | norm | pieces | slots
 *                 to the device       sections: to the device         up to here ^^^^^^   for the host ^^^^^^
 *
 * A record is an encoded file, whole, its hash checked, followed by 8 or more zeros.  An image is a baseline JPEG whose
 * entry points are known: its scan is cut into parts that are decoded independently.  A tensor is an image that the
 * host has decoded, float32, 3 x size x size: one without entry points, a progressive JPEG, a PNG or a WebP.
 *
 *      part     -> coefficients -> samples -> RGB of the region, as seen -> resized across -> down, normalised
 *
 * device/kernels/jpeg_*.cl compute that; the result is equal to MR_DELIVER_F32_NCHW to the bit.  A part must end at its
 * `end` with its `dc_end`; if it does not, or a code is unknown, its image is made with mr_batch_decode(). */

typedef enum mr_coded_kind {
    MR_CODED_IMAGE = 0, /* decoded from its parts */
    MR_CODED_TENSOR,    /* decoded by the host */
    MR_CODED_ZEROS,     /* masked: the result is zeros */
} mr_coded_kind;

typedef struct mr_coded_slot {
    uint64_t at;   /* of the tensor; otherwise 0 */
    uint32_t kind; /* mr_coded_kind */
    uint32_t image;
} mr_coded_slot;

/* Numbers of an image; x and y count pixels as stored unless `seen`, which is after the EXIF orientation. */
typedef struct mr_coded_image {
    uint64_t bytes, bytes_len;                 /* from records_at on: what its parts read, a multiple of 4 */
    uint64_t coef;                             /* in blocks of 64 coefficients, from the start of its piece's */
    uint64_t plane[3];                         /* bytes in its piece's samples */
    uint64_t rgb;                              /* bytes in its piece's RGB: rows of seen_width pixels */
    uint64_t lines;                            /* bytes in its piece's lines: seen_height rows of `size` pixels */
    uint64_t across, down;                     /* first weight: across_taps, down_taps for each of `size` outputs */
    uint64_t across_start, down_start;         /* first of `size` starts: the input of an output's first weight */
    uint32_t width, height;                    /* of the whole image */
    uint32_t wide;                             /* MCUs in a row */
    uint32_t components, h, v, blocks;         /* 1 or 3; sampling of the first, 1 or 2; blocks in an MCU */
    uint32_t component[6], table[6][2];        /* of each block: its component; its codes for DC and AC */
    uint32_t quant[3];                         /* of each component */
    uint32_t stride[3];                        /* bytes between two rows of a plane */
    uint32_t left, top;                        /* the region that is shown */
    uint32_t crop_width, crop_height;          /* and its size */
    uint32_t mcu_left, mcu_right;              /* the MCUs that it needs, ends excluded: only these have coefficients */
    uint32_t mcu_top, mcu_bottom;              /* and samples */
    uint32_t restart;                          /* MCUs between two restart markers; 0: none */
    uint32_t swapped, from_right, from_bottom; /* orientation: sides exchanged; columns, rows reversed */
    uint32_t seen_width, seen_height;          /* of the region */
    uint32_t across_taps, down_taps;
    uint32_t slot; /* of the batch: where the result goes */
} mr_coded_image;

typedef struct mr_coded_part {  /* from one entry point to the next */
    uint64_t at, end;           /* bits from the image's `bytes` on */
    uint32_t image, x, y, mcus; /* its first MCU, and how many; all are in row y */
    int32_t dc[3], dc_end[3];   /* DC predictors at both ends; in front of a marker if there is one */
    uint32_t marker, unused;    /* the restart marker before `end`, 0xD0 to 0xD7; 0: none */
} mr_coded_part;

typedef struct mr_coded_codes { /* a Huffman table */
    uint16_t first[1024];       /* by the next 10 bits: code's length 0-4 (0: longer) | size 5-8 | run 9-12 */
    uint32_t limit[20];         /* [n]: 16 bits below it begin with a code of at most n bits; 17 used */
    int32_t offset[20];         /* [n]: a code of n bits + offset is an index of `values` */
    uint8_t values[256];        /* run << 4 | size */
} mr_coded_codes;

typedef struct mr_coded_piece { /* images that are decoded at a time: of bounded memory, and not too different in size
                                 */
    uint32_t first_image, images, first_part, parts;
    uint32_t most_blocks, most_pixels, most_lines; /* of an image: blocks; pixels of the region; pixels of its lines */
    uint32_t unused;
    uint64_t coef, samples, rgb, lines; /* bytes of memory between the steps, at most 512 MiB; coef begins as zeros */
} mr_coded_piece;

typedef struct mr_coded {
    uint64_t bytes;       /* batch->data_bytes */
    uint32_t slots, size; /* batch->count; side of a result in pixels */
    uint32_t images, parts, codes, quants, pieces, tensors;
    uint64_t weights, starts;
    uint64_t records_at, records_bytes;
    uint64_t sections_at, sections_bytes; /* images to norm */
    uint64_t images_at;                   /* mr_coded_image[images] */
    uint64_t parts_at;                    /* mr_coded_part[parts], by image */
    uint64_t codes_at;                    /* mr_coded_codes[codes] */
    uint64_t quants_at;                   /* int16_t[quants][64], row by row */
    uint64_t weights_at;                  /* int32_t[weights]: 22-bit fractions */
    uint64_t starts_at;                   /* uint32_t[starts] */
    uint64_t norm_at;                     /* float[3][256]: the value of each byte of red, green and blue */
    uint64_t pieces_at;                   /* mr_coded_piece[pieces] */
    uint64_t slots_at;                    /* mr_coded_slot[slots] */
} mr_coded;

/* Decodes slot `slot` of a lent coded batch on the host: `out` gets 3 x size x size floats.  For images that a device
 * could not decode; one call at a time.  A damaged sample is treated as the options' on_bad says: the slot's facts, the
 * batch's `replaced` and bad samples change accordingly.  MR_MISUSE: not a coded batch, or no such slot;
 * MR_BAD_SAMPLE, MR_BAD_DATA: the sample is damaged and cannot be replaced or masked. */
mr_status mr_batch_decode(mr_loader *l, const mr_batch *batch, uint64_t slot, float *out, mr_error *err);

/* Stops the threads, even in the middle of work (within 100 ms): mr_loader_next() returns MR_END at once, in the
 * threads that wait in it and in those that call it later.  Lent batches stay valid.  Any thread, any number of
 * times. */
void mr_loader_stop(mr_loader *l);
/* Stops the loader, and frees it and all lent batches; not twice.  A thread that waits in mr_loader_next() by then gets
 * MR_END, but none may begin a call any more: where threads share a loader, call mr_loader_stop(), wait until they have
 * noticed, then free it. */
void mr_loader_free(mr_loader *l);

/* ---- token ids --------------------------------------------------------------------------------------------------- */

/* Text to token ids: byte-level BPE as in RoBERTa and GPT-2.  An open tokenizer does not change: any number of threads
 * may use it, each with its own scratch. */
typedef struct mr_tokenizer mr_tokenizer;
typedef struct mr_tokenizer_scratch mr_tokenizer_scratch; /* a bounded cache of words */

/* `path`: tokenizer.json, vocab.json with merges.txt beside it, or a directory that holds either.
 * MR_BAD_DATA names the file and what is wrong with it: not BPE, a component that is not supported (normalizer, another
 * pre-tokenizer ...), an id twice, a merge of unknown tokens, <s>, <pad> or </s> missing ... */
mr_status mr_tokenizer_open(const char *path, mr_tokenizer **out, mr_error *err);
void mr_tokenizer_free(mr_tokenizer *t); /* NULL is fine */

uint32_t mr_tokenizer_size(const mr_tokenizer *t); /* 1 + the largest id */
int32_t mr_tokenizer_pad(const mr_tokenizer *t);   /* id of <pad> */

mr_tokenizer_scratch *mr_tokenizer_scratch_new(void); /* NULL: no memory */
void mr_tokenizer_scratch_free(mr_tokenizer_scratch *s);

/* <s> text </s>, not padded, truncated to `max` ids (2 or more), of which the last is always </s>: *count of them in
 * ids[max].  Bytes that are not UTF-8 become U+FFFD, one for each maximal part, as with Python's errors="replace".
 * MR_SYSTEM: no memory. */
mr_status mr_tokenizer_encode(const mr_tokenizer *t, mr_tokenizer_scratch *s, const char *text, size_t len, size_t max,
                              int32_t *ids, size_t *count, mr_error *err);

#ifdef __cplusplus
}
#endif
#endif
