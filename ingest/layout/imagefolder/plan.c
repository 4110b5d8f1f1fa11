/* plan.c - the metadata files of an ImageFolder as tables, and the folders as classes where they have no label.
 * Invariant: classes are of one kind: labels of rows, else folders, else the categories of objects. */
#include <string.h>

#include "base/scope.h"
#include "shards/manifest/format.h"
#include "ingest/layout/imagefolder/imagefolder.h"
#include "ingest/layout/folder_names.h"
#include "ingest/layout/common/hub_objects.h"
#include "ingest/tables/jsonl.h"

bool mr_imagefolder_is(const mr_tree *t, uint32_t entry, const char *ending)
{
    char name[40];
    size_t len;
    const char *path = mr_tree_path(t, entry, &len), *slash = memrchr(path, '/', len), *base = slash ? slash + 1 : path;
    snprintf(name, sizeof name, "metadata%s", ending);
    return len - (size_t)(base - path) == strlen(name) && !memcmp(base, name, strlen(name));
}

/* ---- CSV ------------------------------------------------------------------------------------------------------- */

static mr_status read_csv(const mr_tree *t, const mr_layout_options *o, uint32_t entry, mr_plan *plan, mr_sheet *s,
                          mr_error *err)
{
    MR_TRY(mr_sheet_read(t, entry, false, s, err));
    MR_TRY(mr_csv_check_header(&s->csv, s->name, err));
    s->beside = true;
    s->path = mr_csv_column(&s->csv, "file_name");
    if (s->path < 0)
        return mr_fail(err, MR_BAD_DATA, "%s: no column is named \"file_name\"", s->name);
    MR_TRY(mr_sheet_find_others(s, o, plan->notes, err));
    return MR_OK;
}

static mr_status take_file(const mr_tree *t, const mr_layout_options *o, uint32_t entry, mr_plan *plan, mr_error *err)
{
    mr_table_state *st = plan->state;
    if (st->sheet_count == MR_SHEETS_MAX)
        return mr_fail(err, MR_BAD_DATA, "more than %d metadata files; --exclude leaves some out", MR_SHEETS_MAX);
    mr_sheet *s = &st->sheets[st->sheet_count++];
    bool csv = mr_imagefolder_is(t, entry, ".csv");
    MR_TRY(csv ? read_csv(t, o, entry, plan, s, err) : mr_imagefolder_lines(t, o, entry, plan, s, err));
    s->beside = true;
    s->split = -1; /* the folders say it */
    s->word = NULL;
    return MR_OK;
}

/* ---- folders as classes ---------------------------------------------------------------------------------------- */

static const char *folder_of(const mr_tree *t, uint32_t entry, size_t *len)
{
    size_t path_len;
    const char *path = mr_tree_path(t, entry, &path_len), *slash = memrchr(path, '/', path_len);
    const char *before = slash && slash > path ? memrchr(path, '/', (size_t)(slash - path)) : NULL;
    const char *name = before ? before + 1 : path;
    *len = slash ? (size_t)(slash - name) : 0;
    return name;
}

/* As the hub has it: each image's folder, if there are at least two and none is a split or "images". */
static bool folders_are_classes(const mr_tree *t, const mr_plan *plan)
{
    size_t len, first_len = 0;
    const char *first = NULL;
    bool two = false;
    for (size_t i = 0; i < plan->sample_count; i++) {
        const char *name = folder_of(t, plan->samples[i].entry, &len);
        if (!len || mr_folder_word(name, len))
            return false;
        two = two || (first && (first_len != len || memcmp(first, name, len) != 0));
        first = name;
        first_len = len;
    }
    return two;
}

static mr_status label_by_folder(const mr_tree *t, mr_plan *plan, mr_error *err)
{
    mr_class_set set = {0};
    mr_status status = MR_OK;
    size_t len;
    for (size_t i = 0; i < plan->sample_count && status == MR_OK; i++) {
        const char *name = folder_of(t, plan->samples[i].entry, &len);
        status = mr_class_set_add(&set, plan, name, len, err);
    }
    mr_class_set_free(&set);
    MR_TRY(status);
    mr_plan_classes_sort(plan);
    for (size_t i = 0; i < plan->sample_count; i++) {
        const char *name = folder_of(t, plan->samples[i].entry, &len);
        plan->samples[i].label = mr_plan_class_find(plan, name, len);
        plan->samples[i].flags &= ~(uint32_t)MR_FLAG_UNANNOTATED;
    }
    mr_note_add(plan->notes, MR_NOTE_INFO, "metadata", 8, 0, "no label column: the folders are the classes");
    return MR_OK;
}

/* ---- classes of objects ---------------------------------------------------------------------------------------- */

/* Lists the objects' classes in all rows if images have no label of their own; otherwise objects have the classes of
 * the labels. */
static mr_status list_object_classes(const mr_tree *t, mr_plan *plan, mr_error *err)
{
    const mr_table_state *st = plan->state;
    mr_class_set set = {0};
    mr_buf row = {0};
    mr_status status = MR_OK;
    for (size_t i = 0; i < st->sheet_count; i++)
        for (size_t n = 0; st->sheets[i].objects && n < st->sheets[i].csv.rows && status == MR_OK; n++) {
            const mr_sheet *s = &st->sheets[i];
            mr_buf_clear(&row);
            status = mr_jsonl_copy(t->source, s->entry, s->at[n], s->len[n], &row, err);
            if (status == MR_OK)
                status = mr_hub_objects_classes(row.data, row.len, s->name, &set, plan, err);
        }
    mr_class_set_free(&set);
    mr_buf_free(&row);
    return status == MR_OK ? mr_plan_classes_in_order(plan, err) : status;
}

/* Objects have the classes of the images' labels where there are any; others are counted. */
static mr_status check_object_classes(const mr_tree *t, mr_plan *plan, mr_error *err)
{
    mr_notes none = {0};
    mr_plan named = {.notes = &none, .state = plan->state};
    size_t unknown = 0, first = 0;
    mr_status status = list_object_classes(t, &named, err);
    for (size_t i = 0; i < named.class_count; i++)
        if (!strchr(named.classes[i].name, '\\') && /* it is as in the rows */
            mr_plan_class_find(plan, named.classes[i].name, strlen(named.classes[i].name)) < 0 && !unknown++)
            first = i;
    if (unknown)
        mr_note_add(plan->notes, MR_NOTE_INFO, "objects", 7, 0,
                    "classes that are not among the labels of images: %zu, so that these objects have none; "
                    "first: %s",
                    unknown, named.classes[first].name);
    mr_plan_free(NULL, &named); /* its state is the plan's */
    return status;
}

/* Metadata in folders of splits and in another folder, whose split nothing says.  In the root it is beside the images
 * of all. */
static mr_status check_folders(const mr_table_state *st, mr_error *err)
{
    const char *split = NULL, *other = NULL;
    for (size_t i = 0; i < st->sheet_count; i++) {
        const char *name = st->sheets[i].name;
        if (mr_split_of_path(name, strlen(name)))
            split = name;
        else if (strchr(name, '/'))
            other = name;
    }
    if (!split || !other)
        return MR_OK;
    return mr_fail(
        err, MR_BAD_DATA,
        "%.250s: no folder of it names a split, and %.250s is in one; rename the folder (train, val, test), or "
        "leave it out with --exclude",
        other, split);
}

mr_status mr_imagefolder_plan(const mr_tree *t, const mr_layout_options *o, mr_plan *plan, mr_error *err)
{
    mr_table_state *st = plan->state = mr_alloc(1, sizeof *st);
    MR_AUTO(mr_picture_index_free) mr_picture_index index = {0};
    bool labelled = false;
    if (!st)
        return mr_fail_memory(err, "reading metadata");
    MR_TRY(mr_picture_index_make(t, &index, err));
    for (uint32_t e = t->begin; e < t->end; e++)
        if (mr_imagefolder_is(t, e, ".csv") || mr_imagefolder_is(t, e, ".jsonl"))
            MR_TRY(take_file(t, o, e, plan, err));
    for (size_t i = 0; i < st->sheet_count; i++)
        labelled = labelled || st->sheets[i].label_count;
    if (!st->sheet_count)
        return mr_fail(err, MR_BAD_DATA, "no metadata.csv or metadata.jsonl found");
    if (o->label_column && !labelled)
        return mr_fail(err, MR_MISUSE, "--label-column %s: no metadata file has this column", o->label_column);
    MR_TRY(check_folders(st, err));
    plan->variant = "metadata";
    MR_TRY(mr_table_rows(t, o, &index, plan, err));
    labelled = false; /* a column of texts has become captions */
    for (size_t i = 0; i < st->sheet_count; i++)
        labelled = labelled || st->sheets[i].label_count;
    if (labelled)
        return check_object_classes(t, plan, err);
    return folders_are_classes(t, plan) ? label_by_folder(t, plan, err) : list_object_classes(t, plan, err);
}
