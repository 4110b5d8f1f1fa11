/* feed.h - batches of the loader as micro-batches on the device.
 * Invariant: at most one batch is held, and another whose images are decoded ahead; the pointers of a micro-batch
 * are valid until the next one. A sample's dropout key and its caption depend on (seed, epoch, item) alone, where the
 * item is the sample's number or, with options.items, the number in that list: so they are the same on every rank.
 *
 *      tokens  <s> two dogs </s> <pad>       ids, padded only to the batch's longest text
 *      places   2   3   4    5     1         the pad's id + tokens so far; the pad's id for padding
 *      seen     1   1   1    1     0                                                                                 */
#ifndef MR_FEED_H
#define MR_FEED_H

#include "loader/batch/damage.h"
#include "train/feed/targets.h"
#include "device/images/images.h"
#include "train/model/model.h"
#include "shards/dataset/captions.h"
#include "train/text/tokenizer.h"

/* Pairs of images and text.  The pointers are borrowed, and must outlive the feed. */
typedef struct mr_feed_text {
    const mr_tokenizer *tokenizer;
    const char *column; /* the column of the captions, see captions.h */
    uint32_t most;      /* most tokens of a text, with <s> and </s>: 2 or more; the rest is cut off */
    bool groups;        /* equal images of a batch are not negatives of one another */
    bool expanded;      /* options.items has each sample as often as it has captions: the items of a sample are
                           its captions in order; otherwise one of its captions is drawn */
} mr_feed_text;

/* How labels are learned.  The pointers are borrowed, and must outlive the feed. */
typedef struct mr_feed_labels {
    const mr_targets *targets; /* the split's targets; NULL: one label per sample */
    size_t classes;            /* classes of the model */
    float smoothing;           /* of targets, 0 and 1 become s / 2 and 1 - s / 2; for one label see device.h */
    const float *weights;      /* [classes]: of a sample by its class, or of a positive with targets; NULL: all 1 */
} mr_feed_labels;

typedef struct mr_feed {
    mr_loader *loader;
    mr_device *device;
    const char *split;     /* for messages */
    const mr_batch *batch; /* held, NULL: none */
    mr_images *decoder;    /* decodes coded batches; NULL: the loader decodes */
    struct {               /* the next batch, if `taken` */
        bool taken;
        const mr_batch *batch; /* NULL: none, for the reason that is */
        mr_status status;
        mr_error why;
        mr_cursor cursor; /* before it */
        float *images;    /* where they are decoded, on the device; NULL: nothing is decoded ahead */
    } ahead;
    size_t image_floats; /* floats of one image */
    size_t capacity;     /* samples */
    uint64_t seed;
    size_t class_count;                 /* classes of the dataset */
    const int32_t *classes;             /* [class_count]: the model's class, or -1; NULL: the same */
    bool unlabelled;                    /* samples without a label are accepted, with weight 0 */
    struct {                            /* one micro-batch, on the host and on the device */
        float *images;                  /* device only, NULL where the loader's memory is used */
        int32_t *labels, *other_labels; /* other_*: for mixed images; else NULL */
        float *weights, *other_weights;
        float *targets, *positive; /* [capacity, classes], [classes]; with targets, else NULL */
        uint64_t *keys;
        int32_t *tokens, *places, *groups; /* with text; else NULL */
        uint8_t *seen;
    } host, on_device;
    mr_feed_labels learn;
    mr_feed_text text; /* tokenizer NULL: labels */
    mr_tokenizer_scratch *scratch;
    const uint64_t *items; /* the options' items */
    size_t *lengths;       /* [capacity]: tokens of each text */
    size_t length;         /* length of the longest */
    mr_buf caption;
    bool fails;       /* a damaged sample ends it */
    mr_damage damage; /* what was skipped */
    double waited;    /* seconds spent waiting for the loader, in all */
    double reading;   /* seconds spent on texts, in all */
} mr_feed;

/* Appends the words that an evaluation draws for an item, of the captions in its meta; none: appends nothing. */
mr_status mr_feed_words(const char *column, uint64_t item, const char *meta, size_t len, mr_buf *out, mr_error *err);

/* If nothing says how a feed gets its images: MR_DELIVER_CODED, decoded on the device, if it is not the CPU and the
 * loader has fewer than MR_FEED_SPARE threads.  More of them decode faster than any device trains, beside its steps. */
enum { MR_FEED_SPARE = 4 };
mr_delivery mr_feed_delivery(const mr_device *d, unsigned threads);

/* `options`: the loader's; `text` NULL: labels are learned, otherwise text, and labels are ignored (all are -1);
 * `capacity`: its largest batch of this rank.  Images are float32: decoded on the device if options.deliver is
 * MR_DELIVER_CODED, otherwise by the loader.  Zeroed before. */
mr_status mr_feed_open(const mr_dataset *ds, const mr_loader_options *options, const mr_feed_text *text,
                       size_t capacity, mr_device *device, mr_feed *out, mr_error *err);
/* Before the first batch of a feed of labels; without it: one label per sample, all of weight 1. */
mr_status mr_feed_learn(mr_feed *f, const mr_feed_labels *labels, mr_error *err);
void mr_feed_close(mr_feed *f); /* a zeroed one is fine */

/* The next batch: f->batch is the loader's, *in the model's input (count 0: this rank has none of it), *weight the sum
 * of its weights.  MR_END: the loader's last epoch has ended.  MR_BAD_DATA: a sample without a label (unless there are
 * targets), or with one that the dataset has no class for; with text, a sample without a caption.  A masked sample has
 * the empty text. */
mr_status mr_feed_next(mr_feed *f, mr_model_input *in, double *weight, mr_error *err);
/* Once what reads the batch is queued: begins to decode the images of the next one beside it, if that is loaded and the
 * device can.  Does not wait; a failure is that of the next mr_feed_next(). */
void mr_feed_look_ahead(mr_feed *f);
/* Where to continue after the batch of the last mr_feed_next(). */
mr_cursor mr_feed_cursor(const mr_feed *f);

#endif
