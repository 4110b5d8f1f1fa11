/* error.c - sentences for failures, and allocation that cannot wrap. */
#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void set(mr_error *err, mr_status status, const char *format, va_list args, int errnum)
{
    /* Formatted aside first: the arguments may point into err->text itself ("outer: inner"). */
    char text[sizeof err->text];
    if (!err)
        return;
    vsnprintf(text, sizeof text, format, args);
    if (errnum) {
        size_t n = strlen(text);
        char buf[128];
        snprintf(text + n, sizeof text - n, ": %s", strerror_r(errnum, buf, sizeof buf));
    }
    err->status = status;
    memcpy(err->text, text, sizeof text);
}

mr_status mr_fail(mr_error *err, mr_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set(err, status, format, args, 0);
    va_end(args);
    return status;
}

mr_status mr_fail_errno(mr_error *err, int errnum, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set(err, MR_SYSTEM, format, args, errnum);
    va_end(args);
    return MR_SYSTEM;
}

mr_status mr_fail_memory(mr_error *err, const char *what)
{
    return mr_fail(err, MR_SYSTEM, "out of memory while %s", what);
}

int mr_exit_code(mr_status status)
{
    switch (status) {
    case MR_OK:
    case MR_END:
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

int mr_grow(void **items, size_t *room, size_t size)
{
    size_t more = *room ? *room * 2 : 16;
    void *grown = more > *room ? mr_realloc(*items, more, size) : NULL;
    if (!grown)
        return 0;
    *items = grown;
    *room = more;
    return 1;
}
