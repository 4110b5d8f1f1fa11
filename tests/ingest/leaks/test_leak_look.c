/* test_leak_look.c - which files of one name show the same picture.
 * Invariant tested: the result does not depend on the number of threads and ranks. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/sources/leak.h"

static void test_one_name_and_pictures_that_look_alike(void **state)
{
    (void)state;
    static const alike_edit edits[] = {
        {.mirror = true}, {.gain = 0.7}, {.degrees = 7, .cut = 2}, {.quarters = 1}, {.zoom = 0.1},
    };
    mr_buf leaks = {0};
    for (unsigned i = 0; i < MR_COUNT(edits); i++) {
        char *original = support_path("train/daisy/p%u_jpg.rf.0.jpg", i);
        char *copy = support_path("valid/daisy/p%u_jpg.rf.1.jpg", i);
        leak_put(original, 10 + i, (alike_edit){0}, i % 2 ? ALIKE_JPEG : ALIKE_PNG);
        leak_put(copy, 10 + i, edits[i], i % 3 ? ALIKE_JPEG : ALIKE_WEBP);
        mr_buf_printf(&leaks, "%s: " LEAK_COPY "%s\n", copy, original);
        free(original);
        free(copy);
    }
    leak_expect(mr_buf_text(&leaks), "", 0, 1);
    mr_buf_free(&leaks);
}

static void test_pictures_that_tell_nothing(void **state)
{
    (void)state;
    mr_picture photo = alike_photo(1, 240, 180), red = alike_tone(200, 20, 20), dark = alike_tone(190, 20, 20);
    picture whole = alike_file(&photo, ALIKE_JPEG), broken = picture_copy(whole.bytes, whole.len);
    memset(broken.bytes + broken.len / 2, 0x55, broken.len / 2 - 2); /* the header and the end are in order */
    leak_put_bytes("train/daisy/a_jpg.rf.01.jpg", whole);
    leak_put_bytes("valid/daisy/a_jpg.rf.02.jpg", broken);
    leak_put_bytes("train/daisy/b_jpg.rf.01.jpg", alike_file(&red, ALIKE_PNG));
    leak_put_bytes("valid/daisy/b_jpg.rf.02.jpg", alike_file(&dark, ALIKE_JPEG));
    leak_expect("",
                "valid/daisy/a_jpg.rf.02.jpg: same name, but one image cannot be decoded, in train and val: also "
                "train/daisy/a_jpg.rf.01.jpg\n"
                "valid/daisy/b_jpg.rf.02.jpg: same name, but one image has a uniform colour, in train and val: also "
                "train/daisy/b_jpg.rf.01.jpg\n",
                0, 0);
    mr_picture_free(&photo);
    mr_picture_free(&red);
    mr_picture_free(&dark);
}

/* More pictures under one name than are told apart. */
static void test_too_many_pictures_of_one_name(void **state)
{
    (void)state;
    enum { PICTURES = 18 };
    for (unsigned i = 0; i < PICTURES; i++) {
        char *name = support_path("train/daisy/image.rf.%04u.jpg", i);
        leak_put(name, 200 + i, (alike_edit){0}, ALIKE_JPEG);
        free(name);
    }
    leak_put("valid/daisy/image.rf.8888.jpg", 200 + PICTURES, (alike_edit){0}, ALIKE_JPEG);
    leak_expect(
        "",
        "valid/daisy/image.rf.8888.jpg: same name (19 files have it, too many to compare them all), in train and val: "
        "also train/daisy/image.rf.0000.jpg\n",
        0, 0);
}

/* ---- threads and ranks ------------------------------------------------------------------------------------------- */

static void draw_many(void)
{
    for (unsigned i = 0; i < 12; i++)
        for (unsigned k = 0; k < 4; k++) {
            char *name =
                support_path("%s/%s/p%u_jpg.rf.%u.jpg", k == 3 ? "valid" : "train", i % 3 ? "rose" : "daisy", i, k);
            leak_put(name, 50 + i + (i % 4 == 3 && k == 3 ? 100 : 0), (alike_edit){.mirror = k & 1, .degrees = 3 * k},
                     ALIKE_JPEG);
            free(name);
        }
}

static char *report_of(const char *target)
{
    char *path = support_path("%s/report.json", target);
    char *text = (char *)support_read(path, NULL);
    free(path);
    return text;
}

/* The report and every byte of the dataset are those of one thread. */
static void test_jobs_and_ranks_agree(void **state)
{
    (void)state;
    draw_many();
    char *one = support_path("%s/one", leak_dir), *four = support_path("%s/four", leak_dir),
         *ranks = support_path("%s/ranks", leak_dir);
    support_expect(0, "ingest", leak_source, one, "--jobs=1", "--quiet", (char *)NULL);
    support_expect(0, "ingest", leak_source, four, "--jobs=4", "--quiet", (char *)NULL);
    char *report = report_of(one), *other = report_of(four);
    assert_string_equal(report, other);
    assert_int_equal(support_occurrences(report, "copies of one image"), 9);
    assert_int_equal(support_occurrences(report, "same name, but different images"), 3);
    free(other);
    const char *argv[] = {support_millrace_path(), "ingest", leak_source, ranks, "--quiet", NULL};
    support_result r = support_mpirun(3, argv);
    support_assert_status(&r, 0);
    support_result_free(&r);
    other = report_of(ranks);
    assert_string_equal(report, other);
    assert_true(support_dataset_hash(one) == support_dataset_hash(ranks));
    free(other);
    free(report);
    free(one);
    free(four);
    free(ranks);
}

static void test_ranks_end_together(void **state)
{
    (void)state;
    draw_many();
    char *target = support_path("%s/never", leak_dir);
    const char *argv[] = {support_millrace_path(), "ingest", leak_source, target, "--quiet",
                          "--fail-on-leak=alike",  NULL};
    support_result r = support_mpirun(2, argv);
    support_assert_status(&r, 1);
    assert_false(support_exists(target));
    support_result_free(&r);
    free(target);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, leak_set_up, leak_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_one_name_and_pictures_that_look_alike),
        TEST(test_pictures_that_tell_nothing),
        TEST(test_too_many_pictures_of_one_name),
        TEST(test_jobs_and_ranks_agree),
        TEST(test_ranks_end_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
