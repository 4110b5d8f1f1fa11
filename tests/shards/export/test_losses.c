/* test_losses.c - what each format says that it did not keep.
 * Covers export/losses.c, export/parts.c, export/facts.c, export/row.c, formats/imagefolder.c.
 * Invariant tested: a part of the dataset is in the format, or counted in --json and in the summary. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "shards/export/export.h"
#include "tests/support/shards/dataset_maker.h"

#define BOX "\"label\":1,\"class\":\"bee\",\"box\":[1,1,4,4]"

/* One of everything: train 0 to 5, val 0. */
static void make(const char *dir)
{
    picture p[7];
    for (unsigned i = 0; i < MR_COUNT(p); i++)
        p[i] = make_png(8 + i, 8, 2, 8, false);
    const made train[6] = {
        {"a.png", p[0], ",\"label\":0,\"class\":\"ant\",\"columns\":{\"when\":\"noon\"}", false, 0},
        {"A.png", p[1], ",\"labels\":[0,1],\"captions\":[\"one\",\"two\"]", false, 0},
        {"b.png", p[2],
         ",\"objects\":[{" BOX "},{" BOX ",\"crowd\":true},{\"box\":[0,0,2,2]},{\"label\":0,\"class\":\"ant\"}]", false,
         0},
        {"c.png", p[3],
         ",\"objects\":[{" BOX ",\"polygons\":[[1,1,5,1,5,5]],\"id\":7},{" BOX
         ",\"polygons\":[[1,1,5,1,5,5],[1,1,5,5,1,5]],\"id\":7}]",
         false, 0},
        {"d.png", p[4], ",\"objects\":[{" BOX ",\"oriented_box\":[1,1,5,1,5,5,1,5]}]", false, 0},
        {"e.png", p[5], ",\"objects\":[{\"label\":1,\"class\":\"bee\",\"box\":[-1,1,5,4],\"keypoints\":[[2,2,2]]}]",
         false, 0}};
    const made val[1] = {{"a.png", p[6], NULL, false, 0}};
    const made_split splits[2] = {{"train", train, 6, 6}, {"val", val, 1, 1}};
    mkdir(dir, 0777);
    dataset_make(dir, splits, 2);
    for (unsigned i = 0; i < MR_COUNT(p); i++)
        picture_free(&p[i]);
}

/* "labels 1, captions 2", with what is there instead: "names 1 (...)". */
static char *losses_of(const char *ds, const char *out, const char *format, const char *task)
{
    support_result r = support_millrace("export", ds, out, "--to", format, "--json", "--task", task, (char *)NULL);
    support_assert_status(&r, 0);
    json_error_t why;
    json_t *doc = json_loads(r.out, 0, &why), *item;
    const char *key;
    char *text = support_path("%s", "");
    assert_non_null(doc);
    json_object_foreach(json_object_get(doc, "not_kept"), key, item)
    {
        const char *instead = json_string_value(json_object_get(item, "instead"));
        char *more = support_path("%s%s%s %d%s%s", text, *text ? "; " : "", key,
                                  (int)json_integer_value(json_object_get(item, "count")), instead ? ": " : "",
                                  instead ? instead : "");
        free(text);
        text = more;
    }
    json_decref(doc);
    support_result_free(&r);
    return text;
}

static void each_format_counts_what_it_loses(void **state)
{
    static const struct {
        const char *format, *task, *losses;
    } rows[] = {
        {"imagenette", "auto",
         "unlabelled 5: in the folder of their split; several_labels 1: in the folder of their split; captions 2; "
         "columns 1; objects 8"},
        {"imagefolder", "auto", "ids 2; empty_classes 1"},
        {"coco", "auto",
         "labels 1; several_labels 1; columns 1; objects_without_class 1; objects_without_box 1; oriented_boxes 1: "
         "polygons of four points; ids 2: numbered from 1; names 1: changed"},
        {"yolo", "detect",
         "labels 1; several_labels 1; captions 2; columns 1; objects_without_class 1; objects_without_box 1; polygons "
         "2: boxes; oriented_boxes 1: boxes; keypoints 1: boxes; crowds 1; ids 2; outside 1: cut at its edge; names 1: "
         "changed"},
        {"yolo", "auto",
         "labels 1; several_labels 1; captions 2; columns 1; objects_without_class 1; objects_without_box 1; boxes 1: "
         "polygons of four points; several_polygons 1: joined into one; oriented_boxes 1: polygons of four points; "
         "keypoints 1: polygons; crowds 1; ids 2; outside 1: cut at its edge; names 1: changed"},
        {"voc", "auto",
         "labels 1; several_labels 1; captions 2; columns 1; objects_without_class 1; objects_without_box 1; "
         "several_polygons 1: joined into one; oriented_boxes 1: upright boxes; keypoints 1: boxes; crowds 1: marked "
         "as "
         "difficult; ids 2; empty_classes 1; names 2: changed"},
    };
    char *ds = support_path("%s/ds", (char *)*state);
    make(ds);
    for (size_t i = 0; i < MR_COUNT(rows); i++) {
        char *out = support_path("%s/%zu", (char *)*state, i);
        char *losses = losses_of(ds, out, rows[i].format, rows[i].task);
        if (strcmp(losses, rows[i].losses) != 0)
            fail_msg("%s: %s\nexpected: %s", rows[i].format, losses, rows[i].losses);
        free(losses);
        free(out);
    }
    free(ds);
}

static void the_summary_is_a_table(void **state)
{
    char *ds = support_path("%s/ds", (char *)*state), *out = support_path("%s/out", (char *)*state);
    make(ds);
    support_result r = support_millrace("export", ds, out, "--to", "yolo", "--task", "obb", (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, "task obb (--task): of 8 objects, 2 have polygons, 1 oriented boxes, 1 keypoints\n"));
    assert_non_null(strstr(r.out, "not kept by yolo"));
    assert_non_null(strstr(r.out, "sample captions                                  2  left out         train 1\n"));
    assert_non_null(strstr(r.out, "objects with polygons                            2  oriented boxes   train 3\n"));
    support_result_free(&r);
    free(ds);
    free(out);
}

/* Readers differ in whether they turn a picture before they place its objects. */
static void objects_of_turned_pictures_are_counted(void **state)
{
    char *ds = support_path("%s/ds", (char *)*state), *out = support_path("%s/out", (char *)*state);
    picture exif = make_exif(true, 3, 1, 6), p = make_jpeg((jpeg_kind){9, 5, 3, .exif = &exif});
    const made sample = {"a.jpg", p, ",\"objects\":[{" BOX "}]", false, 0};
    const made_split split = {"train", &sample, 1, 1};
    mkdir(ds, 0777);
    dataset_make(ds, &split, 1);
    char *losses = losses_of(ds, out, "coco", "auto");
    assert_string_equal(losses, "turned 1: placed in the image as stored");
    picture_free(&exif);
    picture_free(&p);
    free(losses);
    free(out);
    free(ds);
}

static void metadata_of_imagefolder(void **state)
{
    char *ds = support_path("%s/ds", (char *)*state), *out = support_path("%s/out", (char *)*state);
    make(ds);
    support_expect(0, "export", ds, out, "--to", "imagefolder", "-q", (char *)NULL);
    char *path = support_path("%s/train/metadata.jsonl", out), *first = (char *)support_read(path, NULL), *next = first;
    static const char empty[] =
        "\"objects\":{\"bbox\":[],\"categories\":[],\"polygons\":[],\"oriented\":[],\"keypoints\":["
        "],\"crowd\":[]}}";
    char *line =
        support_path("{\"file_name\":\"ant/a.png\",\"label\":\"ant\",\"labels\":[\"ant\"],\"captions\":[],\"columns\":"
                     "\"{\\\"when\\\":\\\"noon\\\"}\",%s",
                     empty);
    assert_string_equal(strsep(&next, "\n"), line);
    free(line);
    line = support_path(
        "{\"file_name\":\"A.png\",\"label\":null,\"labels\":[\"ant\",\"bee\"],\"captions\":[\"one\",\"two\"],"
        "\"columns\":null,%s",
        empty);
    assert_string_equal(strsep(&next, "\n"), line);
    strsep(&next, "\n");
    assert_non_null(
        strstr(strsep(&next, "\n"),
               "\"objects\":{\"bbox\":[[1.0,1.0,4.0,4.0],[1.0,1.0,4.0,4.0]],\"categories\":[\"bee\",\"bee\"],"
               "\"polygons\":[[[1.0,1.0,5.0,1.0,5.0,5.0]],[[1.0,1.0,5.0,1.0,5.0,5.0],[1.0,1.0,5.0,5.0,1.0,"
               "5.0]]],\"oriented\":[[],[]],\"keypoints\":[[],[]],\"crowd\":[false,false]}}"));
    free(line);
    free(first);
    free(path);
    free(out);
    free(ds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {IN_TMPDIR(each_format_counts_what_it_loses), IN_TMPDIR(the_summary_is_a_table),
                                       IN_TMPDIR(metadata_of_imagefolder),
                                       IN_TMPDIR(objects_of_turned_pictures_are_counted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
