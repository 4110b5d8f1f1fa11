/* ranks_mpi.c - the only file that includes <mpi.h>; built as millrace_mpi.so and loaded by ranks.c.
 * Invariant: byte counts have 64 bits: what exceeds MPI's int counts is sent in pieces. */
#include <limits.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/ranks/ranks_iface.h"

#define PIECE ((uint64_t)1 << 30)

/* A group is an MPI_Comm on the heap, as the type of MPI_Comm depends on the MPI implementation. */
static MPI_Comm comm(const void *group)
{
    return *(const MPI_Comm *)group;
}

static int describe(MPI_Comm c, void **group, unsigned *rank, unsigned *world)
{
    int r, w;
    MPI_Comm *kept = malloc(sizeof *kept);
    if (!kept)
        return -1;
    MPI_Comm_rank(c, &r);
    MPI_Comm_size(c, &w);
    *kept = c;
    *group = kept;
    *rank = (unsigned)r;
    *world = (unsigned)w;
    return 0;
}

/* By itself, Open MPI 4.1 moves two to three times as many bytes for MPI_Iallreduce in place as needed.  Rabenseifner's
 * algorithm is best for a power of two (its parts are halved), the ring otherwise; with either, each rank sends every
 * number less than twice.  What the user set stays.  Of the tool interface (MPI 3.1, section 14.3). */
static struct {
    bool ours;
    MPI_T_cvar_handle variable;
} sums;

static void open_sums(void)
{
    int provided, index, count;
    if (getenv("OMPI_MCA_coll_libnbc_iallreduce_algorithm") ||
        MPI_T_init_thread(MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS)
        return;
    sums.ours = MPI_T_cvar_get_index("coll_libnbc_iallreduce_algorithm", &index) == MPI_SUCCESS &&
                MPI_T_cvar_handle_alloc(index, NULL, &sums.variable, &count) == MPI_SUCCESS && count == 1;
    if (!sums.ours)
        MPI_T_finalize();
}

/* Sums in place.  The choice is put back, as other calls sum by MPI_Iallreduce, too, among ranks that are not all in
 * this group: they must choose alike. */
static int begin_sum(void *values, int count, MPI_Datatype type, MPI_Op op, MPI_Comm c, MPI_Request *out)
{
    enum { DEFAULT = 0, RING = 1, RABENSEIFNER = 3 };
    int world, normal = DEFAULT;
    MPI_Comm_size(c, &world);
    int wanted = (world & (world - 1)) == 0 ? RABENSEIFNER : RING;
    if (sums.ours)
        MPI_T_cvar_write(sums.variable, &wanted);
    int code = MPI_Iallreduce(MPI_IN_PLACE, values, count, type, op, c, out);
    if (sums.ours)
        MPI_T_cvar_write(sums.variable, &normal);
    return code;
}

static int start(void **group, unsigned *rank, unsigned *world, bool *threads)
{
    int provided;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS)
        return -1;
    *threads = provided >= MPI_THREAD_SERIALIZED;
    open_sums();
    return describe(MPI_COMM_WORLD, group, rank, world);
}

static int stop(void)
{
    if (sums.ours) {
        MPI_T_cvar_handle_free(&sums.variable);
        MPI_T_finalize();
    }
    return MPI_Finalize() == MPI_SUCCESS ? 0 : -1;
}

static int split(void *group, int64_t color, void **out, unsigned *rank, unsigned *world)
{
    MPI_Comm c;
    int code = color == MR_RANKS_SAME_HOST
                   ? MPI_Comm_split_type(comm(group), MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &c)
                   : MPI_Comm_split(comm(group), color == MR_RANKS_NONE ? MPI_UNDEFINED : (int)color, 0, &c);
    *out = NULL;
    if (code != MPI_SUCCESS)
        return -1;
    return c == MPI_COMM_NULL ? 0 : describe(c, out, rank, world);
}

static void forget(void *group)
{
    free(group);
}

static int barrier(void *group)
{
    return MPI_Barrier(comm(group)) == MPI_SUCCESS ? 0 : -1;
}

static int share_from(MPI_Comm c, int root, void *bytes, uint64_t len)
{
    for (uint64_t at = 0; at < len; at += PIECE) {
        uint64_t n = len - at < PIECE ? len - at : PIECE;
        if (MPI_Bcast((char *)bytes + at, (int)n, MPI_BYTE, root, c) != MPI_SUCCESS)
            return -1;
    }
    return 0;
}

static int share(void *group, void *bytes, uint64_t len)
{
    return share_from(comm(group), 0, bytes, len);
}

static int gather(void *group, const void *mine, uint64_t len, void *all, const uint64_t *lens)
{
    int rank, world;
    uint64_t at = 0;
    MPI_Comm_rank(comm(group), &rank);
    MPI_Comm_size(comm(group), &world);
    for (int i = 0; i < world; i++) {
        if (i == rank && len)
            memcpy((char *)all + at, mine, len);
        if (share_from(comm(group), i, (char *)all + at, lens[i]) != 0)
            return -1;
        at += lens[i];
    }
    return 0;
}

static MPI_Datatype type_of(mr_ranks_op op)
{
    return op == MR_RANKS_SUM ? MPI_FLOAT : MPI_UINT64_T;
}

static MPI_Op op_of(mr_ranks_op op)
{
    return op == MR_RANKS_SUM ? MPI_SUM : MPI_BOR;
}

static int reduce(void *group, mr_ranks_op op, void *values, uint64_t count)
{
    if (count > INT_MAX)
        return -1;
    int code = MPI_Allreduce(MPI_IN_PLACE, values, (int)count, type_of(op), op_of(op), comm(group));
    return code == MPI_SUCCESS ? 0 : -1;
}

/* A request on the heap, with room after it for the arrays that MPI reads until it is done: lengths and places sent,
 * lengths and places received, `world` of each.  NULL: no memory, or more values than MPI counts. */
static MPI_Request *begin(uint64_t count, int world)
{
    return count <= INT_MAX ? malloc(sizeof(MPI_Request) + 4 * (size_t)world * sizeof(int)) : NULL;
}

static int *arrays_of(MPI_Request *kept)
{
    return (int *)(void *)(kept + 1);
}

/* `request` becomes `kept`, unless MPI has refused. */
static int begun(MPI_Request *kept, int code, void **request)
{
    if (code != MPI_SUCCESS) {
        free(kept);
        return -1;
    }
    *request = kept;
    return 0;
}

static void cut_evenly(uint64_t count, int world, int *lens, int *places)
{
    for (int i = 0; i < world; i++) {
        places[i] = (int)mr_ranks_slice(count, (unsigned)i, (unsigned)world);
        lens[i] = (int)mr_ranks_slice(count, (unsigned)i + 1, (unsigned)world) - places[i];
    }
}

static int reduce_begin(void *group, mr_ranks_op op, void *values, uint64_t count, void **request)
{
    MPI_Request *kept = begin(count, 0);
    if (!kept)
        return -1;
    return begun(kept, begin_sum(values, (int)count, type_of(op), op_of(op), comm(group), kept), request);
}

static int scatter_begin(void *group, const uint16_t *mine, uint64_t count, uint16_t *all, void **request)
{
    int rank, world;
    MPI_Comm_rank(comm(group), &rank);
    MPI_Comm_size(comm(group), &world);
    MPI_Request *kept = begin(count, world);
    if (!kept)
        return -1;
    int *lens = arrays_of(kept), *places = lens + world, *got_lens = places + world, *got_places = got_lens + world;
    cut_evenly(count, world, lens, places);
    for (int i = 0; i < world; i++) {
        got_lens[i] = lens[rank];
        got_places[i] = i * lens[rank];
    }
    return begun(
        kept,
        MPI_Ialltoallv(mine, lens, places, MPI_UINT16_T, all, got_lens, got_places, MPI_UINT16_T, comm(group), kept),
        request);
}

static int spread_begin(void *group, uint16_t *values, uint64_t count, void **request)
{
    int world;
    MPI_Comm_size(comm(group), &world);
    MPI_Request *kept = begin(count, world);
    if (!kept)
        return -1;
    int *lens = arrays_of(kept), *places = lens + world;
    cut_evenly(count, world, lens, places);
    return begun(kept,
                 MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_UINT16_T, values, lens, places, MPI_UINT16_T, comm(group), kept),
                 request);
}

static int reduce_test(void **request, int *done)
{
    if (MPI_Test(*request, done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return -1;
    if (*done) {
        free(*request);
        *request = NULL;
    }
    return 0;
}

static void give_up(int code)
{
    MPI_Abort(MPI_COMM_WORLD, code);
}

const mr_ranks_iface *millrace_ranks_iface(void)
{
    static const mr_ranks_iface iface = {
        .abi = MR_RANKS_ABI,
        .start = start,
        .stop = stop,
        .split = split,
        .forget = forget,
        .barrier = barrier,
        .share = share,
        .gather = gather,
        .reduce = reduce,
        .reduce_begin = reduce_begin,
        .scatter_begin = scatter_begin,
        .spread_begin = spread_begin,
        .reduce_test = reduce_test,
        .abort = give_up,
    };
    return &iface;
}
