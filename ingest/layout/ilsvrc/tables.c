/* tables.c - what the tables of ImageNet say about images: their synsets and boxes.
 * Source: Kaggle's LOC_train_solution.csv and LOC_val_solution.csv; readme.txt of ILSVRC2012_devkit_t12 for
 * ILSVRC2012_validation_ground_truth.txt; val_annotations.txt and nNNNNNNNN_boxes.txt of Tiny ImageNet.
 *
 *      ImageId,PredictionString                               ILSVRC2012_val_00000001,n01751748 111 108 431 323 ...
 *      490                                                    line 1 of the ground truth: an ILSVRC2012_ID
 *      val_0.JPEG \t n03444034 \t 0 \t 32 \t 44 \t 62         n01443537_0.JPEG \t 0 \t 10 \t 63 \t 58
 *
 * Invariant: a row is found by the image's name alone, whatever its folder; if two rows for one name differ, neither is
 * used. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "ingest/tables/lines.h"
#include "ingest/source/names.h"
#include "ingest/layout/ilsvrc/ilsvrc.h"
#include "ingest/tables/csv.h"

static const uint64_t table_max = (uint64_t)1 << 30;

/* ---- text -------------------------------------------------------------------------------------------------------- */

mr_status mr_ilsvrc_keep(mr_ilsvrc_state *st, mr_buf *text, mr_error *err)
{
    mr_buf_text(text);
    MR_TRY(mr_buf_status(text, err, "reading a table"));
    if (!MR_GROW(st->texts, st->text_count, st->text_capacity))
        return mr_fail_memory(err, "reading a table");
    st->texts[st->text_count++] = *text;
    *text = (mr_buf){0};
    return MR_OK;
}

static mr_status read_text(const mr_tree *t, uint32_t entry, mr_buf *text, mr_error *err)
{
    const mr_entry *e = mr_source_entry(t->source, entry);
    if (e->size > table_max)
        return mr_fail(err, MR_BAD_DATA, "%s: longer than 1 GiB, the limit for a table", e->path);
    MR_TRY(mr_source_read(t->source, entry, text, err));
    if (text->len && memchr(text->data, '\0', text->len))
        return mr_fail(err, MR_BAD_DATA, "%s: contains a NUL byte, so it is not a text file", e->path);
    return MR_OK;
}

mr_status mr_ilsvrc_text(const mr_tree *t, uint32_t entry, mr_ilsvrc_state *st, mr_buf *lent, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    MR_TRY(read_text(t, entry, &text, err));
    MR_TRY(mr_ilsvrc_keep(st, &text, err));
    *lent = st->texts[st->text_count - 1];
    return MR_OK;
}

static mr_status bad_line(const char *name, const mr_lines *l, const char *wanted, mr_error *err)
{
    return mr_fail(err, MR_BAD_DATA, "%s: line %" PRIu64 ": not %s", name, l->number, wanted);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static size_t stem(const char *name, size_t len)
{
    const char *dot = memrchr(name, '.', len);
    return dot && dot > name && mr_name_is_image(name, len) ? (size_t)(dot - name) : len;
}

/* The table is set by end_table(). */
static mr_status add_row(mr_ilsvrc_state *st, const char *key, size_t key_len, const char *synset, const char *boxes,
                         size_t boxes_len, mr_error *err)
{
    if (!MR_GROW(st->rows, st->row_count, st->row_capacity))
        return mr_fail_memory(err, "reading a table");
    st->rows[st->row_count] = (mr_ilsvrc_row){.key = key,
                                              .key_len = stem(key, key_len),
                                              .synset = synset,
                                              .boxes = boxes,
                                              .boxes_len = boxes_len,
                                              .order = st->row_count};
    st->row_count++;
    return MR_OK;
}

static bool begins_with_synset(const char *text, size_t len)
{
    return len >= MR_SYNSET_LEN && mr_name_is_synset(text, MR_SYNSET_LEN) &&
           (len == MR_SYNSET_LEN || text[MR_SYNSET_LEN] == ' ' || text[MR_SYNSET_LEN] == '\t');
}

static mr_status read_solution(const mr_tree *t, uint32_t entry, mr_ilsvrc_state *st, mr_error *err)
{
    const char *name = mr_source_entry(t->source, entry)->path;
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    MR_AUTO(mr_csv_free) mr_csv csv = {0};
    MR_TRY(read_text(t, entry, &text, err));
    MR_TRY(mr_csv_parse(&text, name, &csv, err));
    int id = mr_csv_column(&csv, "ImageId"), prediction = mr_csv_column(&csv, "PredictionString");
    if (id < 0 || prediction < 0)
        return mr_fail(err, MR_BAD_DATA, "%s: its columns are not ImageId and PredictionString", name);
    for (size_t r = 0; r < csv.rows; r++) {
        const char *key = mr_csv_cell(&csv, r, (size_t)id), *boxes = mr_csv_cell(&csv, r, (size_t)prediction);
        if (!begins_with_synset(boxes, strlen(boxes)))
            return mr_fail(err, MR_BAD_DATA,
                           "%s: row %zu: PredictionString does not begin with a synset (n and 8 digits)", name, r + 1);
        MR_TRY(add_row(st, key, strlen(key), boxes, boxes, strlen(boxes), err));
    }
    text = csv.text; /* where the rows point */
    csv.text = (mr_buf){0};
    return mr_ilsvrc_keep(st, &text, err);
}

/* Tiny ImageNet's files; `labels`: with a synset after the name. */
static mr_status read_tiny(const mr_tree *t, uint32_t entry, bool labels, mr_ilsvrc_state *st, mr_error *err)
{
    const char *name = mr_source_entry(t->source, entry)->path;
    mr_buf text = {0};
    MR_TRY(mr_ilsvrc_text(t, entry, st, &text, err));
    mr_lines l = mr_lines_of(text.data, text.len);
    while (mr_lines_next(&l)) {
        size_t key = strcspn(l.line, " \t\r\n");
        size_t at = key < l.len ? key + strspn(l.line + key, " \t") : l.len;
        const char *synset = labels ? l.line + at : NULL;
        if (labels && !begins_with_synset(l.line + at, l.len - at))
            return bad_line(name, &l, "the name of an image and its synset (n and 8 digits)", err);
        at += labels ? MR_SYNSET_LEN : 0;
        at += strspn(l.line + at, " \t");
        MR_TRY(add_row(st, l.line, key, synset, l.line + at, at < l.len ? l.len - at : 0, err));
    }
    return MR_OK;
}

/* The synset of a line of the ground truth; NULL: not a number, or not one of a synset. */
static const char *synset_of_line(const mr_ilsvrc_state *st, const mr_lines *l)
{
    size_t id = 0;
    if (l->len > 6 || strspn(l->line, "0123456789") < l->len)
        return NULL;
    for (size_t i = 0; i < l->len; i++)
        id = id * 10 + (size_t)(l->line[i] - '0');
    return id < st->id_count ? st->by_id[id] : NULL;
}

/* Line n is of ILSVRC2012_val_n. */
static mr_status read_ground_truth(const mr_tree *t, uint32_t entry, mr_ilsvrc_state *st, mr_error *err)
{
    enum { KEY = sizeof "ILSVRC2012_val_00000001" - 1 };
    const char *name = mr_source_entry(t->source, entry)->path;
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    MR_AUTO(mr_buf_free) mr_buf keys = {0};
    MR_AUTO(mr_scope_free) const char **synsets = NULL;
    size_t count = 0, capacity = 0;
    MR_TRY(read_text(t, entry, &text, err));
    mr_buf_text(&text);
    mr_lines l = mr_lines_of(text.data, text.len);
    while (mr_lines_next(&l)) {
        const char *synset = synset_of_line(st, &l);
        if (l.number != count + 1 || l.number > 99999999)
            return mr_fail(err, MR_BAD_DATA, "%s: line %zu is empty", name, count + 1);
        if (!synset)
            return bad_line(name, &l, "an ILSVRC2012_ID that the list of synsets has", err);
        if (!MR_GROW(synsets, count, capacity))
            return mr_fail_memory(err, "reading a table");
        synsets[count++] = synset;
        mr_buf_printf(&keys, "ILSVRC2012_val_%08" PRIu64, l.number);
    }
    size_t kept = st->text_count;
    MR_TRY(mr_ilsvrc_keep(st, &keys, err));
    for (size_t i = 0; i < count; i++)
        MR_TRY(add_row(st, (const char *)st->texts[kept].data + i * KEY, KEY, synsets[i], "", 0, err));
    return MR_OK;
}

/* ---- all tables -------------------------------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
    const mr_ilsvrc_row *x = a, *y = b;
    int order = memcmp(x->key, y->key, x->key_len < y->key_len ? x->key_len : y->key_len);
    if (!order)
        order = (x->key_len > y->key_len) - (x->key_len < y->key_len);
    return order ? order : (x->order > y->order) - (x->order < y->order);
}

static bool boxes_differ(const mr_ilsvrc_row *a, const mr_ilsvrc_row *b)
{
    return a->boxes_len && b->boxes_len &&
           (a->boxes_len != b->boxes_len || memcmp(a->boxes, b->boxes, a->boxes_len) != 0);
}

/* One row for each image; a later one that says something else becomes its rival. */
static void join_repeated(mr_ilsvrc_state *st)
{
    size_t kept = 0;
    if (st->row_count)
        qsort(st->rows, st->row_count, sizeof *st->rows, by_key);
    for (size_t i = 0; i < st->row_count; i++) {
        const mr_ilsvrc_row r = st->rows[i];
        mr_ilsvrc_row *last = kept ? &st->rows[kept - 1] : NULL;
        if (!last || last->key_len != r.key_len || memcmp(last->key, r.key, r.key_len) != 0) {
            st->rows[kept++] = r;
            continue;
        }
        bool synsets = r.synset && last->synset && memcmp(r.synset, last->synset, MR_SYNSET_LEN) != 0;
        if (!last->rivals && (synsets || boxes_differ(last, &r))) {
            last->rivals = r.file;
            last->rival = synsets ? r.synset : NULL;
        }
    }
    st->row_count = kept;
}

/* The rows that were added since are of this table. */
static void end_table(const mr_tree *t, uint32_t entry, mr_plan *plan, mr_ilsvrc_state *st, size_t first)
{
    plan->used[entry] = 1;
    for (size_t i = first; i < st->row_count; i++)
        st->rows[i].file = mr_source_entry(t->source, entry)->path;
}

static mr_status read_boxes(const mr_tree *t, mr_plan *plan, mr_ilsvrc_state *st, mr_error *err)
{
    static const char ending[] = "_boxes.txt";
    for (uint32_t e = t->begin; e < t->end; e++) {
        size_t len;
        const char *path = mr_tree_path(t, e, &len);
        if (!mr_name_ends(path, len, ending) || len < MR_SYNSET_LEN + strlen(ending) ||
            !mr_name_is_synset(path + len - strlen(ending) - MR_SYNSET_LEN, MR_SYNSET_LEN))
            continue;
        size_t first = st->row_count;
        MR_TRY(read_tiny(t, e, false, st, err));
        end_table(t, e, plan, st, first);
    }
    return MR_OK;
}

typedef mr_status read_fn(const mr_tree *t, uint32_t entry, mr_ilsvrc_state *st, mr_error *err);

static mr_status read_annotations(const mr_tree *t, uint32_t entry, mr_ilsvrc_state *st, mr_error *err)
{
    return read_tiny(t, entry, true, st, err);
}

mr_status mr_ilsvrc_tables(const mr_tree *t, const mr_ilsvrc_places *p, mr_plan *plan, mr_ilsvrc_state *st,
                           mr_error *err)
{
    const struct {
        const char *name;
        read_fn *read;
        bool has; /* it can be read */
    } tables[] = {{"LOC_val_solution.csv", read_solution, true},
                  {"LOC_train_solution.csv", read_solution, true},
                  {"val_annotations.txt", read_annotations, p->tiny},
                  {"ILSVRC2012_validation_ground_truth.txt", read_ground_truth, st->by_id != NULL}};
    for (size_t i = 0; i < MR_COUNT(tables); i++)
        for (uint32_t entry = MR_NO_ENTRY;
             tables[i].has && (entry = mr_ilsvrc_next(t, p, tables[i].name, entry)) != MR_NO_ENTRY;) {
            size_t first = st->row_count;
            MR_TRY(tables[i].read(t, entry, st, err));
            end_table(t, entry, plan, st, first);
        }
    MR_TRY(read_boxes(t, plan, st, err));
    join_repeated(st);
    return MR_OK;
}

const mr_ilsvrc_row *mr_ilsvrc_row_of(const mr_ilsvrc_state *st, const char *path, size_t len)
{
    const char *slash = memrchr(path, '/', len), *name = slash ? slash + 1 : path;
    mr_ilsvrc_row wanted = {.key = name, .key_len = stem(name, len - (size_t)(name - path))};
    size_t low = 0, high = st->row_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        wanted.order = st->rows[mid].order;
        int order = by_key(&wanted, &st->rows[mid]);
        if (!order)
            return &st->rows[mid];
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

/* ---- boxes ------------------------------------------------------------------------------------------------------- */

/* Moves to the next word; its length, 0: there is none. */
static size_t next_word(const char **at, const char *end)
{
    const char *to;
    while (*at < end && strchr(" \t\r\n", **at))
        ++*at;
    for (to = *at; to < end && !strchr(" \t\r\n", *to);)
        to++;
    return (size_t)(to - *at);
}

static bool number(const char *word, size_t len, mr_milli *out)
{
    char copy[32], *rest;
    if (!len || len >= sizeof copy || strspn(word, "+-.0123456789") < len)
        return false;
    memcpy(copy, word, len);
    copy[len] = '\0';
    double value = strtod(copy, &rest);
    return !*rest && mr_milli_of(value, out);
}

void mr_ilsvrc_boxes(const mr_ilsvrc_row *row, const mr_plan *plan, int32_t label, mr_objects *out)
{
    const char *at = row->boxes, *end = at + row->boxes_len;
    for (size_t len; (len = next_word(&at, end)) && !out->failed;) {
        mr_milli side[4];
        int sides = 0;
        if (mr_name_is_synset(at, len)) {
            label = mr_plan_class_find(plan, at, len);
            at += len;
            len = next_word(&at, end);
        }
        while (sides < 4 && number(at, len, &side[sides])) {
            at += len;
            len = ++sides < 4 ? next_word(&at, end) : 0;
        }
        mr_object *object = sides == 4 ? mr_objects_add(out, label) : NULL;
        if (sides < 4) {
            out->unreadable++;
            return;
        }
        if (!object)
            return;
        object->has_box = true;
        memcpy(object->box, (mr_milli[]){side[0], side[1], side[2] - side[0], side[3] - side[1]}, sizeof object->box);
    }
}
