/* json.h - the few things we ask of jansson, with errors in our form.
 * Invariant: foreign JSON is parsed with a depth limit (jansson's 2048) and duplicate keys refused. */
#ifndef MR_JSON_H
#define MR_JSON_H

#include <jansson.h>

#include "base/buf.h"

/* MR_BAD_DATA if the parsed document would take more than about `most` bytes: a list of a million empty lists is small
 * on disk alone.  One pass over the bytes, sound JSON or not. */
mr_status mr_json_bounded(const void *bytes, size_t len, uint64_t most, const char *name, mr_error *err);

/* Parses one whole document; `name` is for the message, which says line and column. Caller: json_decref(*out). */
mr_status mr_json_parse(const void *bytes, size_t len, const char *name, json_t **out, mr_error *err);

/* yajl 2.1 takes a little more than JSON: form feeds and vertical tabs as blanks, UTF-8 that is overlong or holds
 * surrogates, and a token that is cut off behind the document.  What a text that yajl took has of that, for a message;
 * NULL: nothing.  `end`: how far the document goes, as yajl_get_bytes_consumed() said when its last brace closed. */
const char *mr_json_beyond(const void *text, size_t len, size_t end);

/* Required members of an object, MR_BAD_DATA with `name` and the key if missing or of another type. */
mr_status mr_json_get_u64(const json_t *obj, const char *key, const char *name, uint64_t *out, mr_error *err);
mr_status mr_json_get_string(const json_t *obj, const char *key, const char *name, const char **out, mr_error *err);
mr_status mr_json_get(const json_t *obj, const char *key, json_type type, const char *name, json_t **out,
                      mr_error *err);

/* The document in order of insertion, indented by 1, with a final newline; appended to `out`. */
mr_status mr_json_dump(const json_t *doc, mr_buf *out, mr_error *err);
/* Prints it on stdout. */
mr_status mr_json_print(const json_t *doc, mr_error *err);

/* A JSON string from path bytes (path text, see text.h); NULL: out of memory. */
json_t *mr_json_path(const char *bytes, size_t len);

#endif
