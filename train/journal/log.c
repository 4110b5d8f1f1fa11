/* log.c - the JSON lines of a run.
 * Invariant: a log is only appended to, except that a resumed run first cuts off its unfinished last line, by one
 * truncation, which a file system does whole or not at all.
 *
 *      {"step": 1 ...}  {"step": 2 ...}  {"step": 3 .
 *                                        '-- cut by --resume */
#include "train/journal/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/scope.h"

enum { CHECKED = 64 * 1024 }; /* bytes at the start of a file that exists */

static const char begin[] = "{\"step\":"; /* as each line begins */

/* As far as the text goes, without the zeros that a power loss may leave in place of what was written last. */
static bool begins_like_a_line(const char *text, size_t len)
{
    while (len && text[len - 1] == '\0')
        len--;
    return memcmp(text, begin, len < strlen(begin) ? len : strlen(begin)) == 0;
}

mr_status mr_log_check(const char *path, mr_error *err)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return MR_OK;
    MR_AUTO(mr_scope_free) char *text = malloc(CHECKED);
    MR_AUTO(mr_scope_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (!text)
        return mr_fail_memory(err, path);
    ssize_t len = fd >= 0 ? pread(fd, text, CHECKED, 0) : 0;
    /* A power loss may also leave zeros in place of the first lines. */
    if (len <= 0 || begins_like_a_line(text, (size_t)len) || memmem(text, (size_t)len, begin, strlen(begin)))
        return MR_OK;
    return mr_fail(err, MR_MISUSE, "--log %s: exists and is not the log of a run; name another file", path);
}

/* *at: where the last line begins; `size` if it is finished. */
static mr_status find_unfinished(int fd, uint64_t size, const char *path, uint64_t *at, mr_error *err)
{
    char block[4096];
    const char *newline = NULL;
    for (*at = size; *at > 0 && !newline;) {
        size_t len = *at < sizeof block ? (size_t)*at : sizeof block;
        MR_TRY(mr_file_pread(fd, block, len, *at - len, path, err));
        newline = memrchr(block, '\n', len);
        *at -= newline ? len - (size_t)(newline + 1 - block) : len;
    }
    return MR_OK;
}

/* Makes a log that exists ready for its next line.  `fd` appends to it. */
static mr_status finish_last_line(int fd, const char *path, bool resume, mr_error *err)
{
    MR_AUTO(mr_scope_close) int in = -1;
    char start[64];
    uint64_t size, at;
    MR_TRY(mr_file_open(AT_FDCWD, path, true, &in, &size, err));
    MR_TRY(find_unfinished(in, size, path, &at, err));
    if (at == size)
        return MR_OK;
    size_t len = size - at < sizeof start ? (size_t)(size - at) : sizeof start;
    MR_TRY(mr_file_pread(in, start, len, at, path, err));
    if (!resume || !begins_like_a_line(start, len))
        return mr_file_write(fd, "\n", 1, path, err);
    if (ftruncate(fd, (off_t)at) != 0 || fsync(fd) != 0)
        return mr_fail_errno(err, errno, "%s: cannot cut off the unfinished last line", path);
    return MR_OK;
}

mr_status mr_log_open(const char *path, bool resume, int *fd, mr_error *err)
{
    struct stat st;
    /* Without O_NONBLOCK, opening a FIFO would wait for a reader. */
    MR_AUTO(mr_scope_close)
    int opened = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
    if (opened < 0 && errno == ENXIO)
        return mr_fail(err, MR_MISUSE, "%s: no process reads from it, so the log cannot be written there", path);
    if (opened < 0 || fstat(opened, &st) != 0 || fcntl(opened, F_SETFL, O_APPEND) != 0)
        return mr_fail_errno(err, errno, "%s: cannot write the log", path);
    if (S_ISREG(st.st_mode) && st.st_size > 0)
        MR_TRY(finish_last_line(opened, path, resume, err));
    *fd = opened;
    opened = -1;
    return MR_OK;
}
