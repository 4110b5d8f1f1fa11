/* coco_parse.c - what is picked out of a COCO annotation file while it streams by.
 * Invariant: only what stands at depth three of "images", "annotations" and "categories" is looked at; everything
 * deeper (polygons, nearly the whole file) costs one comparison a value and no memory.
 *
 *      { "images": [ { "id": 7, "file_name": "a.jpg" }, ... ], "annotations": [ { "image_id": 7, "segmentation": [[...
 *      depth 1     2 3                                                                                          4 5  */
#include "tables/coco_parse.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const section_words[SECTIONS] = {"", "images", "annotations", "categories", "info", "licenses"};

static const char *const field_words[] = {"", "id", "image_id", "category_id", "file_name", "name"};
static const unsigned fields_of[SECTIONS] = {
    /* the members we read, as bits */
    [IMAGES] = 1u << ID | 1u << FILE_NAME,
    [ANNOTATIONS] = 1u << IMAGE_ID | 1u << CATEGORY_ID,
    [CATEGORIES] = 1u << ID | 1u << NAME,
};

/* Ends the parse: callbacks return 0 for "stop". */
MR_PRINTF(2, 3) static int refuse(mr_coco_parser *p, const char *format, ...)
{
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    p->status = mr_fail(p->err, MR_BAD_DATA, "%s: byte %" PRIu64 ": %s", p->name, mr_coco_here(p), text);
    return 0;
}

static int out_of_memory(mr_coco_parser *p)
{
    p->status = mr_fail_memory(p->err, "reading COCO annotations");
    return 0;
}

/* ---- values --------------------------------------------------------------------------------------------------- */

static bool integer(const char *text, size_t len, int64_t *out)
{
    bool minus = len && text[0] == '-';
    int64_t value = 0;
    if (len == minus)
        return false;
    for (size_t i = minus; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, text[i] - '0', &value))
            return false;
    }
    *out = minus ? -value : value;
    return true;
}

static int take_text(mr_coco_parser *p, const char *text, size_t len)
{
    if (len > 1 << 20)
        return refuse(p, "\"%s\" of %zu bytes is no name", field_words[p->field], len);
    if (p->field == NAME && memchr(text, '\0', len))
        return refuse(p, "a category's name holds a NUL character");
    p->text = malloc(len + 1);
    if (!p->text)
        return out_of_memory(p);
    memcpy(p->text, text, len);
    p->text[len] = '\0';
    p->text_len = (uint32_t)len;
    return 1;
}

enum kind { NUMBER, STRING, ELSE };

static int take_field(mr_coco_parser *p, enum kind kind, const char *text, size_t len)
{
    const char *word = field_words[p->field];
    if (p->seen_fields & 1u << p->field)
        return refuse(p, "\"%s\" twice in one of \"%s\"", word, section_words[p->section]);
    p->seen_fields |= 1u << p->field;
    if (p->field == FILE_NAME || p->field == NAME)
        return kind == STRING ? take_text(p, text, len) : refuse(p, "\"%s\" is no string", word);
    if (kind == STRING)
        return refuse(p, "\"%s\" is a string, not a number: COCO ids are integers", word);
    if (kind != NUMBER)
        return refuse(p, "\"%s\" is no number: COCO ids are integers", word);
    if (!integer(text, len, p->field == CATEGORY_ID ? &p->category_id : &p->id))
        return refuse(p, "\"%s\" is %.*s: COCO ids are integers of 64 bits, written without point or exponent", word,
                      len > 40 ? 40 : (int)len, text);
    return 1;
}

/* A number, string, true, false or null at depth three or less. */
static int scalar(mr_coco_parser *p, enum kind kind, const char *text, size_t len)
{
    if (p->depth == 0)
        return refuse(p, "no COCO annotation file: it holds a single value instead of an object");
    if (!p->fields)
        return 1;
    if (p->depth == 1)
        return refuse(p, "\"%s\" is no list", section_words[p->section]);
    if (p->depth == 2)
        return refuse(p, "\"%s\" lists something that is no object", section_words[p->section]);
    return p->field ? take_field(p, kind, text, len) : 1;
}

static int on_number(void *ctx, const char *text, size_t len)
{
    mr_coco_parser *p = ctx;
    p->events++;
    return p->depth > 3 ? 1 : scalar(p, NUMBER, text, len);
}

static int on_string(void *ctx, const unsigned char *text, size_t len)
{
    mr_coco_parser *p = ctx;
    p->events++;
    return p->depth > 3 ? 1 : scalar(p, STRING, (const char *)text, len);
}

static int on_null(void *ctx)
{
    mr_coco_parser *p = ctx;
    p->events++;
    return p->depth > 3 ? 1 : scalar(p, ELSE, "", 0);
}

static int on_boolean(void *ctx, int value)
{
    (void)value;
    return on_null(ctx);
}

/* ---- containers ----------------------------------------------------------------------------------------------- */

static int key_section(mr_coco_parser *p, const char *key, size_t len)
{
    p->section = OTHER;
    for (int i = 1; i < SECTIONS; i++)
        if (len == strlen(section_words[i]) && !memcmp(key, section_words[i], len))
            p->section = (enum mr_coco_section)i;
    p->fields = fields_of[p->section];
    if (p->section != OTHER && p->seen_sections & 1u << p->section)
        return refuse(p, "\"%s\" twice: the file is two files run together", section_words[p->section]);
    p->seen_sections |= 1u << p->section;
    return 1;
}

static int on_key(void *ctx, const unsigned char *key, size_t len)
{
    mr_coco_parser *p = ctx;
    p->events++;
    if (p->depth == 1)
        return key_section(p, (const char *)key, len);
    if (p->depth != 3)
        return 1;
    p->field = NO_FIELD;
    for (unsigned i = 1, left = p->fields >> 1; left; i++, left >>= 1)
        if (left & 1 && len == strlen(field_words[i]) && !memcmp(key, field_words[i], len))
            p->field = (enum mr_coco_field)i;
    return 1;
}

/* Before a container opens inside the section we read: only [ at depth one, { at depth two, no id at depth three. */
static int open_container(mr_coco_parser *p, char mark)
{
    p->events++;
    if (p->depth == 0 && mark == '[')
        return refuse(p, "a bare list is a COCO *result* file (what a model found), which names no image files; give "
                         "the annotation file with \"images\" instead");
    if (p->depth <= 3 && p->fields) {
        if (p->depth == 1 && mark != '[')
            return refuse(p, "\"%s\" is no list", section_words[p->section]);
        if (p->depth == 2 && mark != '{')
            return refuse(p, "\"%s\" lists something that is no object", section_words[p->section]);
        if (p->depth == 3 && p->field)
            return take_field(p, ELSE, "", 0);
        if (p->depth == 2) {
            p->at = mr_coco_here(p) - 1;
            p->seen_fields = 0;
            p->category_id = INT64_MIN;
            p->field = NO_FIELD;
            if (p->chunk[yajl_get_bytes_consumed(p->yajl) - 1] != '{')
                return refuse(p, "the parser lost its place");
        }
    }
    if (++p->depth > MR_COCO_DEPTH_MAX)
        return refuse(p, "nested more than %d deep", MR_COCO_DEPTH_MAX);
    return 1;
}

static int on_map(void *ctx)
{
    return open_container(ctx, '{');
}

static int on_array(void *ctx)
{
    return open_container(ctx, '[');
}

static int on_array_end(void *ctx)
{
    mr_coco_parser *p = ctx;
    p->depth--;
    return 1;
}

static int add_image(mr_coco_parser *p, uint32_t len)
{
    mr_coco_file *f = p->file;
    if (!MR_GROW(f->images, f->image_count, f->image_room))
        return out_of_memory(p);
    f->images[f->image_count++] =
        (mr_coco_image){.id = p->id, .file_name = p->text, .name_len = p->text_len, .at = p->at, .len = len};
    p->text = NULL;
    return 1;
}

static int add_annotation(mr_coco_parser *p, uint32_t len)
{
    mr_coco_file *f = p->file;
    if (!MR_GROW(f->annotations, f->annotation_count, f->annotation_room))
        return out_of_memory(p);
    f->annotations[f->annotation_count++] =
        (mr_coco_annotation){.image_id = p->id, .category_id = p->category_id, .at = p->at, .len = len};
    return 1;
}

static int add_category(mr_coco_parser *p)
{
    mr_coco_file *f = p->file;
    if (!MR_GROW(f->categories, f->category_count, f->category_room))
        return out_of_memory(p);
    f->categories[f->category_count++] = (mr_coco_category){.id = p->id, .name = p->text};
    p->text = NULL;
    return 1;
}

/* An element of "images", "annotations" or "categories" has ended at depth two. */
static int end_element(mr_coco_parser *p)
{
    uint64_t len = mr_coco_here(p) - p->at;
    size_t count = p->section == IMAGES ? p->file->image_count : p->file->annotation_count;
    unsigned missing = p->fields & ~p->seen_fields & ~(1u << CATEGORY_ID);
    if (p->chunk[yajl_get_bytes_consumed(p->yajl) - 1] != '}')
        return refuse(p, "the parser lost its place");
    if (missing)
        return refuse(p, "one of \"%s\" has no \"%s\"", section_words[p->section], field_words[__builtin_ctz(missing)]);
    if (len > UINT32_MAX || count >= UINT32_MAX)
        return refuse(p, "more than 4,294,967,295 %s", len > UINT32_MAX ? "bytes in one object" : "objects");
    if (p->section == IMAGES)
        return add_image(p, (uint32_t)len);
    return p->section == ANNOTATIONS ? add_annotation(p, (uint32_t)len) : add_category(p);
}

static int on_map_end(void *ctx)
{
    mr_coco_parser *p = ctx;
    if (--p->depth == 0)
        p->end = mr_coco_here(p);
    return p->depth == 2 && p->fields ? end_element(p) : 1;
}

const yajl_callbacks mr_coco_callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_boolean,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_map,
    .yajl_map_key = on_key,
    .yajl_end_map = on_map_end,
    .yajl_start_array = on_array,
    .yajl_end_array = on_array_end,
};
