/* jsonl.c - files with one JSON object per line, streamed, with the position of every row. */
#include "ingest/tables/jsonl.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "base/json/json_stream.h"

enum { CHUNK = 256 << 10, LINE_MAX_BYTES = 64 << 20, DEPTH_MAX = 200 };

MR_PRINTF(4, 5)
static mr_status reject(const mr_jsonl *j, uint64_t line, mr_error *err, const char *format, ...)
{
    MR_AUTO(mr_buf_free) mr_buf name = {0};
    va_list args;
    char text[400];
    const mr_entry *e = mr_source_entry(j->source, j->entry);
    mr_text_escape(&name, e->path, e->path_len);
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return mr_fail(err, MR_BAD_DATA, "%.500s: line %" PRIu64 ": %s", mr_buf_text(&name), line, text);
}

/* ---- lines ---------------------------------------------------------------------------------------------------- */

/* Appends more of the file to what is left; *more is false at its end. */
static mr_status fill(mr_jsonl *j, bool *more, mr_error *err)
{
    uint64_t size = mr_source_entry(j->source, j->entry)->size;
    if (j->pos && j->buf.data) {
        memmove(j->buf.data, j->buf.data + j->pos, j->buf.len - j->pos);
        j->buf.len -= j->pos;
        j->buf_at += j->pos;
        j->pos = 0;
    }
    uint64_t at = j->buf_at + j->buf.len;
    size_t len = size - at < CHUNK ? (size_t)(size - at) : CHUNK;
    *more = len > 0;
    if (!len)
        return MR_OK;
    if (j->buf.len > LINE_MAX_BYTES)
        return reject(j, j->line + 1, err, "longer than 64 MiB");
    if (!mr_buf_reserve(&j->buf, len))
        return mr_fail_memory(err, "reading JSON lines");
    MR_TRY(mr_source_pread(j->source, j->entry, j->buf.data + j->buf.len, len, at, err));
    j->buf.len += len;
    return MR_OK;
}

/* The line of `len` bytes at pos, without whitespace around it or a byte order mark; pos moves past it. */
static void take_line(mr_jsonl *j, size_t len, mr_jsonl_row *row)
{
    const char *text = (const char *)j->buf.data + j->pos;
    size_t mark = j->buf_at + j->pos == 0 ? mr_utf8_mark(text, len) : 0;
    *row = (mr_jsonl_row){.line = ++j->line, .text = text + mark, .len = len - mark};
    mr_text_trim(&row->text, &row->len, " \t\r\n");
    row->at = j->buf_at + (uint64_t)(row->text - (const char *)j->buf.data);
    j->pos += len;
}

mr_status mr_jsonl_next(mr_jsonl *j, mr_jsonl_row *row, mr_error *err)
{
    size_t seen = 0; /* bytes after pos known to contain no line end */
    for (;;) {
        size_t left = j->buf.len - j->pos;
        const uint8_t *start = left ? j->buf.data + j->pos : NULL;
        const uint8_t *end = left > seen ? memchr(start + seen, '\n', left - seen) : NULL;
        bool more = true;
        if (end) {
            take_line(j, (size_t)(end - start) + 1, row);
            seen = 0;
        } else {
            seen = left;
            MR_TRY(fill(j, &more, err));
            if (more)
                continue;
            if (!left)
                return MR_END;
            take_line(j, left, row);
        }
        if (row->len)
            return MR_OK;
    }
}

mr_status mr_jsonl_copy(const mr_source *source, uint32_t entry, uint64_t at, size_t len, mr_buf *out, mr_error *err)
{
    if (!mr_buf_reserve(out, len))
        return mr_fail_memory(err, "reading a row");
    uint8_t *text = out->data + out->len;
    MR_TRY(mr_source_pread(source, entry, text, len, at, err));
    if (len < 2 || text[0] != '{' || text[len - 1] != '}')
        return mr_fail(err, MR_BAD_DATA, "%s: the file has changed since it was parsed; run again",
                       mr_source_entry(source, entry)->path);
    out->len += len;
    return MR_OK;
}

/* ---- rows ----------------------------------------------------------------------------------------------------- */

typedef struct pick {
    const mr_jsonl *j;
    const mr_jsonl_row *row;
    mr_jsonl_field *fields;
    size_t count;
    mr_buf *names;
    uint64_t wanted; /* as bits: the fields whose value comes next or, if it is a list of texts, is being read */
    mr_error *err;
} pick;

static void add_text(mr_jsonl_field *f, const mr_json_token *t)
{
    mr_buf_add_text(&f->text, f->text.len ? "," : "");
    mr_json_add_string(&f->text, t->text, t->len);
}

static mr_status take_key(pick *p, const mr_json_token *t)
{
    p->wanted = 0;
    if (p->names) {
        mr_buf_add_text(p->names, p->names->len ? ", " : "");
        mr_text_escape(p->names, t->text, t->len);
    }
    for (size_t i = 0; i < p->count; i++) {
        if (strlen(p->fields[i].name) != t->len || memcmp(p->fields[i].name, t->text, t->len) != 0)
            continue;
        if (p->fields[i].kind != MR_JSONL_ABSENT)
            return reject(p->j, p->row->line, p->err, "has \"%.100s\" twice", p->fields[i].name);
        p->wanted |= (uint64_t)1 << i;
    }
    return MR_OK;
}

static mr_jsonl_kind kind_of(const mr_json_token *t)
{
    if (t->kind == MR_JSON_NULL || t->kind == MR_JSON_STRING)
        return t->kind == MR_JSON_NULL ? MR_JSONL_NULL : MR_JSONL_STRING;
    bool integer = t->kind == MR_JSON_NUMBER && !memchr(t->text, '.', t->len) && !memchr(t->text, 'e', t->len) &&
                   !memchr(t->text, 'E', t->len);
    return integer                      ? MR_JSONL_INTEGER
           : t->kind == MR_JSON_NUMBER  ? MR_JSONL_REAL
           : t->kind == MR_JSON_BOOLEAN ? MR_JSONL_BOOLEAN
                                        : MR_JSONL_OTHER;
}

/* At depth one: a field's value, or its beginning. */
static void take_value(mr_jsonl_field *f, const mr_json_token *t)
{
    f->kind = kind_of(t);
    if (f->texts && (t->kind == MR_JSON_STRING || t->kind == MR_JSON_LIST))
        f->kind = MR_JSONL_TEXTS;
    if (f->kind == MR_JSONL_TEXTS && t->kind == MR_JSON_STRING)
        add_text(f, t);
    else if (t->kind == MR_JSON_STRING || t->kind == MR_JSON_NUMBER || t->kind == MR_JSON_BOOLEAN)
        mr_buf_add(&f->text, t->text, t->len);
}

/* At depth two: an item of a list of texts, which are strings and nulls. */
static void take_item(mr_jsonl_field *f, const mr_json_token *t)
{
    if (f->kind != MR_JSONL_TEXTS)
        return;
    if (t->kind == MR_JSON_STRING)
        add_text(f, t);
    else if (t->kind != MR_JSON_NULL)
        f->kind = MR_JSONL_OTHER;
}

static mr_status take_token(void *ctx, const mr_json_token *t)
{
    pick *p = ctx;
    if (t->depth == 0 && t->kind != MR_JSON_OBJECT && t->kind != MR_JSON_OBJECT_END)
        return reject(p->j, p->row->line, p->err, "not a JSON object");
    if (t->depth == 1 && t->kind == MR_JSON_KEY)
        return take_key(p, t);
    if (t->kind == MR_JSON_OBJECT_END || t->kind == MR_JSON_LIST_END)
        return MR_OK;
    for (size_t i = 0; i < p->count; i++) {
        if (p->wanted >> i & 1 && t->depth == 1)
            take_value(&p->fields[i], t);
        else if (p->wanted >> i & 1)
            take_item(&p->fields[i], t);
    }
    return MR_OK;
}

static mr_status reject_row(const pick *p, mr_json_stream *stream)
{
    mr_json_fault fault;
    if (!mr_json_stream_fault(stream, p->row->text, p->row->len, 0, true, &fault))
        return MR_BAD_DATA;
    return reject(p->j, p->row->line, p->err, "byte %" PRIu64 ": %s", fault.at + 1, fault.why);
}

mr_status mr_jsonl_pick(const mr_jsonl *j, const mr_jsonl_row *row, mr_jsonl_field *fields, size_t count, mr_buf *names,
                        mr_error *err)
{
    pick p = {.j = j, .row = row, .fields = fields, .count = count, .names = names, .err = err};
    const mr_json_rules rules = {.handler = take_token, .ctx = &p, .levels = 2, .depth_max = DEPTH_MAX};
    MR_AUTO(mr_json_stream_close) mr_json_stream *stream = NULL;
    for (size_t i = 0; i < count; i++) {
        fields[i].kind = MR_JSONL_ABSENT;
        mr_buf_clear(&fields[i].text);
    }
    MR_TRY(mr_json_stream_open(&rules, "reading JSON lines", &stream, err));
    mr_status status = mr_json_stream_feed(stream, row->text, row->len, 0, err);
    if (status == MR_OK)
        status = mr_json_stream_end(stream, err);
    if (status == MR_BAD_DATA)
        return reject_row(&p, stream);
    MR_TRY(status);
    for (size_t i = 0; i < count; i++)
        MR_TRY(mr_buf_status(&fields[i].text, err, "reading JSON lines"));
    return MR_OK;
}
