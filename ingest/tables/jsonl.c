/* jsonl.c - files with one JSON object a line, streamed, with the place of every row. */
#include "tables/jsonl.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "json/json.h"
#include "json/json_memory.h"
#include "json/json_oddity.h"

enum { CHUNK = 256 << 10, LINE_MAX_BYTES = 64 << 20, DEPTH_MAX = 200 };

MR_PRINTF(4, 5)
static mr_status refuse(const mr_jsonl *j, uint64_t line, mr_error *err, const char *format, ...)
{
    mr_buf name = {0};
    va_list args;
    char text[400];
    const mr_entry *e = mr_source_entry(j->source, j->entry);
    mr_text_escape(&name, e->path, e->path_len);
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    mr_status status = mr_fail(err, MR_BAD_DATA, "%.500s: line %" PRIu64 ": %s", mr_buf_text(&name), line, text);
    mr_buf_free(&name);
    return status;
}

/* ---- lines ---------------------------------------------------------------------------------------------------- */

/* Reads on behind what is left; *more is false at the end of the file. */
static mr_status fill(mr_jsonl *j, bool *more, mr_error *err)
{
    uint64_t size = mr_source_entry(j->source, j->entry)->size;
    if (j->pos && j->buf.len) {
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
        return refuse(j, j->line + 1, err, "longer than 64 MiB");
    if (!mr_buf_reserve(&j->buf, len))
        return mr_fail_memory(err, "reading JSON lines");
    mr_status status = mr_source_pread(j->source, j->entry, j->buf.data + j->buf.len, len, at, err);
    if (status == MR_OK)
        j->buf.len += len;
    return status;
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* The line of `len` bytes at pos without the blanks around it, and without a byte order mark; pos moves behind it. */
static void take_line(mr_jsonl *j, size_t len, mr_jsonl_row *row)
{
    const char *text = (const char *)j->buf.data + j->pos, *end = text + len;
    *row = (mr_jsonl_row){.line = ++j->line};
    if (j->buf_at + j->pos == 0 && len >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3))
        text += 3;
    while (text < end && blank(*text))
        text++;
    while (end > text && blank(end[-1]))
        end--;
    row->text = text;
    row->len = (size_t)(end - text);
    row->at = j->buf_at + (uint64_t)(text - (const char *)j->buf.data);
    j->pos += len;
}

mr_status mr_jsonl_next(mr_jsonl *j, mr_jsonl_row *row, mr_error *err)
{
    size_t seen = 0; /* bytes behind pos known to hold no line end */
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
            mr_status status = fill(j, &more, err);
            if (status != MR_OK)
                return status;
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
    mr_status status = mr_source_pread(source, entry, text, len, at, err);
    if (status != MR_OK)
        return status;
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
    uint64_t wanted;      /* fields whose value comes next, as bits */
    mr_jsonl_field *list; /* the field whose list of texts is being read, NULL: none */
    unsigned depth;
    yajl_handle yajl;
    size_t end; /* where the object closed */
    mr_status status;
    mr_error *err;
} pick;

static void add_text(mr_jsonl_field *f, const char *text, size_t len)
{
    if (f->kind == MR_JSONL_OTHER)
        return;
    f->kind = MR_JSONL_TEXTS;
    mr_buf_add_text(&f->text, f->text.len ? "," : "");
    mr_json_add_string(&f->text, text, len);
}

static int value(pick *p, mr_jsonl_kind kind, const char *text, size_t len)
{
    if (p->depth == 0) {
        p->status = refuse(p->j, p->row->line, p->err, "no JSON object");
        return 0;
    }
    for (size_t i = 0; p->depth == 1 && i < p->count; i++) {
        if (!(p->wanted >> i & 1))
            continue;
        if (p->fields[i].texts && kind == MR_JSONL_STRING) {
            add_text(&p->fields[i], text, len);
            continue;
        }
        p->fields[i].kind = kind;
        mr_buf_add(&p->fields[i].text, text, len);
    }
    if (p->list && kind == MR_JSONL_STRING && p->depth == 2)
        add_text(p->list, text, len);
    else if (p->list && p->depth == 2 && kind != MR_JSONL_NULL)
        p->list->kind = MR_JSONL_OTHER;
    if (p->depth == 1)
        p->wanted = 0;
    return 1;
}

static int on_null(void *ctx)
{
    return value(ctx, MR_JSONL_NULL, "", 0);
}

static int on_boolean(void *ctx, int yes)
{
    (void)yes;
    return value(ctx, MR_JSONL_OTHER, "", 0);
}

static int on_number(void *ctx, const char *text, size_t len)
{
    bool integer = !memchr(text, '.', len) && !memchr(text, 'e', len) && !memchr(text, 'E', len);
    return value(ctx, integer ? MR_JSONL_INTEGER : MR_JSONL_OTHER, text, len);
}

static int on_string(void *ctx, const unsigned char *text, size_t len)
{
    return value(ctx, MR_JSONL_STRING, (const char *)text, len);
}

static int on_key(void *ctx, const unsigned char *key, size_t len)
{
    pick *p = ctx;
    if (p->depth != 1)
        return 1;
    p->wanted = 0;
    if (p->names) {
        mr_buf_add_text(p->names, p->names->len ? ", " : "");
        mr_text_escape(p->names, (const char *)key, len);
    }
    for (size_t i = 0; i < p->count; i++) {
        if (strlen(p->fields[i].name) != len || memcmp(p->fields[i].name, key, len) != 0)
            continue;
        if (p->fields[i].kind != MR_JSONL_ABSENT) {
            p->status = refuse(p->j, p->row->line, p->err, "\"%.100s\" twice", p->fields[i].name);
            return 0;
        }
        p->wanted |= (uint64_t)1 << i;
    }
    return 1;
}

static int open_container(pick *p)
{
    if (p->depth && !value(p, MR_JSONL_OTHER, "", 0))
        return 0;
    if (++p->depth <= DEPTH_MAX)
        return 1;
    p->status = refuse(p->j, p->row->line, p->err, "nested more than %d deep", DEPTH_MAX);
    return 0;
}

static int on_map(void *ctx)
{
    return open_container(ctx);
}

static int on_array(void *ctx)
{
    pick *p = ctx;
    mr_jsonl_field *list = NULL;
    for (size_t i = 0; p->depth == 1 && i < p->count; i++)
        if (p->wanted >> i & 1 && p->fields[i].texts)
            list = &p->fields[i];
    if (!p->depth || !open_container(p))
        return p->depth ? 0 : value(p, MR_JSONL_OTHER, "", 0);
    if (list) {
        list->kind = MR_JSONL_TEXTS;
        p->list = list;
    }
    return 1;
}

static int on_end(void *ctx)
{
    pick *p = ctx;
    if (--p->depth == 1)
        p->list = NULL;
    if (p->depth == 0)
        p->end = yajl_get_bytes_consumed(p->yajl);
    return 1;
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_boolean,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_map,
    .yajl_map_key = on_key,
    .yajl_end_map = on_end,
    .yajl_start_array = on_array,
    .yajl_end_array = on_end,
};

static mr_status refuse_row(const pick *p)
{
    char odd[MR_JSON_ODDITY];
    mr_json_place place = {
        .text = p->row->text, .len = p->row->len, .at = yajl_get_bytes_consumed(p->yajl), .begins = true, .ends = true};
    if (mr_json_oddity(&place, odd))
        return refuse(p->j, p->row->line, p->err, "byte %zu: no JSON object: %s", place.at + 1, odd);
    unsigned char *text = yajl_get_error(p->yajl, 0, NULL, 0);
    mr_status status = refuse(p->j, p->row->line, p->err, "no JSON object: %.*s",
                              text ? (int)strcspn((char *)text, "\n") : 0, text ? (char *)text : "");
    yajl_free_error(p->yajl, text);
    return status;
}

mr_status mr_jsonl_pick(const mr_jsonl *j, const mr_jsonl_row *row, mr_jsonl_field *fields, size_t count, mr_buf *names,
                        mr_error *err)
{
    pick p = {.j = j, .row = row, .fields = fields, .count = count, .names = names, .err = err};
    for (size_t i = 0; i < count; i++) {
        fields[i].kind = MR_JSONL_ABSENT;
        mr_buf_clear(&fields[i].text);
    }
    mr_yajl memory;
    mr_status opened = mr_yajl_open(&memory, &callbacks, &p, MR_YAJL_ROOM(row->len), "reading JSON lines", err);
    if (opened != MR_OK)
        return opened;
    yajl_handle yajl = p.yajl = memory.parser;
    yajl_status parsed = yajl_parse(yajl, (const unsigned char *)row->text, row->len);
    if (parsed == yajl_status_ok)
        parsed = yajl_complete_parse(yajl);
    if (memory.ran_out)
        p.status = mr_fail_memory(err, "reading JSON lines");
    if (parsed != yajl_status_ok && p.status == MR_OK)
        p.status = refuse_row(&p);
    mr_yajl_close(&memory);
    const char *beyond = p.status == MR_OK ? mr_json_beyond(row->text, row->len, p.end) : NULL;
    if (beyond)
        p.status = refuse(j, row->line, err, "no JSON object: %s", beyond);
    for (size_t i = 0; i < count && p.status == MR_OK; i++)
        p.status = mr_buf_status(&fields[i].text, err, "reading JSON lines");
    return p.status;
}
