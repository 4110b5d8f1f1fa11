/* labels.c - labels that rows have as texts: which become classes and which do not. */
#include "ingest/layout/common/labels.h"
#include "base/scope.h"

#include <inttypes.h>
#include <string.h>

enum { NUMBER_MAX = 9999, LETTERS_MAX = 26 };

mr_status mr_labels_take(mr_labels *l, const mr_jsonl_field *field, const char *file, const char *what, uint64_t row,
                         mr_error *err)
{
    const mr_buf *text = &field->text;
    if (l->asked && (field->kind == MR_JSONL_OTHER || (text->len && memchr(text->data, '\0', text->len))))
        return mr_fail(err, MR_MISUSE,
                       "--label-column %s: %s %s %" PRIu64 " has a list or an object there, not a label", l->asked,
                       file, what, row);
    if (field->kind != MR_JSONL_OTHER && text->len) {
        char c = (char)(text->data[0] | 0x20);
        l->other = l->other || field->kind != MR_JSONL_STRING || text->len != 1 || c < 'a' || c > 'z';
        l->labelled++;
        if (!l->other || l->asked)
            mr_buf_add(&l->texts, text->data, text->len);
    }
    if (l->asked || !l->other)
        MR_TRY(mr_label_census_add(&l->census, (const char *)text->data, text->len, &l->gaps, err));
    mr_buf_add(&l->texts, "", 1);
    return mr_buf_status(&l->texts, err, "reading labels");
}

mr_status mr_labels_plan(mr_labels *l, mr_plan *plan, const char *columns, mr_error *err)
{
    if (l->asked && !l->labelled && plan->sample_count)
        return mr_fail(err, MR_MISUSE, "--label-column %s: no row has a value there; choose one of: %.600s", l->asked,
                       columns);
    mr_label_census_settle(&l->census, NUMBER_MAX);
    if (!l->asked && (l->other || l->census.distinct.class_count > LETTERS_MAX))
        return MR_OK;
    MR_TRY(mr_label_census_classes(&l->census, "--label-column", plan, err));
    if (l->asked)
        mr_label_census_note(&l->census, &l->gaps, l->asked, "rows", plan->notes);
    const char *text = (const char *)l->texts.data;
    for (size_t i = 0; i < plan->sample_count; i++, text += strlen(text) + 1)
        plan->samples[i].label = mr_label_census_find(&l->census, plan, text, strlen(text));
    return MR_OK;
}

void mr_labels_free(mr_labels *l)
{
    mr_buf_free(&l->texts);
    mr_label_census_free(&l->census);
}
