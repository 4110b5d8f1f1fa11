/* region.h - millrace's own decoder of baseline JPEGs: the pixels of a region, and no work for others' pixels.
 * Invariant: what it gives equals libjpeg-turbo's full decode (ISLOW, fancy upsampling) to the last bit, and it gives
 * nothing where libjpeg-turbo, asked for the same region, would fail or warn. */
#ifndef MR_JPEG_REGION_H
#define MR_JPEG_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mr_jpeg_decoder mr_jpeg_decoder; /* one a thread: tables and buffers, reused */
mr_jpeg_decoder *mr_jpeg_decoder_new(void);     /* NULL: no memory */
void mr_jpeg_decoder_free(mr_jpeg_decoder *d);
/* From now on only plain C does the work: slower, the same bytes.  For tests. */
void mr_jpeg_decoder_plain(mr_jpeg_decoder *d);

typedef enum mr_jpeg_outcome {
    MR_JPEG_DONE,
    MR_JPEG_LEFT, /* not a file, or not a machine state, for this decoder: ask libjpeg-turbo */
    MR_JPEG_STOPPED,
} mr_jpeg_outcome;

typedef struct mr_jpeg_job {
    const uint8_t *bytes; /* the file */
    size_t len;
    uint32_t width, height;                      /* pixels, as whoever examined the file read them */
    uint32_t left, top, crop_width, crop_height; /* the region: inside, not empty */
    uint8_t *rgb;                                /* room for crop_width * 3 * crop_height */
    bool (*stopped)(void *ctx);                  /* asked between rows of MCUs; NULL: never */
    void *ctx;
    const uint8_t *seek; /* what mr_jpeg_seek_make() gave for these bytes; NULL: none */
    size_t seek_len;
} mr_jpeg_job;

/* Fills job->rgb; its content is of no meaning unless MR_JPEG_DONE.  A region that has the picture's last row is left
 * unless the end marker follows the scan at once: what lies between them is libjpeg-turbo's to judge. */
mr_jpeg_outcome mr_jpeg_decode_region(mr_jpeg_decoder *d, const mr_jpeg_job *job);

/* Whether the file's one scan is sound from end to end and the end marker follows it: then libjpeg-turbo decodes all of
 * it without a word.  MR_JPEG_LEFT: ask libjpeg-turbo; so are pictures of more than `max_pixels`. */
mr_jpeg_outcome mr_jpeg_check(mr_jpeg_decoder *d, const uint8_t *bytes, size_t len, uint64_t max_pixels);

#endif
