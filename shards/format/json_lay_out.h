/* json_lay_out.h - JSON set out for reading, by its text alone. */
#ifndef MR_JSON_LAY_OUT_H
#define MR_JSON_LAY_OUT_H

#include "base/buf.h"

/* Appends the document, which must be valid JSON, one member a line, a list of plain values on one; lines after the
 * first are indented by 2 * depth and more.  Whatever the bytes, it stays inside them and ends. */
void mr_json_lay_out(mr_buf *out, const char *json, size_t len, unsigned depth);

#endif
