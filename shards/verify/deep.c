/* deep.c - does the shard match its index: pages, meta, image headers, pixels?
 * Invariant: a record is parsed only after its bytes, in this very buffer, have matched their hash. */
#include "shards/verify/parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "shards/format/meta.h"
#include "shards/format/record.h"
#include "shards/format/walk.h"

typedef unsigned long long ull;

/* ---- the page walk -------------------------------------------------------------------------------------------- */

typedef struct walk_state {
    const mr_verify_job *job;
    bool meta;
    uint64_t row; /* the next one expected */
} walk_state;

static void skip_shared(walk_state *w)
{
    while (!w->meta && w->row < w->job->shard->samples && w->job->rows[w->row].holder != w->row)
        w->row++;
}

static mr_status compare_record(void *ctx, const mr_walk_record *found, mr_error *err)
{
    walk_state *w = ctx;
    const mr_shard *shard = w->job->shard;
    if (!w->job->index_good)
        return MR_OK;
    skip_shared(w);
    if (w->row >= shard->samples)
        return mr_fail(err, MR_BAD_DATA, "%s: the pages hold sample %llu, which the index does not", w->job->mdb_name,
                       (ull)found->sample);
    const mr_row *row = &w->job->rows[w->row];
    uint64_t offset = w->meta ? row->meta_offset : row->image_offset, len = w->meta ? row->meta_len : row->image_len;
    if (found->sample != shard->first + w->row || found->offset != offset || found->len != len)
        return mr_fail(err, MR_BAD_DATA,
                       "%s: the pages hold sample %llu at %llu (%llu bytes), the index sample %llu at "
                       "%llu (%llu bytes)",
                       w->job->mdb_name, (ull)found->sample, (ull)found->offset, (ull)found->len,
                       (ull)(shard->first + w->row), (ull)offset, (ull)len);
    w->row++;
    return MR_OK;
}

static mr_status walk(mr_verify_job *job, bool meta, mr_error *err)
{
    walk_state w = {.job = job, .meta = meta};
    mr_error why;
    const char *database = meta ? MR_DB_META : MR_DB_IMAGE;
    errno = 0;
    mr_status status = mr_walk(job->mdb, job->size, job->mdb_name, database, compare_record, &w, &why);
    if (status == MR_OK && job->index_good) {
        skip_shared(&w);
        if (w.row < job->shard->samples)
            status = mr_fail(&why, MR_BAD_DATA, "%s: the pages of \"%s\" end before sample %llu", job->mdb_name,
                             database, (ull)(job->shard->first + w.row));
    }
    if (status == MR_BAD_DATA) {
        mr_problem_add(&job->out->problems, MR_PROBLEM_PAGE_WALK, job->shard->name, MR_NO_SAMPLE, NULL, "%s", why.text);
        return MR_OK;
    }
    return status == MR_SYSTEM ? mr_verify_refusal(job, MR_PROBLEM_UNREADABLE, errno, &why, err) : status;
}

/* ---- records -------------------------------------------------------------------------------------------------- */

static void add(mr_verify_job *job, mr_problem_kind kind, uint64_t row, const char *text)
{
    const char *source = mr_verify_source(job, row);
    mr_problem_add(&job->out->problems, kind, job->shard->name, job->shard->first + row, source, "%s", text);
    job->damaged[row] |= kind == MR_PROBLEM_META     ? MR_DAMAGED_META
                         : kind == MR_PROBLEM_DECODE ? MR_DAMAGED_DECODE
                                                     : MR_DAMAGED_IMAGE;
}

/* Into scratch->record; *whole says whether it still has its hash. */
static mr_status read_record(mr_verify_job *job, uint64_t row, mr_record place, bool *whole, mr_error *err)
{
    mr_buf *record = &job->scratch->record;
    mr_error why;
    *whole = false;
    mr_buf_clear(record);
    if (!mr_buf_reserve(record, place.len))
        return mr_fail_memory(err, job->mdb_name);
    mr_status status = mr_record_read(job->mdb, job->shard, job->shard->first + row, place, record->data, &why);
    if (status == MR_SYSTEM)
        return mr_verify_refusal(job, MR_PROBLEM_UNREADABLE, errno, &why, err);
    *whole = status == MR_OK;
    record->len = *whole ? place.len : 0;
    return MR_OK;
}

static void compare_meta(mr_verify_job *job, uint64_t i, const mr_meta_facts *facts, const mr_buf *class_name)
{
    const mr_row *row = &job->rows[i];
    bool shared = row->holder != i;
    const char *class_fault = mr_verify_class(job, facts, class_name);
    if (facts->label != row->label)
        add(job, MR_PROBLEM_META, i, "its meta and the index have different labels");
    else if (facts->multi_label != ((row->flags & MR_FLAG_MULTI_LABEL) != 0) ||
             facts->unannotated != ((row->flags & MR_FLAG_UNANNOTATED) != 0))
        add(job, MR_PROBLEM_META, i, "its meta and the flags in the index differ");
    else if (facts->has_image_of != shared || (shared && facts->image_of != job->shard->first + row->holder) ||
             ((row->flags & MR_FLAG_SAME_BYTES) != 0) != shared)
        add(job, MR_PROBLEM_META, i, "its meta and the index name different samples as holder of its image");
    else if (class_fault)
        add(job, MR_PROBLEM_META, i, class_fault);
}

static mr_status check_meta(mr_verify_job *job, uint64_t i, mr_error *err)
{
    const mr_row *row = &job->rows[i];
    mr_meta_facts facts;
    mr_error why;
    bool whole;
    MR_TRY(read_record(job, i, mr_row_meta(row), &whole, err));
    if (!whole) {
        add(job, MR_PROBLEM_META, i, "its meta matched its hash at first, but not when read again");
        return MR_OK;
    }
    mr_buf *class_name = &job->scratch->source;
    mr_buf_clear(class_name);
    mr_status status = mr_meta_scan_class(job->scratch->record.data, row->meta_len, &facts, class_name, &why);
    if (status == MR_SYSTEM)
        return mr_fail(err, status, "%s", why.text);
    if (status != MR_OK)
        add(job, MR_PROBLEM_META, i, why.text);
    else
        compare_meta(job, i, &facts, class_name);
    return MR_OK;
}

static bool same_facts(const mr_row *row, const mr_image_facts *f)
{
    const uint32_t image_flags =
        MR_FLAG_PROGRESSIVE | MR_FLAG_ANIMATED | MR_FLAG_ALPHA | MR_FLAG_PALETTE | MR_FLAG_ARITHMETIC;
    return row->width == f->width && row->height == f->height && row->codec == f->codec &&
           row->orientation == f->orientation && row->components == f->components && row->bits == f->bits &&
           (row->flags & image_flags) == (f->flags & image_flags);
}

/* A row that shares its image is compared with the row that holds it; pixels are decoded once. */
static void compare_shared(mr_verify_job *job, uint64_t i)
{
    const mr_row *h = &job->rows[job->rows[i].holder];
    const mr_image_facts facts = {.width = h->width,
                                  .height = h->height,
                                  .codec = h->codec,
                                  .bits = h->bits,
                                  .orientation = h->orientation,
                                  .components = h->components,
                                  .flags = h->flags};
    uint8_t damage = job->damaged[job->rows[i].holder];
    char text[80];
    if (damage & MR_DAMAGED_IMAGE) {
        add(job, MR_PROBLEM_IMAGE, i, "its image is stored under a damaged sample");
    } else if (!same_facts(&job->rows[i], &facts)) {
        add(job, MR_PROBLEM_IMAGE, i, "the index describes its image differently from the sample that stores it");
    } else if (damage & MR_DAMAGED_DECODE) {
        snprintf(text, sizeof text, "its image, stored under sample %llu, cannot be decoded",
                 (ull)(job->shard->first + job->rows[i].holder));
        add(job, MR_PROBLEM_DECODE, i, text);
    }
}

/* The header of the image in scratch->record and, if asked for, its pixels; *kind: the kind of problem if that fails.
 * Decoding obeys the run's limits: it takes the memory and the time that a header claims. */
static mr_status examine(const mr_verify_job *job, uint64_t i, mr_problem_kind *kind, uint32_t *oddities, mr_error *why)
{
    const mr_row *row = &job->rows[i];
    const uint8_t *image = job->scratch->record.data;
    mr_image_facts facts;
    mr_image_limits limits = mr_stored_limits;
    limits.max_pixels = job->options->limits.max_pixels; /* which bounds the work of scans, too */
    *kind = MR_PROBLEM_IMAGE;
    MR_TRY(mr_image_examine(image, row->image_len, &mr_stored_limits, &facts, why));
    if (!same_facts(row, &facts))
        return mr_fail(why, MR_BAD_SAMPLE, "the image's header and the index differ in size, kind or orientation");
    if (job->options->level < MR_VERIFY_DECODE)
        return MR_OK;
    *kind = MR_PROBLEM_DECODE;
    return mr_image_decode_oddities(image, row->image_len, &limits, oddities, why);
}

static mr_status check_image(mr_verify_job *job, uint64_t i, mr_error *err)
{
    mr_problem_kind kind;
    mr_error why;
    uint32_t oddities = 0;
    bool whole;
    if (job->rows[i].holder != i) {
        compare_shared(job, i);
        return MR_OK;
    }
    MR_TRY(read_record(job, i, mr_row_image(&job->rows[i]), &whole, err));
    if (!whole) {
        add(job, MR_PROBLEM_IMAGE, i, "its image matched its hash at first, but not when read again");
        return MR_OK;
    }
    mr_status status = examine(job, i, &kind, &oddities, &why);
    if (status == MR_SYSTEM)
        return mr_fail(err, status, "%s", why.text);
    if (job->seek.len)
        MR_TRY(mr_verify_seek_row(job, i, err));
    if (status == MR_OK)
        return mr_verify_oddity_add(job, i, oddities, err);
    add(job, kind, i, why.text);
    return MR_OK;
}

mr_status mr_verify_deep(mr_verify_job *job, mr_error *err)
{
    if (!job->unread) { /* pages that cannot be read would end each walk, and have been reported */
        MR_TRY(walk(job, false, err));
        MR_TRY(walk(job, true, err));
    }
    if (!job->index_good)
        return MR_OK;
    for (uint64_t i = 0; i < job->shard->samples; i++) {
        bool image = !(job->damaged[i] & MR_DAMAGED_IMAGE);
        if (!(job->damaged[i] & MR_DAMAGED_META))
            MR_TRY(check_meta(job, i, err));
        if (image)
            MR_TRY(check_image(job, i, err));
        mr_progress_add(job->progress, 1, job->rows[i].image_len);
    }
    return MR_OK;
}
