/* ranks_calls.c - collective calls.
 * Invariant: all ranks enter every call in the same order; mr_ranks_agree() carries failures. */
#include <stdio.h>
#include <string.h>

#include "base/ranks/ranks_parts.h"
#include "base/scope.h"

mr_status mr_ranks_failed(mr_error *err)
{
    return mr_fail(err, MR_SYSTEM, "mpirun: the ranks cannot communicate");
}

int mr_ranks_waited(mr_ranks *r, int code)
{
    mr_watch_waits(r->watch, false);
    return code;
}

int mr_ranks_iface_gather(mr_ranks *r, const void *mine, uint64_t len, void *all, const uint64_t *lens)
{
    mr_watch_waits(r->watch, true);
    return mr_ranks_waited(r, r->iface->gather(r->group, mine, len, all, lens));
}

static int share(mr_ranks *r, void *bytes, uint64_t len)
{
    mr_watch_waits(r->watch, true);
    return mr_ranks_waited(r, r->iface->share(r->group, bytes, len));
}

static int reduce(mr_ranks *r, mr_ranks_op op, void *values, uint64_t count)
{
    mr_watch_waits(r->watch, true);
    return mr_ranks_waited(r, r->iface->reduce(r->group, op, values, count));
}

void mr_ranks_waits(mr_ranks *r, bool begins)
{
    mr_watch_waits(r->watch, begins);
}

mr_status mr_ranks_all_have(mr_ranks *r, bool mine, const char *what, mr_error *err)
{
    uint64_t lacks = !mine;
    if (reduce(r, MR_RANKS_OR, &lacks, 1) != 0)
        return mr_ranks_failed(err);
    if (!mine)
        return mr_fail_memory(err, what);
    return lacks ? mr_fail(err, MR_SYSTEM, "%s: out of memory on another rank", what) : MR_OK;
}

mr_status mr_ranks_barrier(mr_ranks *r, mr_error *err)
{
    if (!r->iface)
        return MR_OK;
    mr_watch_waits(r->watch, true);
    return mr_ranks_waited(r, r->iface->barrier(r->group)) != 0 ? mr_ranks_failed(err) : MR_OK;
}

mr_status mr_ranks_gather(mr_ranks *r, const mr_buf *mine, mr_buf *all, uint64_t *lens, mr_error *err)
{
    if (!r->iface) {
        mr_buf_add(all, mine->data, mine->len);
        if (lens)
            lens[0] = mine->len;
        return mr_buf_status(all, err, "gathering");
    }
    uint64_t len = mine->len, total = 0;
    MR_AUTO(mr_scope_free) uint64_t *each = mr_alloc(r->world, sizeof *each);
    MR_AUTO(mr_scope_free) uint64_t *sizes = mr_alloc(r->world, sizeof *sizes);
    MR_TRY(mr_ranks_all_have(r, each && sizes, "gathering", err));
    for (unsigned i = 0; i < r->world; i++)
        sizes[i] = sizeof len;
    if (mr_ranks_iface_gather(r, &len, sizeof len, each, sizes) != 0)
        return mr_ranks_failed(err);
    for (unsigned i = 0; i < r->world; i++)
        total += each[i];
    MR_TRY(mr_ranks_all_have(r, mr_buf_reserve(all, total), "gathering", err));
    if (mr_ranks_iface_gather(r, mine->data, len, all->data + all->len, each) != 0)
        return mr_ranks_failed(err);
    all->len += total;
    if (lens)
        memcpy(lens, each, r->world * sizeof *lens);
    return MR_OK;
}

mr_status mr_ranks_share(mr_ranks *r, mr_buf *bytes, mr_error *err)
{
    if (!r->iface)
        return MR_OK;
    uint64_t len = bytes->len;
    if (share(r, &len, sizeof len) != 0)
        return mr_ranks_failed(err);
    if (r->rank != 0)
        bytes->len = 0;
    MR_TRY(mr_ranks_all_have(r, r->rank == 0 || mr_buf_reserve(bytes, len), "sharing", err));
    if (share(r, bytes->data, len) != 0)
        return mr_ranks_failed(err);
    bytes->len = len;
    return MR_OK;
}

/* Whether all ranks failed with the same message. */
static bool same_failure(const mr_ranks *r)
{
    for (unsigned i = 0; i < r->world; i++)
        if (r->verdicts[i].status >= 0 || strcmp(r->verdicts[i].text, r->verdicts[0].text) != 0)
            return false;
    return true;
}

mr_status(mr_ranks_agree)(mr_ranks *r, mr_status mine, mr_error *err)
{
    uint64_t failed = mine < 0;
    if (!r->iface)
        return mine;
    /* The usual answer takes 8 bytes a rank; the verdicts, a kilobyte each to every rank, would be a gigabyte in the
     * network where 1,024 ranks agree. */
    if (reduce(r, MR_RANKS_OR, &failed, 1) != 0)
        return mr_ranks_failed(err);
    if (!failed)
        return mine;
    mr_ranks_verdict *all = r->verdicts, one = {.status = mine};
    if (mine < 0 && err)
        memcpy(one.text, err->text, sizeof one.text);
    if (mr_ranks_iface_gather(r, &one, sizeof one, all, r->verdict_lens) != 0)
        return mr_ranks_failed(err);
    for (unsigned i = 0; i < r->world; i++) {
        bool named = r->several && !same_failure(r);
        if (all[i].status < 0)
            return mr_fail(err, (mr_status)all[i].status, "%s%s%s", named ? mr_ranks_name_of(r, i).text : "",
                           named ? ": " : "", all[i].text);
    }
    return mine;
}

mr_status mr_ranks_compare(mr_ranks *r, const void *bytes, size_t len, unsigned *other, mr_buf *all, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf mine = {0}, theirs = {0};
    *other = 0;
    if (!r->iface)
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

mr_status mr_ranks_reduce(mr_ranks *r, mr_ranks_op op, void *values, uint64_t count, mr_error *err)
{
    uint64_t size = op == MR_RANKS_SUM ? sizeof(float) : sizeof(uint64_t), piece = (uint64_t)1 << 28;
    for (uint64_t at = 0; r->iface && at < count; at += piece)
        if (reduce(r, op, (char *)values + at * size, count - at < piece ? count - at : piece) != 0)
            return mr_ranks_failed(err);
    return MR_OK;
}

mr_status mr_ranks_reduce_begin(mr_ranks *r, mr_ranks_op op, void *values, uint64_t count, void **request,
                                mr_error *err)
{
    *request = NULL;
    return r->iface && r->iface->reduce_begin(r->group, op, values, count, request) != 0 ? mr_ranks_failed(err) : MR_OK;
}

mr_status mr_ranks_scatter_begin(mr_ranks *r, const uint16_t *mine, uint64_t count, uint16_t *all, void **request,
                                 mr_error *err)
{
    *request = NULL;
    if (!r->iface)
        memcpy(all, mine, count * sizeof *all);
    return r->iface && r->iface->scatter_begin(r->group, mine, count, all, request) != 0 ? mr_ranks_failed(err) : MR_OK;
}

mr_status mr_ranks_spread_begin(mr_ranks *r, uint16_t *values, uint64_t count, void **request, mr_error *err)
{
    *request = NULL;
    return r->iface && r->iface->spread_begin(r->group, values, count, request) != 0 ? mr_ranks_failed(err) : MR_OK;
}

bool mr_ranks_reduce_test(mr_ranks *r, void **request, mr_status *status, mr_error *err)
{
    int done = 1;
    *status = r->iface && *request && r->iface->reduce_test(request, &done) != 0 ? mr_ranks_failed(err) : MR_OK;
    return done || *status != MR_OK;
}

mr_ranks_name mr_ranks_name_of(const mr_ranks *r, unsigned rank)
{
    mr_ranks_name name;
    if (r->several)
        snprintf(name.text, sizeof name.text, "rank %u on %s", rank, r->hosts[rank]);
    else
        snprintf(name.text, sizeof name.text, "rank %u", rank);
    return name;
}
