/* objects.c - annotations of CreateML as objects.
 * Source: Apple's documentation: coordinates are pixels, x and y the middle of the box, from the upper left corner.
 * Invariant: an annotation whose coordinates cannot be read is counted, and makes no object. */
#include "ingest/layout/createml/createml.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "ingest/tables/json_file.h"

enum { LEVELS = 5, DEPTH_MAX = 300 };

static const char *const sides[] = {"x", "y", "width", "height"};

typedef struct reader {
    const mr_plan *plan;
    mr_objects *out;
    bool annotations, is_label, coordinates; /* what the current members belong to */
    int32_t label;
    int side; /* -1: none */
    double numbers[4];
    unsigned seen;
    mr_error *err;
} reader;

static bool is_key(const mr_json_token *t, const char *word)
{
    return t->len == strlen(word) && !memcmp(t->text, word, t->len);
}

static void take_number(reader *r, const mr_json_token *t)
{
    char text[64];
    if (r->side < 0 || t->len >= sizeof text)
        return;
    memcpy(text, t->text, t->len);
    text[t->len] = '\0';
    r->numbers[r->side] = strtod(text, NULL);
    r->seen |= 1u << r->side;
}

static void end_object(reader *r)
{
    mr_milli left, top, right, bottom;
    const double *n = r->numbers;
    if (r->seen != 15 || !mr_milli_of(n[0] - n[2] / 2, &left) || !mr_milli_of(n[1] - n[3] / 2, &top) ||
        !mr_milli_of(n[0] + n[2] / 2, &right) || !mr_milli_of(n[1] + n[3] / 2, &bottom)) {
        r->out->unreadable++;
        return;
    }
    mr_object *o = mr_objects_add(r->out, r->label);
    if (!o)
        return;
    o->has_box = true;
    memcpy(o->box, (mr_milli[]){left, top, right - left, bottom - top}, sizeof o->box);
}

static void take_key(reader *r, const mr_json_token *t)
{
    if (t->depth == 1)
        r->annotations = is_key(t, "annotations") || is_key(t, "annotation");
    r->is_label = t->depth == 3 && is_key(t, "label");
    if (t->depth == 3)
        r->coordinates = is_key(t, "coordinates");
    r->side = -1;
    for (int i = 0; i < 4 && t->depth == 4 && r->coordinates; i++)
        if (is_key(t, sides[i]))
            r->side = i;
}

static mr_status take(void *ctx, const mr_json_token *t)
{
    reader *r = ctx;
    if (t->kind == MR_JSON_KEY)
        take_key(r, t);
    else if (!r->annotations)
        return MR_OK;
    else if (t->depth == 2 && t->kind == MR_JSON_OBJECT) {
        r->label = -1;
        r->seen = 0;
        r->coordinates = false;
    } else if (t->depth == 2 && t->kind == MR_JSON_OBJECT_END)
        end_object(r);
    else if (t->depth == 3 && r->is_label && (t->kind == MR_JSON_STRING || t->kind == MR_JSON_NUMBER) && t->len)
        r->label = mr_plan_class_find(r->plan, t->text, t->len);
    else if (t->depth == 4 && t->kind == MR_JSON_NUMBER)
        take_number(r, t);
    return r->out->failed ? mr_fail_memory(r->err, "reading CreateML annotations") : MR_OK;
}

mr_status mr_createml_objects(const mr_buf *text, const mr_plan *plan, mr_objects *out, mr_error *err)
{
    reader r = {.plan = plan, .out = out, .side = -1, .err = err};
    const mr_json_rules rules = {.handler = take, .ctx = &r, .levels = LEVELS, .depth_max = DEPTH_MAX};
    return mr_json_text_read(text, &rules, "reading CreateML annotations", err);
}
