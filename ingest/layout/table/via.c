/* via.c - CSV files of the VGG Image Annotator: a row for each region, whose shape and class are JSON in cells.
 * Source: the exports of VIA 2, https://www.robots.ox.ac.uk/~vgg/software/via/
 * Invariant: a shape that is neither a rectangle nor a polygon is not mistaken for one.
 *
 *      region_shape_attributes   {"name":"rect","x":1,"y":2,"width":3,"height":4}
 *                                {"name":"polygon","all_points_x":[1,5,3],"all_points_y":[1,1,4]}     {}: no region
 *      region_attributes         {"class":"dog"}, or {"type":{"dog":true}} */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/scope.h"
#include "base/json/json.h"
#include "ingest/layout/table/table.h"

static void release(json_t **doc)
{
    json_decref(*doc);
}

static json_t *parse(const mr_sheet *s, size_t row, int column)
{
    json_t *doc = NULL;
    mr_error why;
    const char *cell = column >= 0 ? mr_sheet_cell(s, row, (size_t)column) : "";
    if (!*cell || mr_json_parse(cell, strlen(cell), s->name, &doc, &why) != MR_OK || !json_is_object(doc)) {
        json_decref(doc);
        return NULL;
    }
    return doc;
}

static bool rectangle(const json_t *shape, double out[4])
{
    static const char *const sides[] = {"x", "y", "width", "height"};
    for (size_t i = 0; i < MR_COUNT(sides); i++) {
        const json_t *side = json_object_get(shape, sides[i]);
        if (!json_is_number(side) || !isfinite(json_number_value(side)))
            return false;
        out[i] = json_number_value(side);
    }
    return true;
}

/* The points' count, at least 3; 0: it is not a polygon.  The box around them is in out. */
static size_t polygon(const json_t *shape, double out[4])
{
    const json_t *xs = json_object_get(shape, "all_points_x"), *ys = json_object_get(shape, "all_points_y");
    size_t count = json_array_size(xs);
    if (count < 3 || count != json_array_size(ys))
        return 0;
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (size_t i = 0; i < 2 * count; i++) {
        const json_t *number = json_array_get(i % 2 ? ys : xs, i / 2);
        if (!json_is_number(number))
            return 0;
        low[i % 2] = fmin(low[i % 2], json_number_value(number));
        high[i % 2] = fmax(high[i % 2], json_number_value(number));
    }
    out[0] = low[0];
    out[1] = low[1];
    out[2] = high[0] - low[0];
    out[3] = high[1] - low[1];
    return count;
}

static mr_box_row read_shape(const json_t *shape, double out[4], size_t *points)
{
    const char *name = json_string_value(json_object_get(shape, "name"));
    *points = 0;
    if (!shape)
        return MR_BOX_BAD;
    if (!json_object_size(shape))
        return MR_BOX_ABSENT;
    if (name && !strcmp(name, "rect"))
        return rectangle(shape, out) ? MR_BOX_THERE : MR_BOX_BAD;
    if (name && !strcmp(name, "polygon"))
        *points = polygon(shape, out);
    return *points ? MR_BOX_THERE : MR_BOX_BAD;
}

mr_box_row mr_via_box(const mr_sheet *s, size_t row, double out[4])
{
    size_t points;
    const char *cell = mr_sheet_cell(s, row, (size_t)s->boxes.at[0]);
    MR_AUTO(release) json_t *shape = parse(s, row, s->boxes.at[0]);
    return *cell ? read_shape(shape, out, &points) : MR_BOX_ABSENT;
}

void mr_via_polygon(const mr_sheet *s, size_t row, mr_objects *out)
{
    double box[4];
    size_t points = 0;
    MR_AUTO(release) json_t *shape = parse(s, row, s->boxes.at[0]);
    (void)read_shape(shape, box, &points);
    if (points)
        mr_objects_ring(out);
    for (size_t i = 0; i < points; i++) {
        mr_milli x, y;
        if (mr_milli_of(json_number_value(json_array_get(json_object_get(shape, "all_points_x"), i)), &x) &&
            mr_milli_of(json_number_value(json_array_get(json_object_get(shape, "all_points_y"), i)), &y))
            mr_objects_point(out, x, y);
    }
}

/* A text, or of boxes to tick the one that is; NULL: something else. */
static const char *choice_of(json_t *value)
{
    const char *key, *found = NULL;
    json_t *item;
    if (json_is_string(value))
        return json_string_value(value);
    json_object_foreach(value, key, item)
    {
        if (json_is_true(item) && found)
            return NULL;
        found = json_is_true(item) ? key : found;
    }
    return found;
}

bool mr_via_label(const mr_sheet *s, size_t row, char *text, size_t capacity)
{
    static const char *const words[] = {"class", "label", "name", "type", "category", "object"};
    MR_AUTO(release) json_t *attributes = parse(s, row, s->boxes.at[1]);
    const char *key, *found = NULL;
    json_t *value;
    for (size_t w = 0; w < MR_COUNT(words) && !found; w++)
        found = choice_of(json_object_get(attributes, words[w]));
    if (!found && json_object_size(attributes) == 1)
        json_object_foreach(attributes, key, value) found = choice_of(value);
    return found && *found && strlen(found) < capacity && snprintf(text, capacity, "%s", found) > 0;
}
