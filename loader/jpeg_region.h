/* jpeg_region.h - millrace's own decoder of baseline JPEGs: the pixels of a region, and no work for others' pixels.
 * Invariant: what it gives equals libjpeg-turbo's full decode (ISLOW, fancy upsampling) to the last bit, and it gives
 * nothing where libjpeg-turbo, asked for the same region, would fail or warn. */
#ifndef MR_JPEG_REGION_H
#define MR_JPEG_REGION_H

#include "pixels_parts.h"

typedef struct mr_jpeg_decoder mr_jpeg_decoder;         /* one a thread: tables and buffers, reused */
mr_jpeg_decoder *mr_jpeg_decoder_new(void);             /* NULL: no memory */
void mr_jpeg_decoder_free(mr_jpeg_decoder *d);
/* From now on only plain C does the work: slower, the same bytes.  For tests. */
void mr_jpeg_decoder_plain(mr_jpeg_decoder *d);

typedef enum mr_jpeg_outcome {
    MR_JPEG_DONE,
    MR_JPEG_LEFT,               /* not a file, or not a machine state, for this decoder: ask libjpeg-turbo */
    MR_JPEG_STOPPED,
} mr_jpeg_outcome;

/* Fills job->rgb; its content is of no meaning unless MR_JPEG_DONE. `s` is asked whether to stop. */
mr_jpeg_outcome mr_jpeg_decode_region(mr_jpeg_decoder *d, const mr_pixels_scratch *s, const mr_pixels_job *job);

#endif
