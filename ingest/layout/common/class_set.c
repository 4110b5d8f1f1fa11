/* class_set.c - classes that annotations name one by one. */
#include "ingest/layout/common/class_set.h"

#include <string.h>

#include "base/text.h"

static const void *text_of(const void *list, size_t number, size_t *len)
{
    const mr_plan *plan = list;
    *len = strlen(plan->classes[number].name);
    return plan->classes[number].name;
}

mr_status mr_class_set_add(mr_class_set *set, mr_plan *plan, const char *name, size_t len, mr_error *err)
{
    mr_buf_clear(&set->text);
    mr_text_escape(&set->text, name, len);
    const char *text = mr_buf_text(&set->text);
    if (set->text.failed)
        return mr_fail_memory(err, "listing the classes");
    if (mr_string_map_find(&set->map, text_of, plan, text, set->text.len) != SIZE_MAX)
        return MR_OK;
    if (plan->class_count == MR_CLASS_SET_MAX)
        return mr_fail(err, MR_BAD_DATA, "the annotations name more than %d classes, the limit for a dataset",
                       MR_CLASS_SET_MAX);
    mr_status status = mr_plan_class(plan, name, len, false, 0, err);
    if (status == MR_OK && !mr_string_map_add(&set->map, text_of, plan, text, set->text.len))
        status = mr_fail_memory(err, "listing the classes");
    return status;
}

void mr_class_set_free(mr_class_set *set)
{
    mr_string_map_release(&set->map);
    mr_buf_free(&set->text);
}
