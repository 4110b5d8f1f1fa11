/* coco_raw.c - annotations of COCO as in the source, for what `objects` does not hold: areas and masks.
 * Invariant: spans are of values that a strict parser has accepted. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "shards/export/formats/coco.h"
#include "base/json/json_stream.h"

enum { LEVELS = 3, DEPTH_MAX = 1000 };

typedef enum member { OTHER, ID, AREA, SEGMENTATION } member;

typedef struct reader {
    mr_export_raws *out;
    mr_json_stream *stream;
    size_t from; /* where the list begins in the meta */
    member current;
    mr_export_raw raw;
    mr_error *err;
} reader;

static void take_value(reader *r, const mr_json_token *t)
{
    size_t at = r->from + (size_t)mr_json_stream_at(r->stream);
    if (r->current == ID && t->kind == MR_JSON_NUMBER)
        r->raw.id = (mr_span){at - t->len, t->len};
    else if (r->current == AREA && t->kind == MR_JSON_NUMBER)
        r->raw.area = (mr_span){at - t->len, t->len};
    else if (r->current == SEGMENTATION && t->kind == MR_JSON_OBJECT)
        r->raw.mask = (mr_span){at - 1, 0};
    else if (r->current == SEGMENTATION && t->kind == MR_JSON_OBJECT_END)
        r->raw.mask.len = at - r->raw.mask.at;
}

static mr_status take(void *ctx, const mr_json_token *t)
{
    static const char *const words[] = {"", "id", "area", "segmentation"};
    reader *r = ctx;
    mr_export_raws *out = r->out;
    if (t->depth == 1 && t->kind == MR_JSON_OBJECT)
        r->raw = (mr_export_raw){0};
    if (t->depth == 1 && t->kind == MR_JSON_OBJECT_END && r->raw.id.len) {
        if (!MR_GROW(out->items, out->count, out->capacity))
            return mr_fail_memory(r->err, "exporting");
        out->items[out->count++] = r->raw;
    }
    if (t->depth != 2)
        return MR_OK;
    if (t->kind != MR_JSON_KEY) {
        take_value(r, t);
        return MR_OK;
    }
    r->current = OTHER;
    for (int i = ID; i <= SEGMENTATION; i++)
        if (t->len == strlen(words[i]) && !memcmp(t->text, words[i], t->len))
            r->current = (member)i;
    return MR_OK;
}

static int compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);
    return order ? order : (a_len > b_len) - (a_len < b_len);
}

static int by_id(const void *a, const void *b, void *meta)
{
    const mr_export_raw *x = a, *y = b;
    const char *text = meta;
    return compare(text + x->id.at, x->id.len, text + y->id.at, y->id.len);
}

static mr_status read_list(const char *meta, mr_span list, mr_export_raws *out, mr_error *err)
{
    MR_AUTO(mr_json_stream_close) mr_json_stream *stream = NULL;
    reader r = {.out = out, .from = list.at, .err = err};
    const mr_json_rules rules = {.handler = take, .ctx = &r, .levels = LEVELS, .depth_max = DEPTH_MAX};
    if (!list.len)
        return MR_OK;
    MR_TRY(mr_json_stream_open(&rules, "reading annotations", &stream, err));
    r.stream = stream;
    mr_status status = mr_json_stream_feed(stream, meta + list.at, list.len, 0, err);
    if (status == MR_OK)
        status = mr_json_stream_end(stream, err);
    return status == MR_BAD_DATA ? mr_fail(err, MR_BAD_DATA, "meta: annotations that are not JSON") : status;
}

mr_status mr_export_raws_read(const char *meta, const mr_export_facts *f, mr_export_raws *out, mr_error *err)
{
    out->count = 0;
    MR_TRY(read_list(meta, f->instances, out, err));
    if (!out->count)
        MR_TRY(read_list(meta, f->keypoints, out, err));
    if (out->count)
        qsort_r(out->items, out->count, sizeof *out->items, by_id, (void *)(uintptr_t)meta);
    return MR_OK;
}

const mr_export_raw *mr_export_raws_find(const mr_export_raws *r, const char *meta, const char *id, size_t len)
{
    size_t low = 0, high = r->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = compare(meta + r->items[mid].id.at, r->items[mid].id.len, id, len);
        if (!order)
            return &r->items[mid];
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}
