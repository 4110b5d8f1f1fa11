/* coded.h - an image described for a device that decodes it, and a batch of such descriptions as one slab.
 * Invariant: offsets and counts come from a parsed header, unpacked entries and a checked region, so that a decoder
 * stays inside its sections whatever the coded bytes are.
 *
 *      file, seek entries, region, orientation, resizing --describe--> image, parts, codes, quants, weights, starts
 *      slots, their records and tensors in a slab        --pack------> mr_coded and its sections (millrace.h)
 *
 * Left to the host: images without entries, progressive and arithmetic JPEGs, PNG, WebP, unrounded resizing, and
 * images for which the steps would need more than MR_CODED_PIECE_BYTES. */
#ifndef MR_CODED_H
#define MR_CODED_H

#include "base/buf.h"
#include "base/system/slab.h"
#include "image/region/pixels.h"
#include "image/resize/kernels.h"

enum {
    MR_CODED_SIZE_MAX = 4096, /* side of a result */
    MR_CODED_PIECE_BYTES = 512 << 20,
    MR_CODED_ALIGN = 64, /* of records, tensors and sections */
    MR_CODED_MARGIN = 8, /* zeros after a record, at least */
};

/* Where the first record begins in a slab. */
#define MR_CODED_RECORDS ((sizeof(mr_coded) + MR_CODED_ALIGN - 1) / MR_CODED_ALIGN * MR_CODED_ALIGN)

static inline uint64_t mr_coded_padded(uint64_t len)
{
    return (len + MR_CODED_ALIGN - 1) / MR_CODED_ALIGN * MR_CODED_ALIGN;
}

/* Bytes of a slab that a file of `len` bytes takes. */
static inline uint64_t mr_coded_record(uint64_t len)
{
    return mr_coded_padded(len + MR_CODED_MARGIN);
}

typedef struct mr_coded_picture {
    const uint8_t *bytes, *seek; /* a file and its packed entries (image/jpeg/seek.h); seek NULL: none */
    size_t len, seek_len;
    uint64_t at;            /* where the file begins in the slab's records: a multiple of 4 */
    uint32_t width, height; /* stored, from the index */
    mr_region region;       /* stored pixels */
    uint8_t orientation;    /* EXIF */
    mr_resize_job resize;   /* resizes the region as seen to size x size; its rgb is not read */
} mr_coded_picture;

enum { MR_CODED_CODES = 6 }; /* tables of an image, at most: DC and AC of three components */

typedef struct mr_coded_table { /* a Huffman table as in the file */
    uint8_t counts[16], symbols[256];
} mr_coded_table;

typedef struct mr_coded_description { /* one image; empty if zeroed; its memory is reused */
    mr_coded_image image;             /* its offsets and numbers count from this image's own */
    mr_coded_table tables[MR_CODED_CODES];
    uint32_t table_count;
    mr_buf parts, quants, weights, starts;
    uint64_t coef, samples, rgb, lines; /* bytes of memory between the steps */
} mr_coded_description;

void mr_coded_description_free(mr_coded_description *d);

typedef struct mr_coded_planner mr_coded_planner; /* what a thread keeps from image to image */
mr_coded_planner *mr_coded_planner_new(void);     /* NULL: out of memory */
void mr_coded_planner_free(mr_coded_planner *p);
/* *taken false: the image is the host's, and *out is undefined. */
mr_status mr_coded_describe(mr_coded_planner *p, const mr_coded_picture *picture, mr_coded_description *out,
                            bool *taken, mr_error *err);

/* ---- a batch ----------------------------------------------------------------------------------------------------- */

typedef struct mr_coded_batch {
    mr_slab *slab; /* holds records and tensors; grows */
    const mr_allocator *allocator;
    uint64_t records, used; /* ends of the records, and of all that is in the slab */
    const mr_coded_slot *slots;
    const mr_coded_description *descriptions; /* for slots of the kind MR_CODED_IMAGE */
    uint32_t count, size;
    const float *mean, *std; /* [3] */
    mr_resize_norm *norm;    /* memory, reused; zeroed at first */
    uint64_t piece_bytes;    /* memory for results between the steps; 0: MR_CODED_PIECE_BYTES */
} mr_coded_batch;

/* Adds header and sections; *bytes: the size of the whole slab.  `tables`: memory, reused.  MR_MISUSE: mean or std is
 * not usable, see mr_resize_f32(). */
mr_status mr_coded_pack(const mr_coded_batch *b, mr_buf *tables, uint64_t *bytes, mr_error *err);

#endif
