/* fuzz.h - what every fuzz target needs.  A target is LLVMFuzzerTestOneInput() in a fuzz_NAME.c of its own: it takes
 * any bytes, hands them to one parser and aborts, by FUZZ_MUST(), where the parser breaks a promise of its header.
 * Invariant: a target keeps nothing from one input to the next, so an input alone repeats what it found. */
#ifndef MR_FUZZ_H
#define MR_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "ingest/source/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_MUST(promise) ((promise) ? (void)0 : fuzz_broken(#promise, __FILE__, __LINE__))
_Noreturn void fuzz_broken(const char *promise, const char *file, int line);

/* A refusal must be one of a foreign file's faults, and say why in one printable line of UTF-8. */
void fuzz_refused(mr_status status, const mr_error *err);

/* A file in memory with these bytes; the caller closes it. */
int fuzz_file(const void *bytes, size_t len);

/* One whole JSON object or list, as jansson judges it; numbers may have any size, escapes may be half a pair. */
bool fuzz_is_json(const void *bytes, size_t len);

/* A source as mr_source_open() would list it, out of members in `data`; names that it would refuse and second
 * ones of a name are left out.  Caller: mr_source_free(). */
typedef struct fuzz_member {
    const char *name;
    size_t name_len;
    size_t at, len; /* its content in data */
} fuzz_member;

mr_source *fuzz_source(const uint8_t *data, size_t size, const fuzz_member *members, size_t count, mr_notes *notes);

/* Just one file of that name. */
mr_source *fuzz_source_one(const uint8_t *data, size_t size, const char *name, mr_notes *notes);

#endif
