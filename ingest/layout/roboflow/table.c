/* table.c - the multi-class export: a table of zeros and ones next to the images of each split.
 * Invariant: columns are matched by name, so splits whose headers are in another order have the same labels.
 *
 *      filename, Limite-30, Panneau-Stop, Unlabeled
 *      a_png.rf.1d17.jpg, 0, 1, 0                  one class: the label; otherwise a list in the meta         */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/hash.h"
#include "base/scope.h"
#include "base/text.h"
#include "shards/manifest/format.h"
#include "ingest/layout/roboflow/roboflow.h"
#include "ingest/tables/csv.h"

static const uint64_t csv_max = (uint64_t)1 << 30;

enum { NO_CLASS = -1, UNLABELED = -2 };

typedef struct sheet { /* the table of one split folder */
    mr_csv csv;        /* no columns: there is none */
    int32_t *label_of; /* by column: the class, NO_CLASS or UNLABELED */
    size_t filename;   /* that column */
    const char *name;  /* "train/_classes.csv" */
} sheet;

struct mr_rf_table {
    sheet sheets[MR_COUNT(((mr_split_dirs *)0)->items)];
};

void mr_rf_table_free(struct mr_rf_table *table)
{
    if (!table)
        return;
    for (size_t i = 0; i < MR_COUNT(table->sheets); i++) {
        mr_csv_free(&table->sheets[i].csv);
        free(table->sheets[i].label_of);
    }
    free(table);
}

/* Spreadsheets write 1 as 1.0, too. */
static bool is_number(const char *cell, char digit)
{
    return cell[0] == digit && (!cell[1] || !strcmp(cell + 1, ".0"));
}

/* ---- headers -------------------------------------------------------------------------------------------------- */

/* Zeros and ones without a name may be a class; an empty column, or one that counts the rows, is none. */
static bool may_be_class(const sheet *sh, size_t column)
{
    size_t ones = 0;
    for (size_t r = 0; r < sh->csv.rows; r++) {
        const char *cell = mr_csv_cell(&sh->csv, r, column);
        if (!is_number(cell, '0') && !is_number(cell, '1'))
            return false;
        ones += *cell == '1';
    }
    return ones > 0;
}

static mr_status map_columns(sheet *sh, mr_plan *plan, mr_error *err)
{
    int filename = mr_csv_column(&sh->csv, "filename");
    if (filename < 0 && mr_csv_column(&sh->csv, "Pixel Value") >= 0)
        return mr_fail(err, MR_BAD_DATA,
                       "%s: this is a Roboflow export of segmentation masks, which millrace does not "
                       "read: export it again as 'COCO Segmentation'",
                       sh->name);
    if (filename < 0)
        return mr_fail(err, MR_BAD_DATA, "%s: no column is named \"filename\"", sh->name);
    sh->filename = (size_t)filename;
    sh->label_of = mr_alloc(sh->csv.columns, sizeof *sh->label_of);
    if (!sh->label_of)
        return mr_fail_memory(err, "reading a class table");
    mr_status status = mr_plan_classes_place(plan, err); /* the names in a header differ */
    for (size_t c = 0; c < sh->csv.columns && status == MR_OK; c++) {
        const char *name = sh->csv.header[c];
        bool unlabeled = !strcasecmp(name, "Unlabeled");
        sh->label_of[c] = unlabeled ? UNLABELED : NO_CLASS;
        if (!*name && may_be_class(sh, c))
            return mr_fail(err, MR_BAD_DATA, "%s: column %zu holds zeros and ones, but has no name; name the class",
                           sh->name, c + 1);
        if (c == sh->filename || unlabeled || !*name)
            continue;
        int32_t label = mr_plan_class_find(plan, name, strlen(name));
        if (label < 0) {
            status = mr_plan_class(plan, name, strlen(name), false, 0, err);
            label = (int32_t)plan->class_count - 1;
        }
        sh->label_of[c] = label;
    }
    return status;
}

static mr_status read_sheet(const mr_tree *t, mr_plan *plan, const mr_split_dir *dir, sheet *sh, mr_error *err)
{
    size_t len;
    mr_buf text = {0};
    uint32_t entry = mr_rf_find(t, dir, MR_RF_CLASSES_CSV, strlen(MR_RF_CLASSES_CSV));
    if (entry == MR_NO_ENTRY)
        return MR_OK;
    sh->name = mr_tree_path(t, entry, &len);
    uint64_t size = mr_source_entry(t->source, entry)->size;
    if (size > csv_max)
        return mr_fail(err, MR_BAD_DATA, "%s: %" PRIu64 " bytes, more than 1 GiB, the limit for a CSV file", sh->name,
                       size);
    mr_status status = mr_source_read(t->source, entry, &text, err);
    if (status == MR_OK)
        status = mr_csv_parse(&text, sh->name, &sh->csv, err);
    mr_buf_free(&text);
    if (status == MR_OK && sh->csv.rows >= UINT32_MAX)
        status = mr_fail(err, MR_BAD_DATA, "%s: too many rows", sh->name);
    plan->used[entry] = 1;
    return status == MR_OK ? map_columns(sh, plan, err) : status;
}

static mr_status note_other_headers(const struct mr_rf_table *table, size_t count, mr_plan *plan, mr_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const sheet *sh = &table->sheets[i];
        uint8_t *present = sh->label_of ? mr_alloc(plan->class_count, 1) : NULL;
        if (!present && sh->label_of)
            return mr_fail_memory(err, "comparing class tables");
        for (size_t c = 0; present && c < sh->csv.columns; c++)
            if (sh->label_of[c] >= 0)
                present[sh->label_of[c]] = 1;
        for (size_t c = 0; present && c < plan->class_count; c++)
            if (!present[c])
                mr_note_add(plan->notes, MR_NOTE_CLASS, sh->name, strlen(sh->name), 0, "class %s is not a column of %s",
                            plan->classes[c].name, sh->name);
        free(present);
    }
    return MR_OK;
}

/* ---- rows ----------------------------------------------------------------------------------------------------- */

/* Sets label, flags and the approximate length of the meta from the row's ones.  False: a cell is neither 0 nor 1,
 * which rejects the image. */
static bool judge_row(const sheet *sh, size_t row, const char *path, mr_plan *plan, mr_sample *s)
{
    size_t ones = 0;
    bool unlabeled = false;
    const char *file = mr_csv_cell(&sh->csv, row, sh->filename);
    s->label = -1;
    for (size_t c = 0; c < sh->csv.columns; c++) {
        const char *cell = mr_csv_cell(&sh->csv, row, c);
        if (c == sh->filename || sh->label_of[c] == NO_CLASS || is_number(cell, '0'))
            continue;
        if (!is_number(cell, '1')) {
            mr_note_add(plan->notes, MR_NOTE_REJECT, path, strlen(path), 0,
                        "%s: row %zu (%s), column %s: \"%s\" is neither 0 nor 1", sh->name, row + 1, file,
                        sh->csv.header[c], cell);
            return false;
        }
        if (sh->label_of[c] == UNLABELED) {
            unlabeled = true;
            continue;
        }
        ones++;
        s->label = sh->label_of[c];
        s->labels += (uint32_t)mr_hash64(&s->label, sizeof s->label); /* sheets differ in the order of columns */
        s->meta_bytes += 12 + strlen(plan->classes[s->label].name);
    }
    if (ones == 1 && !unlabeled) {
        s->labels = 0;
        s->meta_bytes = 0;
        return true;
    }
    s->label = -1;
    s->flags |= MR_FLAG_MULTI_LABEL;
    s->meta_bytes += 24;
    if (unlabeled && ones)
        mr_note_add(plan->notes, MR_NOTE_INFO, file, strlen(file), 0, "row %zu of %s has classes and is Unlabeled, too",
                    row + 1, sh->name);
    return true;
}

static void note_unplaced(const mr_tree *t, const mr_split_dir *dir, const sheet *sh, size_t r,
                          const mr_name_match *found, uint32_t row, mr_plan *plan)
{
    MR_AUTO(mr_buf_free) mr_buf buf = {0};
    size_t len;
    const char *path = mr_rf_path(dir, mr_csv_cell(&sh->csv, r, sh->filename), &buf);
    if (found->entry == MR_NO_ENTRY)
        mr_note_add(plan->notes, MR_NOTE_MISSING, path, strlen(path), 0, "row %zu of %s names it", r + 1, sh->name);
    else if (found->rival != MR_NO_ENTRY)
        mr_note_add(plan->notes, MR_NOTE_MISSING, path, strlen(path), 0,
                    "row %zu of %s names it, which may be %s or %s", r + 1, sh->name,
                    mr_tree_path(t, found->entry, &len), mr_tree_path(t, found->rival, &len));
    else
        mr_note_add(plan->notes, MR_NOTE_COLLISION, path, strlen(path), 0,
                    "row %zu of %s names it again: row %u is used", r + 1, sh->name, row);
    plan->notes->failed = plan->notes->failed || buf.failed;
}

/* row_of[entry - dir->begin]: the number of the row that names the entry, plus 1. */
static mr_status place_rows(const mr_tree *t, const mr_split_dir *dir, const sheet *sh, mr_plan *plan, uint32_t *row_of,
                            mr_error *err)
{
    MR_AUTO(mr_image_names_free) mr_image_names names = {0};
    for (size_t r = 0; r < sh->csv.rows; r++) {
        const char *file = mr_csv_cell(&sh->csv, r, sh->filename);
        mr_name_match found;
        MR_TRY(mr_rf_image(t, dir, file, strlen(file), &names, &found, err));
        uint32_t *row = found.entry != MR_NO_ENTRY ? &row_of[found.entry - dir->begin] : NULL;
        if (row && found.rival == MR_NO_ENTRY && !*row)
            *row = (uint32_t)r + 1;
        else
            note_unplaced(t, dir, sh, r, &found, row ? *row : 0, plan);
    }
    return MR_OK;
}

static mr_status add_samples(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, const mr_split_dir *dir,
                             const sheet *sh, size_t number, mr_error *err)
{
    mr_status status = MR_OK;
    uint32_t *row_of = mr_alloc(dir->end - dir->begin, sizeof *row_of);
    if (!row_of)
        return mr_fail_memory(err, "listing the samples");
    if (sh->label_of)
        status = place_rows(t, dir, sh, plan, row_of, err);
    for (uint32_t e = dir->begin; e < dir->end && status == MR_OK; e++) {
        uint32_t row = row_of[e - dir->begin];
        mr_sample s = {.split = dir->split, .entry = e, .aux = (uint64_t)number << 32 | row};
        if (row) {
            size_t len;
            mr_rf_group(t, &s);
            plan->used[e] = MR_USE_TAKEN;
            if (judge_row(sh, row - 1, mr_tree_path(t, e, &len), plan, &s))
                status = mr_plan_add(plan, &s, err);
        } else if (mr_folder_image(t, e, dir->len + 1)) {
            status = mr_folder_unlisted(t, o, plan, dir->split, e, "not listed in _classes.csv", mr_rf_group, err);
        }
    }
    free(row_of);
    return status;
}

/* If other tables exist, ingest can do without one. */
static mr_status or_without(const mr_tree *t, const mr_split_dirs *dirs, size_t i, mr_status status, mr_error *err)
{
    uint32_t entry = mr_rf_find(t, &dirs->items[i], MR_RF_CLASSES_CSV, strlen(MR_RF_CLASSES_CSV));
    return dirs->count == 1 || entry == MR_NO_ENTRY
               ? status
               : mr_source_dispensable(t->source, entry, "ingests without the images that it lists", status, err);
}

mr_status mr_rf_table_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_split_dirs *dirs,
                           mr_rf_state *state, mr_error *err)
{
    struct mr_rf_table *table = state->table = mr_alloc(1, sizeof *table);
    mr_status status = table ? MR_OK : mr_fail_memory(err, "reading a class table");
    /* Classes are in the order of their first appearance: in train's header, then in val's, then in test's. */
    for (uint32_t split = 0; split < plan->split_count; split++)
        for (size_t i = 0; i < dirs->count && status == MR_OK; i++)
            if (dirs->items[i].split == split)
                status = or_without(t, dirs, i, read_sheet(t, plan, &dirs->items[i], &table->sheets[i], err), err);
    if (status == MR_OK)
        status = note_other_headers(table, dirs->count, plan, err);
    for (size_t i = 0; i < dirs->count && status == MR_OK; i++)
        status = or_without(t, dirs, i, add_samples(t, o, plan, &dirs->items[i], &table->sheets[i], i, err), err);
    return status;
}

/* ---- meta ----------------------------------------------------------------------------------------------------- */

mr_status mr_rf_table_meta(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_buf *out, mr_error *err)
{
    (void)t;
    if (!(sample->flags & MR_FLAG_MULTI_LABEL))
        return MR_OK;
    const sheet *sh = &((const mr_rf_state *)plan->state)->table->sheets[sample->aux >> 32];
    size_t row = (uint32_t)sample->aux - 1;
    for (int names = 0; names < 2; names++) {
        mr_buf_add_text(out, names ? ",\"classes\":[" : ",\"labels\":[");
        for (size_t c = 0, n = 0; c < sh->csv.columns; c++) {
            if (sh->label_of[c] < 0 || !is_number(mr_csv_cell(&sh->csv, row, c), '1'))
                continue;
            const char *name = plan->classes[sh->label_of[c]].name;
            if (n++)
                mr_buf_add_text(out, ",");
            if (names)
                mr_json_add_string(out, name, strlen(name));
            else
                mr_buf_printf(out, "%d", (int)sh->label_of[c]);
        }
        mr_buf_add_text(out, "]");
    }
    return mr_buf_status(out, err, "writing a sample's labels");
}
