/* no_locks.c - preloaded: every flock() succeeds at once, as where a network file system keeps the locks of each host
 * to itself. Invariant: nothing else changes. */
#include <sys/file.h>

int flock(int fd, int operation)
{
    (void)fd, (void)operation;
    return 0;
}
