/* labels.c - labels that rows have as texts: which become classes and which do not. */
#include "layout/labels.h"
#include "base/scope.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CLASSES_MAX = 10000, LETTERS_MAX = 26 };

mr_status mr_labels_take(mr_labels *l, const mr_jsonl_field *field, const char *file, const char *what, uint64_t row,
                         mr_error *err)
{
    const mr_buf *text = &field->text;
    bool usable = field->kind == MR_JSONL_STRING || field->kind == MR_JSONL_INTEGER;
    if (l->asked && (field->kind == MR_JSONL_OTHER || (text->len && memchr(text->data, '\0', text->len))))
        return mr_fail(err, MR_MISUSE, "--label-column %s: %s %s %" PRIu64 " has no string or whole number there",
                       l->asked, file, what, row);
    if (usable && text->len) {
        char c = (char)(text->data[0] | 0x20);
        l->other = l->other || field->kind != MR_JSONL_STRING || text->len != 1 || c < 'a' || c > 'z';
        l->labelled++;
        if (!l->other || l->asked)
            mr_buf_add(&l->texts, text->data, text->len);
    }
    mr_buf_add(&l->texts, "", 1);
    return mr_buf_status(&l->texts, err, "reading labels");
}

static void drop_classes(mr_plan *plan)
{
    for (size_t i = 0; i < plan->class_count; i++)
        free(plan->classes[i].name);
    plan->class_count = 0;
}

static mr_status add_classes(const mr_labels *l, mr_plan *plan, mr_error *err)
{
    const char *text = (const char *)l->texts.data;
    for (size_t i = 0; i < plan->sample_count; i++, text += strlen(text) + 1) {
        if (!*text)
            continue;
        mr_status status = mr_plan_class(plan, text, strlen(text), false, 0, err);
        if (status != MR_OK)
            return status;
    }
    mr_plan_classes_sort(plan);
    return MR_OK;
}

mr_status mr_labels_plan(const mr_labels *l, mr_plan *plan, const char *columns, mr_error *err)
{
    if (l->asked && !l->labelled && plan->sample_count)
        return mr_fail(err, MR_MISUSE, "--label-column %s: no row has a value there; choose one of: %.600s", l->asked,
                       columns);
    if (!l->asked && l->other)
        return MR_OK;
    MR_TRY(add_classes(l, plan, err));
    if (l->asked && plan->class_count > CLASSES_MAX)
        return mr_fail(err, MR_MISUSE, "--label-column %s has %zu different values; a label has at most %d", l->asked,
                       plan->class_count, CLASSES_MAX);
    if (!l->asked && plan->class_count > LETTERS_MAX) {
        drop_classes(plan);
        return MR_OK;
    }
    const char *text = (const char *)l->texts.data;
    for (size_t i = 0; i < plan->sample_count; i++, text += strlen(text) + 1)
        if (*text)
            plan->samples[i].label = mr_plan_class_find(plan, text, strlen(text));
    return MR_OK;
}
