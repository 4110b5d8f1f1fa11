/* scan.h - private to jpeg_*.c: goes through the MCUs of a scan, from one restart marker to the next.
 * Invariant: what was taken is sound if mr_jpeg_scan_sound() says so behind it; libjpeg-turbo takes it without a word.
 * What was taken between two entries is sound if mr_jpeg_scan_arrived() says so.
 *
 *      file   ... SOS | segment | RST0 | segment | RST1 | segment | EOI
 *                               |      |
 *                               less than a byte is left, and no other marker comes
 */
#ifndef MR_JPEG_SCAN_H
#define MR_JPEG_SCAN_H

#include "jpeg/entries.h"
#include "jpeg/kernels.h"

typedef struct mr_jpeg_scan {
    const mr_jpeg_kernels *kernels;
    const mr_jpeg_mcu *mcu;
    const uint8_t *bytes; /* the file */
    size_t len;           /* of it; or, behind an entry, as far as it is read */
    size_t from, at;      /* the segment that is in the stream, and what is behind it */
    uint8_t *unstuffed;   /* room for the longest segment and MR_JPEG_BEHIND */
    uint32_t restart;     /* MCUs between markers; 0: none */
    bool part;            /* from one entry to another */
    mr_jpeg_stream stream;
    int spare;            /* bits of it that are not for use */
    uint32_t to_go;       /* MCUs up to the next marker */
    unsigned next_marker; /* 0 to 7 */
} mr_jpeg_scan;

/* The rest is filled in: opens the first segment, at `at`. */
void mr_jpeg_scan_begin(mr_jpeg_scan *s);
/* Opens the part from one entry to a later one; `mcu` is the number of the first, `scan` where the scan begins. */
void mr_jpeg_scan_enter(mr_jpeg_scan *s, size_t scan, const mr_jpeg_entry *from, uint32_t mcu, const mr_jpeg_entry *to);
/* False: not sound.  What `blocks` then hold is of no meaning; else as mr_jpeg_kernels.store says. */
bool mr_jpeg_scan_skip(mr_jpeg_scan *s, uint32_t mcus);
bool mr_jpeg_scan_store(mr_jpeg_scan *s, uint32_t mcus, int16_t *blocks);
bool mr_jpeg_scan_sound(const mr_jpeg_scan *s);
/* Goes on behind the marker, if one is due now.  False: it is not there. */
bool mr_jpeg_scan_pass_marker(mr_jpeg_scan *s);
/* Behind the picture's last MCU: an end marker follows at once, and libjpeg-turbo has nothing to say. */
bool mr_jpeg_scan_complete(const mr_jpeg_scan *s);
/* Behind the last MCU before `to`: it is where the stream is, to the bit, and the predictors are its. */
bool mr_jpeg_scan_arrived(mr_jpeg_scan *s, const mr_jpeg_entry *to);

#endif
