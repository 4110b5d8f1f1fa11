/* naps.c - preloaded: nanosleep() returns at once, so that nobody waits for what cannot change.
 * Invariant: nothing else changes. */
#include <time.h>

int nanosleep(const struct timespec *duration, struct timespec *left)
{
    (void)duration, (void)left;
    return 0;
}
