/* region.h - millrace's own decoder of baseline JPEGs: decodes only the pixels of a region.
 * Invariant: the pixels equal libjpeg-turbo's full decode (ISLOW, fancy upsampling) to the last bit; decoding is left
 * to libjpeg-turbo if that would fail or warn for the same region.
 *
 * This module, from file to pixels:   parse, tables <- decoder <- scan <- region, seek
 *   parse     segments before the scan       tables    Huffman tables         scan     segments between restart markers
 *   entries   packed entry points            seek      makes them             partial  parts of a decoder, to measure
 *   means     the image at an eighth of its size, while checking the scan
 *   kernels   the sets of inner loops: plain, avx2, avx512, from blocks.h, lanes.h, wide_idct.h and wide_pixels.h */
#ifndef MR_JPEG_REGION_H
#define MR_JPEG_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mr_jpeg_decoder mr_jpeg_decoder; /* one per thread: tables and buffers, reused */
mr_jpeg_decoder *mr_jpeg_decoder_new(void);     /* NULL: out of memory */
void mr_jpeg_decoder_free(mr_jpeg_decoder *d);
/* From now on uses plain C only: slower, the same bytes.  For tests. */
void mr_jpeg_decoder_plain(mr_jpeg_decoder *d);

typedef enum mr_jpeg_outcome {
    MR_JPEG_DONE,
    MR_JPEG_LEFT, /* not supported, or out of memory: use libjpeg-turbo */
    MR_JPEG_STOPPED,
} mr_jpeg_outcome;

typedef struct mr_jpeg_job {
    const uint8_t *bytes; /* the file */
    size_t len;
    uint32_t width, height;                      /* pixels, from examining the file */
    uint32_t left, top, crop_width, crop_height; /* the region: inside, not empty */
    uint8_t *rgb;                                /* room for crop_width * 3 * crop_height */
    bool (*stopped)(void *ctx);                  /* called between rows of MCUs; NULL: never */
    void *ctx;
    const uint8_t *seek; /* from mr_jpeg_seek_make() for these bytes; NULL: none */
    size_t seek_len;
} mr_jpeg_job;

/* Fills job->rgb, which is undefined unless MR_JPEG_DONE.  Also MR_JPEG_LEFT if the region has the image's last row
 * and the end marker does not follow the scan immediately: libjpeg-turbo decides about bytes between them. */
mr_jpeg_outcome mr_jpeg_decode_region(mr_jpeg_decoder *d, const mr_jpeg_job *job);

/* MR_JPEG_DONE: the file's only scan is sound from start to end and the end marker follows it, so libjpeg-turbo decodes
 * all of it without a warning.  MR_JPEG_LEFT: use libjpeg-turbo, also for images of more than `max_pixels`. */
mr_jpeg_outcome mr_jpeg_check(mr_jpeg_decoder *d, const uint8_t *bytes, size_t len, uint64_t max_pixels);

/* The image at an eighth of its size: the mean luma of each block of 8 x 8 pixels, row by row. */
typedef struct mr_jpeg_means {
    const uint8_t *grey; /* the decoder's, until its next call */
    uint32_t width, height, stride;
} mr_jpeg_means;

/* mr_jpeg_check(), and the means in the same pass; `out` is undefined unless MR_JPEG_DONE. */
mr_jpeg_outcome mr_jpeg_check_means(mr_jpeg_decoder *d, const uint8_t *bytes, size_t len, uint64_t max_pixels,
                                    mr_jpeg_means *out);

#endif
