/* classes.c - the classes that the rows of tables name, and each row's labels.
 * Invariant: classes are those of all rows, so that a part of the pictures has the numbers that all of them have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/scope.h"
#include "base/text.h"
#include "format/format.h"
#include "layout/class_set.h"
#include "table/table.h"

enum { NUMBER_MAX = 9999, CLASSES_MAX = 10000 };

static bool is_on(const char *cell)
{
    return *cell && strcmp(cell, "0") != 0 && strcmp(cell, "0.0") != 0 && *cell != '-' && *cell != 'f' && *cell != 'F';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* The next part of the cell between separators, without blanks around it; len 0: an empty one. */
static void next_part(mr_table_labels *l, const char **text, size_t *len)
{
    size_t part = *l->separators ? strcspn(l->at, l->separators) : strlen(l->at);
    const char *begin = l->at, *end = l->at + part;
    l->at = *end ? end + 1 : end;
    while (begin < end && is_blank(*begin))
        begin++;
    while (end > begin && is_blank(end[-1]))
        end--;
    *text = begin;
    *len = (size_t)(end - begin);
}

bool mr_table_label(mr_table_labels *l, const char **text, size_t *len)
{
    const mr_sheet *s = l->sheet;
    for (;;) {
        if (l->at && *l->at) {
            next_part(l, text, len);
            if (*len)
                return true;
            continue;
        }
        if (l->column == s->label_count)
            return false;
        size_t column = s->labels[l->column++];
        const char *cell = mr_sheet_cell(s, l->row, column);
        l->at = s->flags ? NULL : cell;
        if (s->flags && is_on(cell)) {
            *text = s->csv.header[column];
            *len = strlen(*text);
            return true;
        }
    }
}

/* A whole number without signs and leading zeros; -1: something else. */
static int32_t number_of(const char *text, size_t len)
{
    int32_t number = 0;
    if (!len || len > 4 || (len > 1 && *text == '0'))
        return -1;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        number = number * 10 + (text[i] - '0');
    }
    return number <= NUMBER_MAX ? number : -1;
}

/* ---- classes --------------------------------------------------------------------------------------------------- */

/* A cell with '|', or else with ';', holds several classes, unless the user says what separates them. */
static void find_separators(mr_table_state *st, const mr_layout_options *o, mr_plan *plan)
{
    bool bar = false, semicolon = false;
    if (o->label_separator) {
        snprintf(st->separators, sizeof st->separators, "%s", o->label_separator);
        return;
    }
    for (size_t i = 0; i < st->sheet_count && !bar; i++) {
        const mr_sheet *s = &st->sheets[i];
        for (size_t r = 0; r < s->csv.rows && !s->flags && !bar; r++)
            for (size_t c = 0; c < s->label_count; c++) {
                const char *cell = mr_sheet_cell(s, r, s->labels[c]);
                bar = bar || strchr(cell, '|');
                semicolon = semicolon || strchr(cell, ';');
            }
    }
    if (!bar && !semicolon)
        return;
    const char *name = st->sheets[0].name;
    snprintf(st->separators, sizeof st->separators, "%s", bar ? "|" : ";");
    mr_note_add(plan->notes, MR_NOTE_INFO, name, strlen(name), 0,
                "labels with '%s' are several classes each; --label-separator '' takes them as one", st->separators);
}

typedef struct survey {
    int32_t highest;
    bool numbers, any;
    mr_class_set set;
} survey;

static mr_status survey_sheet(const mr_table_state *st, const mr_sheet *s, bool add, survey *v, mr_plan *plan,
                              mr_error *err)
{
    const char *text;
    size_t len;
    for (size_t r = 0; r < s->csv.rows; r++) {
        mr_table_labels l = {.sheet = s, .row = r, .separators = st->separators};
        while (mr_table_label(&l, &text, &len)) {
            if (add) {
                MR_TRY(mr_class_set_add(&v->set, plan, text, len, err));
                continue;
            }
            int32_t number = number_of(text, len);
            v->any = true;
            v->numbers = v->numbers && number >= 0;
            v->highest = number > v->highest ? number : v->highest;
            if (!v->numbers)
                return MR_OK;
        }
    }
    return MR_OK;
}

static mr_status name_classes(mr_table_state *st, survey *v, mr_plan *plan, mr_error *err)
{
    for (size_t i = 0; i < st->sheet_count; i++)
        MR_TRY(survey_sheet(st, &st->sheets[i], false, v, plan, err));
    st->numbers = v->numbers && v->any;
    for (int32_t n = 0; st->numbers && n <= v->highest; n++) {
        char name[16];
        MR_TRY(mr_plan_class(plan, name, (size_t)snprintf(name, sizeof name, "%d", (int)n), false, 0, err));
    }
    for (size_t i = 0; i < st->sheet_count && !st->numbers; i++)
        MR_TRY(survey_sheet(st, &st->sheets[i], true, v, plan, err));
    return MR_OK;
}

mr_status mr_table_classes(mr_table_state *st, const mr_layout_options *o, mr_plan *plan, mr_error *err)
{
    survey v = {.numbers = true, .highest = -1};
    find_separators(st, o, plan);
    mr_status status = name_classes(st, &v, plan, err);
    mr_class_set_free(&v.set);
    MR_TRY(status);
    if (!st->numbers)
        mr_plan_classes_sort(plan);
    if (plan->class_count <= CLASSES_MAX)
        return MR_OK;
    return mr_fail(err, MR_MISUSE,
                   "%s: the labels are %zu different ones, more than %d; choose another column with --label-column",
                   st->sheets[0].name, plan->class_count, CLASSES_MAX);
}

int32_t mr_table_class(const mr_table_state *st, const mr_plan *plan, const char *text, size_t len)
{
    return st->numbers ? number_of(text, len) : mr_plan_class_find(plan, text, len);
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */

static int by_label(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

mr_status mr_table_row_labels(const mr_table_state *st, const mr_plan *plan, const mr_sheet *sheet, size_t row,
                              mr_buf *out, mr_error *err)
{
    mr_table_labels l = {.sheet = sheet, .row = row, .separators = st->separators};
    const char *text;
    size_t len;
    mr_buf_clear(out);
    while (mr_table_label(&l, &text, &len)) {
        int32_t label = mr_table_class(st, plan, text, len);
        if (label < 0)
            return mr_fail_memory(err, "numbering the classes");
        mr_buf_add(out, &label, sizeof label);
    }
    MR_TRY(mr_buf_status(out, err, "reading labels"));
    size_t count = out->len / sizeof(int32_t), kept = count > 0;
    int32_t *labels = (int32_t *)(void *)out->data;
    if (count > 1)
        qsort(labels, count, sizeof *labels, by_label);
    for (size_t i = 1; i < count; i++)
        if (labels[i] != labels[i - 1])
            labels[kept++] = labels[i];
    out->len = kept * sizeof *labels;
    return MR_OK;
}

mr_status mr_table_judge(const mr_table_state *st, const mr_plan *plan, const mr_sheet *sheet, size_t row, mr_sample *s,
                         mr_buf *scratch, mr_error *err)
{
    MR_TRY(mr_table_row_labels(st, plan, sheet, row, scratch, err));
    const int32_t *labels = (const int32_t *)(const void *)scratch->data;
    size_t count = scratch->len / sizeof *labels;
    s->label = count == 1 ? labels[0] : -1;
    s->labels = 0;
    if (count == 0 && !sheet->flags)
        s->flags = MR_FLAG_UNANNOTATED;
    else if (count != 1)
        s->flags = MR_FLAG_MULTI_LABEL;
    for (size_t i = 0; i < count && count > 1; i++) {
        s->labels += (uint32_t)mr_hash64(&labels[i], sizeof labels[i]);
        s->meta_bytes += 12 + strlen(plan->classes[labels[i]].name);
    }
    s->meta_bytes += sheet->len ? sheet->len[row] : 0;
    for (size_t c = 0; c < sheet->csv.columns; c++)
        s->meta_bytes += strlen(sheet->csv.header[c]) + strlen(mr_sheet_cell(sheet, row, c)) + 6;
    return MR_OK;
}
