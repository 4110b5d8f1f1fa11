/* json_lay_out.c - JSON pretty-printed without parsing it into values.
 * Invariant: only blanks between tokens change, and control characters inside strings are escaped;
 * numbers stay as they were written, whatever their size. */
#include "shards/manifest/json_lay_out.h"

#include "base/text.h"

static void newline(mr_buf *out, unsigned depth)
{
    mr_buf_printf(out, "\n%*s", (int)(depth < 100 ? depth : 100) * 2, "");
}

/* A string; returns where it has ended. */
static size_t copy_string(mr_buf *out, const char *json, size_t len, size_t at)
{
    size_t end = at + 1;
    while (end < len && json[end] != '"')
        end += json[end] == '\\' && end + 1 < len ? 2 : 1;
    end += end < len;
    mr_json_show(out, json + at, end - at);
    return end;
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Length of the list of plain values that begins at json[at], 0 if it holds text, objects or lists. */
static size_t plain_list(const char *json, size_t len, size_t at)
{
    for (size_t i = at + 1; i < len; i++) {
        if (json[i] == ']')
            return i + 1 - at;
        if (json[i] == '[' || json[i] == '{' || json[i] == '"')
            break;
    }
    return 0;
}

static void copy_list(mr_buf *out, const char *json, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (blank(json[i]))
            continue;
        mr_buf_add(out, &json[i], 1);
        if (json[i] == ',')
            mr_buf_add(out, " ", 1);
    }
}

void mr_json_lay_out(mr_buf *out, const char *json, size_t len, unsigned depth)
{
    for (size_t at = 0; at < len;) {
        char c = json[at];
        size_t next = at + 1;
        while (next < len && blank(json[next]))
            next++;
        if (c == '"') {
            at = copy_string(out, json, len, at);
            continue;
        }
        if (blank(c)) {
            at++;
            continue;
        }
        size_t list = c == '[' ? plain_list(json, len, at) : 0;
        if (list) {
            copy_list(out, json + at, list);
            at += list;
            continue;
        }
        bool empty = (c == '{' || c == '[') && next < len && (json[next] == '}' || json[next] == ']');
        if ((c == '}' || c == ']') && depth)
            newline(out, --depth);
        mr_buf_add(out, &c, 1);
        if (empty) {
            mr_buf_add(out, &json[next], 1);
            at = next + 1;
            continue;
        }
        if (c == '{' || c == '[')
            newline(out, ++depth);
        else if (c == ',')
            newline(out, depth);
        else if (c == ':')
            mr_buf_add(out, " ", 1);
        at++;
    }
}
