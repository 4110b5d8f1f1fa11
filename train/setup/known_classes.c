/* known_classes.c - a sorted list: both sides may be long, and are not trusted. */
#include "train/setup/known_classes.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"

const char *mr_known_class_name(const mr_checkpoint *c, int32_t class)
{
    const char *name = NULL;
    if (class >= 0)
        name = json_string_value(json_array_get(json_object_get(c->facts, "classes"), (size_t) class));
    return name ? name : "";
}

static int by_name(const void *a, const void *b)
{
    const mr_known_class *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->class > y->class) - (x->class < y->class);
}

mr_status mr_known_classes_list(const mr_checkpoint *c, const char *path, mr_known_classes *out, mr_error *err)
{
    size_t count = json_array_size(json_object_get(c->facts, "classes"));
    if (count != c->model.classes)
        return mr_fail(err, MR_BAD_DATA, "%s/state.json: names %zu classes of %u", path, count, c->model.classes);
    out->sorted = mr_alloc(count + 1, sizeof *out->sorted);
    if (!out->sorted)
        return mr_fail_memory(err, "mapping classes");
    out->count = count;
    for (size_t k = 0; k < count; k++)
        out->sorted[k] = (mr_known_class){mr_known_class_name(c, (int32_t)k), (int32_t)k};
    qsort(out->sorted, count, sizeof *out->sorted, by_name);
    return MR_OK;
}

void mr_known_classes_release(mr_known_classes *k)
{
    free(k->sorted);
    *k = (mr_known_classes){0};
}

const mr_known_class *mr_known_classes_find(const mr_known_classes *k, const char *name)
{
    size_t low = 0, high = k->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (strcmp(k->sorted[mid].name, name) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low < k->count && strcmp(k->sorted[low].name, name) == 0 ? &k->sorted[low] : NULL;
}
