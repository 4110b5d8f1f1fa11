/* ranks.c - this process among its peers; MPI only where a launcher started us.
 * Invariant: every collective below is entered by all ranks in the same order; failures are carried by agree(). */
#include "ranks.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ranks_card.h"

enum { LAST_WORDS_S = 5 };          /* how long the speaking rank has to print and to end the run before others do */

typedef struct verdict {
    int32_t status;
    char text[sizeof ((mr_error *)NULL)->text];
} verdict;

struct mr_ranks {
    unsigned rank, world;
    verdict *verdicts;              /* [world], for agree(): it has to go well when memory is out; NULL: alone */
    uint64_t *verdict_lens;         /* [world] */
    const mr_ranks_card *card;      /* NULL: alone */
    void *library, *group;
    bool part, broken, speaks;
};

/* OpenMPI, Slurm's PMI and MPICH's hydra say how many ranks they started. */
static bool launched(void)
{
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE"};
    for (size_t i = 0; i < MR_COUNT(sizes); i++) {
        const char *size = getenv(sizes[i]);
        if (size && strtol(size, NULL, 10) > 1)
            return true;
    }
    return false;
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
        void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
        if (library)
            return library;
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

mr_status mr_ranks_begin(mr_ranks **out, mr_error *err)
{
    mr_ranks *r = mr_alloc(1, sizeof *r);
    if (!r)
        return mr_fail_memory(err, "starting");
    r->world = 1;
    if (!launched()) {
        *out = r;
        return MR_OK;
    }
    r->library = open_library();
    if (!r->library) {
        const char *why = dlerror();
        free(r);
        return mr_fail(err, MR_SYSTEM, "mpirun: millrace_mpi.so cannot be loaded (%s); build with OpenMPI installed",
                       why ? why : "not found");
    }
    const mr_ranks_card *(*entry)(void) = NULL;
    void *symbol = dlsym(r->library, "millrace_ranks_card");
    memcpy(&entry, &symbol, sizeof entry);
    r->card = entry ? entry() : NULL;
    if (!r->card || r->card->abi != MR_RANKS_ABI || r->card->start(&r->group, &r->rank, &r->world) != 0) {
        free(r);
        return mr_fail(err, MR_SYSTEM, "mpirun: millrace_mpi.so does not fit this program or MPI did not start");
    }
    if (!make_room(r, r->world)) {  /* the launcher ends the others when this one ends */
        release(r);
        return mr_fail_memory(err, "starting");
    }
    *out = r;
    return MR_OK;
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
    release(r);     /* the library stays: MPI leaves threads and exit handlers behind */
}

unsigned mr_ranks_rank(const mr_ranks *r)
{
    return r->rank;
}

unsigned mr_ranks_world(const mr_ranks *r)
{
    return r->world;
}

static mr_status failed(mr_error *err)
{
    return mr_fail(err, MR_SYSTEM, "mpirun: the ranks cannot talk to each other");
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

mr_status (mr_ranks_agree)(mr_ranks *r, mr_status mine, mr_error *err)
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
        status = mr_fail(err, MR_SYSTEM, "mpirun: the ranks do not understand one another; start the same program on all");
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
