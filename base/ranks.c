/* ranks.c - the ranks of a run; MPI is used only under a launcher.
 * Invariant: all ranks enter every collective below in the same order; mr_ranks_agree() carries failures. */
#include "base/ranks.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/launch.h"
#include "base/ranks_card.h"
#include "base/scope.h"

enum { REPORT_SECONDS = 5 }; /* for the reporting rank to print and end the run, before the others end it */

typedef struct verdict {
    int32_t status;
    char text[sizeof((mr_error *)NULL)->text];
} verdict;

struct mr_ranks {
    unsigned rank, world, beside;
    verdict *verdicts;         /* [world], for agree(), which must work without memory; NULL: alone */
    uint64_t *verdict_lens;    /* [world] */
    const mr_ranks_card *card; /* NULL: alone */
    void *library, *group;
    bool part, broken, reports;
};

static mr_status failed(mr_error *err)
{
    return mr_fail(err, MR_SYSTEM, "mpirun: the ranks cannot communicate");
}

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
    free(r);
}

/* Loads MPI without starting it: without a server, MPI_Init would end the program with its own message. */
static mr_status load(mr_ranks *r, const mr_launch *launch, mr_error *err)
{
    const mr_ranks_card *(*entry)(void) = NULL;
    dlerror();
    r->library = open_library();
    if (!r->library) {
        const char *why = dlerror();
        return mr_fail(err, MR_SYSTEM, "%s: millrace_mpi.so cannot be loaded (%s); build with Open MPI installed",
                       launch->by, why ? why : "not found");
    }
    void *symbol = dlsym(r->library, "millrace_ranks_card");
    memcpy(&entry, &symbol, sizeof entry);
    r->card = entry ? entry() : NULL;
    if (!r->card || r->card->abi != MR_RANKS_ABI)
        return mr_fail(err, MR_SYSTEM,
                       "%s: millrace_mpi.so is from another build than this program; install both from one build",
                       launch->by);
    return launch->unserved ? mr_launch_joined(launch, 1, err) : MR_OK;
}

static mr_status join(mr_ranks *r, const mr_launch *launch, mr_error *err)
{
    void *here = NULL;
    unsigned rank;
    if (r->card->start(&r->group, &r->rank, &r->world) != 0)
        return mr_fail(err, MR_SYSTEM, "%s: MPI did not start", launch->by);
    mr_status status = mr_launch_joined(launch, r->world, err);
    if (status == MR_OK && r->card->split(r->group, MR_RANKS_SAME_HOST, &here, &rank, &r->beside) != 0)
        status = failed(err);
    r->card->forget(here);
    if (status == MR_OK && !alloc_verdicts(r, r->world))
        status = mr_fail_memory(err, "starting");
    if (status != MR_OK && r->world == 1) /* otherwise the launcher ends the others when this one ends */
        r->card->stop();
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
    if (status == MR_OK && r->card)
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
    if (r->card && r->broken && !r->part) {
        if (!r->reports)
            nanosleep(&(struct timespec){.tv_sec = REPORT_SECONDS}, NULL);
        r->card->abort(3);
    }
    if (r->card)
        r->card->forget(r->group);
    if (r->card && !r->part)
        r->card->stop();
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

unsigned mr_ranks_beside(const mr_ranks *r)
{
    return r->beside;
}

mr_status mr_ranks_barrier(mr_ranks *r, mr_error *err)
{
    return r->card && r->card->barrier(r->group) != 0 ? failed(err) : MR_OK;
}

/* Collective; allocates nothing.  Whether all ranks have the memory that the next call needs. */
static mr_status all_have(mr_ranks *r, bool mine, const char *what, mr_error *err)
{
    uint64_t lacks = !mine;
    if (r->card->reduce(r->group, MR_RANKS_OR, &lacks, 1) != 0)
        return failed(err);
    if (!mine)
        return mr_fail_memory(err, what);
    return lacks ? mr_fail(err, MR_SYSTEM, "%s: out of memory on another rank", what) : MR_OK;
}

mr_status mr_ranks_gather(mr_ranks *r, const mr_buf *mine, mr_buf *all, uint64_t *lens, mr_error *err)
{
    if (!r->card) {
        mr_buf_add(all, mine->data, mine->len);
        if (lens)
            lens[0] = mine->len;
        return mr_buf_status(all, err, "gathering");
    }
    uint64_t len = mine->len, total = 0;
    MR_AUTO(mr_scope_free) uint64_t *each = mr_alloc(r->world, sizeof *each);
    MR_AUTO(mr_scope_free) uint64_t *sizes = mr_alloc(r->world, sizeof *sizes);
    MR_TRY(all_have(r, each && sizes, "gathering", err));
    for (unsigned i = 0; i < r->world; i++)
        sizes[i] = sizeof len;
    if (r->card->gather(r->group, &len, sizeof len, each, sizes) != 0)
        return failed(err);
    for (unsigned i = 0; i < r->world; i++)
        total += each[i];
    MR_TRY(all_have(r, mr_buf_reserve(all, total), "gathering", err));
    if (r->card->gather(r->group, mine->data, len, all->data + all->len, each) != 0)
        return failed(err);
    all->len += total;
    if (lens)
        memcpy(lens, each, r->world * sizeof *lens);
    return MR_OK;
}

mr_status mr_ranks_share(mr_ranks *r, mr_buf *bytes, mr_error *err)
{
    if (!r->card)
        return MR_OK;
    uint64_t len = bytes->len;
    if (r->card->share(r->group, &len, sizeof len) != 0)
        return failed(err);
    if (r->rank != 0)
        bytes->len = 0;
    MR_TRY(all_have(r, r->rank == 0 || mr_buf_reserve(bytes, len), "sharing", err));
    if (r->card->share(r->group, bytes->data, len) != 0)
        return failed(err);
    bytes->len = len;
    return MR_OK;
}

mr_status(mr_ranks_agree)(mr_ranks *r, mr_status mine, mr_error *err)
{
    if (!r->card)
        return mine;
    verdict *all = r->verdicts, one = {.status = mine};
    if (mine < 0 && err)
        memcpy(one.text, err->text, sizeof one.text);
    if (r->card->gather(r->group, &one, sizeof one, all, r->verdict_lens) != 0)
        return failed(err);
    for (unsigned i = 0; i < r->world; i++)
        if (all[i].status < 0)
            return mr_fail(err, (mr_status)all[i].status, "%s", all[i].text);
    return mine;
}

mr_status mr_ranks_compare(mr_ranks *r, const void *bytes, size_t len, unsigned *other, mr_buf *all, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf mine = {0}, theirs = {0};
    *other = 0;
    if (!r->card)
        return MR_OK;
    mr_buf_add(&mine, bytes, len);
    MR_TRY(mr_ranks_agree(r, mr_buf_status(&mine, err, "comparing"), err));
    MR_TRY(mr_ranks_gather(r, &mine, &theirs, NULL, err));
    if (theirs.len != r->world * len)
        return mr_fail(err, MR_SYSTEM, "mpirun: the ranks run different programs; start the same program on all");
    for (unsigned i = 1; i < r->world && !*other; i++)
        *other = memcmp(theirs.data, theirs.data + i * len, len) != 0 ? i : 0;
    if (all) {
        *all = theirs;
        theirs = (mr_buf){0};
    }
    return MR_OK;
}

mr_status mr_ranks_split(mr_ranks *r, int64_t color, mr_ranks **out, mr_error *err)
{
    mr_ranks *part = mr_alloc(1, sizeof *part);
    if (part)
        *part = (mr_ranks){.world = 1, .card = r->card, .library = r->library, .part = true};
    bool none = color == MR_RANKS_NONE, ready = part && (!r->card || alloc_verdicts(part, r->world));
    mr_status status = ready ? MR_OK : mr_fail_memory(err, "sharing out the ranks");
    if (r->card)
        status = all_have(r, ready, "sharing out the ranks", err);
    if (status == MR_OK && r->card && r->card->split(r->group, color, &part->group, &part->rank, &part->world) != 0)
        status = failed(err);
    if (none || status != MR_OK)
        release(part);
    if (status != MR_OK)
        return status;
    *out = none ? NULL : part;
    return MR_OK;
}

mr_status mr_ranks_reduce(mr_ranks *r, mr_ranks_op op, void *values, uint64_t count, mr_error *err)
{
    uint64_t size = op == MR_RANKS_SUM ? sizeof(float) : sizeof(uint64_t), piece = (uint64_t)1 << 28;
    for (uint64_t at = 0; r->card && at < count; at += piece)
        if (r->card->reduce(r->group, op, (char *)values + at * size, count - at < piece ? count - at : piece) != 0)
            return failed(err);
    return MR_OK;
}

mr_status mr_ranks_reduce_begin(mr_ranks *r, mr_ranks_op op, void *values, uint64_t count, void **request,
                                mr_error *err)
{
    *request = NULL;
    return r->card && r->card->reduce_begin(r->group, op, values, count, request) != 0 ? failed(err) : MR_OK;
}

bool mr_ranks_reduce_test(mr_ranks *r, void **request, mr_status *status, mr_error *err)
{
    int done = 1;
    *status = r->card && *request && r->card->reduce_test(request, &done) != 0 ? failed(err) : MR_OK;
    return done || *status != MR_OK;
}

void mr_ranks_break(mr_ranks *r, bool reports)
{
    r->broken = true;
    r->reports = reports;
}
