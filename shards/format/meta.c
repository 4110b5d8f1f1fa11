/* meta.c - the members of a sample's meta that millrace itself writes and reads back.
 * Invariant: only keys at depth one are looked at, and each of our own at most once. */
#include "format/meta.h"

#include "format/format.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "json/json.h"
#include "json/json_memory.h"

enum { MAX_DEPTH = 1000 };

typedef enum member { OTHER, SOURCE, LABEL, LABELS, CLASS, IMAGE_OF, UNANNOTATED, MEMBERS } member;

static const char *const words[MEMBERS] = {"", "source", "label", "labels", "class", "image_of", "unannotated"};

typedef struct scan {
    mr_meta_facts facts;
    mr_buf *source, *class_name;
    unsigned depth;
    member current; /* whose value comes next or, inside a list, is being read */
    unsigned seen;  /* one bit a member */
    yajl_handle parser;
    size_t end;    /* where the object closed */
    char why[120]; /* why a callback ended the parse */
} scan;

static int refuse(scan *s, const char *what)
{
    snprintf(s->why, sizeof s->why, "%s", what);
    return 0;
}

static int mistyped(scan *s)
{
    snprintf(s->why, sizeof s->why, "\"%s\" has a value of the wrong type or range", words[s->current]);
    return 0;
}

/* Whether a value that stands here is the value of one of our members, or an item of "labels". */
static bool is_own(const scan *s)
{
    return s->current != OTHER && (s->depth == 1 || (s->depth == 2 && s->current == LABELS));
}

/* Only the outermost object has our members; a value at depth 0 means that there is no object. */
static int on_null(void *ctx)
{
    scan *s = ctx;
    if (s->depth == 0)
        return refuse(s, "is not an object");
    return is_own(s) ? mistyped(s) : 1;
}

static int on_boolean(void *ctx, int value)
{
    scan *s = ctx;
    if (s->depth != 1 || s->current != UNANNOTATED)
        return on_null(ctx);
    s->facts.unannotated = value != 0;
    return 1;
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

static int on_number(void *ctx, const char *text, size_t len)
{
    scan *s = ctx;
    uint64_t value;
    if (s->depth == 0 || !is_own(s))
        return on_null(ctx);
    bool is_label = (s->current == LABEL && s->depth == 1) || (s->current == LABELS && s->depth == 2);
    if (is_label && whole(text, len, INT32_MAX, &value)) {
        if (s->current == LABEL)
            s->facts.label = (int32_t)value;
        if ((int32_t)value > s->facts.highest)
            s->facts.highest = (int32_t)value;
        return 1;
    }
    if (s->current == IMAGE_OF && whole(text, len, INT64_MAX, &value)) {
        s->facts.has_image_of = true;
        s->facts.image_of = value;
        return 1;
    }
    return mistyped(s);
}

static int on_string(void *ctx, const unsigned char *text, size_t len)
{
    scan *s = ctx;
    if (s->depth != 1 || (s->current != SOURCE && s->current != CLASS))
        return on_null(ctx);
    s->facts.has_class |= s->current == CLASS;
    mr_buf *out = s->current == SOURCE ? s->source : s->class_name;
    if (out)
        mr_buf_add(out, text, len);
    return 1;
}

static int open_level(scan *s)
{
    if (s->depth == 1 && s->current == LABELS)
        s->facts.multi_label = true;
    return ++s->depth <= MAX_DEPTH ? 1 : refuse(s, "is nested more than 1000 deep");
}

static int on_map(void *ctx)
{
    scan *s = ctx;
    return s->depth > 0 && is_own(s) ? mistyped(s) : open_level(s);
}

static int on_array(void *ctx)
{
    scan *s = ctx;
    if (s->depth == 0 || (is_own(s) && !(s->depth == 1 && s->current == LABELS)))
        return on_null(ctx);
    return open_level(s);
}

static int on_key(void *ctx, const unsigned char *key, size_t len)
{
    scan *s = ctx;
    if (s->depth != 1)
        return 1;
    s->current = OTHER;
    for (unsigned i = 1; i < MEMBERS; i++)
        if (len == strlen(words[i]) && memcmp(key, words[i], len) == 0)
            s->current = (member)i;
    if (s->current == OTHER)
        return 1;
    if (s->seen & 1u << s->current) {
        snprintf(s->why, sizeof s->why, "has \"%s\" twice", words[s->current]);
        return 0;
    }
    s->seen |= 1u << s->current;
    return 1;
}

static int on_end(void *ctx)
{
    scan *s = ctx;
    if (--s->depth == 0)
        s->end = yajl_get_bytes_consumed(s->parser);
    return 1;
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_boolean,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_map,
    .yajl_map_key = on_key,
    .yajl_end_map = on_end,
    .yajl_start_array = on_array,
    .yajl_end_array = on_end,
};

/* yajl's own sentence, on one line. */
static mr_status bad_json(yajl_handle parser, const void *json, size_t len, mr_error *err)
{
    unsigned char *text = yajl_get_error(parser, 0, json, len);
    size_t n = text ? strcspn((const char *)text, "\n") : 0;
    mr_status status = mr_fail(err, MR_BAD_DATA, "meta: byte %zu: %.*s", yajl_get_bytes_consumed(parser), (int)n,
                               text ? (const char *)text : "");
    if (text)
        yajl_free_error(parser, text);
    return status;
}

static mr_status scan_texts(const void *json, size_t len, mr_meta_facts *facts, mr_buf *source, mr_buf *class_name,
                            mr_error *err)
{
    scan s = {.facts = {.label = -1, .highest = -1}, .source = source, .class_name = class_name};
    if (len > MR_META_MAX)
        return mr_fail(err, MR_BAD_DATA, "meta: %zu bytes are more than 1 GiB", len);
    mr_yajl yajl;
    mr_status status = mr_yajl_open(&yajl, &callbacks, &s, MR_YAJL_ROOM(len), "reading meta", err);
    if (status != MR_OK)
        return status;
    yajl_handle parser = s.parser = yajl.parser;
    const char *beyond = NULL;
    yajl_status parsed = yajl_parse(parser, json, len);
    if (parsed == yajl_status_ok)
        parsed = yajl_complete_parse(parser);
    if (yajl.ran_out)
        status = mr_fail_memory(err, "reading meta");
    else if (parsed == yajl_status_client_canceled)
        status = mr_fail(err, MR_BAD_DATA, "meta: %s", s.why);
    else if (parsed != yajl_status_ok)
        status = bad_json(parser, json, len, err);
    else if ((beyond = mr_json_beyond(json, len, s.end)) != NULL)
        status = mr_fail(err, MR_BAD_DATA, "meta: %s", beyond);
    else if (s.facts.multi_label && s.facts.label >= 0)
        status = mr_fail(err, MR_BAD_DATA, "meta: has both \"label\" and \"labels\"");
    else if ((source && source->failed) || (class_name && class_name->failed))
        status = mr_fail_memory(err, "reading meta");
    mr_yajl_close(&yajl);
    if (status == MR_OK)
        *facts = s.facts;
    return status;
}

mr_status mr_meta_scan(const void *json, size_t len, mr_meta_facts *facts, mr_buf *source, mr_error *err)
{
    return scan_texts(json, len, facts, source, NULL, err);
}

mr_status mr_meta_scan_class(const void *json, size_t len, mr_meta_facts *facts, mr_buf *class_name, mr_error *err)
{
    return scan_texts(json, len, facts, NULL, class_name, err);
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
