/* json_memory.h - jansson 2.14 when memory runs out.
 *
 * It drops what it has no memory for, the end of a string or a member, and may go on: so the program counts failed
 * allocations.  Its parser even writes past a buffer that could not grow: so the program gives it a reserve, and no
 * more text once an allocation failed.  (The other library, yajl, is dealt with in json_stream.c.) Invariant: what was
 * read or written while memory ran out is never taken for a document. */
#ifndef MR_JSON_MEMORY_H
#define MR_JSON_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* For a program, before its first use of jansson: from now on mr_json_refused() counts jansson's failed allocations.  A
 * library leaves its host's jansson alone: there it stays 0. */
void mr_json_watch(void);
unsigned long mr_json_refused(void);

/* A reserve for parsing `len` bytes on this thread, enough for the KiB that the parser may still read after a failed
 * allocation.  Free what was parsed before the reserve ends.  False: out of memory. */
bool mr_json_reserve(size_t len);
void mr_json_reserve_end(void);

#endif
