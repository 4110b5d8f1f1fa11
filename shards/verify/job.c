/* job.c - what the checks of a shard share: what is said about a file that cannot be read, and where a sample came
 * from.  Invariant: nothing here changes which samples count as damaged. */
#include "shards/verify/parts.h"

#include <errno.h>

#include "shards/format/meta.h"
#include "shards/format/record.h"

enum { SOURCE_META_MAX = 64 << 20 }; /* a larger meta is not read only to name its source */

mr_status mr_verify_refusal(mr_verify_job *job, mr_problem_kind kind, int errnum, const mr_error *why, mr_error *err)
{
    mr_problems *list = &job->out->problems;
    if (errnum == 0 || errnum == ENOMEM || errnum == EMFILE || errnum == ENFILE) {
        mr_fail(err, MR_SYSTEM, "%s", why->text);
        return MR_SYSTEM;
    }
    mr_problem_add(list, kind, job->shard->name, MR_NO_SAMPLE, NULL, "%s", why->text);
    if (!list->failed)
        list->items[list->count - 1].refused = true;
    return MR_OK;
}

const char *mr_verify_source(mr_verify_job *job, uint64_t row)
{
    mr_verify_scratch *s = job->scratch;
    const mr_row *r = &job->rows[row];
    mr_meta_facts facts;
    mr_buf_clear(&s->record);
    mr_buf_clear(&s->source);
    if (job->damaged[row] & MR_DAMAGED_META || r->meta_len > SOURCE_META_MAX ||
        !mr_buf_reserve(&s->record, r->meta_len) ||
        mr_record_read(job->mdb, job->shard, row, mr_row_meta(r), s->record.data, NULL) != MR_OK ||
        mr_meta_scan(s->record.data, r->meta_len, &facts, &s->source, NULL) != MR_OK || s->source.failed)
        return NULL;
    return mr_buf_text(&s->source);
}
