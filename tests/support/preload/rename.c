/* rename.c - preloaded: the rename by which DATASET.partial becomes DATASET, or an export OUT, as other file systems
 * and moments have it. MILLRACE_TEST_RENAME holds any of: taken - another process creates a file of the new name just
 * before; stop - the program stops once it is done, until SIGCONT; apart - names cannot be exchanged; refused - the
 * folder cannot be renamed. Invariant: every other rename goes on as it is. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool wanted(const char *word, const char *path)
{
    static const char ending[] = ".partial";
    const char *words = getenv("MILLRACE_TEST_RENAME");
    size_t len = strlen(path), least = sizeof ending - 1;
    bool dataset = len > least && strcmp(path + len - least, ending) == 0;
    bool export = strstr(path, ".millrace-export-") && isdigit((unsigned char)path[len - 1]);
    return words && strstr(words, word) && (dataset || export);
}

static int change(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    if (wanted("taken", from))
        close(openat(to_dir, to, O_CREAT | O_WRONLY, 0666));
    int failed = (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
    if (failed == 0 && wanted("stop", from))
        raise(SIGSTOP);
    return failed;
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    if (!(flags & RENAME_EXCHANGE) && wanted("refused", from)) {
        errno = EBUSY;
        return -1;
    }
    if (flags & RENAME_EXCHANGE && wanted("apart", from)) {
        errno = EINVAL;
        return -1;
    }
    return change(from_dir, from, to_dir, to, flags);
}

int rename(const char *from, const char *to)
{
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}
