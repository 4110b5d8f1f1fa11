/* json_file.c - see json_file.h. */
#include "ingest/tables/json_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"

enum { CHUNK = 256 << 10 };

/* "byte 95", and where there are lines "byte 95 (line 3, column 17)", of the byte at `at`; the file is read again. */
static const char *describe_place(const mr_source *s, uint32_t entry, uint64_t at, char *chunk, char out[100])
{
    uint64_t lines = 0, line_at = 0;
    for (uint64_t from = 0; from < at; from += CHUNK) {
        size_t len = at - from < CHUNK ? (size_t)(at - from) : CHUNK;
        if (mr_source_pread(s, entry, chunk, len, from, NULL) != MR_OK)
            break;
        const char *newline = chunk, *end = chunk + len;
        while (newline < end && (newline = memchr(newline, '\n', (size_t)(end - newline)))) {
            lines++;
            line_at = from + (uint64_t)(++newline - chunk);
        }
    }
    int len = snprintf(out, 100, "byte %" PRIu64, at + 1);
    if (lines)
        snprintf(out + len, 100 - (size_t)len, " (line %" PRIu64 ", column %" PRIu64 ")", lines + 1, at - line_at + 1);
    return out;
}

/* The bytes around the fault are read again: what is there may go on in the next chunk. */
static mr_status refuse(const mr_json_file *f, mr_json_stream *stream, char *chunk, mr_error *err)
{
    char window[256], place[100];
    mr_json_fault fault;
    uint64_t here = mr_json_stream_at(stream), size = mr_source_entry(f->source, f->entry)->size;
    uint64_t from = here > sizeof window / 2 ? here - sizeof window / 2 : 0;
    size_t len = size - from < sizeof window ? (size_t)(size - from) : sizeof window;
    if (mr_source_pread(f->source, f->entry, window, len, from, NULL) != MR_OK)
        len = 0;
    if (!mr_json_stream_fault(stream, window, len, from, from + len == size, &fault))
        return MR_BAD_DATA;
    return mr_fail(err, MR_BAD_DATA, "%s: %s: %s", f->name, describe_place(f->source, f->entry, fault.at, chunk, place),
                   fault.why);
}

static mr_status feed(const mr_json_file *f, bool repair, mr_json_stream *stream, char *chunk, mr_error *err)
{
    uint64_t size = mr_source_entry(f->source, f->entry)->size;
    size_t len;
    for (uint64_t at = 0; at < size; at += len) {
        len = size - at < CHUNK ? (size_t)(size - at) : CHUNK;
        MR_TRY(mr_source_pread(f->source, f->entry, chunk, len, at, err));
        if (size - at > len)
            len -= mr_utf8_cut(chunk, len);
        if (repair && size - at > len)
            len -= mr_json_repair_cut(chunk, len);
        size_t skip = at == 0 ? mr_utf8_mark(chunk, len) : 0;
        if (repair)
            mr_json_repair_bytes(f->repair, chunk + skip, len - skip, at + skip);
        if (repair && f->repair->failed)
            return mr_fail_memory(err, f->what);
        MR_TRY(mr_json_stream_feed(stream, chunk + skip, len - skip, at + skip, err));
    }
    return mr_json_stream_end(stream, err);
}

static mr_status read_once(const mr_json_file *f, const mr_json_rules *rules, bool repair, mr_json_stream **stream,
                           char *chunk, mr_error *err)
{
    MR_TRY(mr_json_stream_open(rules, f->what, stream, err));
    mr_status status = feed(f, repair, *stream, chunk, err);
    if (status == MR_BAD_DATA)
        status = refuse(f, *stream, chunk, err);
    return status;
}

/* Whether the fault is in the text, and not what the handler refuses. */
static bool is_fault(mr_json_stream *stream)
{
    mr_json_fault fault;
    return mr_json_stream_fault(stream, "", 0, mr_json_stream_at(stream), false, &fault);
}

mr_status mr_json_file_read(const mr_json_file *f, const mr_json_rules *rules, mr_json_stream **stream, mr_error *err)
{
    MR_AUTO(mr_scope_free) char *chunk = malloc(CHUNK);
    mr_error first = {0};
    if (!chunk)
        return mr_fail_memory(err, f->what);
    mr_status status = read_once(f, rules, false, stream, chunk, err);
    bool again = status == MR_BAD_DATA && f->repair && is_fault(*stream);
    mr_json_stream_close(stream);
    if (!again)
        return status;
    if (err)
        first = *err;
    f->restart(rules->ctx);
    status = read_once(f, rules, true, stream, chunk, err);
    mr_json_stream_close(stream);
    if (status == MR_BAD_DATA && !f->repair->count && err)
        *err = first; /* nothing was repaired */
    return status;
}

mr_status mr_json_text_read(const mr_buf *text, const mr_json_rules *rules, const char *what, mr_error *err)
{
    MR_AUTO(mr_json_stream_close) mr_json_stream *stream = NULL;
    MR_TRY(mr_json_stream_open(rules, what, &stream, err));
    mr_status status = mr_json_stream_feed(stream, text->data, text->len, 0, err);
    if (status == MR_OK)
        status = mr_json_stream_end(stream, err);
    return status == MR_BAD_DATA
               ? mr_fail(err, MR_BAD_DATA, "an annotation file has changed since it was parsed; run again")
               : status;
}
