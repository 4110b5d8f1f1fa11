/* manifest_classes.c - whether classes can be distinguished.
 * Invariant: two classes differ in name, or both have an id from the source and differ in it. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "shards/manifest/manifest.h"

static int by_name(const void *a, const void *b)
{
    const mr_class *x = *(const mr_class *const *)a, *y = *(const mr_class *const *)b;
    int cmp = strcmp(x->name, y->name);
    if (cmp)
        return cmp;
    if (x->has_id != y->has_id) /* those without an id first: next to all that they must differ from */
        return x->has_id - y->has_id;
    return (x->id > y->id) - (x->id < y->id);
}

mr_status mr_classes_check(const mr_class *classes, size_t count, const char *where, mr_error *err)
{
    MR_AUTO(mr_scope_free) const mr_class **list = mr_alloc(count, sizeof *list);
    if (!list)
        return mr_fail_memory(err, "reading the classes");
    for (size_t i = 0; i < count; i++) {
        list[i] = &classes[i];
        if (!classes[i].has_id && !*classes[i].name)
            return mr_fail(err, MR_BAD_DATA, "%s: class %zu has no name", where, i);
    }
    if (count)
        qsort(list, count, sizeof *list, by_name);
    for (size_t i = 1; i < count; i++) {
        const mr_class *a = list[i - 1], *b = list[i];
        if (strcmp(a->name, b->name) == 0 && (!a->has_id || a->id == b->id))
            return mr_fail(err, MR_BAD_DATA,
                           "%s: classes %zu and %zu are both named \"%.100s\": they cannot be distinguished", where,
                           (size_t)((a < b ? a : b) - classes), (size_t)((a < b ? b : a) - classes), a->name);
    }
    return MR_OK;
}
