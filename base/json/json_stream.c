/* json_stream.c - yajl 2.1 with limits, strict checks of UTF-8 and blanks, and safe handling of out-of-memory.
 * Invariant: yajl's allocator never returns NULL, which yajl would not check: it jumps back into run() instead, and all
 * that yajl had allocated is in `blocks`.  The handler never runs between such a jump and its target. */
#include "base/json/json_stream.h"

#include <setjmp.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yajl/yajl_parse.h>

#include "base/text.h"
#include "base/json/json_keys.h"

enum { QUIET_MAX = 64 << 20 }; /* bytes without a token: yajl keeps a string until it ends */

typedef struct block {
    alignas(max_align_t) struct block *next;
    struct block **link; /* what points to this block */
} block;

struct mr_json_stream {
    mr_json_rules rules;
    const char *what;
    yajl_handle parser;
    yajl_alloc_funcs functions;
    block *blocks; /* what the parser has allocated, itself included */
    jmp_buf no_memory;

    unsigned depth;
    bool closed;     /* the document has ended */
    uint64_t end;    /* where it ended, if closed */
    uint64_t tokens; /* including those too deep to hand out */
    uint64_t quiet;  /* bytes since the last one, in whole feeds */
    const unsigned char *bytes;
    size_t len;
    uint64_t at; /* where `bytes` begin in the document */
    yajl_status parsed;
    mr_status status;     /* the handler's */
    const char *not_json; /* what is not JSON, although yajl accepts it */
    uint64_t not_json_at; /* its first byte */
    mr_json_keys keys;
    uint64_t twice_at; /* the byte after a key that its object has twice; 0: there is none */
    char twice[80];    /* the key as people read it; "" if it is not known any more */
    bool faulty, deep, too_quiet;
};

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void *resize(void *ctx, void *old, size_t size)
{
    mr_json_stream *s = ctx;
    block *b = old ? (block *)old - 1 : NULL;
    block **link = b ? b->link : &s->blocks;
    block *grown = size <= SIZE_MAX - sizeof *b ? realloc(b, sizeof *b + size) : NULL;
    if (!grown)
        longjmp(s->no_memory, 1);
    if (!b) {
        grown->next = s->blocks;
        grown->link = link;
    }
    *link = grown;
    if (grown->next)
        grown->next->link = &grown->next;
    return grown + 1;
}

static void *allocate(void *ctx, size_t size)
{
    return resize(ctx, NULL, size);
}

static void release(void *ctx, void *old)
{
    (void)ctx;
    if (!old)
        return;
    block *b = (block *)old - 1;
    *b->link = b->next;
    if (b->next)
        b->next->link = b->link;
    free(b);
}

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

static int hand_out(mr_json_stream *s, mr_json_kind kind, const char *text, size_t len)
{
    mr_json_token token = {kind, s->depth, text, len};
    mr_status status = s->rules.handler(s->rules.ctx, &token);
    if (status == MR_OK)
        return 1;
    s->status = status;
    return 0;
}

/* Most of a large file is deep (COCO's polygons): there a token costs this one comparison. */
static inline int add_token(mr_json_stream *s, mr_json_kind kind, const char *text, size_t len)
{
    s->tokens++;
    return s->depth > s->rules.levels || hand_out(s, kind, text, len);
}

static int on_null(void *ctx)
{
    return add_token(ctx, MR_JSON_NULL, "", 0);
}

static int on_boolean(void *ctx, int value)
{
    return add_token(ctx, MR_JSON_BOOLEAN, value ? "true" : "false", value ? 4 : 5);
}

static int on_number(void *ctx, const char *text, size_t len)
{
    return add_token(ctx, MR_JSON_NUMBER, text, len);
}

static int on_string(void *ctx, const unsigned char *text, size_t len)
{
    return add_token(ctx, MR_JSON_STRING, (const char *)text, len);
}

/* Readers differ in which value they take. */
static int on_key(void *ctx, const unsigned char *text, size_t len)
{
    mr_json_stream *s = ctx;
    mr_json_keys_verdict verdict = mr_json_keys_add(&s->keys, text, len, mr_json_stream_at(s));
    if (verdict == MR_JSON_KEYS_NO_MEMORY)
        longjmp(s->no_memory, 1);
    if (verdict == MR_JSON_KEYS_DIFFER)
        return add_token(s, MR_JSON_KEY, (const char *)text, len);
    mr_buf shown = {0};
    mr_text_show(&shown, (const char *)text, len < 50 ? len : 50);
    snprintf(s->twice, sizeof s->twice, "%s", mr_buf_text(&shown));
    mr_buf_free(&shown);
    s->twice_at = mr_json_stream_at(s);
    return 0;
}

static int begin_container(mr_json_stream *s, mr_json_kind kind)
{
    if (!add_token(s, kind, "", 0))
        return 0;
    s->deep = ++s->depth > s->rules.depth_max;
    return !s->deep;
}

static int end_container(mr_json_stream *s, mr_json_kind kind)
{
    if (--s->depth == 0) {
        s->closed = true;
        s->end = mr_json_stream_at(s);
    }
    return add_token(s, kind, "", 0);
}

static int on_object(void *ctx)
{
    mr_json_stream *s = ctx;
    if (!mr_json_keys_begin(&s->keys))
        longjmp(s->no_memory, 1);
    return begin_container(s, MR_JSON_OBJECT);
}

static int on_object_end(void *ctx)
{
    mr_json_stream *s = ctx;
    return mr_json_keys_end(&s->keys, &s->twice_at) && end_container(s, MR_JSON_OBJECT_END);
}

static int on_list(void *ctx)
{
    return begin_container(ctx, MR_JSON_LIST);
}

static int on_list_end(void *ctx)
{
    return end_container(ctx, MR_JSON_LIST_END);
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_boolean,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_object,
    .yajl_map_key = on_key,
    .yajl_end_map = on_object_end,
    .yajl_start_array = on_list,
    .yajl_end_array = on_list_end,
};

/* ---- the stream -------------------------------------------------------------------------------------------------- */

static void start(mr_json_stream *s)
{
    s->parser = yajl_alloc(&callbacks, &s->functions, s);
}

static void parse(mr_json_stream *s)
{
    s->parsed = yajl_parse(s->parser, s->bytes, s->len);
}

static void complete(mr_json_stream *s)
{
    s->parsed = yajl_complete_parse(s->parser);
}

/* False: out of memory; the parser can no longer be used. */
static bool run(mr_json_stream *s, void (*step)(mr_json_stream *))
{
    if (setjmp(s->no_memory) != 0)
        return false;
    step(s);
    return true;
}

mr_status mr_json_stream_open(const mr_json_rules *rules, const char *what, mr_json_stream **out, mr_error *err)
{
    mr_json_stream *s = mr_alloc(1, sizeof *s);
    if (!s)
        return mr_fail_memory(err, what);
    s->rules = *rules;
    s->what = what;
    s->functions = (yajl_alloc_funcs){allocate, resize, release, s};
    if (!run(s, start)) {
        mr_json_stream_close(&s);
        return mr_fail_memory(err, what);
    }
    *out = s;
    return MR_OK;
}

void mr_json_stream_close(mr_json_stream **s)
{
    while (*s && (*s)->blocks)
        release(*s, (*s)->blocks + 1);
    if (*s)
        mr_json_keys_free(&(*s)->keys);
    free(*s);
    *s = NULL;
}

uint64_t mr_json_stream_at(const mr_json_stream *s)
{
    return s->at + yajl_get_bytes_consumed(s->parser);
}

static size_t invalid_utf8_at(const char *text, size_t len)
{
    size_t at = 0;
    for (size_t n = 1; n <= 4 && at + n <= len;) {
        bool valid = mr_utf8_valid(text + at, n);
        at += valid ? n : 0;
        n = valid ? 1 : n + 1;
    }
    return at;
}

/* yajl accepts form feeds and vertical tabs as blanks, overlong UTF-8 and surrogates, and a truncated token after the
 * document. */
static bool is_strict(mr_json_stream *s)
{
    const char *text = (const char *)s->bytes, *found;
    size_t at = s->len;
    if (s->len == 0)
        return true;
    if ((found = memchr(text, '\v', s->len)) || (found = memchr(text, '\f', s->len))) {
        s->not_json = "it holds a form feed or vertical tab";
        at = (size_t)(found - text);
    } else if (!mr_utf8_valid(text, s->len)) {
        s->not_json = "it is not UTF-8";
        at = invalid_utf8_at(text, s->len);
    } else if (s->closed) {
        at = s->end > s->at ? (size_t)(s->end - s->at) : 0;
        while (at < s->len && text[at] && strchr(" \t\r\n", text[at]))
            at++;
        s->not_json = at < s->len ? "other text follows after its end" : NULL;
    }
    s->not_json_at = s->at + at;
    return !s->not_json;
}

static mr_status outcome(mr_json_stream *s)
{
    if (s->status != MR_OK)
        return s->status;
    s->faulty = s->parsed != yajl_status_ok || !is_strict(s) || s->too_quiet;
    return s->faulty ? MR_BAD_DATA : MR_OK;
}

mr_status mr_json_stream_feed(mr_json_stream *s, const void *bytes, size_t len, uint64_t at, mr_error *err)
{
    uint64_t tokens = s->tokens;
    s->bytes = bytes;
    s->len = len;
    s->at = at;
    if (!run(s, parse))
        return mr_fail_memory(err, s->what);
    s->quiet = s->tokens == tokens ? s->quiet + len : 0;
    s->too_quiet = s->quiet > QUIET_MAX;
    return outcome(s);
}

mr_status mr_json_stream_end(mr_json_stream *s, mr_error *err)
{
    s->at += s->len ? s->len - 1 : 0; /* yajl itself adds one blank after the end */
    s->len = 0;
    return run(s, complete) ? outcome(s) : mr_fail_memory(err, s->what);
}

/* ---- faults ------------------------------------------------------------------------------------------------------ */

/* yajl's own message; its first line is used. */
static void describe(mr_json_stream *s)
{
    s->bytes = yajl_get_error(s->parser, 0, NULL, 0);
}

bool mr_json_stream_fault(mr_json_stream *s, const char *window, size_t len, uint64_t from, bool ends,
                          mr_json_fault *out)
{
    uint64_t here = mr_json_stream_at(s);
    char found[MR_JSON_ODDITY];
    mr_json_place place = {.text = window, .len = len, .at = (size_t)(here - from), .begins = !from, .ends = ends};
    if (!s->faulty)
        return false;
    out->at = here ? here - 1 : 0;
    if (s->twice_at) {
        snprintf(out->why, sizeof out->why, "duplicate key%s%s%s in an object: remove one of them",
                 *s->twice ? " \"" : "", s->twice, *s->twice ? "\"" : "");
        out->at = s->twice_at - 1;
    } else if (s->deep) {
        snprintf(out->why, sizeof out->why, "nested more than %u deep", s->rules.depth_max);
    } else if (s->too_quiet) {
        snprintf(out->why, sizeof out->why, "%d MiB without a value", QUIET_MAX >> 20);
    } else if (s->parsed == yajl_status_ok) {
        snprintf(out->why, sizeof out->why, "not JSON: %s", s->not_json);
        out->at = s->not_json_at;
    } else if (mr_json_oddity(&place, found)) {
        snprintf(out->why, sizeof out->why, "not JSON: %s", found);
        out->at = from + place.at;
    } else {
        const char *text = run(s, describe) && s->bytes ? (const char *)s->bytes : "";
        snprintf(out->why, sizeof out->why, "not JSON: %.*s", (int)strcspn(text, "\n"), text);
    }
    return true;
}
