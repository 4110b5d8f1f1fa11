/* ranks.c - this process among its peers; MPI only where a launcher started us.
 * Invariant: every collective below is entered by all ranks in the same order; failures are carried by agree(). */
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

enum { LAST_WORDS_S = 5 }; /* how long the speaking rank has to print and to end the run before others do */

typedef struct verdict {
    int32_t status;
    char text[sizeof((mr_error *)NULL)->text];
} verdict;

struct mr_ranks {
    unsigned rank, world, beside;
    verdict *verdicts;         /* [world], for agree(): it has to go well when memory is out; NULL: alone */
    uint64_t *verdict_lens;    /* [world] */
    const mr_ranks_card *card; /* NULL: alone */
    void *library, *group;
    bool part, broken, speaks;
};

static mr_status failed(mr_error *err)
{
    return mr_fail(err, MR_SYSTEM, "mpirun: the ranks cannot talk to each other");
}

/* Beside the program (a build tree), else in ../lib/millrace and its multi-arch form (an installation). */
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
        /* MPI's own plugins look up its symbols among the global ones. */
        if (access(path, F_OK) == 0)
            return dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    }
    return NULL;
}

/* `world`: at least the number of ranks. */
static bool make_room(mr_ranks *r, unsigned world)
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

/* MPI, as far as it can be had without starting it: without a server to ask it would end the program in its own words.
 */
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
        return mr_fail(err, MR_SYSTEM, "%s: millrace_mpi.so does not fit this program; install both from one build",
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
    if (status == MR_OK && !make_room(r, r->world))
        status = mr_fail_memory(err, "starting");
    if (status != MR_OK && r->world == 1) /* of several, the launcher ends the others when this one ends */
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
        if (!r->speaks)
            nanosleep(&(struct timespec){.tv_sec = LAST_WORDS_S}, NULL);
        r->card->abort(3);
    }
    if (r->card)
        r->card->forget(r->group);
    if (r->card && !r->part)
        r->card->stop();
    release(r); /* the library stays: MPI leaves threads and exit handlers behind */
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

/* Collective, and without memory: whether all ranks have what the next call needs. */
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
    uint64_t len = mine->len, total = 0, *each = mr_alloc(r->world, sizeof *each), *ones = mr_alloc(r->world, 8);
    mr_status status = all_have(r, each && ones, "gathering", err);
    if (status != MR_OK)
        goto done;
    for (unsigned i = 0; i < r->world; i++)
        ones[i] = sizeof len;
    if (r->card->gather(r->group, &len, sizeof len, each, ones) != 0) {
        status = failed(err);
        goto done;
    }
    for (unsigned i = 0; i < r->world; i++)
        total += each[i];
    status = all_have(r, mr_buf_reserve(all, total), "gathering", err);
    if (status == MR_OK && r->card->gather(r->group, mine->data, len, all->data + all->len, each) != 0)
        status = failed(err);
    if (status == MR_OK)
        all->len += total;
    if (status == MR_OK && lens)
        memcpy(lens, each, r->world * sizeof *lens);
done:
    free(each);
    free(ones);
    return status;
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
    mr_status status = all_have(r, r->rank == 0 || mr_buf_reserve(bytes, len), "sharing", err);
    if (status != MR_OK)
        return status;
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
    mr_buf mine = {0}, theirs = {0};
    *other = 0;
    if (!r->card)
        return MR_OK;
    mr_buf_add(&mine, bytes, len);
    mr_status status = mr_ranks_agree(r, mr_buf_status(&mine, err, "comparing"), err);
    if (status == MR_OK)
        status = mr_ranks_gather(r, &mine, &theirs, NULL, err);
    if (status == MR_OK && theirs.len != r->world * len)
        status =
            mr_fail(err, MR_SYSTEM, "mpirun: the ranks do not understand one another; start the same program on all");
    for (unsigned i = 1; i < r->world && status == MR_OK && !*other; i++)
        *other = memcmp(theirs.data, theirs.data + i * len, len) != 0 ? i : 0;
    mr_buf_free(&mine);
    if (all)
        *all = theirs;
    else
        mr_buf_free(&theirs);
    return status;
}

mr_status mr_ranks_split(mr_ranks *r, int64_t color, mr_ranks **out, mr_error *err)
{
    mr_ranks *part = mr_alloc(1, sizeof *part);
    if (part)
        *part = (mr_ranks){.world = 1, .card = r->card, .library = r->library, .part = true};
    bool none = color == MR_RANKS_NONE, ready = part && (!r->card || make_room(part, r->world));
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

void mr_ranks_break(mr_ranks *r, bool speaks)
{
    r->broken = true;
    r->speaks = speaks;
}
