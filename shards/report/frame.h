/* frame.h - what every page has: head, style, navigation, the one script.
 * Invariant: a page needs no network, and no script but to make an image large. */
#ifndef MR_REPORT_FRAME_H
#define MR_REPORT_FRAME_H

#include "base/buf.h"

extern const char mr_page_css[]; /* page.css */

/* The last component of a path, in printable form: the title of a page. */
void mr_frame_name(mr_buf *out, const char *path);

/* To the end of <h1>; `kind`: "dataset report". */
void mr_frame_begin(mr_buf *out, const char *name, const char *kind);

typedef struct mr_frame_section {
    const char *id, *title;
} mr_frame_section;

/* Links to those of `sections` that `body` has, the body, and the end of the page. */
void mr_frame_end(mr_buf *out, const mr_frame_section *sections, size_t count, const mr_buf *body);

/* "<dt>term</dt><dd>text</dd>". */
void mr_frame_fact(mr_buf *out, const char *term, const char *text);

#endif
