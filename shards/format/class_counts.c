/* class_counts.c - how many samples of each split have each label.
 * Invariant: each row is counted once, whatever its label. */
#include "shards/format/class_counts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/files/supply.h"
#include "base/scope.h"
#include "shards/format/index.h"

/* The samples of the shard that are seen; *seen: how many of the split are in the shards before it. */
static mr_status count_shard(int dirfd, const mr_split *split, const mr_shard *shard, uint64_t *seen, size_t classes,
                             uint64_t *counts, mr_error *err)
{
    MR_AUTO(mr_scope_free) mr_row *rows = NULL;
    MR_TRY(mr_index_read(dirfd, shard, &rows, err));
    for (uint64_t i = 0; i < shard->samples; i++) {
        if (split->seen && (*seen >= split->samples || split->seen[*seen] != shard->first + i))
            continue;
        ++*seen;
        int32_t label = rows[i].label;
        if (rows[i].flags & MR_FLAG_MULTI_LABEL)
            counts[classes + MR_SEVERAL_LABELS]++;
        else if (label < 0)
            counts[classes + MR_NO_LABEL]++;
        else
            counts[(size_t)label < classes ? (size_t)label : classes + MR_NO_SUCH_CLASS]++;
    }
    return MR_OK;
}

mr_status mr_class_counts_read(const char *dir, const mr_manifest *m, mr_class_counts *c, mr_error *err)
{
    if (m->split_count && m->class_count > MR_CLASS_COUNTS_MAX / m->split_count)
        return mr_fail(err, MR_MISUSE,
                       "%s: %zu classes in %zu splits exceed the limit of %d counts; omit --classes to see the rest",
                       dir, m->class_count, m->split_count, MR_CLASS_COUNTS_MAX);
    c->width = m->class_count + MR_NOT_CLASSES;
    c->counts = mr_alloc(c->width * (m->split_count ? m->split_count : 1), sizeof *c->counts);
    if (!c->counts)
        return mr_fail_memory(err, "counting classes");
    MR_AUTO(mr_scope_close) int dirfd = mr_supply_open_folder(dir);
    if (dirfd < 0)
        return mr_fail_errno(err, errno, "%s: cannot open", dir);
    for (size_t i = 0; i < m->split_count; i++) {
        uint64_t seen = 0;
        for (size_t k = 0; k < m->splits[i].shard_count; k++)
            MR_TRY(count_shard(dirfd, &m->splits[i], &m->splits[i].shards[k], &seen, m->class_count,
                               c->counts + i * c->width, err));
    }
    return MR_OK;
}
