/* meta.c - compares two metas member by member, with class names instead of numbers. */
#include "shards/diff/meta.h"

#include <string.h>

#include <jansson.h>

static mr_status load(const mr_dataset *ds, const mr_diff_side *s, json_t **out, mr_error *err)
{
    mr_sample_view v = {0};
    mr_status status = mr_dataset_read_meta(ds, s->split, s->number, &v, err);
    json_error_t why;
    *out = status == MR_OK ? json_loadb(v.meta, v.meta_len, JSON_ALLOW_NUL, &why) : NULL;
    if (status == MR_OK && !*out)
        status = mr_fail(err, MR_BAD_DATA, "%s %llu: its meta is not JSON: %s", s->split, (unsigned long long)s->number,
                         why.text);
    mr_sample_view_free(&v);
    return status;
}

static const char *class_name(const mr_manifest *m, json_int_t number)
{
    return number >= 0 && (uint64_t)number < m->class_count ? m->classes[number].name : "";
}

/* Each number becomes the class's name. */
static void name_labels(const mr_manifest *m, json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        json_array_set_new(list, i, json_string(class_name(m, json_integer_value(json_array_get(list, i)))));
}

/* Removes numbers, keeps names, and takes `objects` out. */
static json_t *settle(const mr_manifest *m, json_t *meta, json_t **objects)
{
    static const char *const numbers[] = {"source", "label", "image_of"};
    for (size_t i = 0; i < MR_COUNT(numbers); i++)
        json_object_del(meta, numbers[i]);
    name_labels(m, json_object_get(meta, "labels"));
    json_t *list = json_incref(json_object_get(meta, "objects"));
    json_object_del(meta, "objects");
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *object = json_array_get(list, i), *label = json_object_get(object, "label");
        if (label)
            json_object_set_new(object, "label", json_string(class_name(m, json_integer_value(label))));
    }
    *objects = list;
    json_t *labels = json_pack("{s:O?, s:O?, s:O?}", "class", json_object_get(meta, "class"), "labels",
                               json_object_get(meta, "labels"), "unannotated", json_object_get(meta, "unannotated"));
    json_object_del(meta, "class");
    json_object_del(meta, "labels");
    json_object_del(meta, "unannotated");
    return labels;
}

static bool same(const json_t *a, const json_t *b)
{
    return a == b || (a && b && json_equal(a, b));
}

mr_status mr_diff_metas(const mr_dataset *in_a, const mr_diff_side *a, const mr_dataset *in_b, const mr_diff_side *b,
                        unsigned *what, mr_error *err)
{
    json_t *one = NULL, *other = NULL, *objects_a = NULL, *objects_b = NULL;
    mr_status status = load(in_a, a, &one, err);
    if (status == MR_OK)
        status = load(in_b, b, &other, err);
    if (status == MR_OK) {
        json_t *labels_a = settle(mr_dataset_manifest(in_a), one, &objects_a);
        json_t *labels_b = settle(mr_dataset_manifest(in_b), other, &objects_b);
        *what |= same(labels_a, labels_b) ? 0 : MR_DIFF_LABEL;
        *what |= same(objects_a, objects_b) ? 0 : MR_DIFF_OBJECTS;
        *what |= same(one, other) ? 0 : MR_DIFF_META;
        json_decref(labels_a);
        json_decref(labels_b);
    }
    json_decref(objects_a);
    json_decref(objects_b);
    json_decref(one);
    json_decref(other);
    return status;
}
