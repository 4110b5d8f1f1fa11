/* objects_parse.c - reads the objects back from a meta.
 * Invariant: only the member "objects" at depth one counts, and only in the form that mr_objects_write() gives it. */
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "shards/manifest/format.h"
#include "shards/format/objects.h"
#include "base/json/json_stream.h"

enum { LEVELS = 6, DEPTH_MAX = 1000, NUMBERS = 8 };

typedef enum member { OTHER, LABEL, CLASS, BOX, POLYGONS, ORIENTED, KEYPOINTS, CROWD, ID, MEMBERS } member;

static const char *const words[MEMBERS] = {"",          "label", "class", "box", "polygons", "oriented_box",
                                           "keypoints", "crowd", "id"};

typedef struct reader {
    mr_objects *objects;
    bool inside; /* of "objects" */
    member current;
    mr_milli numbers[NUMBERS]; /* of the current list; of a polygon the last two */
    size_t count;
    mr_error *err;
} reader;

static mr_status refuse(const reader *r)
{
    return mr_fail(r->err, MR_BAD_DATA, "meta: \"objects\" has an invalid \"%s\"", words[r->current]);
}

/* Digits, and up to three after a decimal point. */
static bool milli(const char *text, size_t len, mr_milli *out)
{
    size_t at = len && *text == '-', digits = 0;
    mr_milli value = 0;
    for (; at < len && text[at] >= '0' && text[at] <= '9' && digits < 12; at++, digits++)
        value = value * 10 + (text[at] - '0');
    if (!digits)
        return false;
    size_t decimals = 0;
    if (at < len && text[at] == '.')
        for (at++; at < len && text[at] >= '0' && text[at] <= '9' && decimals < 3; at++, decimals++)
            value = value * 10 + (text[at] - '0');
    for (; decimals < 3; decimals++)
        value *= 10;
    *out = *text == '-' ? -value : value;
    return at == len;
}

static mr_object *last(const reader *r)
{
    return &r->objects->items[r->objects->count - 1];
}

static mr_status take_number(reader *r, const mr_json_token *t)
{
    mr_milli value;
    if (r->current == ID && t->depth == 3) {
        mr_objects_id(r->objects, t->text, t->len);
        return MR_OK;
    }
    if (!milli(t->text, t->len, &value))
        return refuse(r);
    if (r->current == LABEL && t->depth == 3) {
        if (value % 1000 || value < 0 || value / 1000 > INT32_MAX)
            return refuse(r);
        last(r)->label = (int32_t)(value / 1000);
        return MR_OK;
    }
    unsigned depth = r->current == BOX || r->current == ORIENTED ? 4 : 5;
    if (t->depth != depth || r->count == NUMBERS)
        return refuse(r);
    r->numbers[r->count++] = value;
    if (r->current == POLYGONS && r->count == 2) {
        mr_objects_point(r->objects, r->numbers[0], r->numbers[1]);
        r->count = 0;
    }
    return MR_OK;
}

static mr_status end_list(reader *r)
{
    mr_object *object = last(r);
    size_t wanted = r->current == BOX ? 4 : r->current == ORIENTED ? 8 : r->current == KEYPOINTS ? 3 : 0;
    if (r->count != wanted)
        return refuse(r);
    if (r->current == BOX)
        memcpy(object->box, r->numbers, sizeof object->box);
    if (r->current == ORIENTED)
        memcpy(object->corners, r->numbers, sizeof object->corners);
    object->has_box |= r->current == BOX;
    object->oriented |= r->current == ORIENTED;
    if (r->current == KEYPOINTS)
        mr_objects_keypoint(r->objects, r->objects->count - 1,
                            (mr_keypoint){r->numbers[0], r->numbers[1], (int)(r->numbers[2] / 1000 % 1000)});
    return MR_OK;
}

static mr_status take_list(reader *r, const mr_json_token *t)
{
    bool nested = r->current == POLYGONS || r->current == KEYPOINTS;
    unsigned innermost = nested ? 4 : 3;
    if (!(nested || r->current == BOX || r->current == ORIENTED) || t->depth > innermost)
        return refuse(r);
    if (t->depth != innermost)
        return MR_OK;
    if (t->kind == MR_JSON_LIST_END)
        return end_list(r);
    r->count = 0;
    if (r->current == POLYGONS)
        mr_objects_ring(r->objects);
    return MR_OK;
}

static mr_status take_key(reader *r, const mr_json_token *t)
{
    r->current = OTHER;
    for (int i = 1; i < MEMBERS; i++)
        if (t->len == strlen(words[i]) && !memcmp(t->text, words[i], t->len))
            r->current = (member)i;
    return MR_OK;
}

static mr_status take_string(reader *r, const mr_json_token *t)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    if (r->current != ID || t->depth != 3)
        return refuse(r);
    mr_json_add_string(&text, t->text, t->len);
    mr_objects_id(r->objects, mr_buf_text(&text), text.len);
    return mr_buf_status(&text, r->err, "reading objects");
}

/* Inside of an object. */
static mr_status take_member(reader *r, const mr_json_token *t)
{
    if (t->depth == 3 && t->kind == MR_JSON_KEY)
        return take_key(r, t);
    if (r->current == OTHER || r->current == CLASS)
        return MR_OK;
    switch (t->kind) {
    case MR_JSON_NUMBER:
        return take_number(r, t);
    case MR_JSON_LIST:
    case MR_JSON_LIST_END:
        return take_list(r, t);
    case MR_JSON_BOOLEAN:
        last(r)->crowd = r->current == CROWD && *t->text == 't';
        return r->current == CROWD ? MR_OK : refuse(r);
    case MR_JSON_STRING:
        return take_string(r, t);
    default:
        return r->current == ID ? MR_OK : refuse(r);
    }
}

static mr_status take(void *ctx, const mr_json_token *t)
{
    reader *r = ctx;
    if (r->objects->failed)
        return mr_fail_memory(r->err, "reading objects");
    if (t->depth == 0)
        return MR_OK;
    if (t->depth == 1 && t->kind == MR_JSON_KEY) {
        r->inside = t->len == strlen("objects") && !memcmp(t->text, "objects", t->len);
        if (r->inside && r->objects->known)
            return mr_fail(r->err, MR_BAD_DATA, "meta: has \"objects\" twice");
        r->objects->known |= r->inside;
        return MR_OK;
    }
    if (!r->inside)
        return MR_OK;
    if (t->depth == 1)
        return t->kind == MR_JSON_LIST || t->kind == MR_JSON_LIST_END
                   ? MR_OK
                   : mr_fail(r->err, MR_BAD_DATA, "meta: \"objects\" is not a list");
    if (t->depth > 2)
        return take_member(r, t);
    if (t->kind == MR_JSON_OBJECT_END)
        return MR_OK;
    if (t->kind != MR_JSON_OBJECT)
        return mr_fail(r->err, MR_BAD_DATA, "meta: \"objects\" lists something that is not an object");
    r->current = OTHER;
    mr_objects_add(r->objects, -1);
    return r->objects->failed ? mr_fail_memory(r->err, "reading objects") : MR_OK;
}

mr_status mr_objects_parse(const void *meta, size_t len, mr_objects *o, mr_error *err)
{
    reader r = {.objects = o, .err = err};
    const mr_json_rules rules = {.handler = take, .ctx = &r, .levels = LEVELS, .depth_max = DEPTH_MAX};
    MR_AUTO(mr_json_stream_close) mr_json_stream *stream = NULL;
    mr_json_fault fault;
    mr_objects_clear(o);
    MR_TRY(mr_json_stream_open(&rules, "reading objects", &stream, err));
    mr_status status = mr_json_stream_feed(stream, meta, len, 0, err);
    if (status == MR_OK)
        status = mr_json_stream_end(stream, err);
    if (status == MR_BAD_DATA && mr_json_stream_fault(stream, meta, len, 0, true, &fault))
        return mr_fail(err, MR_BAD_DATA, "meta: byte %llu: %s", (unsigned long long)fault.at + 1, fault.why);
    return status == MR_OK && o->failed ? mr_fail_memory(err, "reading objects") : status;
}
