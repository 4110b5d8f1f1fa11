/* index.h - the fixed-row index of a shard, built from the shard alone.
 * Invariant: mr_index_build() gives the same bytes whenever it is run on the same .mdb. */
#ifndef MR_INDEX_H
#define MR_INDEX_H

#include "base/buf.h"
#include "image/codec/image.h"
#include "shards/manifest/format.h"
#include "shards/manifest/manifest.h"

/* Offsets and lengths of every record from a page walk, everything else from the records themselves: hashes, image
 * header facts (image/codec/image.h), meta facts (shards/format/meta.h).  Appends header and rows to `out`.
 * `first` and `samples` as the manifest says; MR_BAD_DATA if the shard's keys are not exactly those. */
mr_status mr_index_build(int fd, uint64_t size, const char *name, uint64_t first, uint64_t samples, mr_buf *out,
                         mr_error *err);

/* The same with rows already known but for their offsets: ingest has just written the records and keeps hash, length
 * and facts.  Fills image_offset and meta_offset of rows[0..samples-1] from a page walk, checking the lengths. */
mr_status mr_index_locate(int fd, uint64_t size, const char *name, uint64_t first, uint64_t samples, mr_row *rows,
                          mr_error *err);

/* The limits for the headers of stored images: none.  Their sizes were allowed when they were ingested (--max-pixels),
 * and looking at a header costs no memory, whatever it claims. */
extern const mr_image_limits mr_stored_limits;

void mr_index_pack(const mr_row *rows, uint64_t first, uint64_t samples, uint64_t mdb_bytes, mr_buf *out);

/* Opens NAME.SUFFIX ("mdb" or "idx") of a shard; MR_BAD_DATA, with the way out, if it is missing or has another size
 * than the manifest states. */
mr_status mr_index_open_file(int dirfd, const mr_shard *shard, const char *suffix, int *fd, mr_error *err);
/* Whether the XXH3-128 of a shard's .idx is the manifest's; MR_BAD_DATA, with the way out, if not. */
mr_status mr_index_check_digest(const mr_shard *shard, const uint8_t found[16], mr_error *err);
/* All bytes of a shard's index, into an empty buffer, if they have the manifest's digest; failures as above. */
mr_status mr_index_bytes(int dirfd, const mr_shard *shard, mr_buf *out, mr_error *err);

/* Reads and checks an index against its shard's manifest entry: size, digest (mr_index_parse() does not know it),
 * header, every row inside the .mdb, lengths above 0, holder a row that holds bytes, codec and orientation in range.
 * rows: samples entries, caller frees. */
mr_status mr_index_read(int dirfd, const mr_shard *shard, mr_row **rows, mr_error *err);
mr_status mr_index_parse(const void *bytes, size_t len, const mr_shard *shard, mr_row **rows, mr_error *err);

/* Whether the manifest's counts of the shard's images and their bytes are those of its rows; MR_BAD_DATA if not.
 * `counted`, unless NULL: the shard with the counts of the rows. */
mr_status mr_index_check_counts(const mr_row *rows, const mr_shard *shard, mr_shard *counted, mr_error *err);

/* The same checks piecemeal, for readers that take one row at a time: the header against the manifest, and row `i` of
 * the shard taken alone (its holder's own row is not looked at). */
mr_status mr_index_check_header(const uint8_t header[MR_INDEX_HEADER], uint64_t size, const mr_shard *shard,
                                mr_error *err);
mr_status mr_index_check_row(const mr_row *row, uint64_t i, const mr_shard *shard, mr_error *err);

#endif
