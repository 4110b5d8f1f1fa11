/* pause.c - signals and the clock, as all ranks agree on them.
 * Invariant: the handler only records a signal; it takes effect between updates. */
#include "train/run/pause.h"

#include "base/cli/term.h"

enum { SIGNALLED, SUM_OF_SIGNALS, TIME_IS_UP };

static const int caught[MR_PAUSE_SIGNALS] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

/* A signal handler cannot reach anything but a global. */
static volatile sig_atomic_t signalled;

static void on_signal(int number)
{
    signalled = number;
}

void mr_pause_begin(mr_pause *p, const mr_pace *every, bool keeps_time, bool catches)
{
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    *p = (mr_pause){.every = *every, .keeps_time = keeps_time, .catches = catches, .saved = mr_seconds()};
    signalled = 0;
    for (size_t i = 0; i < MR_COUNT(caught) && catches; i++) {
        sigaction(caught[i], NULL, &p->old[i]);
        if (caught[i] != SIGHUP || p->old[i].sa_handler != SIG_IGN)
            sigaction(caught[i], &action, NULL);
    }
}

void mr_pause_end(mr_pause *p)
{
    for (size_t i = 0; i < MR_COUNT(caught) && p->catches; i++)
        sigaction(caught[i], &p->old[i], NULL);
}

void mr_pause_numbers(const mr_pause *p, double numbers[MR_PAUSE_NUMBERS])
{
    int number = signalled;
    numbers[SIGNALLED] = number != 0;
    numbers[SUM_OF_SIGNALS] = number;
    numbers[TIME_IS_UP] =
        p->keeps_time && p->every.minutes && mr_seconds() - p->saved >= 60.0 * (double)p->every.minutes;
}

/* Launchers send the same signal to all ranks.  If the ranks got different ones, the sum cannot tell: SIGTERM. */
int mr_pause_stops(const double sums[MR_PAUSE_NUMBERS])
{
    if (!(sums[SIGNALLED] > 0))
        return 0;
    for (size_t i = 0; i < MR_COUNT(caught); i++)
        if (sums[SUM_OF_SIGNALS] == sums[SIGNALLED] * caught[i])
            return caught[i];
    return SIGTERM;
}

bool mr_pause_saves(const mr_pause *p, const double sums[MR_PAUSE_NUMBERS], uint64_t done)
{
    return (p->every.updates && done % p->every.updates == 0) || sums[TIME_IS_UP] > 0;
}

void mr_pause_saved(mr_pause *p)
{
    p->saved = mr_seconds();
}
