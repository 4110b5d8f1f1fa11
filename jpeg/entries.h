/* entries.h - private to jpeg_*.c: places at which a scan can be entered, and how they are packed.
 * Invariant: entries that were unpacked lie inside the scan and in its order; whether they are true, decoding tells.
 *
 *      MCUs of a row   0           every       2 every  ...     one entry each: where its first bit lies, what the DC
 *                      every > 0   |           |                predictors are; behind the last row comes the end
 *
 *      packed   every | entry 1 | entry 2 ...| end         entry 0 is the scan's begin, and says itself
 *      entry    bits since the entry before | for each component: its predictor less the one of the entry before, or,
 *               for a row's first, of the row above's first; 2 n or -2 n - 1
 * All numbers are varints: 7 bits a byte from the low end, the high bit set in all bytes but the last. */
#ifndef MR_JPEG_ENTRIES_H
#define MR_JPEG_ENTRIES_H

#include "base/buf.h"
#include "jpeg/parse.h"

typedef enum mr_jpeg_entry_kind {
    MR_JPEG_INSIDE, /* between two MCUs of a segment */
    MR_JPEG_BEGUN,  /* at a segment's first byte: behind a marker */
    MR_JPEG_ENDED,  /* behind the last MCU's last bit */
} mr_jpeg_entry_kind;

typedef struct mr_jpeg_entry {
    uint64_t at;                    /* bits of the file from the scan's begin on: stuffed bytes and markers count */
    int16_t dc[MR_JPEG_COMPONENTS]; /* predictors; of one that begins a segment: what they were before its marker */
    uint16_t kind;
} mr_jpeg_entry;

typedef struct mr_jpeg_grid {
    uint32_t wide, high; /* the picture in MCUs */
    uint32_t every, per_row;
    uint32_t restart;
    unsigned components;
    size_t count; /* of entries, and one more is the end */
} mr_jpeg_grid;

/* `every` 0, or more than a row has: one entry a row. */
mr_jpeg_grid mr_jpeg_grid_make(const mr_jpeg_header *h, uint32_t every);
uint32_t mr_jpeg_grid_mcu(const mr_jpeg_grid *g, size_t entry); /* its number in the scan */
mr_jpeg_entry_kind mr_jpeg_grid_kind(const mr_jpeg_grid *g, size_t entry);

void mr_jpeg_entries_pack(const mr_jpeg_grid *g, const mr_jpeg_entry *entries, mr_buf *out);
/* The grid by itself, so that there can be room for count + 1 entries: no more of them than `len` has bytes for. */
bool mr_jpeg_entries_grid(const uint8_t *packed, size_t len, const mr_jpeg_header *h, mr_jpeg_grid *g);
/* `bits`: what the end may be at most.  False: damaged. */
bool mr_jpeg_entries_unpack(const uint8_t *packed, size_t len, const mr_jpeg_grid *g, uint64_t bits,
                            mr_jpeg_entry *entries);

#endif
