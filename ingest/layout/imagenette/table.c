/* table.c - noisy_imagenette.csv: columns by path.
 * Invariant: rows are found by their path, in any order, with LF or CRLF.
 *
 *      path,noisy_labels_0,noisy_labels_1,noisy_labels_5,noisy_labels_25,noisy_labels_50,is_valid
 *      train/n02979186/n02979186_9036.JPEG,n02979186,n02979186,n02979186,n02979186,n03000684,False                   */
#include "ingest/layout/imagenette/table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "shards/manifest/format.h"
#include "ingest/tables/csv.h"

static const uint64_t csv_max = (uint64_t)1 << 30;

typedef struct key {
    const char *path;
    uint32_t row;
} key;

typedef struct table {
    mr_csv csv;
    size_t path_column;
    key *keys;        /* sorted by path, then row */
    size_t key_count; /* rows whose path no earlier row has */
    uint8_t *taken;   /* by key */
} table;

const char *mr_imagenette_csv(const mr_tree *t)
{
    static const char *const names[] = {"noisy_imagenette.csv", "noisy_imagewoof.csv"};
    for (size_t i = 0; i < MR_COUNT(names); i++)
        if (mr_tree_find(t, names[i], strlen(names[i])) != MR_NO_ENTRY)
            return names[i];
    return NULL;
}

void mr_imagenette_free(void *state)
{
    table *tab = state;
    if (!tab)
        return;
    mr_csv_free(&tab->csv);
    free(tab->keys);
    free(tab->taken);
    free(tab);
}

/* ---- reading -------------------------------------------------------------------------------------------------- */

static mr_status read_csv(const mr_tree *t, const char *name, uint32_t entry, mr_csv *csv, mr_error *err)
{
    mr_buf text = {0};
    uint64_t size = mr_source_entry(t->source, entry)->size;
    if (size > csv_max)
        return mr_fail(err, MR_BAD_DATA, "%s: %" PRIu64 " bytes, more than 1 GiB, the limit for a CSV file", name,
                       size);
    mr_status status = mr_source_read(t->source, entry, &text, err);
    if (status == MR_OK)
        status = mr_csv_parse(&text, name, csv, err);
    mr_buf_free(&text);
    if (status == MR_OK && csv->rows >= UINT32_MAX) {
        mr_csv_free(csv);
        status = mr_fail(err, MR_BAD_DATA, "%s: too many rows", name);
    }
    return status;
}

static int by_path(const void *a, const void *b)
{
    const key *x = a, *y = b;
    int cmp = strcmp(x->path, y->path);
    return cmp ? cmp : (x->row > y->row) - (x->row < y->row);
}

static mr_status index_rows(table *tab, const char *name, mr_plan *plan, mr_error *err)
{
    size_t rows = tab->csv.rows;
    tab->keys = mr_alloc(rows, sizeof *tab->keys);
    tab->taken = mr_alloc(rows, 1);
    if (!tab->keys || !tab->taken)
        return mr_fail_memory(err, "sorting a CSV file");
    for (size_t r = 0; r < rows; r++) {
        const char *path = mr_csv_cell(&tab->csv, r, tab->path_column);
        tab->keys[r] = (key){strncmp(path, "./", 2) ? path : path + 2, (uint32_t)r};
    }
    if (rows)
        qsort(tab->keys, rows, sizeof *tab->keys, by_path);
    for (size_t r = 0; r < rows; r++) {
        const key *k = &tab->keys[r], *kept = tab->key_count ? &tab->keys[tab->key_count - 1] : NULL;
        if (kept && !strcmp(kept->path, k->path))
            mr_note_add(plan->notes, MR_NOTE_COLLISION, k->path, strlen(k->path), 0,
                        "row %u of %s names it again: row %u is used", k->row + 1, name, kept->row + 1);
        else
            tab->keys[tab->key_count++] = *k;
    }
    return MR_OK;
}

static key *find_row(const table *tab, const char *path)
{
    size_t low = 0, high = tab->key_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int cmp = strcmp(path, tab->keys[mid].path);
        if (!cmp)
            return &tab->keys[mid];
        if (cmp < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

/* ---- labels --------------------------------------------------------------------------------------------------- */

/* Whether any cell of the column is a class of the dataset. */
static bool has_labels(const table *tab, size_t column, const mr_plan *plan)
{
    for (size_t r = 0; r < tab->csv.rows; r++) {
        const char *cell = mr_csv_cell(&tab->csv, r, column);
        if (*cell && mr_plan_class_find(plan, cell, strlen(cell)) >= 0)
            return true;
    }
    return false;
}

/* The column of --label-column; -1: none was requested. */
static mr_status choose_column(const table *tab, const char *name, const char *wanted, const mr_plan *plan, int *column,
                               mr_error *err)
{
    *column = wanted ? mr_csv_column(&tab->csv, wanted) : -1;
    if (!wanted || (*column >= 0 && (size_t)*column != tab->path_column))
        return MR_OK;
    mr_buf there = {0};
    for (size_t c = 0; c < tab->csv.columns; c++)
        if (c != tab->path_column && has_labels(tab, c, plan))
            mr_buf_printf(&there, "%s%s", there.len ? ", " : "", tab->csv.header[c]);
    mr_fail(err, MR_MISUSE, "--label-column %s: %s has no such label column; it has: %s", wanted, name,
            mr_buf_text(&there));
    mr_buf_free(&there);
    return MR_MISUSE;
}

/* About how long its meta will be. */
static uint64_t row_bytes(const table *tab, size_t row)
{
    uint64_t bytes = sizeof ",\"columns\":{}" - 1;
    for (size_t c = 0; c < tab->csv.columns; c++)
        if (c != tab->path_column)
            bytes += strlen(tab->csv.header[c]) + strlen(mr_csv_cell(&tab->csv, row, c)) + sizeof "\"\":\"\"," - 1;
    return bytes;
}

static mr_status give_row(table *tab, const char *name, int column, const key *k, mr_plan *plan, mr_sample *s,
                          mr_error *err)
{
    tab->taken[k - tab->keys] = 1;
    s->aux = (uint64_t)k->row + 1;
    s->meta_bytes += row_bytes(tab, k->row);
    if (column < 0)
        return MR_OK;
    const char *cell = mr_csv_cell(&tab->csv, k->row, (size_t)column);
    s->label = *cell ? mr_plan_class_find(plan, cell, strlen(cell)) : -1;
    if (s->label >= 0) {
        s->flags &= ~(uint32_t)MR_FLAG_UNANNOTATED;
        return MR_OK;
    }
    if (*cell)
        return mr_fail_memory(err, "numbering the classes");
    s->flags |= MR_FLAG_UNANNOTATED;
    mr_note_add(plan->notes, MR_NOTE_UNLISTED, k->path, strlen(k->path), 0, "no label in column %s of %s: kept without",
                tab->csv.header[column], name);
    return MR_OK;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A label may name a class without a folder here (in a part of the data, or by the noise itself): it is a class all the
 * same.  A column that contains none of the classes holds something else. */
static mr_status add_classes(const mr_tree *t, const table *tab, const char *name, size_t column, mr_plan *plan,
                             mr_error *err)
{
    const char **others = mr_alloc(plan->sample_count, sizeof *others), *head = tab->csv.header[column];
    size_t count = 0, hits = 0;
    mr_status status = MR_OK;
    if (!others)
        return mr_fail_memory(err, "numbering the classes");
    for (size_t i = 0; i < plan->sample_count; i++) {
        size_t len;
        const key *k = find_row(tab, mr_tree_path(t, plan->samples[i].entry, &len));
        const char *cell = k ? mr_csv_cell(&tab->csv, k->row, column) : "";
        if (*cell && mr_plan_class_find(plan, cell, strlen(cell)) >= 0)
            hits++;
        else if (*cell)
            others[count++] = cell;
    }
    if (count && !hits)
        status = mr_fail(err, MR_MISUSE,
                         "--label-column %s: no cell of this column in %s is a class of the dataset, "
                         "one is \"%s\"",
                         head, name, others[0]);
    qsort(others, count, sizeof *others, by_text);
    for (size_t i = 0; i < count && status == MR_OK; i++) {
        if (i && !strcmp(others[i], others[i - 1]))
            continue;
        mr_note_add(plan->notes, MR_NOTE_CLASS, name, strlen(name), 0, "class %s has no folder: column %s names it",
                    others[i], head);
        status = mr_plan_class(plan, others[i], strlen(others[i]), false, 0, err);
    }
    free(others);
    mr_plan_classes_sort(plan);
    return status;
}

static mr_status label_samples(const mr_tree *t, table *tab, const char *name, int column, mr_plan *plan, mr_error *err)
{
    size_t without = 0;
    mr_status status = MR_OK;
    for (size_t i = 0; i < plan->sample_count && status == MR_OK; i++) {
        mr_sample *s = &plan->samples[i];
        size_t len;
        const char *path = mr_tree_path(t, s->entry, &len);
        const key *k = find_row(tab, path);
        if (k) {
            status = give_row(tab, name, column, k, plan, s, err);
            continue;
        }
        without++;
        if (column < 0)
            continue;
        s->label = -1;
        s->flags |= MR_FLAG_UNANNOTATED;
        mr_note_add(plan->notes, MR_NOTE_UNLISTED, path, len, mr_source_entry(t->source, s->entry)->size,
                    "not listed in %s: kept without a label", name);
    }
    if (without && column < 0)
        mr_note_add(plan->notes, MR_NOTE_INFO, name, strlen(name), 0, "images without a row: %zu of %zu", without,
                    plan->sample_count);
    return status;
}

/* A part of Imagenette comes with the whole csv: one note for all that are missing, not thirteen thousand. */
static void note_missing(const mr_tree *t, const table *tab, const char *name, uint32_t entry, mr_plan *plan)
{
    mr_buf some = {0};
    size_t missing = 0;
    for (size_t k = 0; k < tab->key_count; k++) {
        const char *path = tab->keys[k].path;
        if (tab->taken[k] || mr_tree_find(t, path, strlen(path)) != MR_NO_ENTRY)
            continue;
        if (missing++ < 3)
            mr_buf_printf(&some, "%s%s", missing > 1 ? ", " : "", path);
    }
    if (missing)
        mr_note_add(plan->notes, MR_NOTE_MISSING, name, strlen(name), mr_source_entry(t->source, entry)->size,
                    "rows whose files are not here: %zu of %zu (%s%s)", missing, tab->csv.rows, mr_buf_text(&some),
                    missing > 3 ? " ..." : "");
    plan->notes->failed = plan->notes->failed || some.failed;
    mr_buf_free(&some);
}

static mr_status read_table(const mr_tree *t, const mr_layout_options *o, const char *name, uint32_t entry, table *tab,
                            mr_plan *plan, mr_error *err)
{
    MR_TRY(read_csv(t, name, entry, &tab->csv, err));
    int column = mr_csv_column(&tab->csv, "path");
    if (column < 0)
        return mr_fail(err, MR_BAD_DATA, "%s: no column is named \"path\"", name);
    tab->path_column = (size_t)column;
    MR_TRY(choose_column(tab, name, o->label_column, plan, &column, err));
    MR_TRY(index_rows(tab, name, plan, err));
    if (column >= 0)
        MR_TRY(add_classes(t, tab, name, (size_t)column, plan, err));
    return label_samples(t, tab, name, column, plan, err);
}

mr_status mr_imagenette_table(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err)
{
    const char *name = mr_imagenette_csv(t);
    if (!name && o->label_column)
        return mr_fail(err, MR_MISUSE, "--label-column %s: there is no noisy_imagenette.csv beside the split folders",
                       o->label_column);
    if (!name)
        return MR_OK;
    uint32_t entry = mr_tree_find(t, name, strlen(name));
    table *tab = mr_alloc(1, sizeof *tab);
    if (!tab)
        return mr_fail_memory(err, "reading a CSV file");
    plan->state = tab;
    mr_status status = read_table(t, o, name, entry, tab, plan, err);
    if (status != MR_OK)
        return o->label_column
                   ? status
                   : mr_source_dispensable(t->source, entry, "ingests with the folders as classes", status, err);
    note_missing(t, tab, name, entry, plan);
    plan->used[entry] = 1;
    return MR_OK;
}

/* ---- meta ----------------------------------------------------------------------------------------------------- */

static void add_text(mr_buf *out, const char *text)
{
    size_t len = strlen(text);
    if (mr_utf8_valid(text, len))
        mr_json_add_string(out, text, len);
    else
        mr_json_add_path(out, text, len);
}

mr_status mr_imagenette_meta(const mr_tree *t, const mr_plan *plan, const mr_sample *sample, mr_buf *out, mr_error *err)
{
    (void)t;
    const table *tab = plan->state;
    if (!tab || !sample->aux)
        return MR_OK;
    mr_buf_add_text(out, ",\"columns\":{");
    for (size_t c = 0, n = 0; c < tab->csv.columns; c++) {
        if (c == tab->path_column)
            continue;
        if (n++)
            mr_buf_add_text(out, ",");
        add_text(out, tab->csv.header[c]);
        mr_buf_add_text(out, ":");
        add_text(out, mr_csv_cell(&tab->csv, sample->aux - 1, c));
    }
    mr_buf_add_text(out, "}");
    return mr_buf_status(out, err, "writing a sample's columns");
}
