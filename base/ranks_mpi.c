/* ranks_mpi.c - the only file that includes <mpi.h>; built as millrace_mpi.so and loaded by ranks.c.
 * Invariant: byte counts are 64 bits: what is larger than MPI's int counts goes in pieces. */
#include <mpi.h>
#include <string.h>

#include "ranks_card.h"

#define PIECE ((uint64_t)1 << 30)

static int start(unsigned *rank, unsigned *world)
{
    int provided, r, w;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)
        return -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &r);
    MPI_Comm_size(MPI_COMM_WORLD, &w);
    *rank = (unsigned)r;
    *world = (unsigned)w;
    return 0;
}

static int stop(void)
{
    return MPI_Finalize() == MPI_SUCCESS ? 0 : -1;
}

static int barrier(void)
{
    return MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS ? 0 : -1;
}

static int share_from(int root, void *bytes, uint64_t len)
{
    for (uint64_t at = 0; at < len; at += PIECE) {
        uint64_t n = len - at < PIECE ? len - at : PIECE;
        if (MPI_Bcast((char *)bytes + at, (int)n, MPI_BYTE, root, MPI_COMM_WORLD) != MPI_SUCCESS)
            return -1;
    }
    return 0;
}

static int share(void *bytes, uint64_t len)
{
    return share_from(0, bytes, len);
}

static int gather(const void *mine, uint64_t len, void *all, const uint64_t *lens)
{
    int rank, world;
    uint64_t at = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    for (int i = 0; i < world; i++) {
        if (i == rank && len)
            memcpy((char *)all + at, mine, len);
        if (share_from(i, (char *)all + at, lens[i]) != 0)
            return -1;
        at += lens[i];
    }
    return 0;
}

static void give_up(int code)
{
    MPI_Abort(MPI_COMM_WORLD, code);
}

const mr_ranks_card *millrace_ranks_card(void)
{
    static const mr_ranks_card card = {
        .abi = MR_RANKS_ABI,
        .start = start,
        .stop = stop,
        .barrier = barrier,
        .share = share,
        .gather = gather,
        .abort = give_up,
    };
    return &card;
}
