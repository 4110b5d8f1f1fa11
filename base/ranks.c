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

struct mr_ranks {
    unsigned rank, world;
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
    free(r);        /* the library stays: MPI leaves threads and exit handlers behind */
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

mr_status mr_ranks_gather(mr_ranks *r, const mr_buf *mine, mr_buf *all, uint64_t *lens, mr_error *err)
{
    if (!r->card) {
        mr_buf_add(all, mine->data, mine->len);
        if (lens)
            lens[0] = mine->len;
        return mr_buf_status(all, err, "gathering");
    }
    uint64_t len = mine->len, total = 0, *each = mr_alloc(r->world, sizeof *each), *ones = mr_alloc(r->world, 8);
    mr_status status = MR_OK;
    if (!each || !ones) {
        status = mr_fail_memory(err, "gathering");
        goto done;
    }
    for (unsigned i = 0; i < r->world; i++)
        ones[i] = sizeof len;
    if (r->card->gather(r->group, &len, sizeof len, each, ones) != 0) {
        status = failed(err);
        goto done;
    }
    for (unsigned i = 0; i < r->world; i++)
        total += each[i];
    if (!mr_buf_reserve(all, total))
        status = mr_fail_memory(err, "gathering");
    else if (r->card->gather(r->group, mine->data, len, all->data + all->len, each) != 0)
        status = failed(err);
    else
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
        mr_buf_clear(bytes);
    if (r->rank != 0 && !mr_buf_reserve(bytes, len))
        return mr_fail_memory(err, "sharing");
    if (r->card->share(r->group, bytes->data, len) != 0)
        return failed(err);
    bytes->len = len;
    return MR_OK;
}

mr_status (mr_ranks_agree)(mr_ranks *r, mr_status mine, mr_error *err)
{
    if (!r->card)
        return mine;
    struct verdict {
        int32_t status;
        char text[sizeof err->text];
    } *all = mr_alloc(r->world, sizeof *all), one = {.status = mine};
    uint64_t *lens = mr_alloc(r->world, sizeof *lens);
    if (!all || !lens) {
        r->card->abort(3);
        abort();
    }
    if (mine < 0 && err)
        memcpy(one.text, err->text, sizeof one.text);
    for (unsigned i = 0; i < r->world; i++)
        lens[i] = sizeof one;
    mr_status status = mine;
    if (r->card->gather(r->group, &one, sizeof one, all, lens) != 0)
        status = failed(err);
    for (unsigned i = 0; i < r->world; i++) {
        if (all[i].status >= 0)
            continue;
        status = mr_fail(err, (mr_status)all[i].status, "%s", all[i].text);
        break;
    }
    free(all);
    free(lens);
    return status;
}

mr_status mr_ranks_split(mr_ranks *r, int64_t color, mr_ranks **out, mr_error *err)
{
    mr_ranks *part = mr_alloc(1, sizeof *part);
    if (!part && r->card) {     /* the others are on their way into the call */
        r->card->abort(3);
        abort();
    }
    if (!part)
        return mr_fail_memory(err, "sharing out the ranks");
    *part = (mr_ranks){.world = 1, .card = r->card, .library = r->library, .part = true};
    bool none = color == MR_RANKS_NONE;
    if (r->card && r->card->split(r->group, color, &part->group, &part->rank, &part->world) != 0) {
        free(part);
        return failed(err);
    }
    if (none)
        free(part);
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
