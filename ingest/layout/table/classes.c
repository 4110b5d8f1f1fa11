/* classes.c - the classes that the rows of tables name, and each row's labels.
 * Invariant: classes are those of all rows that are not damaged, so that a part of the images has the numbers that
 * all of them have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "shards/manifest/format.h"
#include "ingest/layout/common/label_list.h"
#include "ingest/layout/table/table.h"

enum { NUMBER_MAX = 9999 };

static bool is_on(const char *cell)
{
    return mr_value_of(cell, strlen(cell)).kind != MR_VALUE_NONE && strcmp(cell, "0") != 0 &&
           strcmp(cell, "0.0") != 0 && *cell != '-' && *cell != 'f' && *cell != 'F';
}

/* The next part of the cell between separators, without blanks around it; len 0: an empty one. */
static void next_part(mr_table_labels *l, const char **text, size_t *len)
{
    char separators[sizeof MR_LABEL_END + 8];
    snprintf(separators, sizeof separators, "%s%s", l->sheet->at ? MR_LABEL_END : "", l->separators);
    size_t part = *separators ? strcspn(l->at, separators) : strlen(l->at);
    *text = l->at;
    *len = part;
    l->at += part + (l->at[part] != '\0');
    mr_text_trim(text, len, " \t\r\n");
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
        if (l->column == s->label_count || mr_sheet_denies(s, l->row))
            return false;
        size_t column = s->labels[l->column++];
        if (s->boxes.form == MR_BOX_VIA && (int)column == s->boxes.at[1]) {
            *text = l->own;
            if (!mr_via_label(s, l->row, l->own, sizeof l->own))
                continue;
            *len = strlen(l->own);
            return true;
        }
        const char *cell = mr_sheet_cell(s, l->row, column);
        l->at = s->flags ? NULL : cell;
        if (s->flags && is_on(cell)) {
            *text = s->csv.header[column];
            *len = strlen(*text);
            return true;
        }
    }
}

/* ---- classes --------------------------------------------------------------------------------------------------- */

/* A cell with '|', or else with ';', holds several classes, unless the user says what separates them. */
static void find_separators(mr_table_state *st, const mr_layout_options *o)
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
    snprintf(st->separators, sizeof st->separators, "%s", bar ? "|" : semicolon ? ";" : "");
}

static void note_separators(const mr_table_state *st, const mr_layout_options *o, mr_notes *notes)
{
    const char *name = st->sheets[0].name;
    if (*st->separators && !o->label_separator && st->census.labels)
        mr_note_add(notes, MR_NOTE_INFO, name, strlen(name), 0,
                    "labels with '%s' are several classes each; --label-separator '' keeps each as one",
                    st->separators);
}

/* "0 16", where all classes are numbers, or such lists of them. */
static bool are_numbers(const mr_plan *plan)
{
    for (size_t i = 0; i < plan->class_count; i++)
        if (plan->classes[i].name[strspn(plan->classes[i].name, "0123456789 ,")])
            return false;
    return true;
}

/* Labels that are read as one class each, although a plural or numbers say that they are several: "haze primary" in
 * Kaggle's `tags`, "0 16". */
static void note_several(const mr_table_state *st, const mr_plan *plan, mr_notes *notes)
{
    static const char *const plurals[] = {"tags", "labels", "classes", "attributes", "keywords", NULL};
    const mr_sheet *s = &st->sheets[0];
    const char *column = s->label_count == 1 && !s->flags ? s->csv.header[s->labels[0]] : "", *several = NULL;
    bool listed = *column && (mr_header_among(column, plurals) || are_numbers(plan));
    for (size_t i = 0; i < plan->class_count && listed && !several; i++)
        several = strpbrk(plan->classes[i].name, " ,") ? plan->classes[i].name : NULL;
    if (several)
        mr_note_add(
            notes, MR_NOTE_INFO, s->name, strlen(s->name), 0,
            "column %.80s: labels such as %.100s are one class each; --label-separator '%c' makes several of them",
            column, several, *strpbrk(several, ", "));
}

/* Labels that do not look like classes: lists as Python prints them. */
static void note_odd_labels(const mr_table_state *st, const mr_plan *plan, mr_notes *notes)
{
    const char *name = st->sheets[0].name, *list = NULL;
    for (size_t i = 0; i < plan->class_count && !list; i++) {
        const char *class = plan->classes[i].name;
        size_t len = strlen(class);
        list = len > 2 && class[0] == '[' && class[len - 1] == ']' ? class : NULL;
    }
    if (list)
        mr_note_add(notes, MR_NOTE_INFO, name, strlen(name), 0,
                    "labels such as %.100s look like lists, and each different one is a class; write '|' between the "
                    "classes of an image",
                    list);
}

/* Counts an empty cell, which the list of a row's labels skips; in columns of 0 and 1, also a word. */
static void count_gap(const mr_sheet *s, size_t row, size_t column, mr_label_gaps *gaps)
{
    const char *cell = mr_sheet_cell(s, row, s->labels[column]);
    double box[4];
    char text[sizeof((mr_table_labels *)0)->own];
    if (s->boxes.form == MR_BOX_VIA && (int)s->labels[column] == s->boxes.at[1])
        gaps->empty += mr_via_box(s, row, box) == MR_BOX_THERE && !mr_via_label(s, row, text, sizeof text);
    else
        gaps->empty += !*cell;
    gaps->words += s->flags && *cell && mr_value_of(cell, strlen(cell)).kind == MR_VALUE_NONE;
}

/* What the labels of a sheet's columns are; gaps[]: missing labels in each column. */
static mr_status survey_sheet(mr_table_state *st, const mr_sheet *s, mr_label_gaps *gaps, mr_error *err)
{
    const char *text;
    size_t len;
    char why[MR_SHEET_FAULT];
    for (size_t c = 0; c < s->label_count && s->flags; c++) /* also those that no image has */
        MR_TRY(mr_label_census_add(&st->census, s->csv.header[s->labels[c]], strlen(s->csv.header[s->labels[c]]),
                                   &gaps[c], err));
    for (size_t r = 0; r < s->csv.rows; r++) {
        mr_table_labels l = {.sheet = s, .row = r, .separators = st->separators};
        if (mr_sheet_fault_of(s, r, why) || mr_sheet_denies(s, r))
            continue;
        for (size_t c = 0; c < s->label_count; c++)
            count_gap(s, r, c, &gaps[c]);
        while (mr_table_label(&l, &text, &len))
            MR_TRY(mr_label_census_add(&st->census, text, len, &gaps[l.column - 1], err));
    }
    return MR_OK;
}

static void note_gaps(const mr_table_state *st, const mr_sheet *s, const mr_label_gaps *gaps, mr_notes *notes)
{
    MR_AUTO(mr_buf_free) mr_buf what = {0};
    for (size_t c = 0; c < s->label_count; c++) {
        const char *column = s->csv.header[s->labels[c]];
        mr_buf_clear(&what);
        mr_buf_printf(&what, "column %.80s: %s", column, s->label_count > 1 ? "cells" : "rows");
        if (s->flags && gaps[c].empty + gaps[c].words)
            mr_note_add(notes, MR_NOTE_INFO, s->name, strlen(s->name), 0,
                        "column %.80s: cells without a value, which count as 0: %zu", column,
                        gaps[c].empty + gaps[c].words);
        else if (!s->flags)
            mr_label_census_note(&st->census, &gaps[c], s->name, mr_buf_text(&what), notes);
    }
    notes->failed = notes->failed || what.failed;
}

/* Texts that are different in (nearly) each row say more of an image than its class: sentences are captions. */
static void drop_labels(mr_table_state *st, mr_notes *notes)
{
    bool sentences = mr_label_census_sentences(&st->census);
    for (size_t i = 0; i < st->sheet_count; i++) {
        mr_sheet *s = &st->sheets[i];
        if (!s->label_count)
            continue;
        const char *column = s->csv.header[s->labels[0]];
        bool captions = sentences && !s->text_name && s->text < 0;
        if (captions && s->at)
            s->text_name = column;
        else if (captions)
            s->text = (int)s->labels[0];
        s->label_count = 0;
        mr_note_add(notes, MR_NOTE_INFO, s->name, strlen(s->name), 0,
                    "column %.80s has (nearly) as many different values as rows: %s; --label-column '%.80s' makes "
                    "classes of it",
                    column, captions ? "they are used as captions, and samples have no class" : "samples have no class",
                    column);
    }
    mr_label_census_free(&st->census);
}

static mr_status survey_all(mr_table_state *st, const mr_layout_options *o, mr_plan *plan, mr_error *err)
{
    size_t columns = 1, at = 0;
    bool texts = true;
    for (size_t i = 0; i < st->sheet_count; i++) {
        columns += st->sheets[i].label_count;
        texts = texts && !st->sheets[i].flags && !st->sheets[i].boxes.form && !st->sheets[i].listed &&
                st->sheets[i].label_count < 2;
    }
    MR_AUTO(mr_scope_free) mr_label_gaps *gaps = mr_alloc(columns, sizeof *gaps);
    if (!gaps)
        return mr_fail_memory(err, "reading labels");
    for (size_t i = 0; i < st->sheet_count; at += st->sheets[i++].label_count)
        MR_TRY(survey_sheet(st, &st->sheets[i], gaps + at, err));
    mr_label_census_settle(&st->census, NUMBER_MAX);
    if (texts && !o->label_column && mr_label_census_unique(&st->census)) {
        drop_labels(st, plan->notes);
        return MR_OK;
    }
    at = 0;
    for (size_t i = 0; i < st->sheet_count; at += st->sheets[i++].label_count)
        note_gaps(st, &st->sheets[i], gaps + at, plan->notes);
    return MR_OK;
}

mr_status mr_table_classes(mr_table_state *st, const mr_layout_options *o, mr_plan *plan, mr_error *err)
{
    find_separators(st, o);
    MR_TRY(survey_all(st, o, plan, err));
    note_separators(st, o, plan->notes);
    MR_TRY(mr_label_census_classes(&st->census, st->sheets[0].name, plan, err));
    note_odd_labels(st, plan, plan->notes);
    if (!*st->separators && !o->label_separator)
        note_several(st, plan, plan->notes);
    return MR_OK;
}

int32_t mr_table_class(const mr_table_state *st, const mr_plan *plan, const char *text, size_t len)
{
    return mr_label_census_find(&st->census, plan, text, len);
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */

static void add_labels_of(const mr_table_state *st, const mr_plan *plan, const mr_sheet *sheet, size_t row, mr_buf *out)
{
    mr_table_labels l = {.sheet = sheet, .row = row, .separators = st->separators};
    const char *text;
    size_t len;
    while (mr_table_label(&l, &text, &len)) {
        int32_t label = mr_table_class(st, plan, text, len);
        if (label >= 0)
            mr_buf_add(out, &label, sizeof label);
    }
}

mr_status mr_table_row_labels(const mr_table_state *st, const mr_plan *plan, const mr_sheet *sheet, size_t row,
                              bool all, mr_buf *out, mr_error *err)
{
    mr_buf_clear(out);
    for (size_t r = row + 1; r; r = all ? mr_sheet_next_row(sheet, r) : 0)
        add_labels_of(st, plan, sheet, r - 1, out);
    MR_TRY(mr_buf_status(out, err, "reading labels"));
    mr_label_list_settle(out);
    return MR_OK;
}

/* Labels of an image whose rows are boxes are those of its objects. */
static mr_status judge_labels(const mr_table_state *st, const mr_plan *plan, const mr_sheet *sheet, size_t row,
                              mr_sample *s, mr_buf *scratch, mr_error *err)
{
    MR_TRY(mr_table_row_labels(st, plan, sheet, row, true, scratch, err));
    mr_label_list_judge(plan, scratch, s);
    if (!scratch->len)
        s->flags = sheet->flags ? MR_FLAG_MULTI_LABEL : MR_FLAG_UNANNOTATED;
    return MR_OK;
}

mr_status mr_table_judge(const mr_table_state *st, const mr_plan *plan, const mr_sheet *sheet, size_t row, mr_sample *s,
                         mr_buf *scratch, mr_error *err)
{
    s->label = -1;
    s->labels = 0;
    if (!sheet->boxes.form || sheet->listed)
        MR_TRY(judge_labels(st, plan, sheet, row, s, scratch, err));
    for (size_t r = row + 1; r; r = mr_sheet_next_row(sheet, r)) {
        s->meta_bytes += sheet->len ? sheet->len[r - 1] : 0;
        s->meta_bytes += sheet->boxes.form ? 64 : 0;
        for (size_t c = 0; c < sheet->csv.columns; c++)
            s->meta_bytes += strlen(sheet->csv.header[c]) + strlen(mr_sheet_cell(sheet, r - 1, c)) + 6;
    }
    return MR_OK;
}
