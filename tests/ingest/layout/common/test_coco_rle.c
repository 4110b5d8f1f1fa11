/* test_coco_rle.c - run-length masks: runs that fill the picture exactly are valid, as numbers and as a string, and
 * nothing else. The strings are those that pycocotools writes for masks of 3 x 4 and 7 x 9 pixels. */
#include <string.h>

#include "base/error.h"
#include "ingest/layout/common/coco_rle.h"
#include "tests/support/support.h"

static bool text_fits(const char *text, int64_t height, int64_t width)
{
    mr_coco_rle r = {0};
    mr_coco_rle_text(&r, text, strlen(text));
    mr_coco_rle_size(&r, height);
    mr_coco_rle_size(&r, width);
    return mr_coco_rle_fits(&r, 0, 0);
}

static void test_strings(void **state)
{
    (void)state;
    assert_true(text_fits("o1", 7, 9));
    assert_true(text_fits("0o1", 7, 9));
    assert_true(text_fits("11221NN", 3, 4));
    assert_false(text_fits("11221NN", 4, 4));
    assert_false(text_fits("11221N", 3, 4));
    static const char *const bad[] = {
        "", "o", "oooooooooooo1", "~", "/", "N", "o1 ", "\xFF", "0oooooooooo0oooooooooo0oooooooooo0"};
    for (size_t i = 0; i < MR_COUNT(bad); i++)
        if (text_fits(bad[i], 7, 9))
            fail_msg("%s", bad[i]);
}

static void test_runs(void **state)
{
    (void)state;
    static const struct {
        int64_t runs[3], size[3];
        uint32_t width, height;
        bool fits;
    } trials[] = {
        {{0, 10, 10}, {4, 5, -2}, 5, 4, true},
        {{0, 10, 10}, {4, 5, -2}, 0, 0, true},
        {{0, 10, 10}, {5, 4, -2}, 5, 4, false},
        {{0, 10, 11}, {4, 5, -2}, 5, 4, false},
        {{-1, 11, 10}, {4, 5, -2}, 5, 4, false},
        {{0, INT64_MAX, 10}, {4, 5, -2}, 5, 4, false},
        {{INT64_MAX, INT64_MAX, 22}, {4, 5, -2}, 5, 4, false},
        {{0, 10, 10}, {4, 5, 1}, 5, 4, false},
        {{0, 10, 10}, {20, -2, -2}, 0, 0, false},
        {{0, 10, 10}, {-4, -5, -2}, 0, 0, false},
        {{0, 0, 0}, {UINT32_MAX, (int64_t)UINT32_MAX + 1, -2}, 0, 0, false},
    };
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        mr_coco_rle r = {0};
        for (int k = 0; k < 3; k++)
            mr_coco_rle_run(&r, trials[i].runs[k]);
        for (int k = 0; k < 3 && trials[i].size[k] != -2; k++)
            mr_coco_rle_size(&r, trials[i].size[k]);
        if (mr_coco_rle_fits(&r, trials[i].width, trials[i].height) != trials[i].fits)
            fail_msg("trial %zu", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_strings), cmocka_unit_test(test_runs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
