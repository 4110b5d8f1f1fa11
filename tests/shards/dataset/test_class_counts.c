/* test_class_counts.c - labels counted by the indexes.
 * Invariant tested: each sample is counted once, in its class or in one of the columns after the classes. */
#include <stdlib.h>
#include <string.h>

#include "shards/dataset/class_counts.h"
#include "tests/support/shards/dataset_maker.h"

static void make(const char *dir)
{
    picture p = make_png(5, 5, 2, 8, false);
    const made train[5] = {{"0.png", p, ",\"label\":2", false, 0},
                           {"1.png", p, ",\"label\":2", true, 0},
                           {"2.png", p, NULL, true, 0},
                           {"3.png", p, ",\"labels\":[0,1]", false, 0},
                           {"4.png", p, ",\"label\":3", false, 0}};
    const made val[1] = {{"5.png", p, ",\"label\":0", false, 0}};
    const made_split splits[2] = {{"train", train, 5, 3}, {"val", val, 1, 1}};
    dataset_make(dir, splits, 2);
    picture_free(&p);
}

static void every_sample_is_counted(void **state)
{
    static const uint64_t expected[2][6] = {{0, 0, 2, 1, 1, 1}, {1, 0, 0, 0, 0, 0}};
    const char *dir = *state;
    mr_class_counts c = {0};
    mr_dataset *ds = NULL;
    make(dir);
    assert_int_equal(mr_dataset_open(dir, &ds, NULL), MR_OK);
    assert_int_equal(mr_class_counts_read(ds, &c, NULL), MR_OK);
    assert_int_equal(c.width, 3 + MR_NOT_CLASSES);
    assert_memory_equal(c.counts, expected, sizeof expected);
    free(c.counts);
    mr_dataset_free(ds);
}

static void a_damaged_index_is_refused(void **state)
{
    const char *dir = *state;
    char *idx = support_path("%s/val-00000.idx", dir);
    mr_class_counts c = {0};
    mr_dataset *ds = NULL;
    mr_error err;
    make(dir);
    assert_int_equal(mr_dataset_open(dir, &ds, NULL), MR_OK);
    support_write(idx, "MRINDEX1", 8);
    assert_int_equal(mr_class_counts_read(ds, &c, &err), MR_BAD_DATA);
    assert_non_null(strstr(err.text, "val-00000.idx"));
    free(c.counts);
    mr_dataset_free(ds);
    free(idx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {IN_TMPDIR(every_sample_is_counted), IN_TMPDIR(a_damaged_index_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
