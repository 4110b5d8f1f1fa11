/* createml.c - picks images and labels out of a CreateML annotation file while it streams by.
 * Invariant: memory is a few dozen bytes and a name for each image. */
#include "ingest/tables/createml.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/tables/json_file.h"

enum { LEVELS = 5, DEPTH_MAX = 200, NAME_MAX_LEN = 4096 };

typedef enum member { OTHER, IMAGE, ANNOTATIONS } member;

typedef struct parser {
    mr_json_stream *stream;
    mr_createml_file *file;
    const char *name;
    mr_createml_label *label;
    void *ctx;
    member current;
    bool is_label, is_coordinates, has_coordinates; /* what the current annotation has */
    unsigned side, seen;                            /* its coordinates, a bit each; side 0: another member */
    mr_createml_image at;                           /* the current one */
    mr_json_repair repair;
    size_t flaw; /* the first that may be in what comes */
    mr_error *err;
} parser;

static mr_status refuse(const parser *p, const char *why)
{
    return mr_fail(p->err, MR_BAD_DATA, "%s: byte %" PRIu64 ": %s", p->name, mr_json_stream_at(p->stream), why);
}

static bool is_key(const mr_json_token *t, const char *word)
{
    return t->len == strlen(word) && !memcmp(t->text, word, t->len);
}

/* The first thing that is wrong with an image. */
static mr_status spoil(parser *p, const char *why)
{
    if (!p->at.why) {
        p->at.why = why;
        p->at.why_at = mr_json_stream_at(p->stream);
    }
    return MR_OK;
}

static mr_status end_image(parser *p)
{
    mr_createml_file *f = p->file;
    uint64_t end = mr_json_stream_at(p->stream), len = end - p->at.at;
    const mr_json_flaw *flaw = p->repair.count ? mr_json_repair_find(&p->repair, &p->flaw, p->at.at, end) : NULL;
    if (flaw) {
        spoil(p, mr_json_flaw_text(flaw));
        p->at.why_at = flaw->at + 1;
    }
    if (!p->at.name) {
        spoil(p, "an object without \"image\"");
        p->at.name = calloc(1, 1);
    }
    if (len > UINT32_MAX || f->count >= UINT32_MAX - 1)
        return refuse(p, "more than 4,294,967,295 bytes in one object, or objects");
    if (!p->at.name || !MR_GROW(f->images, f->count, f->capacity))
        return mr_fail_memory(p->err, "reading CreateML annotations");
    p->at.len = (uint32_t)len;
    f->images[f->count++] = p->at;
    p->at.name = NULL;
    return MR_OK;
}

static mr_status take_name(parser *p, const mr_json_token *t)
{
    if (t->kind != MR_JSON_STRING)
        return spoil(p, "\"image\" is not a string");
    if (p->at.name)
        return spoil(p, "\"image\" twice in one object");
    if (t->len > NAME_MAX_LEN)
        return spoil(p, "\"image\" of more than 4,096 bytes is not a name");
    p->at.name = malloc(t->len + 1);
    if (!p->at.name)
        return mr_fail_memory(p->err, "reading CreateML annotations");
    memcpy(p->at.name, t->text, t->len);
    p->at.name[t->len] = '\0';
    p->at.name_len = (uint32_t)t->len;
    return MR_OK;
}

static mr_status take_member(parser *p, const mr_json_token *t)
{
    if (t->kind == MR_JSON_KEY) {
        p->current = is_key(t, "image") || is_key(t, "imagefilename")      ? IMAGE
                     : is_key(t, "annotations") || is_key(t, "annotation") ? ANNOTATIONS
                                                                           : OTHER;
        return MR_OK;
    }
    bool end = t->kind == MR_JSON_OBJECT_END || t->kind == MR_JSON_LIST_END;
    return p->current == IMAGE && !end ? take_name(p, t) : MR_OK;
}

static mr_status take_top(parser *p, const mr_json_token *t)
{
    if (t->kind == MR_JSON_OBJECT_END)
        return end_image(p);
    if (t->kind != MR_JSON_OBJECT && t->kind != MR_JSON_NULL)
        return refuse(p, "not a CreateML annotation file: its list holds something that is not an object");
    bool null = t->kind == MR_JSON_NULL;
    p->at = (mr_createml_image){.at = mr_json_stream_at(p->stream) - (null ? 4 : 1)};
    p->current = OTHER;
    return null ? end_image(p) : MR_OK;
}

/* A class may be called by a number. */
static mr_status take_label(parser *p, const mr_json_token *t)
{
    uint64_t to = mr_json_stream_at(p->stream), from = to > t->len + 2 ? to - t->len - 2 : 0;
    size_t next = p->flaw;
    if (t->kind == MR_JSON_NULL || (t->kind == MR_JSON_STRING && !t->len))
        return MR_OK;
    if (t->kind != MR_JSON_STRING && t->kind != MR_JSON_NUMBER)
        return spoil(p, "\"label\" is not a string");
    if (p->repair.count && mr_json_repair_find(&p->repair, &next, from, to))
        return MR_OK; /* the replacement must not become a class */
    return p->label(p->ctx, t->text, t->len, p->err);
}

/* Members of an annotation, and at depth 5 those of its coordinates. */
static mr_status take_value(parser *p, const mr_json_token *t)
{
    static const char *const sides[] = {"x", "y", "width", "height"};
    bool key = t->kind == MR_JSON_KEY, end = t->kind == MR_JSON_OBJECT_END || t->kind == MR_JSON_LIST_END;
    if (t->depth == 4 && key) {
        p->is_label = is_key(t, "label");
        p->is_coordinates = is_key(t, "coordinates");
    } else if (t->depth == 4 && p->is_label && !end) {
        return take_label(p, t);
    } else if (t->depth == 4 && p->is_coordinates && !end) {
        p->has_coordinates = true;
        return t->kind == MR_JSON_OBJECT ? MR_OK : spoil(p, "\"coordinates\" is not an object");
    } else if (t->depth == 5 && p->is_coordinates && key) {
        p->side = 0;
        for (unsigned i = 0; i < 4; i++)
            p->side = is_key(t, sides[i]) ? 1u << i : p->side;
    } else if (t->depth == 5 && p->is_coordinates && p->side) {
        p->seen |= p->side;
        return t->kind == MR_JSON_NUMBER ? MR_OK : spoil(p, "\"coordinates\" holds something that is not a number");
    }
    return MR_OK;
}

static mr_status take_annotation(parser *p, const mr_json_token *t)
{
    if (t->depth > 3)
        return take_value(p, t);
    if (t->kind == MR_JSON_OBJECT) {
        p->at.objects++;
        p->seen = 0;
        p->is_label = p->is_coordinates = p->has_coordinates = false;
    } else if (t->kind == MR_JSON_OBJECT_END && p->has_coordinates && p->seen != 15) {
        return spoil(p, "\"coordinates\" without all of x, y, width and height");
    }
    return MR_OK;
}

static mr_status take(void *ctx, const mr_json_token *t)
{
    parser *p = ctx;
    switch (t->depth) {
    case 0:
        return t->kind == MR_JSON_LIST || t->kind == MR_JSON_LIST_END
                   ? MR_OK
                   : refuse(p, "not a CreateML annotation file: it does not hold a list");
    case 1:
        return t->kind == MR_JSON_LIST_END ? MR_OK : take_top(p, t);
    case 2:
        return take_member(p, t);
    default:
        return p->current == ANNOTATIONS ? take_annotation(p, t) : MR_OK;
    }
}

static void restart(void *ctx)
{
    parser *p = ctx;
    mr_createml_file *f = p->file;
    free(p->at.name);
    for (size_t i = 0; i < f->count; i++)
        free(f->images[i].name);
    f->count = 0;
    *p = (parser){.file = f, .name = p->name, .label = p->label, .ctx = p->ctx, .err = p->err};
}

mr_status mr_createml_parse(const mr_source *s, uint32_t entry, mr_createml_label *label, void *ctx,
                            mr_createml_file **out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf name = {0};
    mr_text_escape(&name, mr_source_entry(s, entry)->path, mr_source_entry(s, entry)->path_len);
    parser p = {.name = mr_buf_text(&name), .label = label, .ctx = ctx, .err = err};
    const mr_json_rules rules = {.handler = take, .ctx = &p, .levels = LEVELS, .depth_max = DEPTH_MAX};
    p.file = mr_alloc(1, sizeof *p.file);
    if (!p.file)
        return mr_fail_memory(err, "reading CreateML annotations");
    p.file->entry = entry;
    const mr_json_file file = {s, entry, p.name, "reading CreateML annotations", &p.repair, restart};
    mr_status status = mr_json_file_read(&file, &rules, &p.stream, err);
    free(p.at.name);
    mr_json_repair_free(&p.repair);
    if (status == MR_OK)
        *out = p.file;
    else
        mr_createml_free(p.file);
    return status;
}

void mr_createml_free(mr_createml_file *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->count; i++)
        free(f->images[i].name);
    free(f->images);
    free(f);
}

mr_status mr_createml_text(const mr_source *s, const mr_createml_file *f, size_t n, mr_buf *out, mr_error *err)
{
    const mr_createml_image *image = &f->images[n];
    size_t before = out->len;
    if (!mr_buf_reserve(out, image->len))
        return mr_fail_memory(err, "reading CreateML annotations");
    MR_TRY(mr_source_pread(s, f->entry, out->data + before, image->len, image->at, err));
    out->len += image->len;
    if (out->data[before] != '{' || out->data[out->len - 1] != '}')
        return mr_fail(err, MR_BAD_DATA, "%s: byte %" PRIu64 ": the file has changed since it was parsed; run again",
                       mr_source_entry(s, f->entry)->path, image->at);
    return MR_OK;
}
