/* json_walk.c - walks through foreign JSON and checks only what it reads; see json_walk.h. */
#include "base/json/json_walk.h"

#include <string.h>

/* ---- skipping ---------------------------------------------------------------------------------------------------- */

const char *mr_json_blanks(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
        p++;
    return p;
}

/* From past the opening quote to past the closing one; NULL: there is none. */
static const char *skip_string(const char *p, const char *end)
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

static const char *skip_brackets(const char *p, const char *end)
{
    static const uint8_t marks[256] = {['{'] = 1, ['['] = 1, ['}'] = 2, [']'] = 2, ['"'] = 3};
    size_t depth = 0;
    while (p) {
        while (p < end && !marks[(uint8_t)*p])
            p++;
        if (p == end)
            return NULL;
        uint8_t mark = marks[(uint8_t)*p++];
        if (mark == 3)
            p = skip_string(p, end);
        else if (mark == 2 && --depth == 0)
            return p;
        else if (mark == 1)
            depth++;
    }
    return NULL;
}

const char *mr_json_skip(const char *p, const char *end)
{
    static const uint8_t ends[256] = {[','] = 1,  [']'] = 1, ['}'] = 1, [' '] = 1, ['\t'] = 1, ['\r'] = 1,
                                      ['\n'] = 1, [':'] = 1, ['"'] = 1, ['{'] = 1, ['['] = 1};
    const char *begin = p;
    if (p == end)
        return NULL;
    if (*p == '"')
        return skip_string(p + 1, end);
    if (*p == '{' || *p == '[')
        return skip_brackets(p, end);
    while (p < end && !ends[(uint8_t)*p])
        p++;
    return p > begin ? p : NULL;
}

/* ---- members and items ------------------------------------------------------------------------------------------- */

mr_json_walk mr_json_walk_of(mr_json_span value)
{
    return (mr_json_walk){value.at + 1, value.end, *value.at == '{' ? '}' : ']', false};
}

int mr_json_next_item(mr_json_walk *w)
{
    w->at = mr_json_blanks(w->at, w->end);
    if (w->at < w->end && *w->at == w->close) {
        w->at++;
        return 0;
    }
    if (w->begun && (w->at == w->end || *w->at++ != ','))
        return -1;
    w->begun = true;
    w->at = mr_json_blanks(w->at, w->end);
    return 1;
}

static bool step_past_key(mr_json_walk *w, mr_json_span *key)
{
    if (w->at == w->end || *w->at != '"')
        return false;
    key->at = w->at;
    key->end = skip_string(w->at + 1, w->end);
    if (!key->end)
        return false;
    w->at = mr_json_blanks(key->end, w->end);
    if (w->at == w->end || *w->at++ != ':')
        return false;
    w->at = mr_json_blanks(w->at, w->end);
    return true;
}

int mr_json_next_key(mr_json_walk *w, mr_json_span *key)
{
    int more = mr_json_next_item(w);
    return more == 1 && !step_past_key(w, key) ? -1 : more;
}

int mr_json_next(mr_json_walk *w, mr_json_span *key, mr_json_span *value)
{
    int more = w->close == '}' ? mr_json_next_key(w, key) : mr_json_next_item(w);
    if (more != 1)
        return more;
    value->at = w->at;
    value->end = mr_json_skip(w->at, w->end);
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

/* The escape after a backslash, as bytes of UTF-8; 0: invalid.  Moves *p past it.  Half of a surrogate pair becomes
 * U+FFFD. */
static size_t unescape(const char **p, const char *end, char out[4])
{
    static const char names[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
    uint32_t c, low;
    if (*p == end)
        return 0;
    char name = *(*p)++;
    if (name != 'u') {
        const char *known = name ? strchr(names, name) : NULL;
        if (known)
            out[0] = bytes[known - names];
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

/* The next bytes of a string's text: those before a backslash, or what an escape means.  0: its end, or invalid. */
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

bool mr_json_is_text(mr_json_span s)
{
    return *s.at == '"';
}

bool mr_json_equals(mr_json_span s, const char *word)
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

bool mr_json_decode(mr_json_span s, mr_buf *out)
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

int mr_json_member(const char *object, const char *end, const char *name, const char **value)
{
    mr_json_walk walk = {object + 1, end, '}', false};
    mr_json_span key;
    int more = object < end && *object == '{' ? 1 : -1;
    *value = NULL;
    while (more == 1 && (more = mr_json_next_key(&walk, &key)) == 1) {
        *value = walk.at;
        if (mr_json_equals(key, name))
            return 1;
        if (!(walk.at = mr_json_skip(walk.at, end)))
            return -1;
    }
    return more;
}
