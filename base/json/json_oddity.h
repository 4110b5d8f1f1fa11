/* json_oddity.h - explains common mistakes in JSON: NaN, Python's literals, comments, encodings.
 * Invariant: used only after a parser has rejected a text; it never decides whether a text is JSON. */
#ifndef MR_JSON_ODDITY_H
#define MR_JSON_ODDITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MR_JSON_ODDITY = 256 }; /* bytes of the sentence, with its NUL */

typedef struct mr_json_place {
    const char *text; /* the document, or a window of it around the error; any bytes */
    size_t len;
    size_t at;         /* one past the byte at which the parser stopped */
    bool begins, ends; /* the window holds the document's first byte, its last */
} mr_json_place;

/* Writes what was found and what to do about it, and moves p->at to its first byte; false: not a known mistake. */
bool mr_json_oddity(mr_json_place *p, char out[MR_JSON_ODDITY]);

typedef struct mr_json_line { /* both from 1; columns are bytes */
    uint64_t line, column;
} mr_json_line;
mr_json_line mr_json_line_of(const char *text, size_t at);

#endif
