/* csv_form.c - see csv_form.h. */
#include "ingest/tables/csv_form.h"

#include <string.h>

#include "base/scope.h"
#include "base/utf8.h"

enum { LINES = 32 };

static const char delimiters[] = {',', '\t', ';', '|'};

enum { DELIMITERS = sizeof delimiters };

static void drop_front(mr_buf *text, size_t len)
{
    memmove(text->data, text->data + len, text->len - len);
    text->len -= len;
}

/* "sep=;" alone in the first line, which becomes a blank one; 0: there is none. */
static char take_sep_line(mr_buf *text)
{
    const char *at = (const char *)text->data;
    if (text->len < 6 || strncasecmp(at, "sep=", 4) != 0)
        return 0;
    char sep = at[4];
    size_t end = 5 + (at[5] == '\r' && text->len > 6);
    if (at[end] != '\n')
        return 0;
    drop_front(text, 5);
    return sep;
}

/* How often each delimiter is in the first lines; cells in quotes are skipped. Returns the lines' count. */
static size_t count_in_lines(const mr_buf *text, size_t counts[LINES][DELIMITERS])
{
    const char *at = (const char *)text->data, *end = at + text->len;
    bool quoted = false;
    size_t line = 0, begin = 1;
    for (; at < end && line < LINES; at++) {
        quoted = quoted != (*at == '"');
        if (quoted)
            continue;
        if (*at == '\n') {
            line += !begin; /* blank lines do not count */
            begin = 1;
            continue;
        }
        for (size_t d = 0; d < DELIMITERS; d++)
            counts[line][d] += *at == delimiters[d];
        begin = begin && *at == '\r';
    }
    return line;
}

static char find_delimiter(const mr_buf *text)
{
    size_t counts[LINES + 1][DELIMITERS] = {{0}}, lines = count_in_lines(text, counts);
    for (size_t d = 0; d < DELIMITERS && lines; d++) {
        bool equal = counts[0][d] > 0;
        for (size_t i = 1; i < lines; i++)
            equal = equal && counts[i][d] == counts[0][d];
        if (equal)
            return delimiters[d];
    }
    for (size_t d = 0; d < DELIMITERS; d++)
        if (counts[0][d])
            return delimiters[d];
    return ',';
}

mr_status mr_csv_prepare(mr_buf *text, const char *name, char *delimiter, mr_error *err)
{
    *delimiter = ',';
    if (!text->len)
        return MR_OK;
    if (text->len >= 2 && (!memcmp(text->data, "\xFF\xFE", 2) || !memcmp(text->data, "\xFE\xFF", 2)))
        return mr_fail(err, MR_BAD_DATA, "%s: the text is UTF-16; write it as UTF-8 (iconv -f UTF-16 -t UTF-8)", name);
    drop_front(text, mr_utf8_mark(text->data, text->len));
    if (!memchr(text->data, '\n', text->len))
        for (size_t i = 0; i < text->len; i++)
            if (text->data[i] == '\r')
                text->data[i] = '\n';
    char sep = take_sep_line(text);
    if (!sep)
        sep = find_delimiter(text);
    *delimiter = sep;
    return MR_OK;
}
