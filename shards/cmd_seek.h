/* cmd_seek.h - results of making seek indexes, summed and as text: for `millrace seek` and for ingest.
 * Invariant: nothing here prints. */
#ifndef MR_CMD_SEEK_H
#define MR_CMD_SEEK_H

#include "base/json/json.h"
#include "shards/seek/seek.h"

typedef struct cmd_seek_sums {
    uint64_t shards[MR_SEEK_FAILED + 1]; /* by outcome */
    uint64_t data_bytes;                 /* bytes of the shards and their indexes */
    mr_seek_result all;                  /* sums */
    mr_status worst;
} cmd_seek_sums;

cmd_seek_sums mr_cmd_seek_sum(const mr_seek_result *results, const mr_shard *const *shards, size_t count);
json_t *mr_cmd_seek_json(const cmd_seek_sums *s, unsigned every); /* NULL: no memory */
void mr_cmd_seek_words(const cmd_seek_sums *s, mr_buf *out);      /* one line */

/* The seek indexes that exist, by their headers.  One that is of no use is not counted: verify reports it. */
typedef struct cmd_seek_found {
    size_t shards, found;
    uint64_t bytes;
    unsigned every; /* as in the first */
    bool mixed;     /* others have another spacing */
} cmd_seek_found;

mr_status mr_cmd_seek_find(const char *dir, const mr_manifest *m, cmd_seek_found *out, mr_error *err); /* out: zeroed */
json_t *mr_cmd_seek_found_json(const cmd_seek_found *found); /* null if there are none */
void mr_cmd_seek_found_words(const cmd_seek_found *found, mr_buf *out);

#endif
