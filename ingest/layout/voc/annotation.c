/* annotation.c - reads one XML file of Pascal VOC with expat.
 * Source: "Annotation" in the development kit of VOC2012; Roboflow adds <polygon> with <x1>, <y1>, <x2> ...
 *
 *      <annotation><filename>, <size><width>, <height></size>
 *                  <object><name>, <bndbox><xmin>, <ymin>, <xmax>, <ymax>   <part> has a name and a box of its own
 *
 * Invariant: an element is identified by its whole path, so a part's box is never its object's. */
#include "ingest/layout/voc/annotation.h"

#include <expat.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"

enum { TEXT_MAX = MR_VOC_NAME_MAX };

typedef enum place {
    ELSEWHERE,
    TOP,
    FILENAME,
    SIZE,
    WIDTH,
    HEIGHT,
    OBJECT,
    NAME,
    BOX,
    TURNED_BOX,
    SIDE,
    POLYGON,
    POINT
} place;

static const struct step {
    place from;
    const char *name;
    place to;
    int side;
} steps[] = {
    {TOP, "filename", FILENAME, 0},  {TOP, "size", SIZE, 0},
    {SIZE, "width", WIDTH, 0},       {SIZE, "height", HEIGHT, 0},
    {TOP, "object", OBJECT, 0},      {OBJECT, "name", NAME, 0},
    {OBJECT, "bndbox", BOX, 0},      {OBJECT, "robndbox", TURNED_BOX, 0},
    {BOX, "xmin", SIDE, 0},          {BOX, "ymin", SIDE, 1},
    {BOX, "xmax", SIDE, 2},          {BOX, "ymax", SIDE, 3},
    {OBJECT, "polygon", POLYGON, 0},
};

typedef struct reader {
    XML_Parser parser;
    mr_voc_annotation *out;
    place open[MR_VOC_DEPTH];
    size_t depth;
    int side;
    bool is_y; /* the coordinate of the polygon's current point */
    char text[TEXT_MAX + 1];
    size_t len;
    mr_status status;
    const char *why;
} reader;

static void stop(reader *r, mr_status status, const char *why)
{
    if (r->status == MR_OK) {
        r->status = status;
        r->why = why;
    }
    XML_StopParser(r->parser, XML_FALSE);
}

static void no_doctype(void *ctx, const XML_Char *name, const XML_Char *system, const XML_Char *public, int internal)
{
    (void)name, (void)system, (void)public, (void)internal;
    stop(ctx, MR_BAD_DATA, "a DOCTYPE, which could declare entities and is not read; remove it");
}

/* ---- elements ---------------------------------------------------------------------------------------------------- */

static place enter(reader *r, const char *name)
{
    if (!r->depth)
        return strcmp(name, "annotation") ? ELSEWHERE : TOP;
    place from = r->open[r->depth - 1];
    if (from == POLYGON && (*name == 'x' || *name == 'y') && name[1] &&
        strspn(name + 1, "0123456789") + 1 == strlen(name)) {
        r->is_y = *name == 'y';
        return POINT;
    }
    for (size_t i = 0; i < MR_COUNT(steps); i++)
        if (steps[i].from == from && !strcmp(steps[i].name, name)) {
            r->side = steps[i].side;
            return steps[i].to;
        }
    return ELSEWHERE;
}

static void begin(void *ctx, const XML_Char *name, const XML_Char **attributes)
{
    reader *r = ctx;
    mr_voc_annotation *a = r->out;
    (void)attributes;
    if (r->status != MR_OK) /* what expat still reports after it was stopped */
        return;
    if (r->depth == MR_VOC_DEPTH)
        return stop(r, MR_BAD_DATA, "elements are nested more than 32 deep");
    place at = enter(r, name);
    if (!r->depth && at != TOP)
        return stop(r, MR_BAD_DATA, "not an annotation of Pascal VOC: it does not begin with <annotation>");
    r->open[r->depth++] = at;
    r->len = 0;
    bool any = a->count > 0;
    mr_voc_object *o = any ? &a->objects[a->count - 1] : NULL;
    if (any && at == NAME && o->named)
        return stop(r, MR_BAD_DATA, "an object with two names: it is unclear which one applies");
    if (any && at == BOX && o->boxed)
        return stop(r, MR_BAD_DATA, "an object with two bndbox: it is unclear which one applies");
    if (at == TURNED_BOX)
        return stop(r, MR_BAD_DATA,
                    "a robndbox, the rotated box of roLabelImg, which is not read: write its four corners "
                    "as a <polygon>");
    if (any && at == SIDE && o->seen & 1u << r->side)
        return stop(r, MR_BAD_DATA, "a bndbox with a duplicate side");
    if (any && (at == NAME || at == BOX))
        *(at == NAME ? &o->named : &o->boxed) = true;
    if (at != OBJECT)
        return;
    if (!MR_GROW(a->objects, a->count, a->capacity))
        return stop(r, MR_SYSTEM, NULL);
    a->objects[a->count++] = (mr_voc_object){.point = a->point_count};
}

static void add_text(void *ctx, const XML_Char *text, int len)
{
    reader *r = ctx;
    place at = r->depth ? r->open[r->depth - 1] : ELSEWHERE;
    if (r->status != MR_OK)
        return;
    if (at != WIDTH && at != HEIGHT && at != NAME && at != SIDE && at != POINT && at != FILENAME)
        return;
    if ((size_t)len > TEXT_MAX - r->len)
        return stop(r, MR_BAD_DATA, "a name or a number of more than 4,096 bytes");
    memcpy(r->text + r->len, text, (size_t)len);
    r->len += (size_t)len;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* Without surrounding blanks. */
static const char *trimmed(reader *r, size_t *len)
{
    const char *from = r->text, *to = r->text + r->len;
    while (from < to && strchr(" \t\r\n", *from) && *from)
        from++;
    while (to > from && strchr(" \t\r\n", to[-1]) && to[-1])
        to--;
    *len = (size_t)(to - from);
    return from;
}

static bool number(reader *r, double *out)
{
    size_t len;
    const char *from = trimmed(r, &len);
    char copy[64], *rest;
    if (!len || len >= sizeof copy)
        return false;
    memcpy(copy, from, len);
    copy[len] = '\0';
    if (strspn(copy, "+-.0123456789eE") < len)
        return false;
    *out = strtod(copy, &rest);
    return !*rest && isfinite(*out);
}

static void take_size(reader *r, uint32_t *out)
{
    double value;
    if (number(r, &value) && value >= 0 && value <= UINT32_MAX)
        *out = (uint32_t)value;
}

static void take_text(reader *r, size_t *text_at, size_t *text_len)
{
    size_t len;
    const char *from = trimmed(r, &len);
    *text_at = r->out->names.len;
    *text_len = len;
    mr_buf_add(&r->out->names, from, len);
    if (r->out->names.failed)
        stop(r, MR_SYSTEM, NULL);
}

static void take_side(reader *r, mr_voc_object *o)
{
    if (!number(r, &o->sides[r->side]))
        return stop(r, MR_BAD_DATA, "a side of a bndbox is not a number");
    o->seen |= 1u << r->side;
}

/* A point is an x and the y after it; an unreadable number invalidates its polygon. */
static void take_point(reader *r, mr_voc_object *o)
{
    mr_voc_annotation *a = r->out;
    double value = NAN;
    bool odd = o->points & 1;
    if (!number(r, &value) || odd != r->is_y)
        value = NAN;
    if (!MR_GROW(a->points, a->point_count, a->point_capacity))
        return stop(r, MR_SYSTEM, NULL);
    a->points[a->point_count++] = value;
    o->points++;
}

static void end(void *ctx, const XML_Char *name)
{
    reader *r = ctx;
    mr_voc_annotation *a = r->out;
    (void)name;
    if (r->status != MR_OK || !r->depth)
        return;
    mr_voc_object *o = a->count ? &a->objects[a->count - 1] : NULL;
    place at = r->open[--r->depth];
    if (at == WIDTH || at == HEIGHT)
        take_size(r, at == WIDTH ? &a->width : &a->height);
    else if (at == NAME && o)
        take_text(r, &o->name_at, &o->name_len);
    else if (at == FILENAME)
        take_text(r, &a->file_at, &a->file_len);
    else if (at == SIDE && o)
        take_side(r, o);
    else if (at == OBJECT && o && o->boxed && o->seen != 15)
        stop(r, MR_BAD_DATA, "a bndbox without all of xmin, ymin, xmax and ymax");
    else if (at == POINT && o)
        take_point(r, o);
    r->len = 0;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static void clear(mr_voc_annotation *a)
{
    a->count = a->point_count = 0;
    a->width = a->height = 0;
    a->file_at = a->file_len = 0;
    mr_buf_clear(&a->names);
}

/* Expat 2.9 has the line in 64 bits, and calls the older function deprecated. */
static unsigned long line_of(XML_Parser parser)
{
#if XML_MAJOR_VERSION > 2 || XML_MINOR_VERSION >= 9
    return (unsigned long)XML_GetCurrentLineNumber64(parser);
#else
    return XML_GetCurrentLineNumber(parser);
#endif
}

mr_status mr_voc_parse(const void *bytes, size_t len, mr_voc_annotation *out, mr_error *err)
{
    reader r = {.out = out};
    clear(out);
    if (!out->parser || !XML_ParserReset(out->parser, NULL)) {
        if (out->parser)
            XML_ParserFree(out->parser);
        out->parser = XML_ParserCreate(NULL);
    }
    XML_Parser parser = r.parser = out->parser;
    if (!parser)
        return mr_fail_memory(err, "reading an annotation");
    if (len > MR_VOC_XML_MAX)
        return mr_fail(err, MR_BAD_DATA, "longer than 16 MiB, the limit for an annotation file");
    XML_SetUserData(parser, &r);
    XML_SetElementHandler(parser, begin, end);
    XML_SetCharacterDataHandler(parser, add_text);
    XML_SetStartDoctypeDeclHandler(parser, no_doctype);
    enum XML_Status parsed = XML_Parse(parser, bytes, (int)len, 1);
    unsigned long line = line_of(parser);
    enum XML_Error error = XML_GetErrorCode(parser);
    if (r.status == MR_SYSTEM || (parsed != XML_STATUS_OK && error == XML_ERROR_NO_MEMORY))
        return mr_fail_memory(err, "reading an annotation");
    if (r.status != MR_OK)
        return mr_fail(err, r.status, "line %lu: %s", line, r.why);
    if (parsed != XML_STATUS_OK)
        return mr_fail(err, MR_BAD_DATA, "line %lu: not XML: %s", line, XML_ErrorString(error));
    return MR_OK;
}

typedef struct packed {
    uint32_t width, height;
    size_t count, point_count, names;
} packed;

void mr_voc_annotation_pack(const mr_voc_annotation *a, mr_buf *out)
{
    const packed p = {a->width, a->height, a->count, a->point_count, a->names.len};
    mr_buf_add(out, &p, sizeof p);
    mr_buf_add(out, a->objects, a->count * sizeof *a->objects);
    mr_buf_add(out, a->points, a->point_count * sizeof *a->points);
    mr_buf_add(out, a->names.data, a->names.len);
}

mr_status mr_voc_annotation_unpack(const void *bytes, mr_voc_annotation *out, mr_error *err)
{
    const uint8_t *at = bytes;
    packed p;
    memcpy(&p, at, sizeof p);
    at += sizeof p;
    mr_voc_annotation_free(out);
    *out = (mr_voc_annotation){.width = p.width, .height = p.height, .count = p.count, .point_count = p.point_count};
    out->objects = mr_alloc(p.count, sizeof *out->objects);
    out->points = mr_alloc(p.point_count, sizeof *out->points);
    if (!out->objects || !out->points)
        return mr_fail_memory(err, "reading an annotation");
    out->capacity = p.count;
    out->point_capacity = p.point_count;
    if (p.count)
        memcpy(out->objects, at, p.count * sizeof *out->objects);
    at += p.count * sizeof *out->objects;
    if (p.point_count)
        memcpy(out->points, at, p.point_count * sizeof *out->points);
    at += p.point_count * sizeof *out->points;
    mr_buf_add(&out->names, at, p.names);
    return mr_buf_status(&out->names, err, "reading an annotation");
}

void mr_voc_annotation_free(mr_voc_annotation *a)
{
    free(a->objects);
    free(a->points);
    mr_buf_free(&a->names);
    if (a->parser)
        XML_ParserFree(a->parser);
    *a = (mr_voc_annotation){0};
}
