/* buf.h - a growing byte buffer.
 * Invariant: after a failed allocation `failed` stays set and later appends do nothing, so a writer appends freely and
 * checks once at the end.  A zeroed mr_buf is empty and valid. */
#ifndef MR_BUF_H
#define MR_BUF_H

#include <stdbool.h>

#include "base/error.h"

typedef struct mr_buf {
    uint8_t *data;
    size_t len, capacity;
    bool failed;
} mr_buf;

void mr_buf_free(mr_buf *buf);                 /* leaves it empty and valid */
void mr_buf_clear(mr_buf *buf);                /* length 0, memory kept, `failed` reset */
bool mr_buf_reserve(mr_buf *buf, size_t more); /* room for `more` bytes after len, and one for a NUL */
void mr_buf_add(mr_buf *buf, const void *bytes, size_t len);
void mr_buf_add_text(mr_buf *buf, const char *text);
void mr_buf_printf(mr_buf *buf, const char *format, ...) MR_PRINTF(2, 3);
const char *mr_buf_text(mr_buf *buf);                                        /* NUL-terminated view; "" when failed */
mr_status mr_buf_status(const mr_buf *buf, mr_error *err, const char *what); /* MR_OK or out of memory */

#endif
