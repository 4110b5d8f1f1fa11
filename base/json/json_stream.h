/* json_stream.h - the streaming JSON reader, for documents that are too large, or read too often, for a tree.
 * Invariant: accepted documents are RFC 8259 in UTF-8 to the last byte; memory is the longest string that is split
 * between two calls, plus a byte per open container.
 *
 *      MR_AUTO(mr_json_stream_close) mr_json_stream *stream = NULL;
 *      MR_TRY(mr_json_stream_open(&rules, "reading meta", &stream, err));
 *      mr_status status = mr_json_stream_feed(stream, text, len, 0, err);      once, or chunk by chunk
 *      if (status == MR_OK)
 *          status = mr_json_stream_end(stream, err);
 *      if (status == MR_BAD_DATA && mr_json_stream_fault(stream, text, len, 0, true, &fault))
 *          ...                                                                 the caller adds the file's name     */
#ifndef MR_JSON_STREAM_H
#define MR_JSON_STREAM_H

#include "base/error.h"
#include "base/json/json_oddity.h"

typedef struct mr_json_stream mr_json_stream;

typedef enum mr_json_kind {
    MR_JSON_NULL,
    MR_JSON_BOOLEAN, /* "true" or "false" */
    MR_JSON_NUMBER,  /* as written */
    MR_JSON_STRING,  /* without quotes and escapes; not NUL-terminated, may hold NUL */
    MR_JSON_KEY,     /* the same */
    MR_JSON_OBJECT,
    MR_JSON_OBJECT_END,
    MR_JSON_LIST,
    MR_JSON_LIST_END
} mr_json_kind;

typedef struct mr_json_token {
    mr_json_kind kind;
    unsigned depth; /* containers around it: 0 for the document itself, 1 for its members */
    const char *text;
    size_t len;
} mr_json_token;

/* MR_OK to go on; a failure ends the parse, and feed() or end() returns it.  The token is valid only during the
 * call. */
typedef mr_status mr_json_handler(void *ctx, const mr_json_token *token);

typedef struct mr_json_rules {
    mr_json_handler *handler;
    void *ctx;
    unsigned levels;    /* tokens with more containers around them are checked, but not handed out */
    unsigned depth_max; /* containers that may be open at a time */
} mr_json_rules;

/* `what`: the activity, for messages; must outlive the stream, as must the rules' pointers. */
mr_status mr_json_stream_open(const mr_json_rules *rules, const char *what, mr_json_stream **out, mr_error *err);
void mr_json_stream_close(mr_json_stream **s); /* *s may be NULL */

/* Parses the next bytes (whole characters), which start at `at` in the file.  MR_BAD_DATA without a message: see
 * mr_json_stream_fault(). */
mr_status mr_json_stream_feed(mr_json_stream *s, const void *bytes, size_t len, uint64_t at, mr_error *err);
/* After the last byte; fails in the same way. */
mr_status mr_json_stream_end(mr_json_stream *s, mr_error *err);

/* One past the last byte of the current token, or of what was read when the parse ended; counted like feed()'s `at`. */
uint64_t mr_json_stream_at(const mr_json_stream *s);

typedef struct mr_json_fault {
    uint64_t at;                   /* the byte, from 0 */
    char why[MR_JSON_ODDITY + 16]; /* "not JSON: ...", or a limit */
} mr_json_fault;

/* Why feed() or end() itself returned MR_BAD_DATA; false if it did not, or if the status came from the handler.
 * `window`: `len` bytes of the document from `from` on, around mr_json_stream_at(); `ends`: to its last byte. */
bool mr_json_stream_fault(mr_json_stream *s, const char *window, size_t len, uint64_t from, bool ends,
                          mr_json_fault *out);

#endif
