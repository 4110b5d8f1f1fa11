/* term.h - terminal output: colours, tables, a progress line, messages.
 * Invariant: colours and progress only if the stream is a terminal; only cmd_*.c and millrace.c print. */
#ifndef MR_TERM_H
#define MR_TERM_H

#include <stdio.h>

#include "base/buf.h"

/* SGR codes, or "" if `stream` is not a terminal, NO_COLOR is set or TERM=dumb. */
typedef enum mr_colour { MR_PLAIN, MR_BOLD, MR_DIM, MR_RED, MR_GREEN, MR_YELLOW, MR_CYAN } mr_colour;
const char *mr_sgr(FILE *stream, mr_colour colour);

/* Prints untrusted text as mr_text_show() writes it; returns the number of characters printed. */
size_t mr_term_text(FILE *stream, const char *text);

/* Flushes `stream`; a failure is reported by mr_term_flush(). */
void mr_term_flush_stream(FILE *stream);
/* Flushes standard output.  MR_SYSTEM, with the cause, if anything printed could not be written. */
mr_status mr_term_flush(mr_error *err);

/* "millrace: WHERE: WHAT" on stderr, in red on a terminal; nothing if the reader of standard output has exited. */
void mr_term_error(const mr_error *err);
void mr_term_warn(const char *text);

/* A table: the first row is the header (bold); columns are padded to the widest cell, counted in UTF-8 code points.  A
 * header that starts with '>' (not printed) right-aligns its column. */
typedef struct mr_table mr_table;
mr_table *mr_table_new(size_t columns);
void mr_table_row(mr_table *t, ...); /* exactly `columns` const char *, copied */
/* Frees it as well.  MR_SYSTEM: out of memory, and nothing is printed. */
mr_status mr_table_print(mr_table *t, FILE *stream, mr_error *err);

/* Progress of a step, by any thread, at most ten times a second.  `to`: MR_PROGRESS_LINE, a line on stderr with rate
 * and time left, if that is a terminal; MR_PROGRESS_QUIET; or a descriptor from 3 up, which gets JSON objects, one per
 * line:
 *      {"step": "checking", "done": 120, "total": 84000, "bytes": 1234567}
 * (the last one of a step has its final numbers; write errors are ignored).  total 0: unknown. */
enum { MR_PROGRESS_LINE, MR_PROGRESS_QUIET };
typedef struct mr_progress mr_progress;
mr_progress *mr_progress_begin(const char *what, uint64_t total, int to); /* NULL is a valid, silent progress */
void mr_progress_add(mr_progress *p, uint64_t items, uint64_t bytes);
void mr_progress_end(mr_progress *p); /* clears the line, frees */

/* Draws `line` over the previous one, truncated to the terminal's width; "" clears it.  False, without doing anything,
 * if `stream` is not a terminal. */
bool mr_term_redraw(FILE *stream, const char *line);

double mr_seconds(void); /* monotonic clock */

#endif
