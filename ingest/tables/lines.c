/* lines.c - see lines.h.
 * Invariant: every byte is looked at once, except by the trimming of a line. */
#include <string.h>

#include "base/text.h"
#include "ingest/tables/lines.h"

mr_lines mr_lines_of(const void *text, size_t len)
{
    const char *at = text;
    if (!at)
        return (mr_lines){0};
    return (mr_lines){.at = at + mr_utf8_mark(at, len), .end = at + len};
}

bool mr_lines_next(mr_lines *l)
{
    while (l->at < l->end) {
        const char *begin = l->at, *stop = begin;
        while (stop < l->end && *stop != '\n' && *stop != '\r')
            stop++;
        l->at = stop < l->end ? stop + 1 : l->end;
        l->at += stop < l->end && *stop == '\r' && l->at < l->end && *l->at == '\n';
        l->number++;
        l->line = begin;
        l->len = (size_t)(stop - begin);
        mr_text_trim(&l->line, &l->len, " \t");
        if (l->len)
            return true;
    }
    return false;
}

size_t mr_lines_word(const mr_lines *l)
{
    size_t len = 0;
    while (len < l->len && !strchr(" \t,;", l->line[len]))
        len++;
    return len;
}
