/* coco_head.c - see coco_head.h.
 * Source: "Data format" on cocodataset.org; the order of the sections differs between tools, and each may be larger
 * than the beginning that is read, so any one of them is enough. Invariant: a word counts only at its own depth:
 * "images" in a caption says nothing. */
#include "ingest/tables/coco_head.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "base/json/json_stream.h"

enum { LEVELS = 4, DEPTH_MAX = 200 };

typedef struct head {
    mr_coco_sign sign;
    char section[16]; /* whose members come next */
    bool named;       /* info, licenses, images or annotations were there */
    bool categories;  /* one with id and name was there */
    bool listed;      /* so were images or annotations */
    bool whole;       /* the head is all of the file: what is not in it is not there */
    unsigned seen;    /* members seen in the element: 1 id, 2 name */
} head;

static bool is(const mr_json_token *t, const char *word)
{
    return t->len == strlen(word) && !memcmp(t->text, word, t->len);
}

static void take_section(head *h, const mr_json_token *t)
{
    size_t len = t->len < sizeof h->section ? t->len : 0;
    memcpy(h->section, t->text, len);
    h->section[len] = '\0';
    h->listed = h->listed || is(t, "images") || is(t, "annotations");
    h->named = h->named || is(t, "info") || is(t, "licenses") || is(t, "images") || is(t, "annotations");
}

static void take_member(head *h, const mr_json_token *t)
{
    if ((!strcmp(h->section, "images") && (is(t, "file_name") || is(t, "coco_url"))) ||
        (!strcmp(h->section, "annotations") && is(t, "image_id")))
        h->sign = MR_COCO_SIGN_FILE;
    if (strcmp(h->section, "categories") != 0)
        return;
    h->seen |= is(t, "id") ? 1u : is(t, "name") ? 2u : 0;
    h->categories = h->categories || h->seen == 3;
}

static mr_status take(void *ctx, const mr_json_token *t)
{
    head *h = ctx;
    if (t->depth == 0 && t->kind == MR_JSON_LIST)
        h->sign = MR_COCO_SIGN_RESULT;
    else if (t->depth == 1 && t->kind == MR_JSON_KEY)
        take_section(h, t);
    else if (t->depth == 2 && t->kind == MR_JSON_OBJECT)
        h->seen = 0;
    else if (t->depth == 3 && t->kind == MR_JSON_KEY)
        take_member(h, t);
    if (h->categories && h->named && (h->listed || !h->whole)) /* notes.json of Label Studio has no images */
        h->sign = MR_COCO_SIGN_FILE;
    return h->sign ? MR_END : MR_OK; /* no more is needed */
}

mr_coco_sign mr_coco_head(const mr_source *s, uint32_t entry)
{
    head h = {0};
    uint64_t size = mr_source_entry(s, entry)->size;
    size_t len = size < MR_COCO_HEAD ? (size_t)size : MR_COCO_HEAD;
    MR_AUTO(mr_scope_free) char *text = malloc(len + 1);
    MR_AUTO(mr_json_stream_close) mr_json_stream *stream = NULL;
    const mr_json_rules rules = {.handler = take, .ctx = &h, .levels = LEVELS, .depth_max = DEPTH_MAX};
    mr_error err;
    if (!text || !len || mr_source_pread(s, entry, text, len, 0, NULL) != MR_OK)
        return MR_COCO_SIGN_NONE;
    h.whole = len == size;
    if (len < size)
        len -= mr_utf8_cut(text, len);
    size_t skip = mr_utf8_mark(text, len);
    if (mr_json_stream_open(&rules, "looking for a layout", &stream, &err) == MR_OK)
        mr_json_stream_feed(stream, text + skip, len - skip, skip, &err);
    return h.sign;
}
