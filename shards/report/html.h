/* html.h - pieces of a page: text, numbers, bars.
 * Invariant: text from a dataset never becomes markup, wherever it appears in a page. */
#ifndef MR_REPORT_HTML_H
#define MR_REPORT_HTML_H

#include "base/buf.h"

/* Any bytes: those that cannot be shown as \xHH, and the five characters of markup as entities. */
void mr_html_text(mr_buf *out, const char *text, size_t len);
void mr_html_string(mr_buf *out, const char *text); /* the same, to its NUL */
void mr_html_count(mr_buf *out, uint64_t count);    /* "1,234,567" */

/* The head of a section, "<section id=...><h2>...". */
void mr_html_section(mr_buf *out, const char *id, const char *title);

/* A table of one bar per name, ended by NULL; names of counts that are 0 at either end are left out. */
void mr_html_bars(mr_buf *out, const char *title, const char *const *names, const uint64_t *counts);

/* A bar of several parts, of `parts` counts in their colours; as wide as `most` would be at full width. */
void mr_html_stack(mr_buf *out, const uint64_t *counts, size_t parts, uint64_t most);

#endif
