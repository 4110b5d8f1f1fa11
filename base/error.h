/* error.h - error messages, exit codes, and allocation with checked sizes.
 * Invariant: a function that returns a failure has filled `err` (if not NULL) with a printable sentence.
 *
 * base is used by all other folders:
 *
 *      base      utf8 error buf scope text    characters, messages, byte buffers, early return, printable text
 *                hash string_map random       digests, lookup tables, seeded random numbers
 *                base64 bf16 f16 yaml environment
 *      system/   pool processor slab          threads, instruction sets, large memory
 *                library program script       shared libraries, other programs, the Python scripts of millrace
 *      files/    file path temp supply        files, output paths, temporary names, files that are fetched when opened
 *      json/     json_stream json_walk ...    JSON, read in pieces and written
 *      ranks/    launch ranks meeting         launchers, MPI, ranks that do not start
 *                datagram stall watch         ranks that stall
 *                owner_file owner             folders that one process owns, on any file system
 *      cli/      term cli                     terminal output and options: for commands only */
#ifndef MR_ERROR_H
#define MR_ERROR_H

#include <stdbool.h>

#include "millrace.h"

#define MR_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* Fills `err` and returns `status`, so that failing is one statement: return mr_fail(err, MR_BAD_DATA, "..."). */
mr_status mr_fail(mr_error *err, mr_status status, const char *format, ...) MR_PRINTF(3, 4);

/* The same with ": strerror(errnum)" appended; the status is always MR_SYSTEM. */
mr_status mr_fail_errno(mr_error *err, int errnum, const char *format, ...) MR_PRINTF(3, 4);

/* Why a thread did not start, for such a message: the text of EAGAIN names neither cause. */
#define MR_NO_THREAD "for lack of memory or by `ulimit -u`"

/* MR_SYSTEM, "WHAT: out of memory"; `what`: a file or an activity. */
mr_status mr_fail_memory(mr_error *err, const char *what);

/* A damaged sample or shard, which --on-bad may skip. */
static inline bool mr_status_is_bad(mr_status status)
{
    return status == MR_BAD_SAMPLE || status == MR_BAD_DATA;
}

/* The exit code of a command that ended with `status`: 0 done, 1 data, 2 use, 3 system. */
int mr_exit_code(mr_status status);

/* Static analyzers see one file at a time and would assume that these may return MR_OK. */
#ifdef __clang_analyzer__
#define mr_fail(err, status, ...)       ((void)mr_fail(err, status, __VA_ARGS__), (status))
#define mr_fail_errno(err, errnum, ...) ((void)mr_fail_errno(err, errnum, __VA_ARGS__), MR_SYSTEM)
#define mr_fail_memory(err, what)       ((void)mr_fail_memory(err, what), MR_SYSTEM)
#endif

/* malloc and realloc for `count` items of `size` bytes; NULL if the product overflows. */
void *mr_alloc(size_t count, size_t size); /* zeroed */
void *mr_realloc(void *old, size_t count, size_t size);

/* Grows an array if it has no room for another item; false: out of memory (the array stays valid).
 *      if (!MR_GROW(list->items, list->count, list->capacity)) return mr_fail_memory(err, "..."); */
#define MR_GROW(items, count, capacity)                                                                                \
    ((count) < (capacity) || mr_grow((void **)&(items), &(capacity), sizeof *(items)))
int mr_grow(void **items, size_t *capacity, size_t size);

#define MR_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
