/* json_file.h - a JSON file of a source, streamed in chunks.
 * Invariant: memory is a chunk, whatever the file's size; a fault is named by byte, line and column. */
#ifndef MR_JSON_FILE_H
#define MR_JSON_FILE_H

#include "base/json/json_stream.h"
#include "ingest/source/source.h"
#include "ingest/tables/json_repair.h"

typedef struct mr_json_file {
    const mr_source *source;
    uint32_t entry;
    const char *name; /* path text, for messages */
    const char *what; /* is being done, for messages */
    /* NULL, or: a file that is JSON but for single values is read again with these replaced and listed in `repair`,
     * after restart() has put the handler's `ctx` back to the beginning. */
    mr_json_repair *repair;
    void (*restart)(void *ctx);
} mr_json_file;

/* Hands the tokens to the rules' handler; *stream is open meanwhile, for mr_json_stream_at().  A byte order mark is
 * passed over.  MR_BAD_DATA: not JSON, or what the handler refuses. */
mr_status mr_json_file_read(const mr_json_file *f, const mr_json_rules *rules, mr_json_stream **stream, mr_error *err);

/* The same for text that was read and parsed before.  MR_BAD_DATA: its file has changed since. */
mr_status mr_json_text_read(const mr_buf *text, const mr_json_rules *rules, const char *what, mr_error *err);

#endif
