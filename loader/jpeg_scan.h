/* jpeg_scan.h - private to jpeg_*.c: goes through the MCUs of a scan, from one restart marker to the next.
 * Invariant: what was taken is sound if mr_jpeg_scan_sound() says so behind it; libjpeg-turbo takes it without a word.
 *
 *      file   ... SOS | segment | RST0 | segment | RST1 | segment | EOI
 *                               |      |
 *                               less than a byte is left, and no other marker comes
 */
#ifndef MR_JPEG_SCAN_H
#define MR_JPEG_SCAN_H

#include "jpeg_kernels.h"

typedef struct mr_jpeg_scan {
    const mr_jpeg_kernels *kernels;
    const uint8_t *bytes;           /* the file */
    size_t len, at;                 /* at: behind the segment that is in the stream */
    uint8_t *unstuffed;             /* room for len - (where the scan begins) + MR_JPEG_BEHIND */
    uint32_t restart;               /* MCUs between markers; 0: none */
    mr_jpeg_mcu mcu;
    mr_jpeg_stream stream;
    int spare;                      /* bits of it that are not for use */
    uint32_t to_go;                 /* MCUs up to the next marker */
    unsigned next_marker;           /* 0 to 7 */
} mr_jpeg_scan;

/* The rest is filled in: opens the first segment, at `at`. */
void mr_jpeg_scan_begin(mr_jpeg_scan *s);
/* False: not sound.  What `blocks` and `used` then hold is of no meaning; else as mr_jpeg_kernels.store says. */
bool mr_jpeg_scan_skip(mr_jpeg_scan *s, uint32_t mcus);
bool mr_jpeg_scan_store(mr_jpeg_scan *s, uint32_t mcus, int16_t *blocks, uint8_t *used);
bool mr_jpeg_scan_sound(const mr_jpeg_scan *s);

#endif
