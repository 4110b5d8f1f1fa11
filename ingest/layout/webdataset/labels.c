/* labels.c - labels of WebDataset samples: numbers or class names in .cls, or a member of the JSON.
 * Invariant: a number up to MR_WEBDATASET_LABEL_MAX is the class's number; names come from metas that millrace
 * exported, and only if each number has one name and each name one number. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/layout/webdataset/webdataset.h"

enum { NAME_MAX_BYTES = 1024 };

mr_status mr_webdataset_label(mr_webdataset_labels *l, const char *text, size_t len, const char *file, mr_error *err)
{
    while (len && strchr(" \t\r\n", text[len - 1]))
        len--;
    for (; len && strchr(" \t\r\n", *text); len--)
        text++;
    if (len > NAME_MAX_BYTES || memchr(text, '\0', len) || memchr(text, '\n', len))
        return mr_fail(err, MR_BAD_DATA, "%s: not a label: one number or one line of at most %d bytes", file,
                       NAME_MAX_BYTES);
    if (!len && !*file)
        l->gaps.absent++;
    else
        MR_TRY(mr_label_census_add(&l->census, text, len, &l->gaps, err));
    mr_buf_add(&l->texts, text, len);
    mr_buf_add(&l->texts, "", 1);
    return mr_buf_status(&l->texts, err, "reading labels");
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* names[number], as in the samples; false: they contradict each other, or two numbers share a name. */
static bool find_names(const mr_webdataset_labels *l, const mr_plan *plan, const char **names, const char **sorted)
{
    size_t count = 0;
    const char *name = (const char *)l->names.data;
    for (size_t i = 0; i < plan->sample_count; i++, name += strlen(name) + 1) {
        int32_t label = plan->samples[i].label;
        if (label < 0)
            continue;
        if (!*name || (names[label] && strcmp(names[label], name) != 0))
            return false;
        names[label] = name;
    }
    for (int32_t n = 0; n <= l->highest; n++)
        if (names[n])
            sorted[count++] = names[n];
    if (count)
        qsort(sorted, count, sizeof *sorted, by_text);
    for (size_t i = 1; i < count; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            return false;
    return true;
}

static void give_labels(const mr_webdataset_labels *l, mr_plan *plan)
{
    const char *text = (const char *)l->texts.data;
    for (size_t i = 0; i < plan->sample_count; i++, text += strlen(text) + 1)
        plan->samples[i].label = mr_label_census_find(&l->census, plan, text, strlen(text));
}

/* Each class is a number, and may have a name. */
static mr_status classes_of_numbers(const mr_webdataset_labels *l, mr_plan *plan, mr_error *err)
{
    size_t count = (size_t)(l->highest + 1);
    MR_AUTO(mr_scope_free) const char **names = mr_alloc(count, sizeof *names);
    MR_AUTO(mr_scope_free) const char **sorted = mr_alloc(count, sizeof *sorted);
    if (!names || !sorted)
        return mr_fail_memory(err, "listing the classes");
    give_labels(l, plan);
    bool named = find_names(l, plan, names, sorted);
    for (size_t n = 0; n < count; n++) {
        char number[24];
        snprintf(number, sizeof number, "%zu", n);
        const char *name = named && names[n] ? names[n] : number;
        MR_TRY(mr_plan_class(plan, name, strlen(name), false, 0, err));
    }
    return MR_OK;
}

static mr_status own_classes(mr_webdataset_labels *l, mr_plan *plan, mr_error *err)
{
    mr_label_census_settle(&l->census, MR_WEBDATASET_LABEL_MAX);
    mr_label_census_note(&l->census, &l->gaps, ".cls", "samples", plan->notes);
    if (l->census.filled && (int32_t)l->census.highest > l->highest)
        l->highest = (int32_t)l->census.highest;
    if (l->census.filled || !l->census.distinct.class_count)
        return classes_of_numbers(l, plan, err);
    MR_TRY(mr_label_census_classes(&l->census, ".cls", plan, err));
    give_labels(l, plan);
    return MR_OK;
}

static mr_status listed_label(const mr_webdataset_facts *facts, const char *text, int32_t *label, mr_error *err)
{
    const char *name = (const char *)facts->classes.data;
    mr_value v = mr_value_of(text, strlen(text));
    *label = -1;
    if (v.kind == MR_VALUE_WHOLE) {
        *label = v.number >= 0 && v.number < (double)facts->class_count ? (int32_t)v.number : -1;
    } else {
        for (size_t i = 0; i < facts->class_count && *label < 0; i++, name += strlen(name) + 1)
            *label = strcmp(name, text) == 0 ? (int32_t)i : -1;
    }
    if (*label < 0 && v.kind != MR_VALUE_NONE && strcmp(v.name, "-1") != 0)
        return mr_fail(err, MR_BAD_DATA, "label %s: not among the %zu classes of " MR_WEBDATASET_FACTS, text,
                       facts->class_count);
    return MR_OK;
}

/* Whether the sample's own meta names the class that has the label in the list. */
static mr_status agree(const mr_plan *plan, int32_t label, const char *name, mr_error *err)
{
    const char *listed = label >= 0 ? plan->classes[label].name : name;
    if (!*name || !strcmp(name, listed))
        return MR_OK;
    return mr_fail(err, MR_BAD_DATA, "its meta has the class %.200s, and " MR_WEBDATASET_FACTS " %.200s for label %d",
                   name, listed, label);
}

/* A label that is not listed, or under another name, rejects its sample. */
static void take_listed(const mr_webdataset_labels *l, const mr_webdataset_facts *facts, const mr_tree *t,
                        mr_plan *plan)
{
    const char *text = (const char *)l->texts.data, *name = (const char *)l->names.data;
    size_t kept = 0, count = plan->sample_count;
    mr_error why;
    for (size_t i = 0; i < count; i++, text += strlen(text) + 1, name += strlen(name) + 1) {
        mr_sample *s = &plan->samples[i];
        const mr_entry *e = mr_source_entry(t->source, s->entry);
        if (*text &&
            (listed_label(facts, text, &s->label, &why) != MR_OK || agree(plan, s->label, name, &why) != MR_OK))
            mr_note_add(plan->notes, MR_NOTE_REJECT, e->path, e->path_len, e->size, "%s", why.text);
        else
            plan->samples[kept++] = *s;
    }
    plan->sample_count = kept;
}

static mr_status listed_classes(mr_webdataset_labels *l, const mr_webdataset_facts *facts, const mr_tree *t,
                                mr_plan *plan, mr_error *err)
{
    const char *name = (const char *)facts->classes.data;
    for (size_t i = 0; i < facts->class_count; i++, name += strlen(name) + 1)
        MR_TRY(mr_plan_class(plan, name, strlen(name), false, 0, err));
    MR_TRY(mr_plan_classes_place(plan, err));
    l->census.minus_is_none = true; /* in a list */
    mr_label_census_note(&l->census, &l->gaps, ".cls", "samples", plan->notes);
    take_listed(l, facts, t, plan);
    return MR_OK;
}

mr_status mr_webdataset_classes(mr_webdataset_labels *l, const mr_webdataset_facts *facts, const mr_tree *t,
                                mr_plan *plan, mr_error *err)
{
    if (l->column.asked)
        return mr_labels_plan(&l->column, plan, "the members of the .json files", err);
    if (facts->class_count)
        return listed_classes(l, facts, t, plan, err);
    return own_classes(l, plan, err);
}

void mr_webdataset_labels_free(mr_webdataset_labels *l)
{
    mr_labels_free(&l->column);
    mr_buf_free(&l->texts);
    mr_buf_free(&l->names);
    mr_label_census_free(&l->census);
}
