/* scan.h - private to this module: reads the MCUs of a scan, from one restart marker to the next.
 * Invariant: if mr_jpeg_scan_sound() returns true at the end, or between two entries mr_jpeg_scan_arrived(), what was
 * read is sound, and libjpeg-turbo accepts it without a warning.
 *
 *      file   ... SOS | segment | RST0 | segment | RST1 | segment | EOI
 *                               |      |
 *                               less than a byte is left, and no other marker follows */
#ifndef MR_JPEG_SCAN_H
#define MR_JPEG_SCAN_H

#include "image/jpeg/entries.h"
#include "image/jpeg/kernels.h"

typedef struct mr_jpeg_scan {
    const mr_jpeg_kernels *kernels;
    const mr_jpeg_mcu *mcu;
    const uint8_t *bytes; /* the file */
    size_t len;           /* length of the file; after an entry, of the part that is read */
    size_t from, at;      /* start of the segment in the stream, and its end */
    uint8_t *unstuffed;   /* holds the longest segment and MR_JPEG_PADDING */
    uint32_t restart;     /* MCUs between markers; 0: none */
    bool part;            /* from one entry to another */
    mr_jpeg_stream stream;
    int spare;            /* bits at its end that must not be used */
    uint32_t to_go;       /* MCUs up to the next marker */
    unsigned next_marker; /* 0 to 7 */
} mr_jpeg_scan;

/* With all members set: opens the first segment, at `at`. */
void mr_jpeg_scan_begin(mr_jpeg_scan *s);
/* Opens the part from one entry to a later one; `mcu`: number of the first MCU, `scan`: offset of the scan. */
void mr_jpeg_scan_enter(mr_jpeg_scan *s, size_t scan, const mr_jpeg_entry *from, uint32_t mcu, const mr_jpeg_entry *to);
/* False: not sound, and `blocks` are undefined; otherwise as mr_jpeg_kernels.store. */
bool mr_jpeg_scan_skip(mr_jpeg_scan *s, uint32_t mcus);
bool mr_jpeg_scan_store(mr_jpeg_scan *s, uint32_t mcus, int16_t *blocks);
/* Skips one MCU in parts, which together are its blocks; dc[i]: the first component's predictor after part i. */
bool mr_jpeg_scan_skip_parts(mr_jpeg_scan *s, const mr_jpeg_mcu *parts, unsigned count, int *dc);
bool mr_jpeg_scan_sound(const mr_jpeg_scan *s);
/* Continues after the marker, if one is due now.  False: it is missing. */
bool mr_jpeg_scan_pass_marker(mr_jpeg_scan *s);
/* After the image's last MCU: whether an end marker follows immediately and libjpeg-turbo would not warn. */
bool mr_jpeg_scan_complete(const mr_jpeg_scan *s);
/* After the last MCU before `to`: whether position, to the bit, and predictors are those of `to`. */
bool mr_jpeg_scan_arrived(mr_jpeg_scan *s, const mr_jpeg_entry *to);

#endif
