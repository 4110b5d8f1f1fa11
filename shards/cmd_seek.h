/* cmd_seek.h - what was made of seek indexes, summed and in words: for `millrace seek` and for ingest.
 * Invariant: nothing here prints. */
#ifndef MR_CMD_SEEK_H
#define MR_CMD_SEEK_H

#include "json.h"
#include "seek.h"

typedef struct cmd_seek_sums {
    uint64_t shards[MR_SEEK_FAILED + 1];        /* by outcome */
    uint64_t data_bytes;            /* of the shards and their indexes */
    mr_seek_result all;             /* sums */
    mr_status worst;
} cmd_seek_sums;

cmd_seek_sums cmd_seek_sum(const mr_seek_result *results, const mr_shard *const *shards, size_t count);
json_t *cmd_seek_json(const cmd_seek_sums *s, unsigned every);          /* NULL: no memory */
void cmd_seek_words(const cmd_seek_sums *s, mr_buf *out);               /* one line */

#endif
