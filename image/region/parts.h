/* parts.h - private to this module: a thread's buffers, and one decoder per codec.
 * Invariant: buffers only grow; a decoder leaves the region, packed, in `rgb`. */
#ifndef MR_PIXELS_PARTS_H
#define MR_PIXELS_PARTS_H

#include "image/region/pixels.h"

typedef struct mr_pixels_buffer {
    uint8_t *data;
    size_t capacity;
} mr_pixels_buffer;

struct mr_pixels_scratch {
    mr_pixels_buffer rgb;                    /* the region */
    mr_pixels_buffer work;                   /* output of the decoder: a row, or a whole image */
    mr_pixels_buffer turned;                 /* the region with its orientation applied */
    const _Atomic bool *stop;                /* NULL: never */
    struct mr_jpeg_decoder *jpeg;            /* NULL: the image libraries alone decode */
    struct libdeflate_decompressor *inflate; /* NULL: not used yet */
    mr_pixels_counts counts;
    const uint8_t *seek; /* seek entries of the next file; NULL: it has none */
    size_t seek_len;
};

static inline bool mr_pixels_stopped(const mr_pixels_scratch *s)
{
    return s->stop && atomic_load_explicit(s->stop, memory_order_relaxed);
}

typedef struct mr_pixels_job {
    const uint8_t *bytes;
    size_t len;
    const mr_image_facts *facts;
    mr_region region;    /* inside facts, not empty */
    uint8_t *rgb;        /* room for region.width * 3 * region.height */
    const uint8_t *seek; /* entry points of a JPEG's scan (image/jpeg/seek.h), or NULL */
    size_t seek_len;
} mr_pixels_job;

/* At least count * size * times bytes; the previous content is lost.  NULL: out of memory. */
uint8_t *mr_pixels_reserve(mr_pixels_buffer *buffer, size_t count, size_t size, size_t times);

mr_status mr_pixels_jpeg(mr_pixels_scratch *s, const mr_pixels_job *job, mr_error *err);
mr_status mr_pixels_png(mr_pixels_scratch *s, const mr_pixels_job *job, mr_error *err);
mr_status mr_pixels_webp(mr_pixels_scratch *s, const mr_pixels_job *job, mr_error *err);

/* The failure if the header's size differs from the index. */
mr_status mr_pixels_other_size(const char *name, uint64_t width, uint64_t height, const mr_image_facts *facts,
                               mr_error *err);

#endif
