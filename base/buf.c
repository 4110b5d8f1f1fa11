/* buf.c - a growing byte buffer. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void mr_buf_free(mr_buf *buf)
{
    free(buf->data);
    *buf = (mr_buf){0};
}

void mr_buf_clear(mr_buf *buf)
{
    buf->len = 0;
    buf->failed = false;
}

bool mr_buf_reserve(mr_buf *buf, size_t more)
{
    size_t need;
    if (buf->failed || __builtin_add_overflow(buf->len, more, &need) || __builtin_add_overflow(need, 1, &need)) {
        buf->failed = true;
        return false;
    }
    if (need <= buf->capacity)
        return true;
    size_t capacity = buf->capacity + buf->capacity / 2;
    if (capacity < need)
        capacity = need < 64 ? 64 : need;
    uint8_t *data = realloc(buf->data, capacity);
    if (!data) {
        buf->failed = true;
        return false;
    }
    buf->data = data;
    buf->capacity = capacity;
    return true;
}

void mr_buf_add(mr_buf *buf, const void *bytes, size_t len)
{
    if (!len || !mr_buf_reserve(buf, len))
        return;
    memcpy(buf->data + buf->len, bytes, len);
    buf->len += len;
}

void mr_buf_add_text(mr_buf *buf, const char *text)
{
    mr_buf_add(buf, text, strlen(text));
}

void mr_buf_printf(mr_buf *buf, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    if (n >= 0 && mr_buf_reserve(buf, (size_t)n)) {
        vsnprintf((char *)buf->data + buf->len, (size_t)n + 1, format, again);
        buf->len += (size_t)n;
    }
    va_end(again);
    va_end(args);
}

const char *mr_buf_text(mr_buf *buf)
{
    if (!mr_buf_reserve(buf, 0))
        return "";
    buf->data[buf->len] = '\0';
    return (const char *)buf->data;
}

mr_status mr_buf_status(const mr_buf *buf, mr_error *err, const char *what)
{
    return buf->failed ? mr_fail_memory(err, what) : MR_OK;
}
