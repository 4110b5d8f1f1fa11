/* json_lay_out.h - JSON pretty-printed without parsing it into values.
 * Invariant: numbers and texts stay as they were written. */
#ifndef MR_JSON_LAY_OUT_H
#define MR_JSON_LAY_OUT_H

#include "base/buf.h"

/* Appends the document, which must be valid JSON, with one member a line and each list of plain values on one line;
 * lines after the first are indented by 2 * depth and more.  Any bytes are safe: it never reads past them, and always
 * ends. */
void mr_json_lay_out(mr_buf *out, const char *json, size_t len, unsigned depth);

#endif
