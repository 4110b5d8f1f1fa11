/* clock.c - preloaded: a program's wall clock shows what MILLRACE_TEST_CLOCK says, in seconds since 1970.
 * Invariant: clocks that only measure durations go on as they are.  The environment is read once, before main(): MPI
 * changes it while other threads ask for the time. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t wanted;

__attribute__((constructor)) static void read_environment(void)
{
    const char *text = getenv("MILLRACE_TEST_CLOCK");
    wanted = text ? (time_t)strtoll(text, NULL, 10) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)
        return (int)syscall(SYS_clock_gettime, clock, out);
    *out = (struct timespec){.tv_sec = wanted};
    return 0;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    (void)zone;
    *out = (struct timeval){.tv_sec = wanted};
    return 0;
}

time_t time(time_t *out)
{
    if (out)
        *out = wanted;
    return wanted;
}
