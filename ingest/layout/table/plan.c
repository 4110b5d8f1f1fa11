/* plan.c - what there is beside the images: tables, lists, texts, or a pattern of names.
 * Invariant: each CSV and TSV is read, or a note says why not and it is left to the ledger; if two list the same
 * images, the user must choose. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "ingest/layout/table/cub.h"
#include "ingest/layout/table/sidecars.h"

static void note_header(const mr_sheet *s, mr_notes *notes)
{
    MR_AUTO(mr_buf_free) mr_buf names = {0};
    for (size_t c = 0; c < s->csv.columns && c < 16; c++)
        mr_buf_printf(&names, "%s%s", c ? ", " : "", s->csv.header[c]);
    mr_note_add(notes, MR_NOTE_INFO, s->name, strlen(s->name), 0,
                "its first row names an image, so it has no header; its columns are called %s", mr_buf_text(&names));
    notes->failed = notes->failed || names.failed;
}

/* Without columns that name images it is left out, which its note says. */
static mr_status take_sheet(const mr_tree *t, const mr_layout_options *o, const mr_picture_index *index, uint32_t entry,
                            mr_plan *plan, mr_error *err)
{
    mr_table_state *st = plan->state;
    mr_sheet *s = &st->sheets[st->sheet_count];
    mr_status status = mr_sheet_read(t, entry, false, s, err);
    if (status == MR_OK)
        status = mr_sheet_settle_header(s, index, err);
    if (status == MR_OK)
        status = mr_sheet_find_path(s, index, o->image_column, err);
    if (status == MR_OK && s->path >= 0)
        status = mr_sheet_find_others(s, o, plan->notes, err);
    if (status == MR_OK && s->path >= 0 && s->bare)
        note_header(s, plan->notes);
    if (status == MR_OK && s->path < 0) {
        mr_note_add(plan->notes, MR_NOTE_INFO, s->name, strlen(s->name), 0,
                    "not read: none of its %zu columns names images of the source", s->csv.columns);
        mr_sheet_free(s);
        return MR_OK;
    }
    st->sheet_count++; /* also after a failure: it is to be freed */
    return status;
}

/* The example of a submission names images with answers that are not true. */
static void note_examples(const mr_tree *t, mr_plan *plan)
{
    mr_child child = {0};
    while (mr_tree_next(t, "", 0, &child)) {
        if (!mr_sheet_is_example(&child))
            continue;
        plan->used[child.entry] = MR_USE_TAKEN;
        mr_note_add(plan->notes, MR_NOTE_INFO, child.name, child.name_len, 0, "not read: the example of a submission");
    }
}

/* The only one of several tables that has nothing but images and their splits. */
static void find_division(mr_table_state *st, mr_notes *notes)
{
    size_t count = 0;
    for (size_t i = 0; i < st->sheet_count; i++)
        if (st->sheets[i].split >= 0 && st->sheets[i].csv.columns == 2) {
            st->division = i + 1;
            count++;
        }
    if (count != 1 || st->sheet_count == 1)
        st->division = 0;
    const mr_sheet *s = st->division ? &st->sheets[st->division - 1] : NULL;
    if (s)
        mr_note_add(notes, MR_NOTE_INFO, s->name, strlen(s->name), 0,
                    "it gives the images of the other tables their splits");
}

static mr_status check_sheets(const mr_table_state *st, const mr_layout_options *o, mr_error *err)
{
    const mr_sheet *whole = NULL;
    bool labelled = false;
    if (!st->sheet_count && o->image_column)
        return mr_fail(err, MR_MISUSE, "--image-column %s: no table has this column", o->image_column);
    if (!st->sheet_count)
        return mr_fail(err, MR_BAD_DATA, "no CSV or TSV with a column that names images of the source found");
    for (size_t i = 0; i < st->sheet_count; i++) {
        const mr_sheet *s = &st->sheets[i];
        labelled = labelled || s->label_count;
        if (s->word || s->beside || i + 1 == st->division)
            continue;
        if (whole)
            return mr_fail(err, MR_MISUSE,
                           "%s and %s both list images, and their names are not those of splits; leave one of them "
                           "out with --exclude",
                           whole->name, s->name);
        whole = s;
    }
    if (labelled || !o->label_column)
        return MR_OK;
    return mr_fail(err, MR_MISUSE, "--label-column %s: no table has this column", o->label_column);
}

mr_status mr_table_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err)
{
    mr_sheet_list list;
    mr_table_state *st = plan->state = mr_alloc(1, sizeof *st);
    MR_AUTO(mr_picture_index_free) mr_picture_index index = {0};
    if (!st)
        return mr_fail_memory(err, "reading tables");
    MR_TRY(mr_picture_index_make(t, &index, err));
    if (o->class_pattern)
        return mr_table_by_name(t, o, &index, plan, err);
    plan->variant = "csv";
    if (mr_cub_is(t)) {
        plan->variant = "cub";
        MR_TRY(mr_cub_read(t, plan, &st->sheets[st->sheet_count++], err));
        return mr_table_rows(t, o, &index, plan, err);
    }
    mr_sheet_find(t, &list);
    if (!list.count)
        MR_TRY(mr_sidecars_are(t, &index, &st->sidecars, err));
    if (st->sidecars)
        return mr_sidecars_plan(t, o, &index, plan, err);
    if (list.more)
        return mr_fail(err, MR_BAD_DATA, "more than %d tables are in one place; --exclude leaves some out",
                       MR_SHEETS_MAX);
    for (size_t i = 0; i < list.count; i++)
        MR_TRY(take_sheet(t, o, &index, list.entries[i], plan, err));
    find_division(st, plan->notes);
    MR_TRY(check_sheets(st, o, err));
    note_examples(t, plan);
    for (size_t i = 0; i < st->sheet_count; i++)
        plan->variant = st->sheets[i].boxes.form ? "boxes" : plan->variant;
    return mr_table_rows(t, o, &index, plan, err);
}

void mr_table_free(void *state)
{
    mr_table_state *st = state;
    for (size_t i = 0; st && i < MR_COUNT(st->sheets); i++)
        mr_sheet_free(&st->sheets[i]);
    if (st) {
        mr_label_census_free(&st->census);
        mr_texts_free(&st->texts);
    }
    free(st);
}
