/* nccl.c - libnccl.so.2 of the fake device: sums over the processes of a test, through a file that all of them map; see
 * fake.h.
 * Invariant: a sum is taken in the order of ranks, when the stream runs that far; it waits for the other processes
 * without blocking the stream's caller, which asks again.
 *
 *      | head | rank 0: ROOM floats | rank 1: ROOM floats | ... | */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "fake.h"

enum { RANKS = 8, ROOM = 16 << 20, PAGE = 4096, WAIT_US = 200 };
enum { OK = 0, SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4, INVALID_USAGE = 5, REMOTE_ERROR = 6 };

typedef struct head {
    _Atomic unsigned here;
    _Atomic uint64_t entered[RANKS], left[RANKS]; /* the sum that rank r has begun, and has read */
} head;

typedef struct comm {
    head *shared;
    unsigned rank, world;
    uint64_t sums;
    bool aborted;
} comm;

typedef struct id {
    char path[128];
} id;

static comm *all[RANKS]; /* works of a stream may outlive them */
static size_t count;

int ncclGetVersion(int *out);
int ncclGetVersion(int *out)
{
    *out = (int)fake_setting("MILLRACE_FAKE_NCCL", 22809);
    return OK;
}

const char *ncclGetErrorString(int code);
const char *ncclGetErrorString(int code)
{
    return code == REMOTE_ERROR ? "remote process exited or there was a network error" : "unhandled system error";
}

const char *ncclGetLastError(const comm *c);
const char *ncclGetLastError(const comm *c)
{
    (void)c;
    return "it is a test";
}

int ncclGetUniqueId(id *out);
int ncclGetUniqueId(id *out)
{
    memset(out, 0, sizeof *out);
    snprintf(out->path, sizeof out->path, "/tmp/millrace-fake-nccl-XXXXXX");
    int file = mkstemp(out->path);
    if (file < 0)
        return SYSTEM_ERROR;
    int code = ftruncate(file, PAGE + (off_t)RANKS * ROOM * (off_t)sizeof(float));
    close(file);
    return code ? SYSTEM_ERROR : OK;
}

int ncclCommInitRank(comm **out, int world, id place, int rank);
int ncclCommInitRank(comm **out, int world, id place, int rank)
{
    int file = open(place.path, O_RDWR | O_CLOEXEC);
    comm *c = calloc(1, sizeof *c);
    void *memory = mmap(NULL, PAGE + (size_t)RANKS * ROOM * sizeof(float), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (!c || memory == MAP_FAILED || !fake_has_context() || world > RANKS || count == RANKS) {
        free(c);
        return INVALID_ARGUMENT;
    }
    *c = (comm){.shared = memory, .rank = (unsigned)rank, .world = (unsigned)world};
    atomic_fetch_add(&c->shared->here, 1);
    while (atomic_load(&c->shared->here) < c->world)
        usleep(WAIT_US);
    unlink(place.path); /* by each of them: the first does it */
    all[count++] = c;
    *out = c;
    return OK;
}

int ncclCommDestroy(comm *c);
int ncclCommDestroy(comm *c)
{
    c->aborted = true;
    return OK;
}

int ncclCommAbort(comm *c);
int ncclCommAbort(comm *c)
{
    return ncclCommDestroy(c);
}

int ncclCommGetAsyncError(const comm *c, int *out);
int ncclCommGetAsyncError(const comm *c, int *out)
{
    *out = c->sums > fake_setting("MILLRACE_FAKE_SUMS", UINT64_MAX - 1) ? REMOTE_ERROR : OK;
    return OK;
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

typedef struct job {
    comm *c;
    uint64_t number;
    bool entered;
} job;

static float *slot(const comm *c, unsigned rank)
{
    return (float *)(void *)((char *)c->shared + PAGE) + (size_t)rank * ROOM;
}

static bool reached(const comm *c, const _Atomic uint64_t *counts, uint64_t number)
{
    for (unsigned r = 0; r < c->world; r++)
        if (atomic_load(&counts[r]) < number)
            return false;
    return true;
}

static bool run_sum(fake_work *w)
{
    job *j = w->data;
    comm *c = j->c;
    if (c->aborted)
        return true;
    if (c->sums > fake_setting("MILLRACE_FAKE_SUMS", UINT64_MAX - 1))
        return false;
    if (!j->entered && !reached(c, c->shared->left, j->number - 1))
        return false;
    if (!j->entered) {
        if (j->number > fake_setting("MILLRACE_FAKE_KILL", UINT64_MAX - 1))
            raise(SIGKILL);
        memcpy(slot(c, c->rank), (void *)(uintptr_t)w->to, w->bytes);
        atomic_store(&c->shared->entered[c->rank], j->number);
        j->entered = true;
    }
    if (!reached(c, c->shared->entered, j->number))
        return false;
    float *sum = (float *)(uintptr_t)w->to;
    memcpy(sum, slot(c, 0), w->bytes);
    for (unsigned r = 1; r < c->world; r++)
        for (size_t i = 0; i < w->bytes / sizeof *sum; i++)
            sum[i] += slot(c, r)[i];
    atomic_store(&c->shared->left[c->rank], j->number);
    return true;
}

int ncclAllReduce(const void *from, void *to, size_t n, int type, int op, comm *c, void *stream);
int ncclAllReduce(const void *from, void *to, size_t n, int type, int op, comm *c, void *stream)
{
    size_t bytes = n * sizeof(float);
    if (from != to || type != 7 || op != 0 || n > ROOM || !fake_has((uintptr_t)to, bytes) || fake_captures())
        return INVALID_USAGE;
    job *j = calloc(1, sizeof *j);
    if (!j)
        return SYSTEM_ERROR;
    *j = (job){.c = c, .number = ++c->sums};
    const fake_work w = {.run = run_sum, .to = (uintptr_t)to, .bytes = bytes, .data = j, .data_bytes = sizeof *j};
    return fake_queue(stream, w) ? SYSTEM_ERROR : OK;
}
