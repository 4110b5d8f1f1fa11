/* jpeg_job.h - what the planner (image/coded) tells the kernels jpeg_*.cl about a batch.
 * Invariant: the layout is the same for all compilers: 64-bit members first, then 32-bit ones, in whole 8 bytes; it is
 * that of mr_coded_image, mr_coded_part and mr_coded_codes in millrace.h, which device/decode/job.h checks.
 *
 *      file's scan    | MCU row: entry --part--> entry --part--> entry ... |      only parts that touch the region
 *      coefficients, samples     only of MCUs [mcu_left, mcu_right) x [mcu_top, mcu_bottom)
 *
 * Offsets are from the start of a section of the batch (bytes, weights ...) or of memory of its piece (samples ...). */
#ifndef MR_JPEG_JOB_H
#define MR_JPEG_JOB_H

#ifndef MR_DIALECT_H /* devices get both as one text */
#include "device/kernels/dialect.h"
#endif

enum { MR_LUT_BITS = 10, MR_LUT_SIZE = 1 << MR_LUT_BITS, MR_JPEG_MCU_BLOCKS = 6, MR_JPEG_NO_MARKER = 0 };

typedef struct mr_jpeg_image {
    u64 bytes, bytes_len; /* its part of the coded bytes, multiples of 4; what follows its last part may be anything */
    u64 coef;             /* blocks */
    u64 plane[3];         /* bytes in `samples` */
    u64 rgb;              /* bytes: the region as seen, of seen_width pixels a row */
    u64 lines;            /* bytes: seen_height rows of size_x pixels */
    u64 across, down;     /* in `weights`: taps for each output */
    u64 across_start, down_start;
    u32 width, height;            /* pixels */
    u32 wide;                     /* MCUs of a row */
    u32 components, h, v, blocks; /* sampling of the first component; blocks of an MCU */
    u32 component[MR_JPEG_MCU_BLOCKS], table[MR_JPEG_MCU_BLOCKS][2]; /* per block; its DC and AC tables */
    u32 quant[3];                                                    /* 64 numbers each */
    u32 stride[3];
    u32 left, top, crop_width, crop_height;       /* region, stored pixels */
    u32 mcu_left, mcu_right, mcu_top, mcu_bottom; /* whose samples the region needs */
    u32 restart;                                  /* MCUs between markers; 0: none */
    u32 swapped, from_right, from_bottom;         /* orientation, as in image/region/orient.c */
    u32 seen_width, seen_height;
    u32 across_taps, down_taps;
    u32 slot; /* the slot of the batch that the result goes to */
} mr_jpeg_image;

typedef struct mr_jpeg_part { /* from an entry to the next */
    u64 at, end;              /* bits from the image's first byte */
    u32 image, x, y, mcus;    /* its first MCU; all are in row y */
    i32 dc[3], dc_end[3];     /* predictors at the entries; those at `end` before a marker */
    u32 marker, unused;       /* the marker in front of `end`: D0 to D7; MR_JPEG_NO_MARKER */
} mr_jpeg_part;

typedef struct mr_jpeg_lut { /* a Huffman table, by the next MR_LUT_BITS bits */
    u16 first[MR_LUT_SIZE];  /* code's length 0-4, 0: longer | size 5-8 | run 9-12 */
    u32 limit[20];           /* see mr_jpeg_codes in image/jpeg/tables.h; 17 used */
    i32 offset[20];
    u8 values[256];
} mr_jpeg_lut;

/* An array of a section is an argument in bytes: its offset need not be a multiple of an entry's size. */
#define MR_ARRAY(type, name, i) ((MR_GLOBAL const type *)((name) + name##_at) + (i))

#endif
