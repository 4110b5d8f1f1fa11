/* hurry.c - preloaded: durations look MILLRACE_TEST_HURRY times as long as they are.
 * Invariant: the wall clock goes on as it is, and so does every sleep.  The environment is read once, before main():
 * MPI changes it while other threads ask for the time. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double times = 1;

__attribute__((constructor)) static void read_environment(void)
{
    const char *text = getenv("MILLRACE_TEST_HURRY");
    times = text ? strtod(text, NULL) : 1;
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    int failed = (int)syscall(SYS_clock_gettime, clock, out);
    if (failed || clock != CLOCK_MONOTONIC)
        return failed;
    double seconds = ((double)out->tv_sec + (double)out->tv_nsec * 1e-9) * times;
    out->tv_sec = (time_t)seconds;
    out->tv_nsec = (long)((seconds - (double)out->tv_sec) * 1e9);
    return 0;
}
