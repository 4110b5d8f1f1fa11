/* test_leak_names.c - files of one name in several splits: which are leaks, and what is reported of a group.
 * Invariant tested: each group is reported once, with one file of each of two splits. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/sources/leak.h"

static void test_one_name_and_other_pictures(void **state)
{
    (void)state;
    leak_put("train/daisy/a_jpg.rf.01.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    leak_put("valid/daisy/a_jpg.rf.02.jpg", 2, (alike_edit){0}, ALIKE_JPEG);
    leak_expect("",
                "valid/daisy/a_jpg.rf.02.jpg: same name, but different images, in train and val: also "
                "train/daisy/a_jpg.rf.01.jpg\n",
                0, 0);
}

/* Ingested with this option, or none, the summary says so. */
static void expect_verdict(const char *words, const char *option)
{
    support_result r = support_millrace("ingest", leak_source, "--dry-run", option, (char *)NULL);
    support_assert_status(&r, 0);
    if (!strstr(r.out, words))
        fail_msg("no \"%s\" in:\n%s", words, r.out);
    support_result_free(&r);
}

static void test_one_name_and_another_label(void **state)
{
    (void)state;
    leak_put("train/daisy/a_jpg.rf.01.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    leak_put("valid/rose/a_jpg.rf.02.jpg", 1, (alike_edit){.mirror = true}, ALIKE_JPEG);
    leak_put("train/daisy/b_jpg.rf.01.jpg", 2, (alike_edit){0}, ALIKE_JPEG);
    leak_put("valid/rose/b_jpg.rf.not-hex!.jpg", 3, (alike_edit){0}, ALIKE_JPEG);
    leak_expect(
        "",
        "valid/rose/a_jpg.rf.02.jpg: same name, and the images look alike, but different labels, in train and val: "
        "also train/daisy/a_jpg.rf.01.jpg\n"
        "valid/rose/b_jpg.rf.not-hex!.jpg: same name, but different labels and images, in train and val: also "
        "train/daisy/b_jpg.rf.01.jpg\n",
        0, 1);
}

/* A copy under another name is found where all pictures are compared; otherwise nothing is said about looks. */
static void test_copies_under_another_name(void **state)
{
    (void)state;
    leak_put("train/daisy/a_jpg.rf.01.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    leak_put("train/daisy/a_jpg.rf.02.jpg", 1, (alike_edit){.mirror = true}, ALIKE_JPEG);
    leak_put("train/daisy/b_jpg.rf.01.jpg", 1, (alike_edit){.gain = 0.8}, ALIKE_JPEG);
    leak_put("valid/daisy/c_jpg.rf.01.jpg", 2, (alike_edit){0}, ALIKE_JPEG);
    leak_put("valid/daisy/d_jpg.rf.01.jpg", 1, (alike_edit){.gain = 0.9}, ALIKE_JPEG);
    leak_expect("", "", 0, 1);
    expect_verdict("no images rejected, no leaks by equal bytes, near-duplicates not checked (--near-duplicates)\n",
                   NULL);
}

static void test_copies_within_a_split_are_none(void **state)
{
    (void)state;
    leak_put("train/daisy/a_jpg.rf.01.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    leak_put("train/daisy/a_jpg.rf.02.jpg", 1, (alike_edit){.mirror = true}, ALIKE_JPEG);
    leak_put("valid/daisy/c_jpg.rf.01.jpg", 2, (alike_edit){0}, ALIKE_JPEG);
    leak_expect("", "", 0, 0);
    expect_verdict("no images rejected, no leaks between splits\n", "--near-duplicates");
    expect_verdict("no images rejected\n", "--split-map=valid="); /* one split has nothing to share */
}

static void test_splits_that_become_one(void **state)
{
    (void)state;
    leak_put("train/daisy/a_jpg.rf.01.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    leak_put("valid/daisy/b_jpg.rf.01.jpg", 2, (alike_edit){0}, ALIKE_JPEG);
    leak_put("test/daisy/c_jpg.rf.01.jpg", 3, (alike_edit){0}, ALIKE_JPEG);
    leak_put("test/daisy/d_jpg.rf.01.jpg", 4, (alike_edit){0}, ALIKE_JPEG);
    expect_verdict(
        "  val: valid (1 sample) and test (2 samples) are stored as this one split, because of --split-map\n",
        "--split-map=test=val");
}

/* Two originals of one name: one line for each that leaks, and none for what differs between them. */
static void test_two_originals_of_one_name(void **state)
{
    (void)state;
    leak_put("train/daisy/a_jpg.rf.01.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    leak_put("train/daisy/a_jpg.rf.02.jpg", 2, (alike_edit){0}, ALIKE_JPEG);
    leak_put("train/daisy/a_jpg.rf.03.jpg", 1, (alike_edit){.gain = 0.8}, ALIKE_JPEG);
    leak_put("valid/daisy/a_jpg.rf.04.jpg", 2, (alike_edit){.mirror = true}, ALIKE_JPEG);
    leak_put("valid/daisy/a_jpg.rf.05.jpg", 1, (alike_edit){.degrees = 5}, ALIKE_JPEG);
    leak_put("test/daisy/a_jpg.rf.06.jpg", 3, (alike_edit){0}, ALIKE_JPEG);
    leak_expect("valid/daisy/a_jpg.rf.04.jpg: " LEAK_COPY "train/daisy/a_jpg.rf.02.jpg\n"
                "valid/daisy/a_jpg.rf.05.jpg: " LEAK_COPY "train/daisy/a_jpg.rf.01.jpg\n",
                "", 0, 1);
}

/* Equal bytes are said once; a copy beside them is another leak. */
static void test_equal_bytes_in_a_group(void **state)
{
    (void)state;
    leak_put("train/daisy/a_jpg.rf.01.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    leak_put("valid/daisy/a_jpg.rf.02.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    leak_put("train/daisy/b_jpg.rf.01.jpg", 2, (alike_edit){0}, ALIKE_JPEG);
    leak_put("train/daisy/b_jpg.rf.02.jpg", 2, (alike_edit){.mirror = true}, ALIKE_JPEG);
    leak_put("valid/daisy/b_jpg.rf.03.jpg", 2, (alike_edit){0}, ALIKE_JPEG);
    leak_expect("valid/daisy/a_jpg.rf.02.jpg: equal bytes, in train and val: also train/daisy/a_jpg.rf.01.jpg\n"
                "valid/daisy/b_jpg.rf.03.jpg: " LEAK_COPY "train/daisy/b_jpg.rf.02.jpg\n"
                "valid/daisy/b_jpg.rf.03.jpg: equal bytes, in train and val: also train/daisy/b_jpg.rf.01.jpg\n",
                "", 1, 1);
}

/* A leak with the same label is not hidden by a copy that has another. */
static void test_labels_in_a_group(void **state)
{
    (void)state;
    leak_put("train/rose/a_jpg.rf.01.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    leak_put("train/tulip/a_jpg.rf.02.jpg", 1, (alike_edit){.mirror = true}, ALIKE_JPEG);
    leak_put("valid/rose/a_jpg.rf.03.jpg", 1, (alike_edit){.gain = 0.8}, ALIKE_JPEG);
    leak_put("valid/daisy/b_jpg.rf.01.jpg", 2, (alike_edit){0}, ALIKE_JPEG);
    leak_expect("valid/rose/a_jpg.rf.03.jpg: " LEAK_COPY "train/rose/a_jpg.rf.01.jpg\n", "", 0, 1);
}

/* A name that hundreds of files share: a bound on what is compared, every split has its share, and it is said. */
static void test_too_many_of_one_name(void **state)
{
    (void)state;
    enum { FILES = 300 };
    mr_picture photo = alike_photo(1, 64, 48), again = alike_copy(&photo, (alike_edit){.gain = 0.8});
    for (unsigned i = 0; i < FILES; i++) {
        char *name = support_path("train/daisy/image.rf.%04u.jpg", i);
        mr_picture shade = alike_copy(&photo, (alike_edit){.offset = i % 40, .noise = 1 + i / 40});
        leak_put_bytes(name, alike_file(&shade, ALIKE_JPEG));
        mr_picture_free(&shade);
        free(name);
    }
    leak_put_bytes("valid/daisy/image.rf.9999.jpg", alike_file(&again, ALIKE_JPEG));
    leak_expect(
        "valid/daisy/image.rf.9999.jpg: " LEAK_COPY "train/daisy/image.rf.0000.jpg\n",
        "valid/daisy/image.rf.9999.jpg: same name (301 files have it, too many to compare them all), in train and "
        "val: also "
        "train/daisy/image.rf.0000.jpg\n",
        0, 1);
    mr_picture_free(&photo);
    mr_picture_free(&again);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, leak_set_up, leak_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_one_name_and_other_pictures), TEST(test_one_name_and_another_label),
        TEST(test_copies_under_another_name),   TEST(test_copies_within_a_split_are_none),
        TEST(test_splits_that_become_one),      TEST(test_two_originals_of_one_name),
        TEST(test_equal_bytes_in_a_group),      TEST(test_labels_in_a_group),
        TEST(test_too_many_of_one_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
