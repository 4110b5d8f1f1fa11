/* entries.h - for this module and image/coded: points at which a scan can be entered, and how they are packed.
 * Invariant: unpacked entries are inside the scan and in order; only decoding shows whether they are right.
 *
 *      MCUs of a row   0           every       2 every  ...     one entry each: position of its first bit, and the DC
 *                      every > 0   |           |                predictors; after the last row comes the end
 *
 *      packed   every | entry 1 | entry 2 ...| end         entry 0 is the start of the scan and is not stored
 *      entry    bits since the previous entry | for each component: its predictor minus that of the previous entry, or,
 *               for the first of a row, of the first of the row above; 2 n or -2 n - 1
 * All numbers are varints: 7 bits per byte from the low end, the high bit set in all bytes except the last. */
#ifndef MR_JPEG_ENTRIES_H
#define MR_JPEG_ENTRIES_H

#include "base/buf.h"
#include "image/jpeg/parse.h"

typedef enum mr_jpeg_entry_kind {
    MR_JPEG_INSIDE, /* between two MCUs of a segment */
    MR_JPEG_BEGUN,  /* at a segment's first byte: after a marker */
    MR_JPEG_ENDED,  /* after the last MCU's last bit */
} mr_jpeg_entry_kind;

typedef struct mr_jpeg_entry {
    uint64_t at; /* bits of the file from the start of the scan on, including stuffed bytes and markers */
    int16_t dc[MR_JPEG_COMPONENTS]; /* predictors; at the start of a segment: those before its marker */
    uint16_t kind;
} mr_jpeg_entry;

typedef struct mr_jpeg_grid {
    uint32_t wide, high; /* the image in MCUs */
    uint32_t every, per_row;
    uint32_t restart;
    unsigned components;
    size_t count; /* number of entries; one more is the end */
} mr_jpeg_grid;

/* `every` 0, or more than a row has: one entry per row. */
mr_jpeg_grid mr_jpeg_grid_make(const mr_jpeg_header *h, uint32_t every);
uint32_t mr_jpeg_grid_mcu(const mr_jpeg_grid *g, size_t entry); /* its number in the scan */
mr_jpeg_entry_kind mr_jpeg_grid_kind(const mr_jpeg_grid *g, size_t entry);

void mr_jpeg_entries_pack(const mr_jpeg_grid *g, const mr_jpeg_entry *entries, mr_buf *out);
/* Reads only the grid, to allocate count + 1 entries: at most as many as `len` bytes can hold. */
bool mr_jpeg_entries_grid(const uint8_t *packed, size_t len, const mr_jpeg_header *h, mr_jpeg_grid *g);
/* `bits`: upper bound of the end.  False: damaged. */
bool mr_jpeg_entries_unpack(const uint8_t *packed, size_t len, const mr_jpeg_grid *g, uint64_t bits,
                            mr_jpeg_entry *entries);

#endif
