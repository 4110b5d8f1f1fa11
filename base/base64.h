/* base64.h - bytes as text (RFC 4648, section 4, with padding).
 * Invariant: the output has 4 * ceil(len / 3) characters, all of them safe in JSON. */
#ifndef MR_BASE64_H
#define MR_BASE64_H

#include "base/buf.h"

void mr_base64_add(mr_buf *out, const void *bytes, size_t len); /* fails as mr_buf_add() does */
/* Appends what a text stands for.  False: it is not base64 with padding, or out of memory (out->failed). */
bool mr_base64_read(const char *text, size_t len, mr_buf *out);

#endif
