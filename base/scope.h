/* scope.h - early return: MR_TRY returns a failure to the caller, MR_AUTO releases what a block owns.
 * Invariant: a variable declared with MR_AUTO is empty or valid from its declaration on, so that it can be released
 * wherever its block is left; a function that passes ownership on clears the variable first.
 *
 *      MR_AUTO(mr_buf_free) mr_buf text = {0};
 *      MR_AUTO(mr_scope_close) int fd = -1;
 *      MR_TRY(mr_file_open(dirfd, name, false, &fd, &size, err));
 *      MR_TRY(read_all(fd, size, &text, err));
 *      return parse(&text, out, err);
 *
 * Not for functions that longjmp() may leave.  Never MR_TRY before a call that all ranks must reach: pass the status to
 * mr_ranks_agree() instead. */
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

/* Calls release(&variable) when the variable's block ends; the last declared is released first. */
#define MR_AUTO(release) __attribute__((cleanup(release)))

/* `variable`: the address of a pointer, from malloc() or NULL. */
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
