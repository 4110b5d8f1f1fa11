/* json.c - JSON as a tree: jansson with limits and error messages in millrace's form. */
#include "base/json/json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/scope.h"
#include "base/cli/term.h"
#include "base/text.h"
#include "base/json/json_memory.h"
#include "base/json/json_oddity.h"

typedef struct json_text {
    const char *bytes;
    size_t len;
    unsigned long refused;
} json_text;

/* Supplies no more text after a failed allocation. */
static size_t feed(void *to, size_t capacity, void *ctx)
{
    json_text *t = ctx;
    size_t len = mr_json_refused() != t->refused ? 0 : t->len < capacity ? t->len : capacity;
    if (len)
        memcpy(to, t->bytes, len);
    t->bytes += len;
    t->len -= len;
    return len;
}

static mr_status reject(const char *bytes, size_t len, const char *name, const json_error_t *why, mr_error *err)
{
    char found[MR_JSON_ODDITY];
    size_t at = why->position > 0 && (size_t)why->position <= len ? (size_t)why->position : 0;
    mr_json_place place = {.text = bytes, .len = len, .at = at, .begins = true, .ends = true};
    if (json_error_code(why) == json_error_duplicate_key)
        return mr_fail(err, MR_BAD_DATA, "%s: line %d, column %d: duplicate key in an object, %s: remove one of them",
                       name, why->line, why->column, strstr(why->text, "near") ? strstr(why->text, "near") : "here");
    if (!mr_json_oddity(&place, found))
        return mr_fail(err, MR_BAD_DATA, "%s: line %d, column %d: %s", name, why->line, why->column, why->text);
    mr_json_line line = mr_json_line_of(bytes, place.at);
    return mr_fail(err, MR_BAD_DATA, "%s: line %llu, column %llu: not JSON: %s", name, (unsigned long long)line.line,
                   (unsigned long long)line.column, found);
}

mr_status mr_json_parse(const void *bytes, size_t len, const char *name, json_t **out, mr_error *err)
{
    json_error_t why;
    /* When memory runs out, jansson reports a syntax error or silently drops the end of a string.  In a program the
     * count of failures shows it; in a library errno does, unless a number was parsed afterwards. */
    json_text t = {bytes, len, mr_json_refused()};
    if (!mr_json_reserve(len))
        return mr_fail_memory(err, name);
    errno = 0;
    json_t *doc = json_load_callback(feed, &t, JSON_REJECT_DUPLICATES, &why);
    bool out_of_memory = errno == ENOMEM || mr_json_refused() != t.refused;
    if (out_of_memory)
        json_decref(doc);
    mr_json_reserve_end();
    if (out_of_memory)
        return mr_fail_memory(err, name);
    if (!doc)
        return reject(bytes, len, name, &why, err);
    *out = doc;
    return MR_OK;
}

mr_status mr_json_bounded(const void *bytes, size_t len, uint64_t max, const char *name, mr_error *err)
{
    enum { CONTAINER = 256, VALUE = 64 }; /* bytes that jansson allocates, roughly, pointers to them included */
    const char *p = bytes;
    uint64_t cost = 0;
    bool text = false;
    for (size_t i = 0; i < len; i++) {
        if (p[i] == '"')
            text = !text;
        else if (text)
            i += p[i] == '\\';
        else if (p[i] == '{' || p[i] == '[')
            cost += CONTAINER;
        else
            cost += p[i] == ',' ? VALUE : 0;
    }
    if (cost + len <= max)
        return MR_OK;
    return mr_fail(err, MR_BAD_DATA, "%s: would take %llu MiB of memory, the limit is %llu", name,
                   (unsigned long long)((cost + len) >> 20), (unsigned long long)(max >> 20));
}

static const char *type_name(json_type type)
{
    switch (type) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a number";
    default:
        return "a value";
    }
}

mr_status mr_json_get(const json_t *obj, const char *key, json_type type, const char *name, json_t **out, mr_error *err)
{
    json_t *value = json_object_get(obj, key);
    if (!value)
        return mr_fail(err, MR_BAD_DATA, "%s: \"%s\" is missing", name, key);
    if (json_typeof(value) != type)
        return mr_fail(err, MR_BAD_DATA, "%s: \"%s\" is not %s", name, key, type_name(type));
    *out = value;
    return MR_OK;
}

mr_status mr_json_get_u64(const json_t *obj, const char *key, const char *name, uint64_t *out, mr_error *err)
{
    json_t *value = NULL;
    MR_TRY(mr_json_get(obj, key, JSON_INTEGER, name, &value, err));
    if (json_integer_value(value) < 0)
        return mr_fail(err, MR_BAD_DATA, "%s: \"%s\" is negative", name, key);
    *out = (uint64_t)json_integer_value(value);
    return MR_OK;
}

mr_status mr_json_get_string(const json_t *obj, const char *key, const char *name, const char **out, mr_error *err)
{
    json_t *value = NULL;
    MR_TRY(mr_json_get(obj, key, JSON_STRING, name, &value, err));
    *out = json_string_value(value);
    return MR_OK;
}

static int add_chunk(const char *bytes, size_t len, void *out)
{
    mr_buf_add(out, bytes, len);
    return ((mr_buf *)out)->failed ? -1 : 0;
}

mr_status mr_json_dump(const json_t *doc, mr_buf *out, mr_error *err)
{
    if (!doc || json_dump_callback(doc, add_chunk, out, JSON_INDENT(1) | JSON_ENCODE_ANY) != 0 || mr_json_refused())
        return mr_fail_memory(err, "writing JSON");
    mr_buf_add(out, "\n", 1);
    return mr_buf_status(out, err, "writing JSON");
}

mr_status mr_json_print(const json_t *doc, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    MR_AUTO(mr_buf_free) mr_buf shown = {0};
    MR_TRY(mr_json_dump(doc, &text, err));
    mr_json_show(&shown, (const char *)text.data, text.len);
    MR_TRY(mr_buf_status(&shown, err, "writing JSON"));
    fwrite(shown.data, 1, shown.len, stdout);
    return mr_term_flush(err);
}

json_t *mr_json_path(const char *bytes, size_t len)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    mr_text_escape(&text, bytes, len);
    const char *escaped = mr_buf_text(&text); /* "" where text.data may be NULL */
    return text.failed ? NULL : json_stringn(escaped, text.len);
}
