/* resize.h - antialiased bilinear and bicubic resampling in Pillow's fixed-point arithmetic.
 * Invariant: the same bytes as Pillow 11: horizontal pass first, rounded to uint8, then vertical; a pass that does not
 * change the size is skipped.
 * Source: Pillow's Resample.c, restated: per axis scale = in/out, fs = max(scale, 1), support = (1 | 2) * fs; for
 * output o: c = (o + 0.5) * scale, lo = max(0, trunc(c - support + 0.5)), hi = min(in, trunc(c + support + 0.5)),
 * k[j] = f((j + lo - c + 0.5) * (1 / fs)) / sum, K = trunc(k * 2^22 +- 0.5),
 * out = clip8((2^21 + sum K * pixel) >> 22). */
#ifndef MR_RESIZE_H
#define MR_RESIZE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "millrace.h"

typedef struct mr_resizer mr_resizer; /* one per thread: coefficient tables and buffers, reused */
mr_resizer *mr_resizer_new(void);     /* NULL: out of memory */
void mr_resizer_free(mr_resizer *r);
/* From now on uses this set of inner loops (kernels.h): the same bytes.  For tests. */
typedef struct mr_resize_kernels mr_resize_kernels;
void mr_resizer_use(mr_resizer *r, const mr_resize_kernels *kernels);
/* From now on a job ends with MR_END at the next output row once *stop is true; `stop` must outlive the resizer. */
void mr_resizer_stop(mr_resizer *r, const _Atomic bool *stop);

#define MR_RESIZE_LONGEST (UINT32_MAX - 1) /* side of a resized image; only the kept part takes memory */

typedef struct mr_resize_span {
    uint32_t from, count;
} mr_resize_span;

typedef struct mr_resize_job {
    const uint8_t *rgb;               /* packed, columns.count * 3 bytes per row */
    uint32_t in_width, in_height;     /* of the whole image to resize ... */
    mr_resize_span columns, rows;     /* ... and what of it is in `rgb`: mr_resize_needs or more; zeros: all */
    uint32_t out_width, out_height;   /* of the whole resized image */
    uint32_t crop_left, crop_top;     /* the part of it to keep ... */
    uint32_t crop_width, crop_height; /* ... only this is computed; inside the resized image */
    bool flip;                        /* mirror the kept part left to right */
    bool bicubic;
    bool unrounded; /* floats only: neither rounded to bytes between the passes nor clamped */
} mr_resize_job;

/* The columns and rows of the input that the kept part needs, which job->columns and job->rows must include.  Does not
 * read those two; the rest of the job must be valid. */
void mr_resize_needs(const mr_resize_job *job, mr_resize_span *columns, mr_resize_span *rows);

/* uint8 NHWC: crop_width * 3 bytes per row into `out`. */
mr_status mr_resize_u8(mr_resizer *r, const mr_resize_job *job, uint8_t *out, mr_error *err);
/* The same pixels normalised, channel planes of crop_height * crop_width: (pixel / 255 - mean) / std in float32, with
 * each of the three operations rounded, as in torch; or the same rounded to nearest-even bfloat16, or half precision.
 * MR_MISUSE: an invalid job, or a std of 0. Unrounded: the pixels are resampled in float32 with the weights k[j], as
 * torch's interpolate(antialias=True) resamples tensors (to about 3e-6 of 0..1, as torch rounds its weights); bicubic
 * values may be outside 0..1. */
mr_status mr_resize_f32(mr_resizer *r, const mr_resize_job *job, const float mean[3], const float std[3], float *out,
                        mr_error *err);
mr_status mr_resize_bf16(mr_resizer *r, const mr_resize_job *job, const float mean[3], const float std[3],
                         uint16_t *out, mr_error *err);
mr_status mr_resize_f16(mr_resizer *r, const mr_resize_job *job, const float mean[3], const float std[3], uint16_t *out,
                        mr_error *err);

#endif
