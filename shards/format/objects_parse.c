/* objects_parse.c - reads the objects back from a meta.
 * Invariant: only the member "objects" at depth one counts, and only in the form that mr_objects_write() gives it;
 * every byte of it is read once, as training reads it of every sample.
 *
 *   mr_objects_parse: a whole meta        mr_objects_parse_value: [{"label":3,"box":[...],...},...]
 *     its members, one by one  ---------->  object -> member -> number, list of numbers, list of lists */
#include <string.h>

#include "base/json/json_walk.h"
#include "base/scope.h"
#include "base/text.h"
#include "shards/format/objects.h"

typedef enum member { OTHER, LABEL, BOX, POLYGONS, ORIENTED, KEYPOINTS, CROWD, ID, MEMBERS } member;

static const char *const words[MEMBERS] = {"", "label", "box", "polygons", "oriented_box", "keypoints", "crowd", "id"};

typedef struct reader {
    const char *at, *end;
    mr_objects *objects;
} reader;

static bool take(reader *r, char c)
{
    r->at = mr_json_blanks(r->at, r->end);
    bool there = r->at < r->end && *r->at == c;
    r->at += there;
    return there;
}

static bool is_digit(const reader *r)
{
    return r->at < r->end && *r->at >= '0' && *r->at <= '9';
}

/* Digits, and up to three after a decimal point; a number that JSON or this form does not allow is refused. */
static bool read_milli(reader *r, mr_milli *out)
{
    bool negative = take(r, '-');
    const char *first = r->at;
    mr_milli value = 0;
    for (; is_digit(r) && r->at - first < 12; r->at++)
        value = value * 10 + (*r->at - '0');
    if (r->at == first || (*first == '0' && r->at - first > 1))
        return false;
    bool point = r->at < r->end && *r->at == '.';
    size_t decimals = 0;
    if (point)
        for (r->at++; is_digit(r) && decimals < 3; r->at++, decimals++)
            value = value * 10 + (*r->at - '0');
    if (point && !decimals)
        return false;
    for (; decimals < 3; decimals++)
        value *= 10;
    *out = negative ? -value : value;
    return r->at == r->end || !(is_digit(r) || *r->at == '.' || *r->at == 'e' || *r->at == 'E');
}

static bool read_numbers(reader *r, mr_milli *out, size_t count)
{
    if (!take(r, '['))
        return false;
    for (size_t i = 0; i < count; i++)
        if ((i && !take(r, ',')) || !read_milli(r, &out[i]))
            return false;
    return take(r, ']');
}

/* False also where memory ran out, which r->objects->failed says. */
static bool read_list(reader *r, bool (*read_item)(reader *))
{
    int more = -1;
    if (!take(r, '['))
        return false;
    mr_json_walk walk = {r->at, r->end, ']', false};
    while (!r->objects->failed && (more = mr_json_next_item(&walk)) == 1) {
        r->at = walk.at;
        if (!read_item(r))
            return false;
        walk.at = r->at;
    }
    r->at = walk.at;
    return more == 0;
}

static bool read_point(reader *r)
{
    mr_milli x, y;
    if (!read_milli(r, &x) || !take(r, ',') || !read_milli(r, &y))
        return false;
    mr_objects_point(r->objects, x, y);
    return true;
}

static bool read_ring(reader *r)
{
    mr_objects_ring(r->objects);
    return read_list(r, read_point);
}

static bool read_keypoint(reader *r)
{
    mr_milli numbers[3];
    if (!read_numbers(r, numbers, 3))
        return false;
    mr_objects_keypoint(r->objects, r->objects->count - 1,
                        (mr_keypoint){numbers[0], numbers[1], (int)(numbers[2] / 1000 % 1000)});
    return true;
}

static bool read_label(reader *r, int32_t *label)
{
    mr_milli value;
    if (!read_milli(r, &value) || value % 1000 || value < 0 || value / 1000 > INT32_MAX)
        return false;
    *label = (int32_t)(value / 1000);
    return true;
}

static bool take_word(reader *r, const char *word)
{
    size_t len = strlen(word);
    bool there = (size_t)(r->end - r->at) >= len && !memcmp(r->at, word, len);
    r->at += there ? len : 0;
    return there;
}

static bool read_crowd(reader *r, bool *crowd)
{
    *crowd = take_word(r, "true");
    return *crowd || take_word(r, "false");
}

static bool skip_digits(reader *r)
{
    const char *first = r->at;
    while (is_digit(r))
        r->at++;
    return r->at > first;
}

/* As JSON writes numbers (RFC 8259, section 6): it is written again as it is. */
static bool skip_number(reader *r)
{
    take_word(r, "-");
    bool zero = take_word(r, "0");
    if (!zero && !skip_digits(r))
        return false;
    if (take_word(r, ".") && !skip_digits(r))
        return false;
    if (!take_word(r, "e") && !take_word(r, "E"))
        return true;
    if (!take_word(r, "+"))
        take_word(r, "-");
    return skip_digits(r);
}

static bool read_id(reader *r)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    MR_AUTO(mr_buf_free) mr_buf json = {0};
    const char *begin = r->at;
    if (take_word(r, "null"))
        return true;
    if (r->at == r->end || *r->at != '"') {
        bool valid = skip_number(r);
        mr_objects_id(r->objects, begin, valid ? (size_t)(r->at - begin) : 0);
        return valid;
    }
    r->at = mr_json_skip(r->at, r->end);
    if (!r->at || !mr_json_decode((mr_json_span){begin, r->at}, &text))
        return false;
    mr_json_add_string(&json, mr_buf_text(&text), text.len);
    mr_objects_id(r->objects, mr_buf_text(&json), json.len);
    r->objects->failed |= text.failed || json.failed;
    return true;
}

/* The keys that we write have no escapes; one with escapes may still be one of them. */
static member member_of(mr_json_span key)
{
    size_t len = (size_t)(key.end - key.at) - 2;
    bool escaped = memchr(key.at, '\\', len + 1);
    for (int i = 1; i < MEMBERS; i++)
        if (escaped ? mr_json_equals(key, words[i]) : len == strlen(words[i]) && !memcmp(key.at + 1, words[i], len))
            return (member)i;
    return OTHER;
}

static bool read_value(reader *r, member of)
{
    mr_object *object = &r->objects->items[r->objects->count - 1];
    switch (of) {
    case LABEL:
        return read_label(r, &object->label);
    case BOX:
        return object->has_box = read_numbers(r, object->box, 4);
    case ORIENTED:
        return object->oriented = read_numbers(r, object->corners, 8);
    case POLYGONS:
        return read_list(r, read_ring);
    case KEYPOINTS:
        return read_list(r, read_keypoint);
    case CROWD:
        return read_crowd(r, &object->crowd);
    case ID:
        return read_id(r);
    default:
        r->at = mr_json_skip(r->at, r->end);
        return r->at;
    }
}

static mr_status refuse_json(mr_error *err)
{
    return mr_fail(err, MR_BAD_DATA, "meta: \"objects\" is not valid JSON");
}

static mr_status read_object(reader *r, mr_error *err)
{
    mr_json_span key;
    int more;
    if (!take(r, '{'))
        return mr_fail(err, MR_BAD_DATA, "meta: \"objects\" lists something that is not an object");
    mr_json_walk walk = {r->at, r->end, '}', false};
    mr_objects_add(r->objects, -1);
    while (!r->objects->failed && (more = mr_json_next_key(&walk, &key)) != 0) {
        const member of = more > 0 ? member_of(key) : OTHER;
        r->at = walk.at;
        bool read = more > 0 && read_value(r, of);
        if (r->objects->failed)
            break;
        if (!read)
            return of == OTHER ? refuse_json(err)
                               : mr_fail(err, MR_BAD_DATA, "meta: \"objects\" has an invalid \"%s\"", words[of]);
        walk.at = r->at;
    }
    r->at = walk.at;
    return r->objects->failed ? mr_fail_memory(err, "reading objects") : MR_OK;
}

static mr_status read_objects(reader *r, mr_error *err)
{
    int more;
    if (!take(r, '['))
        return mr_fail(err, MR_BAD_DATA, "meta: \"objects\" is not a list");
    mr_json_walk walk = {r->at, r->end, ']', false};
    while ((more = mr_json_next_item(&walk)) == 1) {
        r->at = walk.at;
        MR_TRY(read_object(r, err));
        walk.at = r->at;
    }
    r->at = walk.at;
    return more == 0 ? MR_OK : refuse_json(err);
}

mr_status mr_objects_parse_value(const char *value, const char *end, mr_objects *o, mr_error *err)
{
    reader r = {value, end, o};
    mr_objects_clear(o);
    o->known = true;
    return read_objects(&r, err);
}

mr_status mr_objects_parse(const void *meta, size_t len, mr_objects *o, mr_error *err)
{
    reader r = {meta, (const char *)meta + len, o};
    mr_json_span key;
    int more;
    mr_objects_clear(o);
    if (!take(&r, '{'))
        return mr_fail(err, MR_BAD_DATA, "meta: not a JSON object");
    mr_json_walk walk = {r.at, r.end, '}', false};
    while ((more = mr_json_next_key(&walk, &key)) == 1) {
        r.at = walk.at;
        if (mr_json_equals(key, "objects")) {
            if (o->known)
                return mr_fail(err, MR_BAD_DATA, "meta: has \"objects\" twice");
            o->known = true;
            MR_TRY(read_objects(&r, err));
        } else if (!(r.at = mr_json_skip(r.at, r.end))) {
            break;
        }
        walk.at = r.at;
    }
    const char *rest = more == 0 ? mr_json_blanks(walk.at, r.end) : walk.at;
    if (more == 0 && rest == r.end)
        return MR_OK;
    return mr_fail(err, MR_BAD_DATA, "meta: byte %zu: not valid JSON", (size_t)(rest - (const char *)meta) + 1);
}
