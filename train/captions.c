/* captions.c - the words that belong to a picture, out of a sample's meta.
 * Invariant: a look at a value passes over each of its bytes once; depth costs nothing, as brackets are only counted.
 *
 *      {  "image":{...}  ,  "columns":{ "title":"a" , "text":["b","c"] }  ,  "captions":[{"caption":"d"}]  }
 *         passed over               next member ...           next item ...
 *
 * No parser of events: most of a COCO meta are polygons, and a batch waits for all of its texts. */
#include "captions.h"

#include <stdlib.h>
#include <string.h>

#include "dataset.h"
#include "text.h"

enum {
    NAME_SHOWN = 60,                /* bytes of a foreign column's name in a message */
    NAMES_SHOWN = 400,              /* of all of them */
};

typedef struct span {
    const char *at, *end;
} span;

/* ---- passing over ------------------------------------------------------------------------------------------------ */

static const char *behind_blanks(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
        p++;
    return p;
}

/* From behind the opening quote to behind the closing one; NULL: there is none. */
static const char *behind_string(const char *p, const char *end)
{
    const char *quote;
    while ((quote = memchr(p, '"', (size_t)(end - p))) != NULL) {
        size_t slashes = 0;
        while (slashes < (size_t)(quote - p) && quote[-1 - (ptrdiff_t)slashes] == '\\')
            slashes++;
        p = quote + 1;
        if (slashes % 2 == 0)
            return p;
    }
    return NULL;
}

static const char *behind_brackets(const char *p, const char *end)
{
    static const uint8_t marks[256] = {['{'] = 1, ['['] = 1, ['}'] = 2, [']'] = 2, ['"'] = 3};
    size_t depth = 0;
    for (; p && p < end;) {
        uint8_t mark = marks[(uint8_t)*p++];
        if (mark == 3)
            p = behind_string(p, end);
        else if (mark == 2 && --depth == 0)
            return p;
        else if (mark == 1)
            depth++;
    }
    return NULL;
}

/* NULL: no value ends in front of `end`. */
static const char *behind_value(const char *p, const char *end)
{
    static const uint8_t ends[256] = {[','] = 1, [']'] = 1, ['}'] = 1, [' '] = 1, ['\t'] = 1, ['\r'] = 1, ['\n'] = 1,
                                      [':'] = 1, ['"'] = 1, ['{'] = 1, ['['] = 1};
    const char *begin = p;
    if (p == end)
        return NULL;
    if (*p == '"')
        return behind_string(p + 1, end);
    if (*p == '{' || *p == '[')
        return behind_brackets(p, end);
    while (p < end && !ends[(uint8_t)*p])
        p++;
    return p > begin ? p : NULL;
}

/* ---- members and items ------------------------------------------------------------------------------------------- */

typedef struct walk {
    const char *at, *end;
    char close;                     /* what ends it: of an object or of a list */
    bool begun;
} walk;

static walk walk_of(span value)
{
    return (walk){value.at + 1, value.end, *value.at == '{' ? '}' : ']', false};
}

/* 1: the next member or item (of which `key` is left alone); 0: there is no other; -1: no JSON. */
static int next(walk *w, span *key, span *value)
{
    w->at = behind_blanks(w->at, w->end);
    if (w->at < w->end && *w->at == w->close) {
        w->at++;
        return 0;
    }
    if (w->begun && (w->at == w->end || *w->at++ != ','))
        return -1;
    w->begun = true;
    w->at = behind_blanks(w->at, w->end);
    if (w->close == '}') {
        if (w->at == w->end || *w->at != '"')
            return -1;
        key->at = w->at;
        key->end = behind_string(w->at + 1, w->end);
        if (!key->end)
            return -1;
        w->at = behind_blanks(key->end, w->end);
        if (w->at == w->end || *w->at++ != ':')
            return -1;
        w->at = behind_blanks(w->at, w->end);
    }
    value->at = w->at;
    value->end = behind_value(w->at, w->end);
    if (!value->end)
        return -1;
    w->at = value->end;
    return 1;
}

/* ---- strings ----------------------------------------------------------------------------------------------------- */

static bool hex4(const char *p, const char *end, uint32_t *out)
{
    uint32_t value = 0;
    if (end - p < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        char c = p[i], letter = (char)(c | 0x20);
        if (c >= '0' && c <= '9')
            value = value << 4 | (uint32_t)(c - '0');
        else if (letter >= 'a' && letter <= 'f')
            value = value << 4 | (uint32_t)(letter - 'a' + 10);
        else
            return false;
    }
    *out = value;
    return true;
}

static size_t put_utf8(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)(lead[n] | c);
    return n;
}

/* What stands behind a backslash, of which *p is moved to the end: bytes of UTF-8, or 0 if it is no escape.  Half of a
 * surrogate pair is U+FFFD: texts that were cut by length have some. */
static size_t unescape(const char **p, const char *end, char out[4])
{
    static const char names[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
    uint32_t c, low;
    if (*p == end)
        return 0;
    char name = *(*p)++;
    if (name != 'u') {
        const char *known = name ? strchr(names, name) : NULL;
        out[0] = known ? bytes[known - names] : 0;
        return known != NULL;
    }
    if (!hex4(*p, end, &c))
        return 0;
    *p += 4;
    bool pair = c >= 0xD800 && c < 0xDC00 && end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u' &&
                hex4(*p + 2, end, &low) && low >= 0xDC00 && low < 0xE000;
    if (pair) {
        *p += 6;
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
    }
    return put_utf8(c >= 0xD800 && c < 0xE000 ? 0xFFFD : c, out);
}

/* The next bytes of a string's text: up to `room` as they stand, or what an escape means.  0: its end, or no escape. */
static size_t next_bytes(const char **p, const char *end, const char **bytes, char escaped[4])
{
    *bytes = *p;
    if (*p < end && **p == '\\') {
        ++*p;
        *bytes = escaped;
        return unescape(p, end, escaped);
    }
    const char *slash = memchr(*p, '\\', (size_t)(end - *p));
    const char *begin = *p;
    *p = slash ? slash : end;
    return (size_t)(*p - begin);
}

static bool is_text(span s)
{
    return *s.at == '"';
}

/* `s` with its quotes. */
static bool equals(span s, const char *word)
{
    const char *p = s.at + 1, *end = s.end - 1, *bytes;
    size_t len = strlen(word), n;
    char escaped[4];
    while (p < end) {
        n = next_bytes(&p, end, &bytes, escaped);
        if (n == 0 || n > len || memcmp(bytes, word, n) != 0)
            return false;
        word += n;
        len -= n;
    }
    return len == 0;
}

/* Appends the text; false if an escape is none. */
static bool decode(span s, mr_buf *out)
{
    const char *p = s.at + 1, *end = s.end - 1, *bytes;
    char escaped[4];
    while (p < end) {
        size_t n = next_bytes(&p, end, &bytes, escaped);
        if (n == 0)
            return false;
        mr_buf_add(out, bytes, n);
    }
    return true;
}

/* ---- captions of a value ----------------------------------------------------------------------------------------- */

static mr_status no_json(mr_error *err)
{
    return mr_fail(err, MR_BAD_DATA, "meta: is not one sound JSON object; run 'millrace verify'");
}

static mr_status twice(const char *name, mr_error *err)
{
    return mr_fail(err, MR_BAD_DATA, "meta: has \"%.*s\" twice", NAME_SHOWN, name);
}

/* A string with something in it: the item, or its member "caption". */
static bool caption_of(span item, span *out)
{
    if (*item.at == '{') {
        walk w = walk_of(item);
        span key, value;
        bool found = false;
        while (!found && next(&w, &key, &value) > 0)
            if (equals(key, "caption")) {
                item = value;
                found = true;
            }
    }
    *out = item;
    return is_text(item) && item.end - item.at > 2;
}

/* Caption n of a value; how many it has where n is too large. */
static mr_status pick(span value, size_t n, span *out, size_t *count, mr_error *err)
{
    span item;
    *count = 0;
    if (*value.at != '[') {
        *count = is_text(value) && caption_of(value, out);
        return MR_OK;
    }
    walk w = walk_of(value);
    int more;
    while ((more = next(&w, NULL, &item)) > 0)
        if (caption_of(item, out) && (*count)++ == n)
            return MR_OK;
    return more == 0 ? MR_OK : no_json(err);
}

/* ---- columns ----------------------------------------------------------------------------------------------------- */

typedef struct members {
    span columns, captions;         /* at NULL: has none */
} members;

static mr_status set_once(span *slot, span value, const char *name, mr_error *err)
{
    if (slot->at)
        return twice(name, err);
    *slot = value;
    return MR_OK;
}

static mr_status look(const char *meta, size_t len, members *out, mr_error *err)
{
    span all = {behind_blanks(meta, meta + len), meta + len}, key, value;
    *out = (members){0};
    if (all.at == all.end || *all.at != '{')
        return no_json(err);
    walk w = walk_of(all);
    int more;
    mr_status status = MR_OK;
    while (status == MR_OK && (more = next(&w, &key, &value)) != 0) {
        if (more < 0)
            return no_json(err);
        if (equals(key, "columns") && *value.at == '{')
            status = set_once(&out->columns, value, "columns", err);
        else if (equals(key, "captions") && *value.at == '[')
            status = set_once(&out->captions, value, "captions", err);
    }
    if (status == MR_OK && behind_blanks(w.at, w.end) != w.end)
        return no_json(err);
    return status;
}

static mr_status find_column(const members *m, const char *column, span *out, mr_error *err)
{
    span key, value;
    int more = 0;
    *out = (span){0};
    walk w = m->columns.at ? walk_of(m->columns) : (walk){0};
    while (m->columns.at && (more = next(&w, &key, &value)) > 0) {
        mr_status status = equals(key, column) ? set_once(out, value, column, err) : MR_OK;
        if (status != MR_OK)
            return status;
    }
    if (more < 0)
        return no_json(err);
    if (!out->at && (strcmp(column, "captions") == 0 || strcmp(column, "caption") == 0))
        *out = m->captions;
    return MR_OK;
}

mr_status mr_captions_find(const char *column, const char *meta, size_t len, mr_captions *out, mr_error *err)
{
    members m;
    span value = {0}, unused;
    size_t count = 0;
    mr_status status = look(meta, len, &m, err);
    if (status == MR_OK)
        status = find_column(&m, column, &value, err);
    if (status == MR_OK && value.at)
        status = pick(value, SIZE_MAX, &unused, &count, err);
    if (status == MR_OK)
        *out = (mr_captions){value.at, value.end, count};
    return status;
}

mr_status mr_captions_read(const mr_captions *c, size_t n, mr_buf *out, mr_error *err)
{
    span text = {0};
    size_t count, begin = out->len;
    if (n >= c->count)
        return mr_fail(err, MR_MISUSE, "caption %zu of %zu was asked for", n, c->count);
    mr_status status = pick((span){c->at, c->end}, n, &text, &count, err);
    if (status != MR_OK)
        return status;
    if (!decode(text, out) || (!out->failed && !mr_utf8_valid((const char *)out->data + begin, out->len - begin)))
        return mr_fail(err, MR_BAD_DATA, "meta: caption %zu is no sound JSON string; run 'millrace verify'", n);
    return mr_buf_status(out, err, "reading a caption");
}

mr_status mr_captions_count(const char *column, const char *meta, size_t len, size_t *count, mr_error *err)
{
    mr_captions c;
    mr_status status = mr_captions_find(column, meta, len, &c, err);
    if (status == MR_OK)
        *count = c.count;
    return status;
}

static mr_status none(const char *column, const char *meta, size_t len, mr_error *err)
{
    mr_buf known = {0};
    mr_captions_guess(meta, len, &known);
    const char *names = mr_buf_text(&known);
    mr_status status = mr_fail(err, MR_BAD_SAMPLE, "meta: no caption in column \"%.*s\"; %s%s%s", NAME_SHOWN, column,
                               *names ? "there is text in " : "no column has text in it", names,
                               *names ? " (see --text-column)" : "");
    mr_buf_free(&known);
    return status;
}

mr_status mr_captions_get(const char *column, const char *meta, size_t len, size_t n, mr_buf *out, mr_error *err)
{
    mr_captions c;
    mr_status status = mr_captions_find(column, meta, len, &c, err);
    if (status != MR_OK)
        return status;
    if (c.count == 0)
        return none(column, meta, len, err);
    if (n >= c.count)
        return mr_fail(err, MR_BAD_SAMPLE, "meta: column \"%.*s\" has %zu caption%s, so there is none of number %zu",
                       NAME_SHOWN, column, c.count, c.count == 1 ? "" : "s", n);
    return mr_captions_read(&c, n, out, err);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* A foreign name in words fit to print, and not more of it than a message has room for. */
static void add_name(mr_buf *known, span key)
{
    mr_buf name = {0};
    span shown = key;
    bool whole = key.end - key.at <= 4 * NAME_SHOWN;
    if (known->len > NAMES_SHOWN) {
        if (memcmp(known->data + known->len - 5, ", ...", 5) != 0)
            mr_buf_add_text(known, ", ...");
        return;
    }
    if (!whole)                     /* a cut may split an escape or a character: what is left of it is not shown */
        shown.end = key.at + 4 * NAME_SHOWN;
    (void)decode(shown, &name);
    if (name.len > NAME_SHOWN) {
        name.len = NAME_SHOWN;
        whole = false;
    }
    if (!whole)
        name.len -= mr_utf8_cut((const char *)name.data, name.len);
    mr_buf_add_text(known, known->len ? ", " : "");
    mr_text_escape(known, (const char *)name.data, name.len);
    mr_buf_add_text(known, whole ? "" : "...");
    mr_buf_free(&name);
}

static bool has_text(span value)
{
    span text;
    size_t count;
    return pick(value, SIZE_MAX, &text, &count, NULL) == MR_OK && count;
}

const char *mr_captions_guess(const char *meta, size_t len, mr_buf *known)
{
    members m;
    span key, value;
    bool image = false, captions = false;
    if (look(meta, len, &m, NULL) != MR_OK)
        return NULL;
    walk w = m.columns.at ? walk_of(m.columns) : (walk){0};
    while (m.columns.at && next(&w, &key, &value) > 0) {
        image = image || equals(key, "image_description");
        captions = captions || equals(key, "captions");
        if (has_text(value))
            add_name(known, key);
    }
    if (!captions && m.captions.at && has_text(m.captions)) {
        static const char word[] = "\"captions\"";
        add_name(known, (span){word, word + sizeof word - 1});
    }
    return image ? "image_description" : captions || m.captions.at ? "captions" : NULL;
}

/* ---- all captions of a split ------------------------------------------------------------------------------------- */

mr_status mr_captions_expand(const mr_dataset *ds, const char *split, const char *column, uint64_t **items,
                             uint64_t *count, uint64_t *without, mr_error *err)
{
    uint64_t samples = mr_dataset_samples(ds, split), *list = NULL, left_out = 0;
    size_t used = 0, room = 0, captions = 0;
    mr_sample_view view = {0};
    mr_error why;
    mr_status status = MR_OK;
    if (!mr_manifest_split(mr_dataset_manifest(ds), split))
        return mr_fail(err, MR_MISUSE, "split \"%s\": the dataset has no such split", split);
    for (uint64_t n = 0; n < samples && status == MR_OK; n++) {
        status = mr_dataset_read_meta(ds, split, n, &view, err);
        if (status != MR_OK)
            break;
        status = mr_captions_count(column, view.meta, view.meta_len, &captions, &why);
        if (status != MR_OK)
            status = mr_fail(err, status, "%s sample %llu: %s", split, (unsigned long long)n, why.text);
        left_out += status == MR_OK && captions == 0;
        for (size_t i = 0; i < captions && status == MR_OK; i++) {
            if (!MR_GROW(list, used, room))
                status = mr_fail_memory(err, "listing captions");
            else
                list[used++] = n;
        }
    }
    mr_sample_view_free(&view);
    if (status != MR_OK) {
        free(list);
        return status;
    }
    *items = list;
    *count = used;
    *without = left_out;
    return MR_OK;
}
