/* thumb.h - small copies of images, for a page.
 * Invariant: a thumbnail shows all of the image as it is stored; its proportions are the image's to a pixel. */
#ifndef MR_REPORT_THUMB_H
#define MR_REPORT_THUMB_H

#include "shards/dataset/dataset.h"
#include "image/region/pixels.h"
#include "image/resize/resize.h"

enum { MR_THUMB_SIDE = 224, MR_THUMB_QUALITY = 72 };

typedef struct mr_thumbs { /* a zeroed one is empty */
    mr_pixels_scratch *scratch;
    mr_resizer *resizer;
    mr_buf pixels, jpeg;
    uint64_t max_pixels; /* pixels of an image that is decoded; 0: MR_DEFAULT_MAX_PIXELS */
    struct {             /* the JPEGs shown */
        uint64_t all, read, quality_sum, full, half, quarter, grey;
        unsigned lowest, highest;
    } jpegs;
} mr_thumbs;

/* Appends "data:image/jpeg;base64,..."; `v` has the image.  MR_BAD_SAMPLE: it cannot be
 * decoded, is larger than `max_pixels`, or is not of the size that its index says. */
mr_status mr_thumb_add(mr_thumbs *t, const mr_sample_view *v, mr_buf *out, mr_error *err);
void mr_thumbs_free(mr_thumbs *t);

/* The quality at which libjpeg writes about this table of luminance, 1 to 100; row by row. */
unsigned mr_jpeg_quality(const int16_t quant[64]);

#endif
