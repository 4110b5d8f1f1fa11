/* facts.c - what a sample's meta says besides its objects: labels, captions, and where the source's own words are.
 * Invariant: one pass of a strict parser; only members at depth one are looked at, each at most once (the first). */
#include "shards/export/facts.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "shards/manifest/format.h"
#include "base/json/json_stream.h"

enum { LEVELS = 4, DEPTH_MAX = 1000 };

typedef enum member {
    OTHER,
    SOURCE,
    LABELS,
    CAPTIONS,
    COLUMNS,
    INSTANCES,
    ANNOTATIONS,
    KEYPOINTS,
    IMAGE,
    MEMBERS
} member;

static const char *const words[MEMBERS] = {"",          "source",      "labels",           "captions", "columns",
                                           "instances", "annotations", "person_keypoints", "image"};

typedef struct reader {
    mr_export_facts *f;
    mr_json_stream *stream;
    mr_buf source;
    member current;
    bool caption, id; /* the member whose value comes next, one level deeper */
    mr_error *err;
} reader;

void mr_export_facts_free(mr_export_facts *f)
{
    mr_buf_free(&f->source);
    mr_buf_free(&f->texts);
    free(f->labels);
    free(f->captions);
    *f = (mr_export_facts){0};
}

static void clear(mr_export_facts *f)
{
    mr_export_facts kept = *f;
    mr_buf_clear(&kept.source);
    mr_buf_clear(&kept.texts);
    *f = (mr_export_facts){.source = kept.source,
                           .texts = kept.texts,
                           .labels = kept.labels,
                           .label_capacity = kept.label_capacity,
                           .captions = kept.captions,
                           .caption_capacity = kept.caption_capacity};
}

static mr_status add_label(reader *r, const mr_json_token *t)
{
    mr_export_facts *f = r->f;
    char text[16] = "";
    uint64_t value;
    if (t->len >= sizeof text)
        return MR_OK;
    memcpy(text, t->text, t->len);
    if (!mr_text_parse_u64(text, &value) || value > INT32_MAX)
        return MR_OK;
    if (!MR_GROW(f->labels, f->label_count, f->label_capacity))
        return mr_fail_memory(r->err, "exporting");
    f->labels[f->label_count++] = (uint32_t)value;
    return MR_OK;
}

/* Blank captions do not count: a caption is text that was written. */
static mr_status add_caption(reader *r, const mr_json_token *t)
{
    mr_export_facts *f = r->f;
    if (!t->len)
        return MR_OK;
    if (!MR_GROW(f->captions, f->caption_count, f->caption_capacity))
        return mr_fail_memory(r->err, "exporting");
    f->captions[f->caption_count++] = (mr_span){f->texts.len, t->len};
    mr_buf_add(&f->texts, t->text, t->len);
    return mr_buf_status(&f->texts, r->err, "exporting");
}

static mr_span *span_of(reader *r)
{
    return r->current == COLUMNS                                  ? &r->f->columns
           : r->current == INSTANCES || r->current == ANNOTATIONS ? &r->f->instances
           : r->current == KEYPOINTS                              ? &r->f->keypoints
                                                                  : NULL;
}

static mr_status take_member(reader *r, const mr_json_token *t)
{
    mr_span *span = span_of(r);
    size_t at = (size_t)mr_json_stream_at(r->stream);
    if (r->current == SOURCE && t->kind == MR_JSON_STRING)
        mr_buf_add(&r->source, t->text, t->len);
    if (r->current == LABELS && t->kind == MR_JSON_LIST)
        r->f->has_labels = true;
    if (span && !span->len && (t->kind == MR_JSON_OBJECT || t->kind == MR_JSON_LIST))
        *span = (mr_span){at - 1, 0};
    if (span && !span->len && (t->kind == MR_JSON_OBJECT_END || t->kind == MR_JSON_LIST_END))
        span->len = at - span->at;
    return MR_OK;
}

static mr_status take(void *ctx, const mr_json_token *t)
{
    reader *r = ctx;
    size_t at = (size_t)mr_json_stream_at(r->stream);
    if (t->depth == 1 && t->kind == MR_JSON_KEY) {
        r->current = OTHER;
        for (int i = 1; i < MEMBERS; i++)
            if (t->len == strlen(words[i]) && !memcmp(t->text, words[i], t->len))
                r->current = (member)i;
        return MR_OK;
    }
    if (t->depth == 1)
        return take_member(r, t);
    if (t->kind == MR_JSON_KEY) {
        r->caption = r->current == CAPTIONS && t->depth == 3 && t->len == 7 && !memcmp(t->text, "caption", 7);
        r->id = r->current == IMAGE && t->depth == 2 && t->len == 2 && !memcmp(t->text, "id", 2);
        return MR_OK;
    }
    if (r->current == LABELS && t->depth == 2 && t->kind == MR_JSON_NUMBER)
        return add_label(r, t);
    if (r->current == CAPTIONS && t->kind == MR_JSON_STRING && (t->depth == 2 || (t->depth == 3 && r->caption)))
        return add_caption(r, t);
    if (r->id && t->depth == 2 && t->kind == MR_JSON_NUMBER)
        r->f->image_id = (mr_span){at - t->len, t->len};
    return MR_OK;
}

mr_status mr_export_facts_read(const char *meta, size_t len, mr_export_facts *f, mr_error *err)
{
    MR_AUTO(mr_json_stream_close) mr_json_stream *stream = NULL;
    MR_AUTO(mr_buf_free) mr_buf source = {0};
    reader r = {.f = f, .err = err};
    const mr_json_rules rules = {.handler = take, .ctx = &r, .levels = LEVELS, .depth_max = DEPTH_MAX};
    clear(f);
    if (len > MR_META_MAX)
        return mr_fail(err, MR_BAD_DATA, "meta: %zu bytes are more than 1 GiB", len);
    MR_TRY(mr_json_stream_open(&rules, "reading meta", &stream, err));
    r.stream = stream;
    mr_status status = mr_json_stream_feed(stream, meta, len, 0, err);
    if (status == MR_OK)
        status = mr_json_stream_end(stream, err);
    source = r.source;
    mr_json_fault fault;
    if (status == MR_BAD_DATA && mr_json_stream_fault(stream, meta, len, 0, true, &fault))
        return mr_fail(err, MR_BAD_DATA, "meta: byte %llu: %s", (unsigned long long)fault.at + 1, fault.why);
    MR_TRY(status);
    if (!mr_text_unescape(&f->source, (const char *)source.data, source.len))
        mr_buf_clear(&f->source);
    if (source.failed || f->source.failed)
        return mr_fail_memory(err, "exporting");
    return MR_OK;
}
