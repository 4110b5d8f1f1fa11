/* dataset_ranks.c - whether all ranks read the same dataset, by its digest.
 * Invariant: what is divided among the ranks is the same list on each of them. */
#include "dataset/dataset_ranks.h"

#include "base/hash.h"
#include "base/scope.h"

enum { DIGEST = 32 };

mr_status mr_dataset_agree(mr_ranks *ranks, const uint8_t digest[32], mr_error *err)
{
    char first[2 * DIGEST + 1], second[2 * DIGEST + 1];
    unsigned other;
    MR_AUTO(mr_buf_free) mr_buf all = {0};
    MR_TRY(mr_ranks_compare(ranks, digest, DIGEST, &other, &all, err));
    if (!other)
        return MR_OK;
    mr_hex(all.data, DIGEST, first);
    mr_hex(all.data + (size_t)other * DIGEST, DIGEST, second);
    return mr_fail(err, MR_BAD_DATA, "mpirun: rank %u reads the dataset %s, rank 0 %s; give all of them the same files",
                   other, second, first);
}
