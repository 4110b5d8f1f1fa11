/* json.c - the few things we ask of jansson, with errors in our form. */
#include "json/json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/term.h"
#include "base/text.h"
#include "json/json_memory.h"
#include "json/json_oddity.h"

typedef struct json_text {
    const char *bytes;
    size_t len;
    unsigned long refused;
} json_text;

/* Nothing more once memory was out. */
static size_t feed(void *to, size_t room, void *ctx)
{
    json_text *t = ctx;
    size_t len = mr_json_refused() != t->refused ? 0 : t->len < room ? t->len : room;
    if (len)
        memcpy(to, t->bytes, len);
    t->bytes += len;
    t->len -= len;
    return len;
}

static mr_status refuse(const char *bytes, size_t len, const char *name, const json_error_t *why, mr_error *err)
{
    char odd[MR_JSON_ODDITY];
    size_t at = why->position > 0 && (size_t)why->position <= len ? (size_t)why->position : 0;
    mr_json_place place = {.text = bytes, .len = len, .at = at, .begins = true, .ends = true};
    if (json_error_code(why) == json_error_duplicate_key || !mr_json_oddity(&place, odd))
        return mr_fail(err, MR_BAD_DATA, "%s: line %d, column %d: %s", name, why->line, why->column, why->text);
    mr_json_line line = mr_json_line_of(bytes, place.at);
    return mr_fail(err, MR_BAD_DATA, "%s: line %llu, column %llu: not JSON: %s", name, (unsigned long long)line.line,
                   (unsigned long long)line.column, odd);
}

mr_status mr_json_parse(const void *bytes, size_t len, const char *name, json_t **out, mr_error *err)
{
    json_error_t why;
    /* When memory is out, jansson says that the text is wrong, or even leaves the end of a string out and says nothing.
     * In a program the count tells; in a library errno does, unless a number stands behind it. */
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
        return refuse(bytes, len, name, &why, err);
    *out = doc;
    return MR_OK;
}

mr_status mr_json_bounded(const void *bytes, size_t len, uint64_t most, const char *name, mr_error *err)
{
    enum { CONTAINER = 256, VALUE = 64 }; /* bytes in jansson's memory, about, with what points to them */
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
    if (cost + len <= most)
        return MR_OK;
    return mr_fail(err, MR_BAD_DATA, "%s: would take %llu MiB of memory, the limit is %llu", name,
                   (unsigned long long)((cost + len) >> 20), (unsigned long long)(most >> 20));
}

const char *mr_json_beyond(const void *text, size_t len, size_t end)
{
    const char *p = text;
    if (len == 0)
        return NULL;
    if (memchr(p, '\v', len) || memchr(p, '\f', len))
        return "a form feed or vertical tab stands in it";
    if (!mr_utf8_valid(p, len))
        return "it is not UTF-8";
    for (; end < len; end++)
        if (!strchr(" \t\r\n", p[end]) || !p[end])
            return "other text stands behind its end";
    return NULL;
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
    mr_status status = mr_json_get(obj, key, JSON_INTEGER, name, &value, err);
    if (status != MR_OK)
        return status;
    if (json_integer_value(value) < 0)
        return mr_fail(err, MR_BAD_DATA, "%s: \"%s\" is negative", name, key);
    *out = (uint64_t)json_integer_value(value);
    return MR_OK;
}

mr_status mr_json_get_string(const json_t *obj, const char *key, const char *name, const char **out, mr_error *err)
{
    json_t *value = NULL;
    mr_status status = mr_json_get(obj, key, JSON_STRING, name, &value, err);
    if (status == MR_OK)
        *out = json_string_value(value);
    return status;
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
    mr_buf text = {0}, shown = {0};
    mr_status status = mr_json_dump(doc, &text, err);
    if (status == MR_OK) {
        mr_json_show(&shown, (const char *)text.data, text.len);
        status = mr_buf_status(&shown, err, "writing JSON");
    }
    if (status == MR_OK)
        fwrite(shown.data, 1, shown.len, stdout);
    mr_buf_free(&text);
    mr_buf_free(&shown);
    return status == MR_OK ? mr_term_flush(err) : status;
}

json_t *mr_json_path(const char *bytes, size_t len)
{
    mr_buf text = {0};
    mr_text_escape(&text, bytes, len);
    const char *words = mr_buf_text(&text); /* "" for no bytes, where text.data may be NULL */
    json_t *value = text.failed ? NULL : json_stringn(words, text.len);
    mr_buf_free(&text);
    return value;
}
