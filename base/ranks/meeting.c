/* meeting.c - a thread that counts while the ranks start.
 * Invariant: rank 0 reports first; the launcher then ends the others, or they report themselves where it cannot. */
#include "base/ranks/meeting.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/ranks/launch.h"
#include "base/system/pool.h"
#include "base/scope.h"
#include "base/ranks/watch.h"

struct mr_meeting {
    uint64_t seconds;
    mr_ranks_tell tell;
    int bell;
    pthread_t thread;
    bool started;
};

/* As the launcher says: MPI itself does not know it yet. */
static const char *rank_text(void)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < MR_COUNT(variables); i++)
        if (getenv(variables[i]))
            return getenv(variables[i]);
    return NULL;
}

static void give_up(const mr_meeting *m)
{
    const char *rank = rank_text();
    char host[65] = "?";
    mr_error err;
    gethostname(host, sizeof host);
    host[sizeof host - 1] = '\0';
    mr_fail(
        &err, MR_SYSTEM,
        "rank %s on %s timed out after %llu s waiting for the other ranks to start: one of them did not start or is "
        "stopped, or its "
        "host or the network is down; check the hosts, then run the command again, with a longer --stall-timeout if "
        "it was only slow",
        rank ? rank : "?", host, (unsigned long long)m->seconds);
    if (rank && strcmp(rank, "0") != 0)
        nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
    m->tell(&err);
    _exit(3);
}

static void *run(void *arg)
{
    const mr_meeting *m = arg;
    long tick_ms = mr_watch_tick_ms(m->seconds);
    struct pollfd bell = {.fd = m->bell, .events = POLLIN};
    for (uint64_t left = m->seconds * 1000 / (uint64_t)tick_ms; left; left--)
        if (poll(&bell, 1, (int)tick_ms) > 0)
            return NULL;
    give_up(m);
    return NULL;
}

static mr_status start(mr_meeting *m, mr_error *err)
{
    m->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (m->bell < 0)
        return mr_fail(err, MR_SYSTEM, "starting: no eventfd");
    m->started = mr_thread_start(&m->thread, run, m) == 0;
    return m->started ? MR_OK : mr_fail(err, MR_SYSTEM, "starting: no thread " MR_NO_THREAD);
}

mr_status mr_meeting_begin(uint64_t seconds, mr_ranks_tell tell, mr_meeting **out, mr_error *err)
{
    mr_launch launch = mr_launch_look();
    *out = NULL;
    if (!launch.by || launch.apart || seconds == 0)
        return MR_OK;
    mr_meeting *m = mr_alloc(1, sizeof *m);
    if (!m)
        return mr_fail_memory(err, "starting");
    *m = (mr_meeting){.seconds = seconds, .tell = tell, .bell = -1};
    mr_status status = start(m, err);
    if (status == MR_OK)
        *out = m;
    else
        mr_meeting_end(m);
    return status;
}

void mr_meeting_end(mr_meeting *m)
{
    if (!m)
        return;
    if (m->started) {
        eventfd_write(m->bell, 1);
        pthread_join(m->thread, NULL);
    }
    mr_scope_close(&m->bell);
    free(m);
}
