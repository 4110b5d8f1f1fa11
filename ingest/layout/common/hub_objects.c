/* hub_objects.c - the column "objects" of a row, as in datasets of the hub.
 * Invariant: a row without the word is not parsed. */
#include "ingest/layout/common/hub_objects.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/scope.h"
#include "base/json/json.h"

enum { CORNERS = 8, BOX = 4 };

static void release(json_t **doc)
{
    json_decref(*doc);
}

static const char *const members[] = {"bbox",     "categories", "category", "label",    "labels",
                                      "polygons", "oriented",   "crowd",    "keypoints"};

/* A list of objects, each with its members, as one object with parallel lists, which takes its place in `doc`. */
static mr_status make_parallel(json_t *doc, const json_t *list, mr_error *err)
{
    MR_AUTO(release) json_t *lists = json_object();
    const json_t *item;
    size_t i;
    int failed = !lists;
    for (size_t m = 0; m < MR_COUNT(members); m++) {
        bool any = false;
        json_t *values = json_array();
        json_array_foreach(list, i, item)
        {
            json_t *value = json_object_get(item, members[m]);
            any = any || value;
            failed |= json_array_append_new(values, value ? json_incref(value) : json_null());
        }
        if (any || m == 0)
            failed |= json_object_set(lists, members[m], values);
        json_decref(values);
    }
    failed |= json_object_set(doc, "objects", lists);
    return failed ? mr_fail_memory(err, "reading objects") : MR_OK;
}

/* *doc NULL: the row has no objects. */
static mr_status parse(const void *row, size_t len, const char *name, json_t **doc, const json_t **objects,
                       mr_error *err)
{
    static const char word[] = "\"objects\"";
    *doc = NULL;
    *objects = NULL;
    if (!memmem(row, len, word, sizeof word - 1))
        return MR_OK;
    MR_TRY(mr_json_parse(row, len, name, doc, err));
    if (json_is_array(json_object_get(*doc, "objects")))
        MR_TRY(make_parallel(*doc, json_object_get(*doc, "objects"), err));
    *objects = json_object_get(*doc, "objects");
    *objects = json_is_object(*objects) ? *objects : NULL;
    return MR_OK;
}

static const json_t *categories_of(const json_t *objects)
{
    const json_t *list = NULL;
    for (size_t m = 1; m < 5 && !list; m++)
        list = json_object_get(objects, members[m]);
    return list;
}

/* A name, or a number as text; NULL: neither, or -1, which stands for no class. */
static const char *class_text(const json_t *category, char number[40], size_t *len)
{
    if (json_is_string(category)) {
        *len = json_string_length(category);
        return json_string_value(category);
    }
    if (!json_is_number(category))
        return NULL;
    if (json_is_integer(category))
        *len = (size_t)snprintf(number, 40, "%lld", (long long)json_integer_value(category));
    else
        *len = (size_t)snprintf(number, 40, "%.15g", json_real_value(category)); /* 3.0 is 3 */
    return strcmp(number, "-1") ? number : NULL;
}

mr_status mr_hub_objects_classes(const void *row, size_t len, const char *name, mr_class_set *set, mr_plan *plan,
                                 mr_error *err)
{
    MR_AUTO(release) json_t *doc = NULL;
    const json_t *objects, *item;
    size_t i, class_len;
    char number[40];
    mr_status status = parse(row, len, name, &doc, &objects, err);
    json_array_foreach(categories_of(objects), i, item)
    {
        const char *class = class_text(item, number, &class_len);
        if (status == MR_OK && class)
            status = mr_class_set_add(set, plan, class, class_len, err);
    }
    return status;
}

/* `count` numbers, or at most as many, in thousandths of a pixel; their count, or 0 if something else is there. */
static size_t numbers_of(const json_t *list, size_t most, mr_milli *out)
{
    size_t count = json_array_size(list);
    if (count > most)
        return 0;
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(list, i);
        if (!json_is_number(item) || !mr_milli_of(json_number_value(item), &out[i]))
            return 0;
    }
    return count;
}

static void add_polygons(const json_t *rings, mr_objects *out)
{
    size_t r, i;
    const json_t *ring, *item;
    json_array_foreach(rings, r, ring)
    {
        mr_milli number, x = 0;
        size_t count = json_array_size(ring);
        bool good = count >= 6 && count % 2 == 0;
        json_array_foreach(ring, i, item) good =
            good && json_is_number(item) && mr_milli_of(json_number_value(item), &number);
        out->unreadable += !good;
        if (!good)
            continue;
        mr_objects_ring(out);
        json_array_foreach(ring, i, item)
        {
            (void)!mr_milli_of(json_number_value(item), &number);
            if (i % 2)
                mr_objects_point(out, x, number);
            x = number;
        }
    }
}

static void add_keypoints(const json_t *list, mr_objects *out)
{
    mr_milli part[3];
    for (size_t i = 0; i + 2 < json_array_size(list); i += 3) {
        bool good = true;
        for (size_t k = 0; k < 3; k++) {
            const json_t *item = json_array_get(list, i + k);
            good = good && json_is_number(item) && mr_milli_of(json_number_value(item), &part[k]);
        }
        int visibility = good ? (int)(part[2] / 1000) : 0;
        if (good && visibility >= 0 && visibility <= 2)
            mr_objects_keypoint(out, out->count - 1, (mr_keypoint){part[0], part[1], visibility});
        else
            out->unreadable++;
    }
}

static int32_t label_of(const json_t *category, const mr_plan *plan, bool numbered)
{
    char number[40];
    size_t len;
    double n = json_number_value(category);
    if (numbered && json_is_number(category))
        return n >= 0 && n < (double)plan->class_count && floor(n) >= n ? (int32_t)n : -1;
    const char *name = class_text(category, number, &len);
    return name ? mr_plan_class_find(plan, name, len) : -1;
}

static void add_object(const json_t *objects, size_t i, const mr_plan *plan, bool numbered, mr_objects *out)
{
    const json_t *bbox = json_array_get(json_object_get(objects, "bbox"), i);
    const json_t *oriented = json_array_get(json_object_get(objects, "oriented"), i);
    mr_milli box[BOX], corners[CORNERS];
    size_t sides = numbers_of(bbox, BOX, box), points = numbers_of(oriented, CORNERS, corners);
    bool none = !bbox || json_is_null(bbox) || (json_is_array(bbox) && json_array_size(bbox) == 0);
    if (!none && sides != BOX) {
        out->unreadable++;
        return;
    }
    mr_object *o = mr_objects_add(out, label_of(json_array_get(categories_of(objects), i), plan, numbered));
    if (!o)
        return;
    o->has_box = sides == BOX;
    if (o->has_box)
        memcpy(o->box, box, sizeof box);
    o->oriented = points == CORNERS;
    if (o->oriented)
        memcpy(o->corners, corners, sizeof corners);
    o->crowd = json_is_true(json_array_get(json_object_get(objects, "crowd"), i));
    add_polygons(json_array_get(json_object_get(objects, "polygons"), i), out);
    add_keypoints(json_array_get(json_object_get(objects, "keypoints"), i), out);
}

mr_status mr_hub_objects_read(const void *row, size_t len, const char *name, const mr_plan *plan, bool numbered,
                              mr_objects *out, mr_error *err)
{
    MR_AUTO(release) json_t *doc = NULL;
    const json_t *objects;
    mr_status status = parse(row, len, name, &doc, &objects, err);
    if (!objects)
        return status;
    size_t boxes = json_array_size(json_object_get(objects, "bbox")), classes = json_array_size(categories_of(objects));
    out->known = true;
    for (size_t i = 0; i < boxes || i < classes; i++)
        add_object(objects, i, plan, numbered, out);
    return out->failed ? mr_fail_memory(err, "reading objects") : MR_OK;
}
