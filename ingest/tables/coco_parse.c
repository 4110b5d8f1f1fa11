/* coco_parse.c - extracts the tables of a COCO annotation file while it is streamed.
 * Invariant: only tokens down to depth three are examined; what is deeper (polygons, nearly all of the file) never
 * reaches this code.
 *
 *      { "images": [ { "id": 7, "file_name": "a.jpg" }, ... ], "annotations": [ { "image_id": 7, "segmentation": [[...
 *      depth 1     2 3                                                                                          4 5  */
#include "tables/coco_parse.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_ID_MAX = 4096 };

static const char *const section_words[SECTIONS] = {"", "images", "annotations", "categories", "info", "licenses"};

static const char *const field_words[] = {"",          "id",   "image_id", "category_id",
                                          "file_name", "name", "caption",  "segments_info"};
static const uint8_t field_lengths[] = {0, 2, 8, 11, 9, 4, 7, 13}; /* there are millions of keys */
static const unsigned fields_of[SECTIONS] = {
    /* the members that are read, as bits */
    [IMAGES] = 1u << ID | 1u << FILE_NAME,
    [ANNOTATIONS] = 1u << IMAGE_ID | 1u << CATEGORY_ID | 1u << FILE_NAME | 1u << CAPTION | 1u << SEGMENTS_INFO,
    [CATEGORIES] = 1u << ID | 1u << NAME,
};
static const unsigned required[SECTIONS] = {
    [IMAGES] = 1u << ID | 1u << FILE_NAME,
    [ANNOTATIONS] = 1u << IMAGE_ID,
    [CATEGORIES] = 1u << ID | 1u << NAME,
};

MR_PRINTF(2, 3) static mr_status reject(mr_coco_parser *p, const char *format, ...)
{
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return mr_fail(p->err, MR_BAD_DATA, "%s: byte %" PRIu64 ": %s", p->name, mr_json_stream_at(p->stream), text);
}

static mr_status out_of_memory(mr_coco_parser *p)
{
    return mr_fail_memory(p->err, "reading COCO annotations");
}

/* ---- values --------------------------------------------------------------------------------------------------- */

static mr_status take_text(mr_coco_parser *p, const mr_json_token *t)
{
    if (t->len > 1 << 20)
        return reject(p, "\"%s\" of %zu bytes is too long for a name", field_words[p->field], t->len);
    if (p->field == NAME && memchr(t->text, '\0', t->len))
        return reject(p, "a category's name contains a NUL character");
    p->text = malloc(t->len + 1);
    if (!p->text)
        return out_of_memory(p);
    memcpy(p->text, t->text, t->len);
    p->text[t->len] = '\0';
    p->text_len = (uint32_t)t->len;
    return MR_OK;
}

static mr_status take_text_id(mr_coco_parser *p, const mr_json_token *t, int64_t *id)
{
    const char *word = field_words[p->field];
    if (!t->len || t->len > TEXT_ID_MAX)
        return reject(p, "\"%s\" is a string of %zu bytes: an id has 1 to %d", word, t->len, TEXT_ID_MAX);
    return mr_coco_id_add(p->ids, t->text, t->len, id) ? MR_OK : out_of_memory(p);
}

static mr_status take_field(mr_coco_parser *p, const mr_json_token *t)
{
    const char *word = field_words[p->field];
    int64_t *id = p->field == CATEGORY_ID ? &p->category_id : &p->id;
    if (p->section == ANNOTATIONS && p->field == FILE_NAME && t->kind != MR_JSON_STRING)
        return MR_OK; /* it matters in panoptic files alone */
    if (p->seen_fields & 1u << p->field)
        return reject(p, "an element of \"%s\" has \"%s\" twice", section_words[p->section], word);
    p->seen_fields |= 1u << p->field;
    if (p->field == FILE_NAME || p->field == NAME)
        return t->kind == MR_JSON_STRING ? take_text(p, t) : reject(p, "\"%s\" is not a string", word);
    if (t->kind == MR_JSON_STRING)
        return take_text_id(p, t, id);
    if (t->kind != MR_JSON_NUMBER)
        return reject(p, "\"%s\" is neither a number nor a string, as COCO ids are", word);
    if (!mr_coco_id_integer(t->text, t->len, id))
        return reject(p, "\"%s\" is %.*s: COCO ids are 64-bit integers, written without a point or exponent", word,
                      t->len > 40 ? 40 : (int)t->len, t->text);
    return MR_OK;
}

static mr_status key_section(mr_coco_parser *p, const char *key, size_t len)
{
    p->section = OTHER;
    p->field = NO_FIELD;
    for (int i = 1; i < SECTIONS; i++)
        if (len == strlen(section_words[i]) && !memcmp(key, section_words[i], len))
            p->section = (enum mr_coco_section)i;
    p->fields = fields_of[p->section];
    if (p->section != OTHER && p->seen_sections & 1u << p->section)
        return reject(p, "has \"%s\" twice, like two files run together", section_words[p->section]);
    p->seen_sections |= 1u << p->section;
    return MR_OK;
}

static void key_field(mr_coco_parser *p, const char *key, size_t len)
{
    p->field = NO_FIELD;
    for (unsigned left = p->fields; left; left &= left - 1) {
        int i = __builtin_ctz(left);
        if (len == field_lengths[i] && !memcmp(key, field_words[i], len))
            p->field = (enum mr_coco_field)i;
    }
    if (p->field == CAPTION || p->field == SEGMENTS_INFO) {
        p->seen_fields |= 1u << p->field;
        p->field = NO_FIELD;
    }
}

/* ---- elements -------------------------------------------------------------------------------------------------- */

static mr_status add_image(mr_coco_parser *p, uint32_t len)
{
    mr_coco_file *f = p->file;
    if (!MR_GROW(f->images, f->image_count, f->image_room))
        return out_of_memory(p);
    f->images[f->image_count++] =
        (mr_coco_image){.id = p->id, .file_name = p->text, .name_len = p->text_len, .at = p->at, .len = len};
    p->text = NULL;
    return MR_OK;
}

/* The element's file_name names its PNG, if it has segments. */
static mr_status add_png(mr_coco_parser *p, uint32_t *png)
{
    mr_coco_file *f = p->file;
    if (p->text && p->seen_fields & 1u << SEGMENTS_INFO && !memchr(p->text, '\0', p->text_len)) {
        if (!MR_GROW(f->pngs, f->png_count, f->png_room))
            return out_of_memory(p);
        f->pngs[f->png_count++] = p->text;
        p->text = NULL;
        *png = (uint32_t)f->png_count;
    }
    free(p->text);
    p->text = NULL;
    return MR_OK;
}

static mr_status add_annotation(mr_coco_parser *p, uint32_t len)
{
    mr_coco_file *f = p->file;
    if (!MR_GROW(f->annotations, f->annotation_count, f->annotation_room))
        return out_of_memory(p);
    mr_coco_annotation a = {.image_id = p->id, .category_id = p->category_id, .at = p->at, .len = len};
    f->has |= p->seen_fields & 1u << CAPTION ? MR_COCO_HAS_CAPTION : 0;
    f->has |= p->seen_fields & 1u << SEGMENTS_INFO ? MR_COCO_HAS_SEGMENTS : 0;
    mr_status status = add_png(p, &a.png);
    f->annotations[f->annotation_count++] = a;
    return status;
}

static mr_status add_category(mr_coco_parser *p)
{
    mr_coco_file *f = p->file;
    if (!MR_GROW(f->categories, f->category_count, f->category_room))
        return out_of_memory(p);
    f->categories[f->category_count++] = (mr_coco_category){.id = p->id, .name = p->text};
    p->text = NULL;
    return MR_OK;
}

static void begin_element(mr_coco_parser *p)
{
    p->at = mr_json_stream_at(p->stream) - 1;
    p->seen_fields = 0;
    p->category_id = MR_COCO_NO_ID;
    p->field = NO_FIELD;
}

static mr_status end_element(mr_coco_parser *p)
{
    uint64_t len = mr_json_stream_at(p->stream) - p->at;
    size_t count = p->section == IMAGES ? p->file->image_count : p->file->annotation_count;
    unsigned missing = required[p->section] & ~p->seen_fields;
    if (missing)
        return reject(p, "an element of \"%s\" has no \"%s\"", section_words[p->section],
                      field_words[__builtin_ctz(missing)]);
    if (len > UINT32_MAX || count >= UINT32_MAX)
        return reject(p, "more than 4,294,967,295 %s", len > UINT32_MAX ? "bytes in one object" : "objects");
    if (p->section == IMAGES)
        return add_image(p, (uint32_t)len);
    return p->section == ANNOTATIONS ? add_annotation(p, (uint32_t)len) : add_category(p);
}

/* ---- tokens ---------------------------------------------------------------------------------------------------- */

static mr_status take_document(mr_coco_parser *p, const mr_json_token *t)
{
    if (t->kind == MR_JSON_OBJECT || t->kind == MR_JSON_OBJECT_END)
        return MR_OK;
    if (t->kind == MR_JSON_LIST)
        return reject(p, "a bare list is a COCO *result* file (what a model found), which names no image files; give "
                         "the annotation file with \"images\" instead");
    return reject(p, "not a COCO annotation file: it holds a single value instead of an object");
}

static mr_status take_section(mr_coco_parser *p, const mr_json_token *t)
{
    if (t->kind == MR_JSON_KEY)
        return key_section(p, t->text, t->len);
    if (!p->fields || t->kind == MR_JSON_LIST || t->kind == MR_JSON_LIST_END)
        return MR_OK;
    return reject(p, "\"%s\" is not a list", section_words[p->section]);
}

static mr_status take_element(mr_coco_parser *p, const mr_json_token *t)
{
    if (!p->fields)
        return MR_OK;
    if (t->kind == MR_JSON_OBJECT_END)
        return end_element(p);
    if (t->kind != MR_JSON_OBJECT)
        return reject(p, "\"%s\" lists something that is not an object", section_words[p->section]);
    begin_element(p);
    return MR_OK;
}

static mr_status take_member(mr_coco_parser *p, const mr_json_token *t)
{
    if (t->kind == MR_JSON_KEY)
        key_field(p, t->text, t->len);
    else if (p->field && t->kind != MR_JSON_OBJECT_END && t->kind != MR_JSON_LIST_END)
        return take_field(p, t);
    return MR_OK;
}

mr_status mr_coco_take(void *parser, const mr_json_token *t)
{
    switch (t->depth) {
    case 0:
        return take_document(parser, t);
    case 1:
        return take_section(parser, t);
    case 2:
        return take_element(parser, t);
    default:
        return take_member(parser, t);
    }
}
