/* scope.h - leaving a function early: MR_TRY returns a failure to the caller, MR_AUTO releases what a block owns.
 * Invariant: what is declared with MR_AUTO holds nothing or something valid from its declaration on, so that every way
 * out of its block may release it; the function that hands it on clears it first.
 *
 *      MR_AUTO(mr_buf_free) mr_buf text = {0};
 *      MR_AUTO(mr_scope_close) int fd = -1;
 *      MR_TRY(mr_file_open(dirfd, name, false, &fd, &size, err));
 *      MR_TRY(read_all(fd, size, &text, err));
 *      return parse(&text, out, err);
 *
 * Not for functions that longjmp() may leave, and no MR_TRY around what all ranks must reach: an agreement takes the
 * status as an argument. */
#ifndef MR_SCOPE_H
#define MR_SCOPE_H

#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"

/* Returns the status of `call` unless it is MR_OK; MR_END is returned as well. */
#define MR_TRY(call)                                                                                                   \
    do {                                                                                                               \
        mr_status mr_try_status = (call);                                                                              \
        if (mr_try_status != MR_OK)                                                                                    \
            return mr_try_status;                                                                                      \
    } while (0)

/* Calls release(&variable) when the block of the variable ends; later variables are released first. */
#define MR_AUTO(release) __attribute__((cleanup(release)))

/* `variable`: the address of a pointer from malloc(), or of NULL. */
static inline void mr_scope_free(void *variable)
{
    free(*(void **)variable);
}

/* A descriptor, or -1. */
static inline void mr_scope_close(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

#endif
