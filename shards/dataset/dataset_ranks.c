/* dataset_ranks.c - a dataset opened by all ranks, and whether it is the same one, by its digest.
 * Invariant: what is divided among the ranks is the same list on each of them. */
#include "shards/dataset/dataset_ranks.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/files/supply.h"
#include "base/scope.h"
#include "base/cli/term.h"
#include "shards/view/view.h"
#include "shards/dataset/parts.h"

enum { DIGEST = 32 };

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* What the first rank of a host tells the others; the manifest without its shards follows it. */
typedef struct packet {
    uint64_t device, inode, size, seconds, nanoseconds; /* what identifies its file */
    uint64_t rows;                                      /* shards */
    uint8_t digest[DIGEST];
} packet;

static packet place_of(const char *path)
{
    struct stat st;
    packet p = {.size = 0};
    int dir = mr_supply_open_folder(path);
    if (dir >= 0 && fstatat(dir, MR_MANIFEST, &st, 0) == 0)
        p = (packet){.device = st.st_dev,
                     .inode = st.st_ino,
                     .size = (uint64_t)st.st_size,
                     .seconds = (uint64_t)st.st_mtim.tv_sec,
                     .nanoseconds = (uint64_t)st.st_mtim.tv_nsec};
    if (dir >= 0)
        close(dir);
    return p;
}

static bool same_place(const packet *a, const packet *b)
{
    return a->size && a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->seconds == b->seconds && a->nanoseconds == b->nanoseconds;
}

static mr_status pack(const mr_dataset_source *r, packet *p, mr_buf *out, mr_shard **rows, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf head = {0};
    size_t count;
    MR_TRY(mr_manifest_hand_out(r->manifest, &head, rows, &count, err));
    p->rows = count;
    memcpy(p->digest, r->digest, DIGEST);
    mr_buf_add(out, p, sizeof *p);
    mr_buf_add(out, head.data, head.len);
    return mr_buf_status(out, err, MR_MANIFEST);
}

/* On a rank that got both from the first. */
static mr_status unpack(const mr_buf *in, const packet *p, mr_shared **rows, mr_dataset_source *r, mr_error *err)
{
    MR_AUTO(mr_manifest_release) mr_manifest *m = NULL;
    MR_TRY(mr_manifest_parse_head(in->data + sizeof *p, in->len - sizeof *p, &m, err));
    MR_TRY(mr_manifest_adopt(m, *rows, err));
    *rows = NULL;
    memcpy(r->digest, p->digest, DIGEST);
    r->manifest = m;
    r->looked = true;
    m = NULL;
    return MR_OK;
}

static void free_shared(mr_shared **s)
{
    mr_shared_free(*s);
}

/* Collective over the ranks of a host, of which the first has read its manifest. */
static mr_status hand_out(mr_ranks *host, const char *path, const packet *mine, mr_dataset_source *r, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf message = {0};
    MR_AUTO(mr_scope_free) mr_shard *rows = NULL;
    MR_AUTO(free_shared) mr_shared *shared = NULL;
    bool first = r->manifest != NULL;
    packet p = *mine;
    MR_TRY(mr_ranks_agree(host, first ? pack(r, &p, &message, &rows, err) : MR_OK, err));
    MR_TRY(mr_ranks_share(host, &message, err));
    memcpy(&p, message.data, sizeof p);
    if (p.rows)
        MR_TRY(mr_shared_make(host, rows, first ? p.rows * sizeof *rows : 0, &shared, err));
    if (!p.rows || (!first && !same_place(&p, mine)))
        return first ? MR_OK : mr_manifest_open(path, &r->manifest, r->digest, err);
    if (!first)
        return unpack(&message, &p, &shared, r, err);
    MR_TRY(mr_manifest_adopt(r->manifest, shared, err));
    shared = NULL;
    return MR_OK;
}

static mr_status read_manifest(const char *path, mr_ranks *ranks, mr_dataset_source *r, mr_error *err)
{
    mr_ranks *host = NULL;
    packet mine = place_of(path);
    MR_TRY(mr_ranks_split(ranks, MR_RANKS_SAME_HOST, &host, err));
    bool first = mr_ranks_rank(host) == 0;
    mr_status status = mr_ranks_agree(ranks, first ? mr_manifest_open(path, &r->manifest, r->digest, err) : MR_OK, err);
    if (status == MR_OK)
        status = mr_ranks_agree(ranks, mr_ranks_world(host) > 1 ? hand_out(host, path, &mine, r, err) : MR_OK, err);
    mr_ranks_end(host);
    return status;
}

static mr_status open_view(const char *path, mr_ranks *ranks, mr_dataset **out, mr_error *err)
{
    mr_ranks *host = NULL;
    MR_TRY(mr_ranks_split(ranks, MR_RANKS_SAME_HOST, &host, err));
    mr_status status = mr_dataset_open_view(path, mr_ranks_world(host) > 1 ? host : NULL, out, err);
    mr_ranks_end(host);
    return mr_ranks_agree(ranks, status, err);
}

mr_status mr_dataset_open_all(const char *path, mr_ranks *ranks, mr_dataset **out, mr_error *err)
{
    mr_dataset *ds = NULL;
    mr_dataset_source read = {.manifest = NULL};
    if (mr_ranks_world(ranks) == 1)
        return mr_dataset_open(path, out, err);
    if (mr_view_is_at(path))
        return open_view(path, ranks, out, err);
    mr_status status = mr_ranks_agree(ranks, mr_dataset_begin(path, &ds, err), err);
    if (status == MR_OK)
        status = read.status = read_manifest(path, ranks, &read, err);
    if (!ds)
        return status;
    status = mr_dataset_end(ds, &read, out, err);
    return read.status == MR_OK ? mr_ranks_agree(ranks, status, err) : status;
}

/* ---- the same one ------------------------------------------------------------------------------------------------ */

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
    if (mr_dataset_is_remote(ds)) {
        mr_error moves;
        MR_TRY(mr_dataset_stage(ds, dir, max_bytes, mr_ranks_local_rank(ranks) == 0, err));
        mr_dataset_describe_remote(ds, &moves);
        if (mr_ranks_rank(ranks) == 0)
            mr_term_warn(moves.text);
        return MR_OK;
    }
    if (!dir && max_bytes)
        return mr_fail(err, MR_MISUSE, "--local-size: give --local DIR, the folder that it limits");
    return dir ? mr_dataset_stage(ds, dir, max_bytes, mr_ranks_local_rank(ranks) == 0, err) : MR_OK;
}

void mr_dataset_stage_warn(const mr_dataset *ds, const mr_ranks *ranks)
{
    mr_error remark, text;
    unsigned rank = ranks ? mr_ranks_rank(ranks) : 0;
    if (!ds || (ranks && mr_ranks_local_rank(ranks)) || mr_dataset_stage_remark(ds, &remark) != MR_OK)
        return;
    if (rank)
        mr_fail(&text, MR_SYSTEM, "%s: %s", mr_ranks_name_of(ranks, rank).text, remark.text);
    mr_term_warn(rank ? text.text : remark.text);
}
