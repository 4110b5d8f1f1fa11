/* dataset_ranks.c - whether all ranks read the same dataset, by its digest.
 * Invariant: what is divided among the ranks is the same list on each of them. */
#include "dataset/dataset_ranks.h"

#include "base/hash.h"
#include "base/scope.h"
#include "base/term.h"

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
    return mr_fail(err, MR_BAD_DATA, "mpirun: %s reads the dataset %s, %s %s; give all of them the same files",
                   mr_ranks_name_of(ranks, other).text, second, mr_ranks_name_of(ranks, 0).text, first);
}

mr_status mr_dataset_stage_here(mr_dataset *ds, const char *dir, uint64_t max_bytes, const mr_ranks *ranks,
                                mr_error *err)
{
    if (!dir && max_bytes)
        return mr_fail(err, MR_MISUSE, "--local-size: give --local DIR, the folder that it limits");
    return dir ? mr_dataset_stage(ds, dir, max_bytes, mr_ranks_here(ranks) == 0, err) : MR_OK;
}

void mr_dataset_stage_warn(const mr_dataset *ds, const mr_ranks *ranks)
{
    mr_error remark, text;
    unsigned rank = ranks ? mr_ranks_rank(ranks) : 0;
    if (!ds || (ranks && mr_ranks_here(ranks)) || mr_dataset_stage_remark(ds, &remark) != MR_OK)
        return;
    if (rank)
        mr_fail(&text, MR_SYSTEM, "%s: %s", mr_ranks_name_of(ranks, rank).text, remark.text);
    mr_term_warn(rank ? text.text : remark.text);
}
