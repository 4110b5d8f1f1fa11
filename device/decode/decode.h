/* decode.h - JPEGs decoded by the kernels jpeg_*.cl: a batch is planned on the host, packed into one slab, and run.
 * Invariant: each tensor equals decoding, turning, resizing and normalising on the host to the bit, or its picture is
 * left to the host, either by the planner or as `failed` by the kernels.
 *
 *      file, seek entries, region, orientation, resizing --plan--> images, parts, tables, weights | coded bytes = slab
 *      slab --entropy--> coefficients --idct--> samples --pixels--> RGB --across--> lines --down--> float32 NCHW
 *
 * The host's own are pictures without entries, progressive and arithmetic JPEGs, PNG, WebP, and unrounded resizing. */
#ifndef MR_DECODE_H
#define MR_DECODE_H

#include "base/slab.h"
#include "region/pixels.h"
#include "resize/resize.h"

enum { MR_DECODE_SIZE_MAX = 4096 }; /* side of a result */

typedef struct mr_decode_picture {
    const uint8_t *bytes, *seek; /* a file and its packed entries (jpeg/seek.h); seek NULL: none */
    size_t len, seek_len;
    uint32_t width, height; /* stored, from the index */
    mr_region region;       /* stored pixels */
    uint8_t orientation;    /* EXIF */
    mr_resize_job resize;   /* of the region as seen; its rgb is not read */
} mr_decode_picture;

typedef enum mr_decode_section {
    MR_DECODE_IMAGES,
    MR_DECODE_PARTS,
    MR_DECODE_LUTS,
    MR_DECODE_QUANTS,
    MR_DECODE_WEIGHTS,
    MR_DECODE_STARTS,
    MR_DECODE_NORM,
    MR_DECODE_BYTES,
    MR_DECODE_SECTIONS
} mr_decode_section;

typedef struct mr_decode_slab { /* zeroed: empty */
    mr_slab memory;
    uint64_t at[MR_DECODE_SECTIONS], len; /* bytes; sections are aligned to 64 */
    uint32_t images, parts, size;
    uint32_t most_blocks, most_pixels, most_lines; /* of an image: how many items a kernel needs in each row */
    uint64_t coef, samples, rgb, lines;            /* bytes of memory between the kernels; coef must be zeros */
} mr_decode_slab;

void mr_decode_slab_free(mr_decode_slab *slab);

typedef struct mr_decode_plan mr_decode_plan; /* of one batch at a time; memory is reused */
/* NULL: out of memory, or `size` is not 1 to MR_DECODE_SIZE_MAX. */
mr_decode_plan *mr_decode_plan_new(uint32_t size);
void mr_decode_plan_free(mr_decode_plan *p);
/* Starts a batch.  MR_MISUSE: mean or std is not usable, see mr_resize_f32. */
mr_status mr_decode_plan_begin(mr_decode_plan *p, const float mean[3], const float std[3], mr_error *err);
/* Adds a picture, copying what is needed of it.  *taken false: it is the host's, and nothing was added. */
mr_status mr_decode_plan_add(mr_decode_plan *p, const mr_decode_picture *picture, bool *taken, mr_error *err);
mr_status mr_decode_plan_pack(mr_decode_plan *p, mr_decode_slab *slab, mr_error *err);

/* Runs the kernels as plain C.  values: slab->images tensors of 3 * size * size; failed: a flag for each image, whose
 * tensor is then undefined. */
mr_status mr_decode_run_plain(const mr_decode_slab *slab, float *values, uint32_t *failed, mr_error *err);

#endif
