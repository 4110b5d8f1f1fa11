/* ranks.c - the ranks of a run, from its beginning to its end; MPI is used only under a launcher.
 * Invariant: a launcher's processes either form one run or fail. */
#include "base/ranks/ranks.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/ranks/launch.h"
#include "base/system/library.h"
#include "base/ranks/ranks_parts.h"
#include "base/scope.h"

/* Next to the program (build tree), otherwise in ../lib/millrace or its multi-arch form (installation). */
static void *open_library(void)
{
    static const char *const places[] = {"", "/../lib/millrace", "/../lib/x86_64-linux-gnu/millrace",
                                         "/../lib/aarch64-linux-gnu/millrace"};
    char self[PATH_MAX], path[PATH_MAX + 64];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0)
        return NULL;
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < MR_COUNT(places); i++) {
        snprintf(path, sizeof path, "%s%s/millrace_mpi.so", self, places[i]);
        /* Global: MPI's own plugins look up its symbols. */
        if (access(path, F_OK) == 0)
            return dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    }
    return NULL;
}

/* `world`: at least the number of ranks. */
static bool alloc_verdicts(mr_ranks *r, unsigned world)
{
    r->verdicts = mr_alloc(world, sizeof *r->verdicts);
    r->verdict_lens = mr_alloc(world, sizeof *r->verdict_lens);
    for (unsigned i = 0; r->verdict_lens && i < world; i++)
        r->verdict_lens[i] = sizeof *r->verdicts;
    return r->verdicts && r->verdict_lens;
}

static void release(mr_ranks *r)
{
    if (!r)
        return;
    free(r->verdicts);
    free(r->verdict_lens);
    free(r->hosts);
    free(r);
}

/* Loads MPI without starting it: without a server, MPI_Init would end the program with its own message. */
static mr_status load(mr_ranks *r, const mr_launch *launch, mr_error *err)
{
    const mr_ranks_iface *(*entry)(void) = NULL;
    dlerror();
    r->library = open_library();
    if (!r->library) {
        const char *why = dlerror();
        return mr_fail(err, MR_SYSTEM, "%s: millrace_mpi.so cannot be loaded (%s); build with Open MPI installed",
                       launch->by, why ? why : "not found");
    }
    r->iface = mr_library_find(r->library, "millrace_ranks_iface", &entry) ? entry() : NULL;
    if (!r->iface || r->iface->abi != MR_RANKS_ABI)
        return mr_fail(err, MR_SYSTEM,
                       "%s: millrace_mpi.so is from a different build; install both from the same build", launch->by);
    return launch->unserved ? mr_launch_joined(launch, 1, err) : MR_OK;
}

/* Collective; where each rank is. */
static mr_status meet(mr_ranks *r, mr_error *err)
{
    char mine[MR_RANKS_HOST_MAX] = "?";
    MR_AUTO(mr_scope_free) uint64_t *lens = mr_alloc(r->world, sizeof *lens);
    r->hosts = mr_alloc(r->world, sizeof *r->hosts);
    MR_TRY(mr_ranks_all_have(r, lens && r->hosts, "starting", err));
    gethostname(mine, sizeof mine);
    mine[sizeof mine - 1] = '\0';
    for (unsigned i = 0; i < r->world; i++)
        lens[i] = sizeof mine;
    if (mr_ranks_iface_gather(r, mine, sizeof mine, r->hosts, lens) != 0)
        return mr_ranks_failed(err);
    for (unsigned i = 1; i < r->world; i++)
        r->several = r->several || strcmp(r->hosts[i], r->hosts[0]) != 0;
    return MR_OK;
}

static mr_status join(mr_ranks *r, const mr_launch *launch, mr_error *err)
{
    void *here = NULL;
    if (r->iface->start(&r->group, &r->rank, &r->world, &r->threads) != 0)
        return mr_fail(err, MR_SYSTEM, "%s: MPI did not start", launch->by);
    mr_status status = mr_launch_joined(launch, r->world, err);
    if (status == MR_OK && r->iface->split(r->group, MR_RANKS_SAME_HOST, &here, &r->here, &r->beside) != 0)
        status = mr_ranks_failed(err);
    r->iface->forget(here);
    if (status == MR_OK && !alloc_verdicts(r, r->world))
        status = mr_fail_memory(err, "starting");
    if (status == MR_OK && r->world > 1)
        status = meet(r, err);
    if (status != MR_OK && r->world == 1) /* otherwise the launcher ends the others when this one ends */
        r->iface->stop();
    return status;
}

mr_status mr_ranks_begin(mr_ranks **out, mr_error *err)
{
    mr_launch launch = mr_launch_look();
    mr_ranks *r = mr_alloc(1, sizeof *r);
    if (!r)
        return mr_fail_memory(err, "starting");
    r->world = r->beside = 1;
    mr_status status = MR_OK;
    if (launch.by && !launch.apart)
        status = load(r, &launch, err);
    if (status == MR_OK && r->iface)
        status = join(r, &launch, err);
    if (status == MR_OK)
        *out = r;
    else
        release(r);
    return status;
}

void mr_ranks_end(mr_ranks *r)
{
    if (!r)
        return;
    if (r->iface && r->broken && !r->part) {
        if (!r->reports)
            nanosleep(&(struct timespec){.tv_sec = MR_RANKS_REPORT_SECONDS}, NULL);
        r->iface->abort(3);
    }
    if (r->iface)
        r->iface->forget(r->group);
    if (r->iface && !r->part) {
        mr_watch_waits(r->watch, true);
        mr_ranks_waited(r, r->iface->stop());
        mr_watch_end(r->watch);
    }
    release(r); /* the library stays loaded: MPI leaves threads and exit handlers behind */
}

unsigned mr_ranks_rank(const mr_ranks *r)
{
    return r->rank;
}

unsigned mr_ranks_world(const mr_ranks *r)
{
    return r->world;
}

unsigned mr_ranks_local_rank(const mr_ranks *r)
{
    return r->here;
}

unsigned mr_ranks_local_size(const mr_ranks *r)
{
    return r->beside;
}

bool mr_ranks_threads(const mr_ranks *r)
{
    return r->threads;
}

mr_status mr_ranks_split(mr_ranks *r, int64_t color, mr_ranks **out, mr_error *err)
{
    mr_ranks *part = mr_alloc(1, sizeof *part);
    if (part)
        *part = (mr_ranks){.world = 1, .iface = r->iface, .library = r->library, .watch = r->watch, .part = true};
    bool none = color == MR_RANKS_NONE, ready = part && (!r->iface || alloc_verdicts(part, r->world));
    mr_status status = ready ? MR_OK : mr_fail_memory(err, "grouping the ranks by host");
    if (r->iface)
        status = mr_ranks_all_have(r, ready, "grouping the ranks by host", err);
    mr_watch_waits(r->watch, true);
    if (status == MR_OK && r->iface && r->iface->split(r->group, color, &part->group, &part->rank, &part->world) != 0)
        status = mr_ranks_failed(err);
    mr_watch_waits(r->watch, false);
    if (none || status != MR_OK)
        release(part);
    if (status != MR_OK)
        return status;
    *out = none ? NULL : part;
    return MR_OK;
}

void mr_ranks_break(mr_ranks *r, bool reports)
{
    while (atomic_load(&r->stalled))
        pause();
    r->broken = true;
    r->reports = reports;
}
