/* class_names.c - makes the class names differ: COCO's categories are identified by their ids, and may share
 * names. Invariant: the work is linear in the number of classes, however many share a name. */
#include "shards/export/class_names.h"

#include <stdlib.h>

#include "base/scope.h"
#include "base/string_map.h"

const char *mr_class_name(const mr_class_names *names, size_t class, size_t *len)
{
    size_t begin = class ? names->ends[class - 1] : 0;
    *len = names->ends[class] - begin;
    return names->text.data ? (const char *)names->text.data + begin : "";
}

static const void *text_of(const void *list, size_t number, size_t *len)
{
    return mr_class_name(list, number, len);
}

void mr_class_names_free(mr_class_names *names)
{
    mr_buf_free(&names->text);
    free(names->ends);
    *names = (mr_class_names){0};
}

/* `name` is changed until no earlier class has it: its own number differs from theirs.  `map` NULL: it is kept. */
static bool add_name(mr_class_names *names, mr_string_map *map, mr_buf *name, bool *changed)
{
    size_t class = names->count;
    *changed = false;
    while (map && mr_string_map_find(map, text_of, names, mr_buf_text(name), name->len) != SIZE_MAX) {
        mr_buf_printf(name, " (%zu)", class);
        *changed = true;
        if (name->failed)
            return false;
    }
    mr_buf_add(&names->text, mr_buf_text(name), name->len);
    if (name->failed || names->text.failed)
        return false;
    names->ends[names->count++] = names->text.len;
    return !map || mr_string_map_add(map, text_of, names, mr_buf_text(name), name->len);
}

mr_status mr_class_names_make(mr_export_run *run, bool differ, mr_class_names *names, mr_error *err)
{
    const mr_manifest *m = run->manifest;
    MR_AUTO(mr_string_map_release) mr_string_map map = {0};
    names->ends = mr_alloc(m->class_count + 1, sizeof *names->ends);
    if (!names->ends)
        return mr_fail_memory(err, "exporting");
    for (size_t i = 0; i < m->class_count; i++) {
        MR_AUTO(mr_buf_free) mr_buf name = {0};
        bool changed;
        mr_export_class_text(&m->classes[i], &name);
        if (!add_name(names, differ ? &map : NULL, &name, &changed))
            return mr_fail_memory(err, "exporting");
        if (changed)
            mr_export_count_loss(run, MR_PART_CLASS_NAMES, NULL, 1);
    }
    return MR_OK;
}
