/* test_boxes.c - tables with a row for each box: TensorFlow's, RetinaNet's, Open Images', bbox, and what is refused.
 * Invariant tested: a picture has the objects of all its rows, in pixels, and a value is never taken for another. */
#include <string.h>

#include "tests/support/sources/objects.h"

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

static char *dir;
static support_plan planned;

static int set_up(void **state)
{
    (void)state;
    dir = support_tmpdir();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    support_tmpdir_remove(dir);
    return 0;
}

static void pictures(const char *const *names)
{
    for (; *names; names++)
        support_put(dir, *names, "");
}

static void plan_now(void)
{
    planned = support_plan_ok(&mr_layout_table, dir, NULL);
}

static void refused(const char *words)
{
    support_plan_fails(&mr_layout_table, dir, NULL, MR_BAD_DATA, words);
}

static void test_tensorflow(void **state)
{
    (void)state;
    pictures(NAMES("i/1.jpg", "i/2.jpg", "i/3.jpg"));
    support_put(dir, "a.csv",
                "filename,width,height,class,xmin,ymin,xmax,ymax\n1.jpg,64,48,dog,0,2,8,40\n"
                "2.jpg,64,48,ant,1.5,2,8.25,40\n1.jpg,64,48,ant,10,2,18,40\n3.jpg,64,48,,,,,\n");
    plan_now();
    support_assert_objects(&planned, 0, 64, 48,
                           "[{\"label\":1,\"class\":\"dog\",\"box\":[0,2,8,38]},"
                           "{\"label\":0,\"class\":\"ant\",\"box\":[10,2,8,38]}]");
    support_assert_objects(&planned, 1, 64, 48, "[{\"label\":0,\"class\":\"ant\",\"box\":[1.5,2,6.75,38]}]");
    support_assert_objects(&planned, 2, 64, 48, "[]");
    for (size_t i = 0; i < 3; i++)
        assert_true(planned.plan.samples[i].label == -1 && !planned.plan.samples[i].flags);
    support_plan_done(&planned);
}

/* As Roboflow has them: in the folder of each split. */
static void test_split_folders(void **state)
{
    (void)state;
    pictures(NAMES("train/1.jpg", "valid/1.jpg"));
    support_put(dir, "train/_annotations.csv",
                "filename,width,height,class,xmin,ymin,xmax,ymax\n1.jpg,64,48,dog,0,2,8,40\n");
    support_put(dir, "valid/_annotations.csv",
                "filename,width,height,class,xmin,ymin,xmax,ymax\n1.jpg,64,48,ant,0,2,8,40\n");
    plan_now();
    support_assert_objects(&planned, 0, 64, 48, "[{\"label\":1,\"class\":\"dog\",\"box\":[0,2,8,38]}]");
    support_assert_objects(&planned, 1, 64, 48, "[{\"label\":0,\"class\":\"ant\",\"box\":[0,2,8,38]}]");
    assert_string_equal(planned.plan.splits[planned.plan.samples[1].split].name, "val");
    support_plan_done(&planned);
}

static void test_retinanet(void **state)
{
    (void)state;
    pictures(NAMES("i/1.jpg", "i/2.jpg"));
    support_put(dir, "a.csv", "i/1.jpg,8,8,20,20,cow\ni/1.jpg,1,2,3,4,cat\ni/2.jpg,,,,,\n");
    plan_now();
    support_assert_objects(&planned, 0, 64, 48,
                           "[{\"label\":1,\"class\":\"cow\",\"box\":[8,8,12,12]},"
                           "{\"label\":0,\"class\":\"cat\",\"box\":[1,2,2,2]}]");
    support_assert_objects(&planned, 1, 64, 48, "[]");
    support_plan_done(&planned);
}

static void test_open_images(void **state)
{
    (void)state;
    pictures(NAMES("train/0a.jpg", "train/0b.jpg"));
    support_put(dir, "train-boxes.csv",
                "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsGroupOf\n"
                "0a,x,/m/01,1,0.25,0.5,0.1,1,0\n0a,x,/m/02,1,0,1,0,1,1\n0b,x,/m/01,1,0,0.5,0,0.5,0\n");
    plan_now();
    support_assert_objects(&planned, 0, 80, 40,
                           "[{\"label\":0,\"class\":\"/m/01\",\"box\":[20,4,20,36]},"
                           "{\"label\":1,\"class\":\"/m/02\",\"box\":[0,0,80,40],\"crowd\":true}]");
    support_plan_done(&planned);
}

static void test_other_forms(void **state)
{
    (void)state;
    static const char *const tables[] = {
        "image_id,width,height,bbox,source\n1,64,48,\"[8.0, 4, 10, 20]\",u\n2,64,48,\"[0, 0, 64, 48]\",u\n",
        "image,x,y,w,h\n1,8,4,10,20\n2,0,0,64,48\n",
        "image,x,y,width,height\n1,8,4,10,20\n2,0,0,64,48\n",
        "image,cx,cy,w,h\n1,13,14,10,20\n2,32,24,64,48\n",
        "image,x0,y0,x1,y1\n1,8,4,18,24\n2,0,0,64,48\n",
        "image_id,x_1,y_1,width,height\n1,8,4,10,20\n2,0,0,64,48\n", /* CelebA */
        "image,left,top,right,bottom\n1,8,4,18,24\n2,0,0,64,48\n",
        "image,x_center,y_center,w,h\n1,0.203125,0.2916666667,0.15625,0.4166666667\n2,0.5,0.5,1,1\n",
    };
    pictures(NAMES("i/1.jpg", "i/2.jpg"));
    for (size_t i = 0; i < MR_COUNT(tables); i++) {
        support_put(dir, "a.csv", tables[i]);
        plan_now();
        support_assert_objects(&planned, 0, 64, 48, "[{\"box\":[8,4,10,20]}]");
        support_plan_done(&planned);
    }
}

/* RSNA: no box where the label says that there is nothing to see. */
static void test_rows_without_a_box(void **state)
{
    (void)state;
    pictures(NAMES("i/1.jpg", "i/2.jpg"));
    support_put(dir, "a.csv", "image_id,x,y,width,height,Target\n1,8,4,10,20,1\n1,30,4,10,20,1\n2,NaN,NaN,NaN,NaN,0\n");
    plan_now();
    support_assert_objects(
        &planned, 0, 64, 48,
        "[{\"label\":1,\"class\":\"1\",\"box\":[8,4,10,20]},{\"label\":1,\"class\":\"1\",\"box\":[30,"
        "4,10,20]}]");
    support_assert_objects(&planned, 1, 64, 48, "[]");
    support_plan_done(&planned);
}

#define VIA "filename,file_size,file_attributes,region_count,region_id,region_shape_attributes,region_attributes\n"

static void test_via(void **state)
{
    (void)state;
    pictures(NAMES("1.jpg", "2.jpg", "3.jpg"));
    support_put(
        dir, "via.csv",
        VIA
        "1.jpg,5,\"{}\",2,0,\"{\"\"name\"\":\"\"rect\"\",\"\"x\"\":1,\"\"y\"\":2,\"\"width\"\":3,\"\"height\"\":4}\","
        "\"{\"\"class\"\":\"\"dog\"\",\"\"n\"\":\"\"x\"\"}\"\n"
        "1.jpg,5,\"{}\",2,1,\"{\"\"name\"\":\"\"polygon\"\",\"\"all_points_x\"\":[1,5,3],\"\"all_points_y\"\":[1,1,4]}"
        "\","
        "\"{\"\"kind\"\":{\"\"ant\"\":true,\"\"dog\"\":false}}\"\n"
        "2.jpg,5,\"{}\",0,0,\"{}\",\"{}\"\n"
        "3.jpg,5,\"{}\",1,0,\"{\"\"name\"\":\"\"circle\"\",\"\"cx\"\":1,\"\"cy\"\":2,\"\"r\"\":3}\",\"{}\"\n");
    plan_now();
    support_assert_objects(
        &planned, 0, 64, 48,
        "[{\"label\":1,\"class\":\"dog\",\"box\":[1,2,3,4]},{\"label\":0,\"class\":\"ant\",\"box\":[1,1,"
        "4,3],\"polygons\":[[1,1,5,1,3,4]]}]");
    support_assert_objects(&planned, 1, 64, 48, "[]");
    assert_int_equal(planned.plan.sample_count, 2);
    assert_true(support_has_note(&planned, MR_NOTE_REJECT, "3.jpg",
                                 "via.csv: row 4: its shape is neither a rectangle nor a polygon"));
    support_plan_done(&planned);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *table, *words;
    } trials[] = {
        {"image,width,height,bbox\n1,64,48,\"[8,4,60,40]\"\n2,64,48,\"[0,0,64,48]\"\n1,64,48,\"[9,9,60,40]\"\n",
         "2 of 3 boxes in column bbox leave their images; write corners into four columns"},
        {"image,bbox,label\n1,8 4,a\n2,x,a\n", "column bbox holds no box of the form [x, y, width, height]"},
        {"image,polygon,label\n1,\"[[1,2],[3,4],[5,6]]\",a\n", "column polygon holds shapes"},
        {"image,x1,y1,x2,y2,x3,y3,x4,y4,label\n1,5,6,50,7,51,40,6,41,a\n", "column x3 holds shapes"},
        {"image,x0,y0,x1,y1,x2,y2,label\n1,5,6,50,7,51,40,a\n", "column x2 holds shapes"},
        {"image,cx,cy,w,h,angle,label\n1,5,6,50,7,0,a\n2,5,6,50,7,0.5,a\n", "column angle holds shapes"},
    };
    pictures(NAMES("i/1.jpg", "i/2.jpg", "i/3.jpg"));
    support_put(dir, "a.csv", "image,x1,y1,x2,y2,class\n3,0,0,9,9,a\n1,8,4,10,20,a\n2,8,4,nan,20,a\n1,0,0,1e999,1,a\n");
    plan_now();
    assert_int_equal(support_notes(&planned, MR_NOTE_REJECT), 2);
    assert_true(support_has_note(&planned, MR_NOTE_REJECT, "i/2.jpg", "a.csv: row 3: its box is not four numbers"));
    assert_true(support_has_note(&planned, MR_NOTE_REJECT, "i/1.jpg", "a.csv: row 4: its box is not four numbers"));
    assert_int_equal(planned.plan.sample_count, 1);
    support_plan_done(&planned);
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        support_put(dir, "a.csv", trials[i].table);
        refused(trials[i].words);
    }
    support_put(dir, "a.csv", "image,xmin,ymin,xmax,ymax,rotation\n1,5,6,50,7,90\n2,5,6,50,7,0\n");
    plan_now(); /* of a camera */
    support_plan_done(&planned);
    support_put(dir, "a.csv", "image,cx,cy,w,h,angle,label\n1,5,6,50,7,0,a\n2,5,6,50,7,0.0,a\n");
    plan_now();
    assert_int_equal(planned.plan.sample_count, 2);
    support_plan_done(&planned);
    support_put(dir, "a.csv", "img,rle_mask\n1.jpg,1 3\n2.jpg,1 3\n");
    refused("column rle_mask holds shapes");
    support_put(dir, "a.csv", "ImageId,EncodedPixels,ClassId\n1,1 3,2\n2,1 3,2\n");
    refused("column EncodedPixels holds shapes");
    planned = support_plan_ok(&mr_layout_table, dir, &(mr_layout_options){.label_column = "ClassId"});
    assert_string_equal(planned.plan.classes[planned.plan.samples[0].label].name, "2");
    support_plan_done(&planned);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_tensorflow),  TEST(test_split_folders),  TEST(test_retinanet),
                                       TEST(test_open_images), TEST(test_other_forms),    TEST(test_rows_without_a_box),
                                       TEST(test_via),         TEST(test_what_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
