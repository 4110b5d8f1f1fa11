/* seek.h - seek files put out of order by hand, and made to look whole again.
 * Invariant: what seek_seal() leaves has every hash that a reader asks for. */
#ifndef MR_SUPPORT_SEEK_H
#define MR_SUPPORT_SEEK_H

#include "shards/seek/seek.h"
#include "tests/support/support.h"

/* Sets the hash of the table and the one at the end right. */
void seek_seal(uint8_t *bytes, size_t len);
/* The check of row i, for the bytes that the entries have now and this image. */
void seek_seal_row(uint8_t *bytes, uint64_t i, uint64_t image_hash);

/* Where row i's entries begin, and how many bytes they have; 0: none. */
uint8_t *seek_entries(uint8_t *bytes, uint64_t i, size_t *len);

/* The first row from `i` on that has entries; fails the test if there is none. */
uint64_t seek_row_with_entries(uint8_t *bytes, uint64_t i);

#endif
