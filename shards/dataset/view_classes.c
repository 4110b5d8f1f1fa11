/* view_classes.c - the classes of a view: those of its datasets, renamed, and joined by name.
 * Invariant: where no dataset needs renumbering, labels and the sources' own class numbers stay as they are. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/string_map.h"
#include "shards/dataset/view_list.h"

typedef struct joined {
    mr_class *items;
    size_t count, capacity;
    mr_string_map by_name;
} joined;

static const void *name_of(const void *list, size_t number, size_t *len)
{
    const char *name = ((const joined *)list)->items[number].name;
    *len = strlen(name);
    return name;
}

static const char *renamed(const mr_view_file *v, const char *name)
{
    for (size_t i = 0; i < v->rename_count; i++)
        if (strcmp(v->renames[i].from, name) == 0)
            return v->renames[i].to;
    return name;
}

static mr_status add(joined *j, const mr_class *from, const char *name, mr_error *err)
{
    if (!MR_GROW(j->items, j->count, j->capacity))
        return mr_fail_memory(err, "the classes of a view");
    mr_class *c = &j->items[j->count];
    *c = *from;
    c->name = strdup(name);
    j->count += c->name != NULL;
    return c->name ? MR_OK : mr_fail_memory(err, "the classes of a view");
}

static bool same_classes(const mr_manifest *a, const mr_manifest *b)
{
    bool same = a->class_count == b->class_count;
    for (size_t i = 0; same && i < a->class_count; i++)
        same = strcmp(a->classes[i].name, b->classes[i].name) == 0;
    return same;
}

/* Two classes that differ in their source's numbers only cannot be joined by name. */
static mr_status check_names(const mr_dataset *ds, const mr_manifest *m, mr_error *err)
{
    for (size_t i = 0; i < m->class_count; i++)
        for (size_t k = i + 1; m->classes[i].has_id && k < m->class_count; k++)
            if (strcmp(m->classes[i].name, m->classes[k].name) == 0)
                return mr_fail(err, MR_MISUSE,
                               "%s: has two classes named \"%.100s\", which cannot be joined with others by name",
                               mr_dataset_folder(ds), m->classes[i].name);
    return MR_OK;
}

static mr_status join_one(joined *j, const mr_dataset *ds, const mr_view_file *v, int32_t **labels, mr_error *err)
{
    const mr_manifest *m = mr_dataset_manifest(ds);
    MR_TRY(check_names(ds, m, err));
    *labels = mr_alloc(m->class_count + 1, sizeof **labels);
    if (!*labels)
        return mr_fail_memory(err, "the classes of a view");
    for (size_t i = 0; i < m->class_count; i++) {
        const char *name = renamed(v, m->classes[i].name);
        size_t at = mr_string_map_find(&j->by_name, name_of, j, name, strlen(name));
        if (at == SIZE_MAX) {
            const mr_class plain = {.has_id = false};
            at = j->count;
            MR_TRY(add(j, &plain, name, err));
            if (!mr_string_map_add(&j->by_name, name_of, j, name, strlen(name)))
                return mr_fail_memory(err, "the classes of a view");
        }
        (*labels)[i] = (int32_t)at;
    }
    return MR_OK;
}

void mr_view_free_classes(mr_class *classes, size_t count)
{
    for (size_t i = 0; classes && i < count; i++)
        free(classes[i].name);
    free(classes);
}

mr_status mr_view_join_classes(mr_dataset *const *datasets, size_t count, const mr_view_file *v, mr_class **classes,
                               size_t *class_count, int32_t **labels, mr_error *err)
{
    const mr_manifest *first = mr_dataset_manifest(datasets[0]);
    joined j = {.items = NULL};
    mr_status status = MR_OK;
    bool same = v->rename_count == 0;
    for (size_t i = 1; same && i < count; i++)
        same = same_classes(first, mr_dataset_manifest(datasets[i]));
    for (size_t i = 0; same && status == MR_OK && i < first->class_count; i++)
        status = add(&j, &first->classes[i], first->classes[i].name, err);
    for (size_t i = 0; !same && status == MR_OK && i < count; i++)
        status = join_one(&j, datasets[i], v, &labels[i], err);
    mr_string_map_release(&j.by_name);
    *classes = j.items;
    *class_count = j.count;
    return status;
}
