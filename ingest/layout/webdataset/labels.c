/* labels.c - labels of WebDataset samples: numbers or class names in .cls, or a member of the JSON.
 * Invariant: a number is the class's number; names come from metas that millrace exported, and only if each number has
 * one name and each name one number. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "webdataset/webdataset.h"

enum { NAME_MAX_BYTES = 1024 };

mr_status mr_webdataset_label(mr_webdataset_labels *l, const char *text, size_t len, const char *file, mr_error *err)
{
    uint64_t number;
    char copy[NAME_MAX_BYTES + 1];
    while (len && strchr(" \t\r\n", text[len - 1]))
        len--;
    for (; len && strchr(" \t\r\n", *text); len--)
        text++;
    if (len > NAME_MAX_BYTES || memchr(text, '\0', len) || memchr(text, '\n', len))
        return mr_fail(err, MR_BAD_DATA, "%s: not a label: one number or one line of at most %d bytes", file,
                       NAME_MAX_BYTES);
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (len && (*copy < '0' || *copy > '9' || !mr_text_parse_u64(copy, &number)))
        l->words = true;
    else if (len && number > MR_WEBDATASET_LABEL_MAX)
        return mr_fail(err, MR_BAD_DATA, "%s: label %s is more than %d", file, copy, MR_WEBDATASET_LABEL_MAX);
    else if (len && (int32_t)number > l->highest)
        l->highest = (int32_t)number;
    mr_buf_add(&l->texts, copy, len + 1);
    return mr_buf_status(&l->texts, err, "reading labels");
}

static mr_status classes_of_words(const mr_webdataset_labels *l, mr_plan *plan, mr_error *err)
{
    const char *text = (const char *)l->texts.data;
    for (size_t i = 0; i < plan->sample_count; i++, text += strlen(text) + 1)
        if (*text)
            MR_TRY(mr_plan_class(plan, text, strlen(text), false, 0, err));
    mr_plan_classes_sort(plan);
    text = (const char *)l->texts.data;
    for (size_t i = 0; i < plan->sample_count; i++, text += strlen(text) + 1)
        if (*text)
            plan->samples[i].label = mr_plan_class_find(plan, text, strlen(text));
    return MR_OK;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* names[number], as the samples have it; false: they contradict each other, or two numbers share a name. */
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

static mr_status classes_of_numbers(const mr_webdataset_labels *l, mr_plan *plan, mr_error *err)
{
    size_t count = (size_t)(l->highest + 1);
    MR_AUTO(mr_scope_free) const char **names = mr_alloc(count, sizeof *names);
    MR_AUTO(mr_scope_free) const char **sorted = mr_alloc(count, sizeof *sorted);
    if (!names || !sorted)
        return mr_fail_memory(err, "listing the classes");
    const char *text = (const char *)l->texts.data;
    for (size_t i = 0; i < plan->sample_count; i++, text += strlen(text) + 1)
        plan->samples[i].label = *text ? (int)strtol(text, NULL, 10) : -1;
    bool named = find_names(l, plan, names, sorted);
    for (size_t n = 0; n < count; n++) {
        char number[24];
        snprintf(number, sizeof number, "%zu", n);
        const char *name = named && names[n] ? names[n] : number;
        MR_TRY(mr_plan_class(plan, name, strlen(name), false, 0, err));
    }
    return MR_OK;
}

static mr_status listed_label(const mr_webdataset_facts *facts, const char *text, int32_t *label, mr_error *err)
{
    uint64_t number;
    const char *name = (const char *)facts->classes.data;
    if (*text >= '0' && *text <= '9' && mr_text_parse_u64(text, &number)) {
        *label = number < facts->class_count ? (int32_t)number : -1;
    } else {
        *label = -1;
        for (size_t i = 0; i < facts->class_count && *label < 0; i++, name += strlen(name) + 1)
            *label = strcmp(name, text) == 0 ? (int32_t)i : -1;
    }
    if (*label < 0)
        return mr_fail(err, MR_BAD_DATA, "label %s: not among the %zu classes of " MR_WEBDATASET_FACTS, text,
                       facts->class_count);
    return MR_OK;
}

static mr_status listed_classes(const mr_webdataset_labels *l, const mr_webdataset_facts *facts, mr_plan *plan,
                                mr_error *err)
{
    const char *name = (const char *)facts->classes.data, *text = (const char *)l->texts.data;
    for (size_t i = 0; i < facts->class_count; i++, name += strlen(name) + 1)
        MR_TRY(mr_plan_class(plan, name, strlen(name), false, 0, err));
    MR_TRY(mr_plan_classes_place(plan, err));
    for (size_t i = 0; i < plan->sample_count; i++, text += strlen(text) + 1)
        if (*text)
            MR_TRY(listed_label(facts, text, &plan->samples[i].label, err));
    return MR_OK;
}

mr_status mr_webdataset_classes(mr_webdataset_labels *l, const mr_webdataset_facts *facts, mr_plan *plan, mr_error *err)
{
    if (l->column.asked)
        return mr_labels_plan(&l->column, plan, "the members of the .json files", err);
    if (facts->class_count)
        return listed_classes(l, facts, plan, err);
    return l->words ? classes_of_words(l, plan, err) : classes_of_numbers(l, plan, err);
}

void mr_webdataset_labels_free(mr_webdataset_labels *l)
{
    mr_buf_free(&l->column.texts);
    mr_buf_free(&l->texts);
    mr_buf_free(&l->names);
}
