/* cmd_inspect_objects.c - the objects of a dataset: per class, their sizes, and remarkable ones.
 * Invariant: the counts of the classes of a split add up to its objects. */
#include "train/report/cmd_inspect_objects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/cli/term.h"
#include "base/text.h"
#include "shards/dataset/dataset.h"
#include "shards/dataset/class_counts.h"

enum { SMALL = 32 * 32, MEDIUM = 96 * 96 }; /* square pixels */

static const char *const size_words[CMD_SIZES] = {"small", "medium", "large"};

static int size_of(const mr_object *o)
{
    double area = (double)o->box[2] / 1000 * ((double)o->box[3] / 1000);
    return area < SMALL ? CMD_SMALL : area < MEDIUM ? CMD_MEDIUM : CMD_LARGE;
}

static void count_classes(const mr_objects *found, cmd_objects *o, size_t split)
{
    for (size_t i = 0; i < found->count; i++) {
        const mr_object *object = &found->items[i];
        size_t class = object->label < 0 || (size_t)object->label >= o->width ? o->width - 1 : (size_t)object->label;
        size_t at = split * o->width + class;
        o->counts[at]++;
        if (object->has_box)
            o->sizes[at * CMD_SIZES + (size_t)size_of(object)]++;
    }
}

static mr_status read_split(const mr_dataset *ds, const mr_split *split, size_t number, cmd_objects *o, mr_error *err)
{
    MR_AUTO(mr_sample_view_free) mr_sample_view view = {0};
    MR_AUTO(mr_objects_free) mr_objects found = {0};
    for (uint64_t n = 0; n < split->samples; n++) {
        MR_TRY(mr_dataset_read_meta(ds, split->name, n, &view, err));
        MR_TRY(mr_objects_parse(view.meta, view.meta_len, &found, err));
        const mr_stored picture = {view.width, view.height, (uint8_t)view.orientation};
        if (!mr_objects_count(&found, &picture, n, &o->tallies[number]))
            return mr_fail_memory(err, "counting objects");
        count_classes(&found, o, number);
    }
    return MR_OK;
}

mr_status mr_cmd_objects_read(const char *dir, const mr_dataset *ds, cmd_objects *out, mr_error *err)
{
    const mr_manifest *m = mr_dataset_manifest(ds);
    size_t splits = m->split_count ? m->split_count : 1;
    if (m->class_count > MR_CLASS_COUNTS_MAX / splits)
        return mr_fail(err, MR_MISUSE,
                       "%s: %zu classes in %zu splits exceed the limit of %d counts; omit --objects to see the rest",
                       dir, m->class_count, m->split_count, MR_CLASS_COUNTS_MAX);
    out->width = m->class_count + 1;
    out->counts = mr_alloc(out->width * splits, sizeof *out->counts);
    out->sizes = mr_alloc(out->width * splits, CMD_SIZES * sizeof *out->sizes);
    out->tallies = mr_alloc(splits, sizeof *out->tallies);
    if (!out->counts || !out->sizes || !out->tallies)
        return mr_fail_memory(err, "counting objects");
    for (size_t i = 0; i < m->split_count; i++)
        MR_TRY(read_split(ds, &m->splits[i], i, out, err));
    return MR_OK;
}

void mr_cmd_objects_free(cmd_objects *o)
{
    free(o->counts);
    free(o->sizes);
    free(o->tallies);
    *o = (cmd_objects){0};
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

static json_t *tally_json(const mr_object_tally *t)
{
    json_t *doc = json_pack("{sI sI sI sI sI sI sI sI}", "pictures", (json_int_t)t->pictures, "pictures_without",
                            (json_int_t)t->without, "objects", (json_int_t)t->objects, "boxes", (json_int_t)t->boxes,
                            "polygons", (json_int_t)t->polygons, "oriented_boxes", (json_int_t)t->oriented, "keypoints",
                            (json_int_t)t->keypoints, "crowds", (json_int_t)t->crowds);
    for (int k = 0; doc && k <= MR_OBJECT_REPEATED; k++)
        json_object_set_new(doc, mr_object_words[k], json_integer((json_int_t)t->odd[k].objects));
    return doc;
}

json_t *mr_cmd_objects_json(const mr_manifest *m, const cmd_objects *o)
{
    json_t *doc = json_object();
    for (size_t i = 0; i < m->split_count; i++) {
        json_t *split = tally_json(&o->tallies[i]), *classes = json_array();
        uint64_t sizes[CMD_SIZES] = {0};
        for (size_t k = 0; k < o->width; k++) {
            size_t at = i * o->width + k;
            if (k < m->class_count)
                json_array_append_new(classes, json_integer((json_int_t)o->counts[at]));
            for (int s = 0; s < CMD_SIZES; s++)
                sizes[s] += o->sizes[at * CMD_SIZES + (size_t)s];
        }
        json_object_set_new(split, "classes", classes);
        json_object_set_new(split, "no_class", json_integer((json_int_t)o->counts[i * o->width + m->class_count]));
        for (int s = 0; s < CMD_SIZES; s++)
            json_object_set_new(split, size_words[s], json_integer((json_int_t)sizes[s]));
        json_object_set_new(doc, m->splits[i].name, split);
    }
    return doc;
}

/* ---- for people -------------------------------------------------------------------------------------------------- */

/* Sums for one class, over the splits. */
static void sum(const mr_manifest *m, const cmd_objects *o, size_t class, uint64_t *count, uint64_t sizes[CMD_SIZES])
{
    *count = 0;
    for (int s = 0; s < CMD_SIZES; s++)
        sizes[s] = 0;
    for (size_t i = 0; i < m->split_count; i++) {
        size_t at = i * o->width + class;
        *count += o->counts[at];
        for (int s = 0; s < CMD_SIZES; s++)
            sizes[s] += o->sizes[at * CMD_SIZES + (size_t)s];
    }
}

static mr_status print_classes(const mr_manifest *m, const cmd_objects *o, mr_error *err)
{
    mr_table *t = mr_table_new(5);
    char cells[4][32];
    mr_table_row(t, "class", ">objects", ">small", ">medium", ">large");
    for (size_t k = 0; k < o->width; k++) {
        MR_AUTO(mr_buf_free) mr_buf name = {0};
        uint64_t count, sizes[CMD_SIZES];
        sum(m, o, k, &count, sizes);
        if (k == m->class_count && !count)
            continue;
        if (k < m->class_count)
            mr_text_show(&name, m->classes[k].name, strlen(m->classes[k].name));
        else
            mr_buf_add_text(&name, "(no class)");
        mr_table_row(t, mr_buf_text(&name), mr_text_count(count, cells[0]), mr_text_count(sizes[0], cells[1]),
                     mr_text_count(sizes[1], cells[2]), mr_text_count(sizes[2], cells[3]));
    }
    return mr_table_print(t, stdout, err);
}

static mr_status print_splits(const mr_manifest *m, const cmd_objects *o, mr_error *err)
{
    mr_table *t = mr_table_new(7);
    char cells[6][32];
    mr_table_row(t, "split", ">images", ">without objects", ">objects", ">outside the image", ">empty", ">repeated");
    for (size_t i = 0; i < m->split_count; i++) {
        const mr_object_tally *tally = &o->tallies[i];
        mr_table_row(t, m->splits[i].name, mr_text_count(tally->pictures, cells[0]),
                     mr_text_count(tally->without, cells[1]), mr_text_count(tally->objects, cells[2]),
                     mr_text_count(tally->odd[MR_OBJECT_LEAVES].objects, cells[3]),
                     mr_text_count(tally->odd[MR_OBJECT_EMPTY].objects, cells[4]),
                     mr_text_count(tally->odd[MR_OBJECT_REPEATED].objects, cells[5]));
    }
    return mr_table_print(t, stdout, err);
}

mr_status mr_cmd_objects_print(const mr_manifest *m, const cmd_objects *o, mr_error *err)
{
    uint64_t pictures = 0;
    for (size_t i = 0; i < m->split_count; i++)
        pictures += o->tallies[i].pictures;
    printf("\n");
    if (!pictures) {
        printf("  no meta has \"objects\"\n");
        return MR_OK;
    }
    MR_TRY(print_splits(m, o, err));
    printf("\n");
    MR_TRY(print_classes(m, o, err));
    printf("  sizes: a small box has less than 32 x 32 pixels, a medium one less than 96 x 96\n");
    return MR_OK;
}
