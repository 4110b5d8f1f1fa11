/* test_shape.c - polygons, oriented boxes and keypoints without kpt_shape.
 * Invariant tested: keypoints are never taken for polygons, and sets of polygons and oriented boxes are not refused. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "tests/support/sources/objects.h"
#include "ingest/layout/yolo/shape.h"

#define YOLO &mr_layout_yolo

enum { ROUNDS = 200, NUMBERS = 64 };

static double unit(mr_random *r)
{
    return (double)mr_random_below(r, 1000001) / 1e6;
}

/* A box in the picture, and points in it; some lie just outside, and some are not labelled. */
static size_t draw_pose(mr_random *r, size_t points, unsigned dims, double *n)
{
    double width = 0.05 + unit(r) * 0.6, height = 0.05 + unit(r) * 0.6;
    double left = unit(r) * (1 - width), top = unit(r) * (1 - height);
    size_t count = 4;
    memcpy(n, (double[]){left + width / 2, top + height / 2, width, height}, 4 * sizeof *n);
    for (size_t i = 0; i < points; i++) {
        bool seen = mr_random_below(r, 5) > 0;
        n[count++] = seen ? left + (unit(r) * 1.04 - 0.02) * width : 0;
        n[count++] = seen ? top + (unit(r) * 1.04 - 0.02) * height : 0;
        if (dims == 3)
            n[count++] = seen ? 1 + (double)mr_random_below(r, 2) : 0;
    }
    return count;
}

static void keypoints_are_seen(void **state)
{
    (void)state;
    mr_random random = support_random();
    for (int round = 0; round < ROUNDS; round++) {
        mr_yolo_shape s = {0};
        double n[NUMBERS];
        unsigned dims = 2 + (unsigned)mr_random_below(&random, 2), found = 0;
        size_t points = 3 + 2 * mr_random_below(&random, 8) + (dims == 3), keypoints = 0;
        for (uint64_t line = 1, lines = 1 + mr_random_below(&random, 30); line <= lines; line++) {
            size_t count = draw_pose(&random, points, dims, n);
            mr_yolo_shape_add(&s, n, count, 0, line);
        }
        if (!mr_yolo_shape_is_pose(&s, &keypoints, &found) || keypoints != points || found != dims)
            fail_msg("%zu points of %u numbers: %zu of %u", points, dims, keypoints, found);
    }
}

/* Polygons of `corners` around a middle anywhere in the picture, of any size; 0: of any number. */
static bool polygons_are_pose(mr_random *r, size_t corners, double most, int lines)
{
    mr_yolo_shape s = {0};
    double n[NUMBERS];
    size_t keypoints;
    unsigned dims;
    for (int line = 1; line <= lines; line++) {
        size_t count = corners ? corners : 3 + mr_random_below(r, 20);
        double size = 0.005 + unit(r) * most, x = size + unit(r) * (1 - 2 * size), y = size + unit(r) * (1 - 2 * size);
        double turn = unit(r) * 6.28, flat = 0.3 + unit(r) * 0.7;
        for (size_t i = 0; i < count; i++) {
            double angle = turn + 6.283185307 * (double)i / (double)count;
            n[2 * i] = x + size * cos(angle);
            n[2 * i + 1] = y + size * flat * sin(angle);
        }
        mr_yolo_shape_add(&s, n, 2 * count, 0, (uint64_t)line);
    }
    return mr_yolo_shape_is_pose(&s, &keypoints, &dims);
}

static void polygons_are_not(void **state)
{
    (void)state;
    mr_random random = support_random();
    for (int round = 0; round < ROUNDS; round++) {
        assert_false(polygons_are_pose(&random, 0, 0.3, 10));
        assert_false(polygons_are_pose(&random, 4, 0.02, 1)); /* oriented boxes in a picture from the air */
        assert_false(polygons_are_pose(&random, 4, 0.4, 5));
        assert_false(polygons_are_pose(&random, 12, 0.2, 40)); /* every outline of twelve points */
    }
}

static void put_tree(const char *dir, const char *line)
{
    char *text = support_path("0 %s\n", line);
    support_put(dir, "images/a.jpg", "");
    support_put(dir, "labels/a.txt", text);
    free(text);
}

#define BODY ".5 .5 .5 .5 .4 .4 .6 .4 .5 .6 .45 .55"

/* Each advice of the message, as it is written. */
static void advice_works(void **state)
{
    (void)state;
    static const struct {
        const char *line, *words, *yaml, *variant;
    } trials[] = {
        {BODY, "line 1: 12 numbers after the class, as in every such line: a box with 4 keypoints in it",
         "kpt_shape: [4, 2]\n", "pose"},
        {BODY, "\"task: segment\"", "task: segment\n", "segmentation"},
        {"0.5 0.5 0.4 0.4 0.6 0.35 0.4 0.6", "\"task: obb\"", "task: obb\n", "oriented boxes"},
        {".5 .5 .5 .5 .4 .4 2 .6 .4 1", "2 keypoints in it", "names: [cat]\nkpt_shape: [2, 3]\n", "pose"},
    };
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        char *dir = support_tmpdir();
        put_tree(dir, trials[i].line);
        support_plan_fails(YOLO, dir, NULL, MR_BAD_DATA, trials[i].words);
        support_put(dir, "data.yaml", trials[i].yaml);
        support_plan p = support_plan_ok(YOLO, dir, NULL);
        assert_string_equal(p.plan.variant, trials[i].variant);
        assert_int_equal(p.plan.sample_count, 1);
        support_plan_done(&p);
        support_tmpdir_remove(dir);
    }
}

static void odd_counts_name_kpt_shape(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    put_tree(dir, ".5 .5 .5 .5 .4 .4 2 .6 .4 1 .5 .5 2");
    support_plan p = support_plan_ok(YOLO, dir, NULL);
    assert_true(support_has_note(&p, MR_NOTE_REJECT, "images/a.jpg", "13 numbers after the class"));
    assert_true(support_has_note(&p, MR_NOTE_REJECT, "images/a.jpg", "keypoints need kpt_shape in data.yaml"));
    support_plan_done(&p);
    support_put(dir, "data.yaml", "task: pose\n");
    support_plan_fails(YOLO, dir, NULL, MR_BAD_DATA, "data.yaml: line 1: task: pose needs kpt_shape");
    support_tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keypoints_are_seen),
        cmocka_unit_test(polygons_are_not),
        cmocka_unit_test(advice_works),
        cmocka_unit_test(odd_counts_name_kpt_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
