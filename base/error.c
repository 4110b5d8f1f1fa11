/* error.c - error messages, and allocation whose size cannot overflow.
 * Invariant: a message is one line of UTF-8 without control characters, even if it contains untrusted text. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

enum { FORMATTED = 6000, HEAD = 330 };

static bool inside_character(char c)
{
    return ((uint8_t)c & 0xC0) == 0x80;
}

/* A path may be longer than err->text: the middle is left out, as the end states what is wrong. */
static void fit(char *out, size_t capacity, const char *text)
{
    static const char gap[] = " ... ";
    size_t len = strlen(text), head = HEAD, tail = capacity - 1 - HEAD - (sizeof gap - 1);
    if (len < capacity) {
        memcpy(out, text, len + 1);
        return;
    }
    while (inside_character(text[head])) /* NOLINT: initialized, as head < len */
        head--;
    while (inside_character(text[len - tail]))
        tail--;
    memcpy(out, text, head);
    memcpy(out + head, gap, sizeof gap - 1);
    memcpy(out + head + sizeof gap - 1, text + len - tail, tail + 1);
}

/* As mr_text_show(), but without allocating; truncates what does not fit. */
static void copy_printable(char *out, size_t capacity, const char *text)
{
    size_t at = 0;
    char shown[5];
    while (*text) {
        text += mr_text_next(text, strnlen(text, 4), shown);
        size_t need = strlen(shown);
        if (need >= capacity - at)
            break;
        memcpy(out + at, shown, need);
        at += need;
    }
    out[at] = '\0';
}

static void set(mr_error *err, mr_status status, const char *format, va_list args, int errnum)
{
    /* Formatted elsewhere first: the arguments may point into err->text itself ("outer: inner"). */
    char text[FORMATTED], shown[4 * FORMATTED];
    if (!err)
        return;
    vsnprintf(text, sizeof text, format, args);
    if (errnum) {
        size_t n = strlen(text);
        char buf[128];
        snprintf(text + n, sizeof text - n, ": %s%s", strerror_r(errnum, buf, sizeof buf),
                 errnum == EMFILE ? "; raise `ulimit -n` or use fewer threads" : "");
    }
    err->status = status;
    copy_printable(shown, sizeof shown, text);
    fit(err->text, sizeof err->text, shown);
}

mr_status(mr_fail)(mr_error *err, mr_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set(err, status, format, args, 0);
    va_end(args);
    return status;
}

mr_status(mr_fail_errno)(mr_error *err, int errnum, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set(err, MR_SYSTEM, format, args, errnum);
    va_end(args);
    return MR_SYSTEM;
}

mr_status(mr_fail_memory)(mr_error *err, const char *what)
{
    return mr_fail(err, MR_SYSTEM, "%s: out of memory", what);
}

int mr_exit_code(mr_status status)
{
    switch (status) {
    case MR_OK:
    case MR_END:
    case MR_AGAIN:
        return 0;
    case MR_BAD_SAMPLE:
    case MR_BAD_DATA:
        return 1;
    case MR_MISUSE:
        return 2;
    case MR_SYSTEM:
        break;
    }
    return 3;
}

void *mr_alloc(size_t count, size_t size)
{
    return calloc(count ? count : 1, size ? size : 1);
}

void *mr_realloc(void *old, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    return realloc(old, bytes ? bytes : 1);
}

int mr_grow(void **items, size_t *capacity, size_t size)
{
    size_t more = *capacity ? *capacity * 2 : 16;
    void *grown = more > *capacity ? mr_realloc(*items, more, size) : NULL;
    if (!grown)
        return 0;
    *items = grown;
    *capacity = more;
    return 1;
}
