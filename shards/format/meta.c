/* meta.c - the members of a sample's meta that millrace itself writes and reads back.
 * Invariant: only keys at depth one are looked at, and each of our own at most once. */
#include "shards/format/meta.h"

#include "shards/manifest/format.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/scope.h"
#include "base/json/json_stream.h"

enum { MAX_DEPTH = 1000 };

typedef enum member { OTHER, SOURCE, LABEL, LABELS, CLASS, IMAGE_OF, UNANNOTATED, MEMBERS } member;

static const char *const words[MEMBERS] = {"", "source", "label", "labels", "class", "image_of", "unannotated"};

typedef struct scan {
    mr_meta_facts facts;
    mr_buf *source, *class_name, *labels;
    member current; /* whose value comes next or, inside a list, is being read */
    unsigned seen;  /* one bit a member */
    mr_error *err;
} scan;

static mr_status mistyped(const scan *s)
{
    return mr_fail(s->err, MR_BAD_DATA, "meta: \"%s\" has a value of the wrong type or range", words[s->current]);
}

/* A whole number from 0 to max, written with digits alone; anything else is false. */
static bool whole(const char *text, size_t len, uint64_t max, uint64_t *out)
{
    uint64_t value = 0;
    if (len == 0 || len > 19)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(text[i] - '0');
    }
    *out = value;
    return value <= max;
}

static mr_status take_number(scan *s, const mr_json_token *t)
{
    uint64_t value;
    if (s->current == IMAGE_OF && whole(t->text, t->len, INT64_MAX, &value)) {
        s->facts.has_image_of = true;
        s->facts.image_of = value;
        return MR_OK;
    }
    bool is_label = s->current == (t->depth == 1 ? LABEL : LABELS);
    if (!is_label || !whole(t->text, t->len, INT32_MAX, &value))
        return mistyped(s);
    if (s->current == LABEL)
        s->facts.label = (int32_t)value;
    int32_t label = (int32_t)value;
    if (s->current == LABELS && s->labels)
        mr_buf_add(s->labels, &label, sizeof label);
    if ((int32_t)value > s->facts.highest)
        s->facts.highest = (int32_t)value;
    return MR_OK;
}

static mr_status take_string(scan *s, const mr_json_token *t)
{
    if (t->depth != 1 || (s->current != SOURCE && s->current != CLASS))
        return mistyped(s);
    s->facts.has_class |= s->current == CLASS;
    mr_buf *out = s->current == SOURCE ? s->source : s->class_name;
    if (out)
        mr_buf_add(out, t->text, t->len);
    return MR_OK;
}

static mr_status take_key(scan *s, const mr_json_token *t)
{
    s->current = OTHER;
    for (unsigned i = 1; i < MEMBERS; i++)
        if (t->len == strlen(words[i]) && memcmp(t->text, words[i], t->len) == 0)
            s->current = (member)i;
    if (s->current == OTHER)
        return MR_OK;
    if (s->seen & 1u << s->current)
        return mr_fail(s->err, MR_BAD_DATA, "meta: has \"%s\" twice", words[s->current]);
    s->seen |= 1u << s->current;
    return MR_OK;
}

/* The value of one of our members, or an item of "labels". */
static mr_status take_value(scan *s, const mr_json_token *t)
{
    switch (t->kind) {
    case MR_JSON_NUMBER:
        return take_number(s, t);
    case MR_JSON_STRING:
        return take_string(s, t);
    case MR_JSON_BOOLEAN:
        if (t->depth != 1 || s->current != UNANNOTATED)
            return mistyped(s);
        s->facts.unannotated = *t->text == 't';
        return MR_OK;
    case MR_JSON_LIST:
        if (t->depth != 1 || s->current != LABELS)
            return mistyped(s);
        s->facts.multi_label = true;
        return MR_OK;
    default:
        return mistyped(s);
    }
}

static mr_status take_token(void *ctx, const mr_json_token *t)
{
    scan *s = ctx;
    if (t->kind == MR_JSON_OBJECT_END || t->kind == MR_JSON_LIST_END)
        return MR_OK;
    if (t->depth == 0)
        return t->kind == MR_JSON_OBJECT ? MR_OK : mr_fail(s->err, MR_BAD_DATA, "meta: is not an object");
    if (t->depth == 1 && t->kind == MR_JSON_KEY)
        return take_key(s, t);
    bool is_own = s->current != OTHER && (t->depth == 1 || s->current == LABELS);
    return is_own ? take_value(s, t) : MR_OK;
}

static mr_status run_scan(scan *s, const void *json, size_t len, mr_meta_facts *facts, mr_error *err)
{
    const mr_json_rules rules = {.handler = take_token, .ctx = s, .levels = 2, .depth_max = MAX_DEPTH};
    MR_AUTO(mr_json_stream_close) mr_json_stream *stream = NULL;
    mr_json_fault fault;
    if (len > MR_META_MAX)
        return mr_fail(err, MR_BAD_DATA, "meta: %zu bytes are more than 1 GiB", len);
    MR_TRY(mr_json_stream_open(&rules, "reading meta", &stream, err));
    mr_status status = mr_json_stream_feed(stream, json, len, 0, err);
    if (status == MR_OK)
        status = mr_json_stream_end(stream, err);
    if (status == MR_BAD_DATA && mr_json_stream_fault(stream, json, len, 0, true, &fault))
        return mr_fail(err, MR_BAD_DATA, "meta: byte %llu: %s", (unsigned long long)fault.at + 1, fault.why);
    MR_TRY(status);
    if (s->facts.multi_label && s->facts.label >= 0)
        return mr_fail(err, MR_BAD_DATA, "meta: has both \"label\" and \"labels\"");
    if ((s->source && s->source->failed) || (s->class_name && s->class_name->failed) ||
        (s->labels && s->labels->failed))
        return mr_fail_memory(err, "reading meta");
    *facts = s->facts;
    return MR_OK;
}

static const scan nothing = {.facts = {.label = -1, .highest = -1}};

mr_status mr_meta_scan(const void *json, size_t len, mr_meta_facts *facts, mr_buf *source, mr_error *err)
{
    scan s = nothing;
    s.source = source;
    s.err = err;
    return run_scan(&s, json, len, facts, err);
}

mr_status mr_meta_scan_class(const void *json, size_t len, mr_meta_facts *facts, mr_buf *class_name, mr_error *err)
{
    scan s = nothing;
    s.class_name = class_name;
    s.err = err;
    return run_scan(&s, json, len, facts, err);
}

mr_status mr_meta_scan_labels(const void *json, size_t len, mr_meta_facts *facts, mr_buf *labels, mr_error *err)
{
    scan s = nothing;
    s.labels = labels;
    s.err = err;
    return run_scan(&s, json, len, facts, err);
}

void mr_meta_begin(mr_buf *out, const char *path, size_t path_len, const mr_meta_facts *facts, const char *class_name)
{
    mr_buf_add_text(out, "{\"source\":");
    mr_json_add_path(out, path, path_len);
    if (facts->label >= 0)
        mr_buf_printf(out, ",\"label\":%d", (int)facts->label);
    if (class_name) {
        mr_buf_add_text(out, ",\"class\":");
        mr_json_add_string(out, class_name, strlen(class_name));
    }
    if (facts->has_image_of)
        mr_buf_printf(out, ",\"image_of\":%llu", (unsigned long long)facts->image_of);
    if (facts->unannotated)
        mr_buf_add_text(out, ",\"unannotated\":true");
}

/* Past the JSON string that begins at `at`; `len` if it does not end. */
static size_t past_string(const char *text, size_t len, size_t at)
{
    for (at++; at < len && text[at] != '"'; at++)
        at += text[at] == '\\';
    return at < len ? at + 1 : len;
}

static bool begins(const char *text, size_t len, size_t at, const char *with)
{
    return len - at >= strlen(with) && memcmp(text + at, with, strlen(with)) == 0;
}

static size_t past_digits(const char *text, size_t len, size_t at)
{
    while (at < len && text[at] >= '0' && text[at] <= '9')
        at++;
    return at;
}

static const char source_is[] = "{\"source\":", label_is[] = ",\"label\":", class_is[] = ",\"class\":";

/* Past the source; 0: it is another's meta. */
static size_t past_source(const char *meta, size_t len)
{
    return begins(meta, len, 0, source_is) ? past_string(meta, len, strlen(source_is)) : 0;
}

void mr_meta_place(mr_buf *out, const char *meta, size_t len, bool has_image_of, uint64_t image_of)
{
    static const char place_is[] = ",\"image_of\":";
    size_t at = past_source(meta, len), rest;
    if (at && begins(meta, len, at, label_is))
        at = past_digits(meta, len, at + strlen(label_is));
    if (at && begins(meta, len, at, class_is))
        at = past_string(meta, len, at + strlen(class_is));
    rest = at && begins(meta, len, at, place_is) ? past_digits(meta, len, at + strlen(place_is)) : at;
    mr_buf_add(out, meta, at);
    if (at && has_image_of)
        mr_buf_printf(out, "%s%llu", place_is, (unsigned long long)image_of);
    mr_buf_add(out, meta + rest, len - rest);
}

void mr_meta_relabel(mr_buf *out, const char *meta, size_t len, int32_t label, const char *class_name)
{
    size_t at = past_source(meta, len), rest = 0;
    if (at && begins(meta, len, at, label_is)) {
        mr_buf_add(out, meta, at);
        mr_buf_printf(out, "%s%d", label_is, (int)label);
        rest = past_digits(meta, len, at + strlen(label_is));
        if (class_name && begins(meta, len, rest, class_is)) {
            mr_buf_add_text(out, class_is);
            mr_json_add_string(out, class_name, strlen(class_name));
            rest = past_string(meta, len, rest + strlen(class_is));
        }
    }
    mr_buf_add(out, meta + rest, len - rest);
}
