/* feed.h - batches of the loader as micro-batches on the device.
 * Invariant: at most one batch is held; what a micro-batch points to lives until the next one is asked for.
 * A sample's dropout key depends on (seed, epoch, sample) alone, so its mask is the same on any rank. */
#ifndef MR_FEED_H
#define MR_FEED_H

#include "model.h"

typedef struct mr_feed {
    mr_loader *loader;
    mr_device *device;
    const char *split;              /* for messages */
    const mr_batch *batch;          /* held, NULL: none */
    size_t room;                    /* samples */
    uint64_t seed;
    size_t class_count;             /* of the dataset */
    const int32_t *classes;         /* [class_count]: the model's class, or -1; NULL: the same */
    bool unlabelled;                /* samples without a label are taken, with weight 0 */
    struct {                        /* one micro-batch, on the host and on the device */
        float *images;              /* device only, NULL where host memory will do */
        int32_t *labels;
        float *weights;
        uint64_t *keys;
    } host, there;
    double waited;                  /* seconds spent waiting for the loader, in all */
} mr_feed;

/* `options`: of the loader; `room`: its largest batch of this rank.  Images are delivered as float32.  Zeroed before. */
mr_status mr_feed_open(const mr_dataset *ds, const mr_loader_options *options, size_t room, mr_device *device,
                       mr_feed *out, mr_error *err);
void mr_feed_close(mr_feed *f);     /* a zeroed one is fine */

/* The next batch: f->batch says what is in it, *in what the model sees (count 0: this rank has none of it), *weight the
 * sum of its weights.  MR_END: the loader's last epoch is over.  MR_BAD_DATA: a sample without a label, or with one that
 * the dataset has no class for. */
mr_status mr_feed_next(mr_feed *f, mr_model_input *in, double *weight, mr_error *err);

#endif
