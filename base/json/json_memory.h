/* json_memory.h - keeps jansson 2.14 safe when memory runs out.
 *
 * It drops what it cannot allocate, such as the end of a string or a member, and may continue: so the program counts
 * failed allocations.  Its parser even writes past a buffer that could not grow: so the program gives it a reserve, and
 * no more text after a failed allocation.  (json_stream.c handles the other library, yajl.)
 * Invariant: what was read or written while memory ran out is never accepted as a document. */
#ifndef MR_JSON_MEMORY_H
#define MR_JSON_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* For a program, before its first use of jansson: from now on mr_json_refused() counts jansson's failed allocations.  A
 * library leaves its host's jansson alone, so the count stays 0. */
void mr_json_watch(void);
unsigned long mr_json_refused(void);

/* Sets aside a reserve for parsing `len` bytes on this thread, enough for the 1 KiB that the parser may still read
 * after a failed allocation.  Free what was parsed before mr_json_reserve_end().  False: out of memory. */
bool mr_json_reserve(size_t len);
void mr_json_reserve_end(void);

#endif
