/* dataset_ranks.c - whether all ranks read the same dataset, by its digest.
 * Invariant: what is shared out among the ranks is the same list on each of them. */
#include "dataset_ranks.h"

#include <string.h>

#include "hash.h"

enum { DIGEST = 32 };

static mr_status compare(const mr_buf *all, unsigned world, mr_error *err)
{
    char first[2 * DIGEST + 1], other[2 * DIGEST + 1];
    if (all->len != (size_t)world * DIGEST)
        return mr_fail(err, MR_SYSTEM, "mpirun: what the ranks say of their dataset cannot be understood");
    for (unsigned i = 1; i < world; i++) {
        const uint8_t *digest = all->data + (size_t)i * DIGEST;
        if (memcmp(digest, all->data, DIGEST) == 0)
            continue;
        mr_hex(all->data, DIGEST, first);
        mr_hex(digest, DIGEST, other);
        return mr_fail(err, MR_BAD_DATA, "mpirun: rank %u reads the dataset %s, rank 0 %s; give all of them the same "
                       "files", i, other, first);
    }
    return MR_OK;
}

mr_status mr_dataset_agree(mr_ranks *ranks, const uint8_t digest[32], mr_error *err)
{
    mr_buf mine = {0}, all = {0};
    if (mr_ranks_world(ranks) == 1)
        return MR_OK;
    mr_buf_add(&mine, digest, DIGEST);
    mr_status status = mr_ranks_agree(ranks, mr_buf_status(&mine, err, "comparing datasets"), err);
    if (status == MR_OK)
        status = mr_ranks_gather(ranks, &mine, &all, NULL, err);
    if (status == MR_OK)
        status = compare(&all, mr_ranks_world(ranks), err);
    mr_buf_free(&mine);
    mr_buf_free(&all);
    return status;
}
