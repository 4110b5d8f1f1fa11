/* json_memory.h - two JSON libraries that do not bear to run out of memory, made to.
 *
 * yajl 2.1 looks at no result of malloc; so it gets a reserve, and its caller asks afterwards whether that was touched.
 * jansson 2.14 drops what it has no memory for, the end of a string or a member, and may go on; so the program counts.
 * Its reader even runs past its buffer where that could not grow; so a program gives it a reserve, and no more text.
 * Invariant: what was read or written while memory ran out is never taken for a document. */
#ifndef MR_JSON_MEMORY_H
#define MR_JSON_MEMORY_H

#include <stdbool.h>

#include <yajl/yajl_parse.h>

#include "base/error.h"

typedef struct mr_yajl {
    yajl_handle parser;
    yajl_alloc_funcs functions;
    uint8_t *reserve;
    size_t used, size;
    bool ran_out; /* whatever the parser said, it is MR_SYSTEM */
} mr_yajl;

/* What a text of `len` bytes given at once makes yajl ask for, at most: its buffer doubles. */
#define MR_YAJL_ROOM(len) (4 * (size_t)(len) + (16 << 10))

/* `y` stays where it is until mr_yajl_close(), which takes a zeroed one too.  A request beyond both memory and `room`
 * ends the program: a single string that is longer than a stream's room, when memory is out. */
mr_status mr_yajl_open(mr_yajl *y, const yajl_callbacks *callbacks, void *ctx, size_t room, const char *what,
                       mr_error *err);
void mr_yajl_close(mr_yajl *y);

/* For a program, before its first use of jansson: from now on mr_json_refused() counts the requests of jansson that
 * were refused.  A library leaves its host's jansson alone: there it stays 0. */
void mr_json_watch(void);
unsigned long mr_json_refused(void);

/* A reserve for this thread's reading of a text of `len` bytes, which ends within the next KiB of it once the count has
 * gone up.  What was read then is given back before the reserve ends.  False: no memory for it. */
bool mr_json_reserve(size_t len);
void mr_json_reserve_end(void);

#endif
