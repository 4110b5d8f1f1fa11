/* error.h - saying what went wrong.
 * Invariant: a function that returns a failure has filled `err` (if not NULL) with a sentence fit to print. */
#ifndef MR_ERROR_H
#define MR_ERROR_H

#include <stdbool.h>

#include "millrace.h"

#define MR_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* Fills `err` and returns `status`, so that failing is one statement: return mr_fail(err, MR_BAD_DATA, "..."). */
mr_status mr_fail(mr_error *err, mr_status status, const char *format, ...) MR_PRINTF(3, 4);

/* The same with ": strerror(errnum)" behind it and MR_SYSTEM as the status; ENOENT, ENOTDIR and ELOOP keep it too. */
mr_status mr_fail_errno(mr_error *err, int errnum, const char *format, ...) MR_PRINTF(3, 4);

/* Why a thread may not have started, for the sentence that says so: EAGAIN's own text names neither. */
#define MR_NO_THREAD "for lack of memory or by `ulimit -u`"

/* MR_SYSTEM, "WHAT: out of memory"; what: a file, or what was being done. */
mr_status mr_fail_memory(mr_error *err, const char *what);

/* A damaged sample, or shard around it: what may be passed over. */
static inline bool mr_status_is_bad(mr_status status)
{
    return status == MR_BAD_SAMPLE || status == MR_BAD_DATA;
}

/* The exit code of a command that ended with `status`: 0 done, 1 data, 2 use, 3 system. */
int mr_exit_code(mr_status status);

/* Static readers judge a file alone and would take what these return for any status, MR_OK too: say it where they see.
 */
#ifdef __clang_analyzer__
#define mr_fail(err, status, ...)       ((void)mr_fail(err, status, __VA_ARGS__), (status))
#define mr_fail_errno(err, errnum, ...) ((void)mr_fail_errno(err, errnum, __VA_ARGS__), MR_SYSTEM)
#define mr_fail_memory(err, what)       ((void)mr_fail_memory(err, what), MR_SYSTEM)
#endif

/* malloc and realloc for `count` items of `size` bytes that fail, rather than wrap, when the product overflows. */
void *mr_alloc(size_t count, size_t size); /* zeroed */
void *mr_realloc(void *old, size_t count, size_t size);

/* Makes room for one more item in a growing array; false when memory is out (the array stays valid).
 *      if (!MR_GROW(list->items, list->count, list->room)) return mr_fail_memory(err, "..."); */
#define MR_GROW(items, count, room) ((count) < (room) || mr_grow((void **)&(items), &(room), sizeof *(items)))
int mr_grow(void **items, size_t *room, size_t size);

#define MR_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
