/* work.h - one sample, from its number to the bytes or pixels that are delivered.
 * Invariant: results are a pure function of the options and the dataset; a thread contributes only memory.
 *
 *   number -> row (.idx) -> advise       ... later ...       pread -> hash -> [decode -> orient -> resize] -> batch */
#ifndef MR_WORK_H
#define MR_WORK_H

#include <stdatomic.h>

#include "base/system/slab.h"
#include "loader/batch/shard_files.h"
#include "image/coded/coded.h"
#include "loader/order/augment.h"
#include "loader/augment/changes.h"
#include "loader/order/schedule.h"
#include "loader/objects/move.h"
#include "image/region/pixels.h"
#include "image/resize/resize.h"

typedef struct mr_work { /* shared by all threads; only the atomics change after opening */
    mr_loader_options o; /* defaults filled in, see options.h */
    const mr_split *split;
    mr_shard_files *files;
    mr_schedule schedule;               /* over items */
    _Atomic bool stop;                  /* calls return MR_END as soon as they can */
    _Atomic int cold;                   /* records left to check for read-ahead, see work_read.c */
    _Atomic uint64_t reading, decoding; /* nanoseconds spent on decoded samples, summed over threads */
    _Atomic uint64_t sections;          /* coded delivery: bytes added to a batch when it is finished, at most so far */
} mr_work;

enum { MR_WORK_COLD = 256 };

static inline bool mr_work_is_coded(const mr_work *w)
{
    return w->o.deliver == MR_DELIVER_CODED;
}

/* Bytes of one sample's mask; 0: batches have no masks. */
static inline size_t mr_work_mask_bytes(const mr_work *w)
{
    return w->o.with_masks ? (size_t)w->o.transform.size * w->o.height : 0;
}

/* May entries of the seek index help to decode it? */
static inline bool mr_work_seeks(const mr_work *w, const mr_row *row)
{
    return w->o.deliver != MR_DELIVER_ENCODED && !w->o.transform.libjpeg && row->codec == MR_CODEC_JPEG;
}

/* Copies the options; the items and the allocator stay the caller's. */
mr_status mr_work_open(mr_work *w, const mr_dataset *ds, const mr_loader_options *options, mr_error *err);
void mr_work_close(mr_work *w); /* may be zeroed */

typedef struct mr_worker { /* what a thread owns */
    mr_slab bytes;         /* an encoded file */
    mr_slab seek;          /* its entries of the seek index: seek_len bytes */
    size_t seek_len;
    mr_pixels_scratch *pixels;
    mr_resizer *resizer;
    mr_coded_planner *planner; /* coded delivery */
    mr_mover mover;            /* with objects */
    mr_slab changed;           /* with an augment: the bytes that become floats */
} mr_worker;

mr_status mr_worker_init(mr_worker *worker, const mr_work *w, mr_error *err);
void mr_worker_free(mr_worker *worker);

/* A failure names sample and shard.  MR_BAD_SAMPLE, MR_BAD_DATA: this sample is damaged; MR_SYSTEM: stop; MR_END:
 * w->stop is set. */
mr_status mr_work_row(mr_work *w, uint64_t sample, mr_row *row, mr_error *err); /* and starts reading its record */
mr_status mr_work_image(mr_work *w, uint64_t sample, const mr_row *row, uint8_t *out, mr_error *err); /* image_len */
mr_status mr_work_meta(mr_work *w, uint64_t sample, const mr_row *row, uint8_t *out, mr_error *err);  /* meta_len */

/* Fails with `why`, which gets the names of the shard and the sample. */
mr_status mr_work_name_sample(mr_work *w, uint64_t sample, const mr_row *row, mr_status status, const mr_error *why,
                              mr_error *err);
/* What views and changes are drawn from: the seed, and which of several views this is. */
uint64_t mr_work_view_seed(const mr_loader_options *o);
uint8_t mr_work_orientation(const mr_work *w, const mr_row *row); /* 1 unless the options apply it */

/* work_objects.c.  The meta of a sample, meta_len bytes, which the worker owns until the next. */
mr_status mr_work_own_meta(mr_work *w, mr_worker *worker, uint64_t sample, const mr_row *row, const uint8_t **meta,
                           mr_error *err);
/* The objects of a sample in its view, into *out. */
mr_status mr_work_objects(mr_work *w, mr_worker *worker, uint64_t sample, const mr_row *row, const mr_view *v,
                          const uint8_t *meta, mr_moved *out, mr_error *err);
/* Its mask, size x height bytes: drawn from the polygons in `moved`, or the one that the options name. */
mr_status mr_work_mask(mr_work *w, mr_worker *worker, uint64_t sample, const mr_row *row, const mr_view *v,
                       const uint8_t *meta, mr_moved *moved, uint8_t *out, mr_error *err);

/* The schedule counts items; without a list of items they are the samples. */
static inline uint64_t mr_work_sample(const mr_work *w, uint64_t epoch, uint64_t item)
{
    return w->o.items ? w->o.items[item] : mr_schedule_sample(&w->schedule, epoch, item);
}

/* The part of the image that is shown.  It depends on the item, not on the sample: an image that occurs several
 * times in an epoch is cropped differently each time. */
mr_view mr_work_view(const mr_work *w, uint64_t epoch, uint64_t item, const mr_row *row);

/* Bytes of one decoded sample; 0 for encoded delivery.  For coded delivery, bytes of a tensor. */
size_t mr_work_pixel_bytes(const mr_loader_options *o);
/* Reads into worker->bytes, and into worker->seek, which is valid for the next decode only. */
mr_status mr_work_fetch(mr_work *w, mr_worker *worker, uint64_t sample, const mr_row *row, mr_error *err);
void mr_work_fetch_seek(mr_work *w, mr_worker *worker, uint64_t sample, const mr_row *row); /* the second half of it */
/* The stored pixels that the view needs: those of its box that contribute to what is kept after resizing. */
mr_region mr_work_region(const mr_work *w, const mr_row *row, const mr_view *v);
/* Decodes that region of the fetched image, oriented if the options ask for it; the worker owns the pixels. */
mr_status mr_work_decode(mr_work *w, mr_worker *worker, uint64_t sample, const mr_row *row, const mr_view *v,
                         const uint8_t **rgb, mr_error *err);
mr_status mr_work_resize(mr_work *w, mr_worker *worker, const mr_view *v, const uint8_t *rgb, void *out, mr_error *err);
/* The same with changed colours; not for coded delivery. */
mr_status mr_work_change(mr_work *w, mr_worker *worker, const mr_view *v, const mr_changes *c, const uint8_t *rgb,
                         void *out, mr_error *err);
void mr_work_spend(mr_work *w, double reading, double decoding); /* seconds */

/* ---- coded delivery ---------------------------------------------------------------------------------------------- */

/* Whether the sample may be described for a device: a JPEG with entries in the shard's seek index. */
bool mr_work_has_entries(mr_work *w, uint64_t sample, const mr_row *row);

typedef struct mr_work_file {
    const uint8_t *bytes;
    uint64_t at; /* in the batch's records */
} mr_work_file;
/* Describes the view of an image with the entries in worker->seek.  *taken false: the host decodes it, or says what is
 * wrong with it. */
mr_status mr_work_describe(mr_work *w, mr_worker *worker, const mr_row *row, const mr_view *v, const mr_work_file *file,
                           mr_coded_description *out, bool *taken, mr_error *err);

#endif
