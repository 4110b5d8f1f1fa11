/* temp.c - claiming a temporary name, and giving a folder its final one. */
#include "base/files/temp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/files/file.h"

bool mr_temp_claim(int fd, int dirfd, const char *name, bool wait)
{
    return mr_file_lock(fd, wait) && mr_file_is_at(fd, dirfd, name, false);
}

static int rename_in(int dirfd, const char *from, const char *to, unsigned flags)
{
    return renameat2(dirfd, from, dirfd, to, flags) == 0 ? 0 : errno;
}

int mr_temp_replace(int dirfd, const char *from, const char *to, const char *aside, const char **gone)
{
    *gone = NULL;
    if (!aside) {
        int failed = rename_in(dirfd, from, to, RENAME_EXCHANGE);
        *gone = failed ? NULL : from;
        return failed;
    }
    int failed = rename_in(dirfd, to, aside, 0);
    if (failed)
        return failed;
    failed = rename_in(dirfd, from, to, 0);
    if (!failed || rename_in(dirfd, aside, to, 0) != 0)
        *gone = aside;
    return failed;
}

bool mr_temp_cannot_exchange(int failed)
{
    return failed == EINVAL || failed == ENOSYS || failed == ENOTSUP;
}
