/* coco_fields.c - the members of images, annotations and categories that are read.
 * Invariant: a value that cannot be what it should be spoils its element, and ends nothing. */
#include "ingest/tables/coco_parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { TEXT_ID_MAX = 4096 };

const char *const mr_coco_sections[SECTIONS] = {"", "images", "annotations", "categories", "info", "licenses"};
const char *const mr_coco_fields[] = {"",      "id",   "image_id", "category_id",   "file_name",    "coco_url", "name",
                                      "split", "bbox", "caption",  "segments_info", "segmentation", "keypoints"};
static const uint8_t field_lengths[] = {0, 2, 8, 11, 9, 8, 4, 5, 4, 7, 13, 12, 9}; /* there are millions of keys */

mr_status mr_coco_spoil(mr_coco_parser *p, const char *format, ...)
{
    va_list args;
    if (*p->why)
        return MR_OK;
    va_start(args, format);
    vsnprintf(p->why, sizeof p->why, format, args);
    va_end(args);
    p->why_at = mr_json_stream_at(p->stream);
    return MR_OK;
}

mr_status mr_coco_no_memory(mr_coco_parser *p)
{
    return mr_fail_memory(p->err, "reading COCO annotations");
}

/* ---- values --------------------------------------------------------------------------------------------------- */

static mr_status take_text(mr_coco_parser *p, const mr_json_token *t)
{
    char **out = p->field == COCO_URL ? &p->url : &p->text;
    if (t->len > 1 << 20)
        return mr_coco_spoil(p, "\"%s\" of %zu bytes is too long for a name", mr_coco_fields[p->field], t->len);
    if (p->section == CATEGORIES && memchr(t->text, '\0', t->len))
        return mr_coco_spoil(p, "a category's name contains a NUL character");
    if (p->section == CATEGORIES && !t->len)
        return mr_coco_spoil(p, "a category's name is empty");
    if (p->field == COCO_URL && (!t->len || memchr(t->text, '\0', t->len)))
        return MR_OK; /* it matters where there is no file_name */
    *out = malloc(t->len + 1);
    if (!*out)
        return mr_coco_no_memory(p);
    memcpy(*out, t->text, t->len);
    (*out)[t->len] = '\0';
    if (out == &p->text)
        p->text_len = (uint32_t)t->len;
    return MR_OK;
}

/* Tools that have only numbers for their classes write "name": 7. */
static mr_status take_name(mr_coco_parser *p, const mr_json_token *t)
{
    if (t->kind == MR_JSON_STRING || (p->field == NAME && t->kind == MR_JSON_NUMBER))
        return take_text(p, t);
    return p->field == COCO_URL ? MR_OK : mr_coco_spoil(p, "\"%s\" is not a string", mr_coco_fields[p->field]);
}

static mr_status take_id(mr_coco_parser *p, const mr_json_token *t)
{
    const char *word = mr_coco_fields[p->field];
    int64_t *id = p->field == CATEGORY_ID ? &p->category_id : &p->id;
    if (t->kind == MR_JSON_STRING && t->len && t->len <= TEXT_ID_MAX)
        return mr_coco_id_add(p->ids, t->text, t->len, id) ? MR_OK : mr_coco_no_memory(p);
    if (t->kind == MR_JSON_NUMBER && mr_coco_id_number(t->text, t->len, id))
        return MR_OK;
    p->seen_fields &= ~(1u << p->field);
    if (t->kind == MR_JSON_STRING)
        return mr_coco_spoil(p, "\"%s\" is a string of %zu bytes: an id has 1 to %d", word, t->len, TEXT_ID_MAX);
    if (t->kind != MR_JSON_NUMBER)
        return mr_coco_spoil(p, "\"%s\" is neither a number nor a string, as COCO ids are", word);
    return mr_coco_spoil(p, "\"%s\" is %.*s: COCO ids are 64-bit integers", word, t->len > 40 ? 40 : (int)t->len,
                         t->text);
}

/* Keeps the first two different ones. */
static mr_status take_split(mr_coco_parser *p, const mr_json_token *t)
{
    char(*kept)[MR_COCO_SPLIT] = p->file->splits;
    for (int i = 0; i < 2 && t->kind == MR_JSON_STRING && t->len && t->len < MR_COCO_SPLIT; i++) {
        if (!memcmp(kept[i], t->text, t->len) && !kept[i][t->len])
            break;
        if (*kept[i])
            continue;
        memcpy(kept[i], t->text, t->len);
        break;
    }
    return MR_OK;
}

/* bbox is a list of four numbers, or empty. */
static mr_status take_bbox(mr_coco_parser *p, const mr_json_token *t)
{
    if (t->depth > 3) {
        p->bbox_count++;
        return t->kind == MR_JSON_NUMBER ? MR_OK : mr_coco_spoil(p, "\"bbox\" holds something that is not a number");
    }
    if (t->kind == MR_JSON_LIST_END) {
        p->file->has |= p->bbox_count ? MR_COCO_HAS_PLACE : 0;
        return !p->bbox_count || p->bbox_count == 4
                   ? MR_OK
                   : mr_coco_spoil(p, "\"bbox\" has %u numbers, not four", p->bbox_count);
    }
    p->bbox_count = 0;
    return t->kind == MR_JSON_LIST || t->kind == MR_JSON_NULL ? MR_OK : mr_coco_spoil(p, "\"bbox\" is not a list");
}

/* Whether a string replaces something in the source that is not JSON. */
static const mr_json_flaw *flaw_of(const mr_coco_parser *p, const mr_json_token *t)
{
    size_t next = p->flaw;
    uint64_t to = mr_json_stream_at(p->stream), from = to > t->len + 2 ? to - t->len - 2 : 0;
    return t->kind == MR_JSON_STRING && p->repair.count ? mr_json_repair_find(&p->repair, &next, from, to) : NULL;
}

mr_status mr_coco_take_field(mr_coco_parser *p, const mr_json_token *t)
{
    const char *word = mr_coco_fields[p->field];
    const mr_json_flaw *flaw = flaw_of(p, t);
    if (p->section == ANNOTATIONS && p->field == FILE_NAME && t->kind != MR_JSON_STRING)
        return MR_OK; /* it matters in panoptic files alone */
    if (p->seen_fields & 1u << p->field)
        return mr_coco_spoil(p, "an element of \"%s\" has \"%s\" twice", mr_coco_sections[p->section], word);
    if (flaw)
        return mr_coco_spoil(p, "%s", mr_json_flaw_text(flaw));
    p->seen_fields |= 1u << p->field;
    if (p->field == BBOX)
        return take_bbox(p, t);
    if (p->field == SPLIT)
        return take_split(p, t);
    return p->field == FILE_NAME || p->field == COCO_URL || p->field == NAME ? take_name(p, t) : take_id(p, t);
}

void mr_coco_key_field(mr_coco_parser *p, const char *key, size_t len)
{
    p->field = NO_FIELD;
    for (unsigned left = p->fields; left; left &= left - 1) {
        int i = __builtin_ctz(left);
        if (len == field_lengths[i] && !memcmp(key, mr_coco_fields[i], len))
            p->field = (enum mr_coco_field)i;
    }
    if (p->field == CAPTION || p->field == SEGMENTS_INFO) {
        p->seen_fields |= 1u << p->field;
        p->field = NO_FIELD;
    }
}

mr_status mr_coco_take_inner(mr_coco_parser *p, const mr_json_token *t)
{
    if (p->field >= SEGMENTATION)
        p->file->has |= MR_COCO_HAS_PLACE;
    return p->field == BBOX ? take_bbox(p, t) : MR_OK;
}
