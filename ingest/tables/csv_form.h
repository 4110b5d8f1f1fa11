/* csv_form.h - what a table of separated cells looks like before it is parsed.
 * Invariant: bytes of cells are not changed; only a mark at the beginning, Excel's line "sep=;" and line ends of old
 * Macintoshes are. */
#ifndef MR_CSV_FORM_H
#define MR_CSV_FORM_H

#include "base/buf.h"

/* Removes a byte order mark and a line "sep=;", makes bare CRs line ends where there are no others, and finds the
 * delimiter: that of the line, else the one of comma, tab, semicolon and bar that all first lines have equally often.
 * MR_BAD_DATA, naming the file (`name`): it is UTF-16. */
mr_status mr_csv_prepare(mr_buf *text, const char *name, char *delimiter, mr_error *err);

#endif
