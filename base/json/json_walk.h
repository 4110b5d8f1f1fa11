/* json_walk.h - for what is read of metas again and again: walks through foreign JSON and checks only what it reads.
 * Invariant: every byte of a value is skipped once, and depth costs nothing, as brackets are only counted.
 *
 *      {  "image":{...}  ,  "columns":{ "title":"a" , "text":["b","c"] }  ,  "captions":[{"caption":"d"}]  }
 *           skipped                 next member ...           next item ...
 *
 * Not json_stream.h: a batch waits for all of its metas, and most of one of COCO is polygons, which this skips four
 * times faster; and yajl decodes half of a surrogate pair as "?" or as invalid UTF-8. */
#ifndef MR_JSON_WALK_H
#define MR_JSON_WALK_H

#include "base/buf.h"

typedef struct mr_json_span { /* a value as it is written, or a key with its quotes */
    const char *at, *end;
} mr_json_span;

typedef struct mr_json_walk {
    const char *at, *end;
    char close; /* what ends an object, or a list */
    bool begun;
} mr_json_walk;

const char *mr_json_blanks(const char *p, const char *end); /* past them */
mr_json_walk mr_json_walk_of(mr_json_span value);           /* an object or a list */
/* 1: the next member or item (for which `key` is left alone); 0: the end; -1: not JSON. */
int mr_json_next(mr_json_walk *w, mr_json_span *key, mr_json_span *value);
/* For a caller that reads values itself: to where the next item, or member's value, begins, which is w->at; the caller
 * moves that past the value.  1, 0 or -1, as above. */
int mr_json_next_item(mr_json_walk *w);
int mr_json_next_key(mr_json_walk *w, mr_json_span *key);
/* Past the value that begins at p; NULL: none ends before `end`. */
const char *mr_json_skip(const char *p, const char *end);

/* Where the value of this member begins, in the object that begins at `object`; nothing past it is read.  1: found;
 * 0: the object has no such member; -1: it cannot be walked.  *value is for 1 only, and is `end` if the text stops
 * there. */
int mr_json_member(const char *object, const char *end, const char *name, const char **value);

bool mr_json_is_text(mr_json_span s);
bool mr_json_equals(mr_json_span text, const char *word);
/* Appends the text; false: an invalid escape.  Half of a surrogate pair becomes U+FFFD: texts that were cut by length
 * have some. */
bool mr_json_decode(mr_json_span text, mr_buf *out);

#endif
