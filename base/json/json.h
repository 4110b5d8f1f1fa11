/* json.h - JSON as a tree (jansson), with limits and error messages in millrace's form.
 * Invariant: untrusted JSON is parsed with a depth limit (jansson's 2048), and duplicate keys are rejected.
 *
 * The module reads JSON in two ways: as a tree (this header) if a document is small, and as a stream of tokens
 * (json_stream.h) if it is large or read often.  Both explain invalid JSON by json_oddity.h; json_memory.h handles
 * out-of-memory for the tree.  The module uses only base/. */
#ifndef MR_JSON_H
#define MR_JSON_H

#include <jansson.h>

#include "base/buf.h"

/* MR_BAD_DATA if the parsed document would take more than about `max` bytes: a million empty lists are small only on
 * disk.  One pass over the bytes, valid JSON or not. */
mr_status mr_json_bounded(const void *bytes, size_t len, uint64_t max, const char *name, mr_error *err);

/* Parses one whole document; `name` is for the message, which gives line and column. Caller: json_decref(*out). */
mr_status mr_json_parse(const void *bytes, size_t len, const char *name, json_t **out, mr_error *err);

/* Required members of an object; MR_BAD_DATA, with `name` and the key, if missing or of another type. */
mr_status mr_json_get_u64(const json_t *obj, const char *key, const char *name, uint64_t *out, mr_error *err);
mr_status mr_json_get_string(const json_t *obj, const char *key, const char *name, const char **out, mr_error *err);
mr_status mr_json_get(const json_t *obj, const char *key, json_type type, const char *name, json_t **out,
                      mr_error *err);

/* Appends the document to `out`: members in order of insertion, indented by 1, with a final newline. */
mr_status mr_json_dump(const json_t *doc, mr_buf *out, mr_error *err);
/* Prints it on stdout. */
mr_status mr_json_print(const json_t *doc, mr_error *err);

/* A JSON string from path bytes (path text, see text.h); NULL: out of memory. */
json_t *mr_json_path(const char *bytes, size_t len);

#endif
