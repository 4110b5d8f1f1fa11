/* coco_parse.c - extracts the tables of a COCO annotation file while it is streamed.
 * Invariant: only tokens down to depth four are examined; what is deeper (polygons, nearly all of the file) never
 * reaches this code.  A value that cannot be what it should be spoils its image or annotation alone.
 *
 *      { "images": [ { "id": 7, "file_name": "a.jpg" }, ... ], "annotations": [ { "image_id": 7, "segmentation": [[...
 *      depth 1     2 3                                                                                          4 5  */
#include "ingest/tables/coco_parse.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"

enum { LICENCES_MAX = 4096 };

static const unsigned fields_of[SECTIONS] = {
    /* the members that are read, as bits */
    [IMAGES] = 1u << ID | 1u << FILE_NAME | 1u << COCO_URL | 1u << SPLIT,
    [ANNOTATIONS] = 1u << IMAGE_ID | 1u << CATEGORY_ID | 1u << FILE_NAME | 1u << BBOX | 1u << CAPTION |
                    1u << SEGMENTS_INFO | 1u << SEGMENTATION | 1u << KEYPOINTS,
    [CATEGORIES] = 1u << ID | 1u << NAME,
    [LICENSES] = 1u << NAME,
};

static const unsigned required[SECTIONS] = {
    [IMAGES] = 1u << ID,
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

static mr_status key_section(mr_coco_parser *p, const char *key, size_t len)
{
    p->section = OTHER;
    p->field = NO_FIELD;
    for (int i = 1; i < SECTIONS; i++)
        if (len == strlen(mr_coco_sections[i]) && !memcmp(key, mr_coco_sections[i], len))
            p->section = (enum mr_coco_section)i;
    p->fields = fields_of[p->section];
    if (p->section != OTHER && p->seen_sections & 1u << p->section)
        return reject(p, "has \"%s\" twice, like two files run together", mr_coco_sections[p->section]);
    p->seen_sections |= 1u << p->section;
    return MR_OK;
}

/* ---- elements -------------------------------------------------------------------------------------------------- */

/* Keeps what is wrong with an element of that image, or of that category. */
static mr_status add_bad(mr_coco_parser *p, int64_t image_id, int64_t category_id)
{
    mr_coco_file *f = p->file;
    if (!MR_GROW(f->bads, f->bad_count, f->bad_capacity))
        return mr_coco_no_memory(p);
    mr_coco_bad bad = {image_id, category_id, p->why_at, strdup(p->why), false};
    if (!bad.why)
        return mr_coco_no_memory(p);
    f->bads[f->bad_count++] = bad;
    return MR_OK;
}

static mr_status add_image(mr_coco_parser *p, uint32_t len)
{
    mr_coco_file *f = p->file;
    if (!MR_GROW(f->images, f->image_count, f->image_capacity))
        return mr_coco_no_memory(p);
    f->images[f->image_count++] =
        (mr_coco_image){.id = p->id, .file_name = p->text, .name_len = p->text_len, .at = p->at, .len = len};
    p->text = NULL;
    return MR_OK;
}

/* LVIS names its images by coco_url alone. */
static mr_status name_image(mr_coco_parser *p)
{
    if (p->url && (!p->text || !p->text_len)) {
        free(p->text);
        p->text = p->url;
        p->text_len = (uint32_t)strlen(p->url);
        p->url = NULL;
    }
    if (!p->text_len)
        MR_TRY(mr_coco_spoil(p, "an image has no \"file_name\""));
    if (!p->text)
        p->text = calloc(1, 1);
    return p->text ? MR_OK : mr_coco_no_memory(p);
}

/* The element's file_name names its PNG, if it has segments. */
static mr_status add_png(mr_coco_parser *p, uint32_t *png)
{
    mr_coco_file *f = p->file;
    if (p->text && p->seen_fields & 1u << SEGMENTS_INFO && !memchr(p->text, '\0', p->text_len)) {
        if (!MR_GROW(f->pngs, f->png_count, f->png_capacity))
            return mr_coco_no_memory(p);
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
    if (!MR_GROW(f->annotations, f->annotation_count, f->annotation_capacity))
        return mr_coco_no_memory(p);
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
    if (!MR_GROW(f->categories, f->category_count, f->category_capacity))
        return mr_coco_no_memory(p);
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
    p->why[0] = '\0';
    p->text_len = 0;
}

static void forget_texts(mr_coco_parser *p)
{
    free(p->text);
    free(p->url);
    p->text = p->url = NULL;
}

/* Only the names of licences matter, and a fault in one is not a fault of the dataset. */
static mr_status add_licence(mr_coco_parser *p)
{
    mr_buf *all = &p->file->licences;
    MR_AUTO(mr_buf_free) mr_buf name = {0};
    mr_text_escape(&name, p->text ? p->text : "", p->text_len);
    mr_buf_add_text(&name, "\n");
    const char *text = mr_buf_text(&name), *found = all->len ? strstr(mr_buf_text(all), text) : NULL;
    bool known = found && (found == (const char *)all->data || found[-1] == '\n');
    if (p->text_len && !known && all->len + name.len <= LICENCES_MAX)
        mr_buf_add(all, text, name.len);
    forget_texts(p);
    return name.failed || all->failed ? mr_coco_no_memory(p) : MR_OK;
}

static mr_status judge_element(mr_coco_parser *p)
{
    unsigned missing = required[p->section] & ~p->seen_fields;
    uint64_t end = mr_json_stream_at(p->stream);
    const mr_json_flaw *flaw = NULL;
    if (p->repair.count && p->section != CATEGORIES) /* whose other members are not read */
        flaw = mr_json_repair_find(&p->repair, &p->flaw, p->at, end);
    if (flaw) {
        MR_TRY(mr_coco_spoil(p, "%s", mr_json_flaw_text(flaw)));
        p->why_at = flaw->at + 1;
    }
    if (!missing)
        return MR_OK;
    return mr_coco_spoil(p, "an element of \"%s\" has no \"%s\"", mr_coco_sections[p->section],
                         mr_coco_fields[__builtin_ctz(missing)]);
}

static mr_status end_element(mr_coco_parser *p)
{
    uint64_t len = mr_json_stream_at(p->stream) - p->at;
    size_t count = p->section == IMAGES ? p->file->image_count : p->file->annotation_count;
    bool known = p->seen_fields & (p->section == ANNOTATIONS ? 1u << IMAGE_ID : 1u << ID);
    if (p->section == LICENSES)
        return add_licence(p);
    MR_TRY(judge_element(p));
    if (len > UINT32_MAX || count >= UINT32_MAX)
        return reject(p, "more than 4,294,967,295 %s", len > UINT32_MAX ? "bytes in one object" : "objects");
    if (p->section == IMAGES)
        MR_TRY(name_image(p));
    bool bad = *p->why, category = p->section == CATEGORIES;
    int64_t id = known ? p->id : MR_COCO_NO_ID;
    if (bad)
        MR_TRY(add_bad(p, category ? MR_COCO_NO_ID : id, category ? id : MR_COCO_NO_ID));
    mr_status status = !known || (category && bad) ? MR_OK
                       : category                  ? add_category(p)
                       : p->section == IMAGES      ? add_image(p, (uint32_t)len)
                                                   : add_annotation(p, (uint32_t)len);
    forget_texts(p);
    return status;
}

/* ---- tokens ---------------------------------------------------------------------------------------------------- */

static mr_status take_document(mr_coco_parser *p, const mr_json_token *t)
{
    if (t->kind == MR_JSON_OBJECT || t->kind == MR_JSON_OBJECT_END)
        return MR_OK;
    if (t->kind == MR_JSON_LIST)
        return reject(p,
                      "a bare list is a COCO *result* file (a model's predictions), which names no image files; give "
                      "the annotation file with \"images\" instead");
    return reject(p, "not a COCO annotation file: it holds a single value instead of an object");
}

static mr_status take_section(mr_coco_parser *p, const mr_json_token *t)
{
    if (t->kind == MR_JSON_KEY)
        return key_section(p, t->text, t->len);
    if (!p->fields || t->kind == MR_JSON_LIST || t->kind == MR_JSON_LIST_END)
        return MR_OK;
    if (p->section != LICENSES)
        return reject(p, "\"%s\" is not a list", mr_coco_sections[p->section]);
    p->fields = 0;
    return MR_OK;
}

static mr_status take_element(mr_coco_parser *p, const mr_json_token *t)
{
    if (!p->fields)
        return MR_OK;
    if (t->kind == MR_JSON_OBJECT_END)
        return end_element(p);
    if (t->kind == MR_JSON_LIST_END)
        return MR_OK;
    begin_element(p);
    if (t->kind == MR_JSON_OBJECT || p->section == LICENSES)
        return MR_OK;
    MR_TRY(mr_coco_spoil(p, "\"%s\" lists something that is not an object", mr_coco_sections[p->section]));
    return add_bad(p, MR_COCO_NO_ID, MR_COCO_NO_ID);
}

static mr_status take_member(mr_coco_parser *p, const mr_json_token *t)
{
    if (t->kind == MR_JSON_KEY)
        mr_coco_key_field(p, t->text, t->len);
    else if (p->field && p->field < SEGMENTATION && t->kind != MR_JSON_OBJECT_END && t->kind != MR_JSON_LIST_END)
        return mr_coco_take_field(p, t);
    return p->field == BBOX && t->kind == MR_JSON_LIST_END ? mr_coco_take_inner(p, t) : MR_OK;
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
    case 3:
        return take_member(parser, t);
    default:
        return mr_coco_take_inner(parser, t);
    }
}
