/* lines.h - the lines of a text file: class names, image lists, labels, captions.
 * Invariant: a line ends with LF, CR LF or CR, as editors of any system write it; a number is that of the line in the
 * file, blank lines counted. */
#ifndef MR_LINES_H
#define MR_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mr_lines {
    const char *at, *end; /* what follows the current line */
    const char *line;     /* the current line, without the spaces and tabs around it; not NUL-terminated */
    size_t len;
    uint64_t number; /* from 1 */
} mr_lines;

/* Before the first line; a byte order mark is skipped.  The text is lent.  NULL: no lines. */
mr_lines mr_lines_of(const void *text, size_t len);
/* Moves to the next line that is not blank; false: there is none. */
bool mr_lines_next(mr_lines *l);
/* How much of the current line precedes its first space, tab, comma or semicolon. */
size_t mr_lines_word(const mr_lines *l);

#endif
