/* jsonl.h - files with one JSON object per line, streamed, with the position of every row.
 * Invariant: memory is the longest line, at most 64 MiB; a row is returned exactly as written, without the whitespace
 * around it, and mr_jsonl_pick() has checked that it is one complete JSON object. */
#ifndef MR_JSONL_H
#define MR_JSONL_H

#include "ingest/source/source.h"

typedef struct mr_jsonl {
    const mr_source *source;
    uint32_t entry;
    mr_buf buf; /* read; from `pos` on not yet returned */
    size_t pos;
    uint64_t buf_at; /* the position of buf.data[0] in the file */
    uint64_t line;   /* lines read, including blank ones */
} mr_jsonl;

typedef struct mr_jsonl_row {
    const char *text; /* lent until the next call; not NUL-terminated */
    size_t len;
    uint64_t at, line; /* first byte in the file; line from 1 */
} mr_jsonl_row;

/* Begin with a struct that is zero except source and entry; end with mr_buf_free(&j->buf).  Returns the next row that
 * is not blank; lines end with LF or CRLF, which the last one may lack.  MR_END: no more. */
mr_status mr_jsonl_next(mr_jsonl *j, mr_jsonl_row *row, mr_error *err);

/* Appends a row that was returned before, verbatim.  MR_BAD_DATA: it is no longer an object.  Thread-safe. */
mr_status mr_jsonl_copy(const mr_source *source, uint32_t entry, uint64_t at, size_t len, mr_buf *out, mr_error *err);

typedef enum mr_jsonl_kind {
    MR_JSONL_ABSENT,
    MR_JSONL_NULL,
    MR_JSONL_STRING,
    MR_JSONL_INTEGER,
    MR_JSONL_REAL,    /* with a fraction or an exponent */
    MR_JSONL_BOOLEAN, /* its text is true or false */
    MR_JSONL_OTHER,   /* an object or a list */
    MR_JSONL_TEXTS
} mr_jsonl_kind;

typedef struct mr_jsonl_field { /* a member of the row that the caller wants */
    const char *name;
    bool texts; /* wanted: a string or a list of strings and nulls, as MR_JSONL_TEXTS */
    mr_jsonl_kind kind;
    mr_buf text; /* string without its quotes and escapes, or the number or word as written; TEXTS: the strings
                  * as the inside of a JSON list, "a","b" */
} mr_jsonl_field;

/* Validates the row and fills the fields, at most 64.  MR_BAD_DATA, naming file and line: not a JSON object, nested
 * more than 200 deep, or one of the fields twice.  `names`, if not NULL, gets the names of all members: "a, b". */
mr_status mr_jsonl_pick(const mr_jsonl *j, const mr_jsonl_row *row, mr_jsonl_field *fields, size_t count, mr_buf *names,
                        mr_error *err);

#endif
