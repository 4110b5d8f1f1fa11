/* rows.c - the manifest's counts and classes against a shard's rows.
 * Invariant: a contradiction does not damage any sample: the shard's bytes match the digests. */
#include "shards/verify/parts.h"

#include <string.h>

#include "shards/format/index.h"

typedef unsigned long long ull;

/* One problem per shard: a report of each row would be four times the size of the index. */
static void check_labels(mr_verify_job *job)
{
    uint64_t found = 0, first = 0;
    for (uint64_t i = job->shard->samples; i-- > 0;)
        if (job->rows[i].label >= 0 && (size_t)job->rows[i].label >= job->manifest->class_count) {
            found++;
            first = i;
        }
    if (found)
        mr_problem_add(&job->out->problems, MR_PROBLEM_MANIFEST, job->shard->name, job->shard->first + first, NULL,
                       MR_MANIFEST ": has %zu classes, but its label in %s is %d (%llu of the shard's samples are like "
                                   "this); restore the original manifest or ingest again",
                       job->manifest->class_count, job->idx_name, (int)job->rows[first].label, (ull)found);
}

void mr_verify_rows(mr_verify_job *job)
{
    mr_error why;
    job->counted = *job->shard;
    if (!job->index_good)
        return;
    check_labels(job);
    if (mr_index_check_counts(job->rows, job->shard, &job->counted, &why) != MR_OK)
        mr_problem_add(&job->out->problems, MR_PROBLEM_MANIFEST, job->shard->name, MR_NO_SAMPLE, NULL, "%s", why.text);
}

const char *mr_verify_class(const mr_verify_job *job, const mr_meta_facts *facts, const mr_buf *class_name)
{
    const mr_manifest *m = job->manifest;
    if (facts->highest >= 0 && (size_t)facts->highest >= m->class_count)
        return "its meta has a label outside the manifest's classes";
    if (!facts->has_class)
        return NULL;
    const char *name = facts->label >= 0 ? m->classes[facts->label].name : NULL;
    bool same = name && strlen(name) == class_name->len && memcmp(name, class_name->data, class_name->len) == 0;
    return same ? NULL : "its meta has a class that is not the manifest's for its label";
}
