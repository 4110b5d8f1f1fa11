/* record.h - an image or a meta of a shard, read by its row.
 * Invariant: bytes are returned only if they match the hash in the row. */
#ifndef MR_RECORD_H
#define MR_RECORD_H

#include "shards/manifest/manifest.h"
#include "shards/manifest/format.h"

typedef struct mr_record {
    const char *what; /* "image" or "meta", for messages */
    uint64_t offset, hash;
    uint32_t len;
} mr_record;

mr_record mr_row_image(const mr_row *row);
mr_record mr_row_meta(const mr_row *row);

/* Whether these bytes, however they were read, are the record's; MR_BAD_SAMPLE if not. */
mr_status mr_record_check(const mr_shard *shard, uint64_t sample, mr_record record, const uint8_t *bytes,
                          mr_error *err);

/* Reads record->len bytes of the shard's open .mdb into `out`.  `sample`: its number in the split, for messages.
 * MR_BAD_SAMPLE: the bytes do not match their hash; MR_BAD_DATA: the file ends before them; MR_SYSTEM: errno is set. */
mr_status mr_record_read(int mdb, const mr_shard *shard, uint64_t sample, mr_record record, uint8_t *out,
                         mr_error *err);

#endif
