/* term.h - what people look at: colours, tables, a progress line, messages.
 * Invariant: colours and progress only where the stream is a terminal; nothing but cmd_*.c and millrace.c prints. */
#ifndef MR_TERM_H
#define MR_TERM_H

#include <stdio.h>

#include "base/buf.h"

/* SGR codes, or "" when `stream` is no terminal, NO_COLOR is set or TERM=dumb. */
typedef enum mr_colour { MR_PLAIN, MR_BOLD, MR_DIM, MR_RED, MR_GREEN, MR_YELLOW, MR_CYAN } mr_colour;
const char *mr_sgr(FILE *stream, mr_colour colour);

/* Foreign words, as mr_text_show() writes them; the characters that were printed. */
size_t mr_term_text(FILE *stream, const char *text);

/* Sends what was printed on its way; mr_term_flush() will tell if it did not arrive. */
void mr_term_push(FILE *stream);
/* MR_SYSTEM, with the cause, if something printed on standard output has not reached it. */
mr_status mr_term_flush(mr_error *err);

/* "millrace: WHERE: WHAT" on stderr, in red on a terminal; nothing if it is that standard output's reader has gone. */
void mr_term_error(const mr_error *err);
void mr_term_warn(const char *text);

/* A table: rows of cells, columns padded to the widest; cells whose first row entry starts with '>' are right-aligned
 * (the mark is not printed).  First row is the head (bold). Width counts UTF-8 code points. */
typedef struct mr_table mr_table;
mr_table *mr_table_new(size_t columns);
void mr_table_row(mr_table *t, ...); /* exactly `columns` const char *, copied */
/* And frees it.  MR_SYSTEM: there was no memory for all of it, and nothing is printed. */
mr_status mr_table_print(mr_table *t, FILE *stream, mr_error *err);

/* A progress line on stderr with rate and time left, redrawn at most ten times a second, by any thread; silent unless
 * stderr is a terminal or when `quiet`.  total 0: unknown. `unit`: "images". */
typedef struct mr_progress mr_progress;
mr_progress *mr_progress_begin(const char *what, uint64_t total, bool quiet); /* NULL is a valid, silent progress */
void mr_progress_add(mr_progress *p, uint64_t items, uint64_t bytes);
void mr_progress_end(mr_progress *p); /* clears the line, frees */

/* Draws `line` over the one drawn before, cut to the width; "" clears it.  False, and nothing is done, where `stream`
 * is no terminal. */
bool mr_term_redraw(FILE *stream, const char *line);

double mr_seconds(void); /* monotonic clock */

#endif
