/* test_targets.c - the classes of each sample, as labels, lists and objects state them.
 * Invariant tested: ascending and each once, the same for any number of threads; what the source does not say is told
 * from what it says is nothing. */
#include <stdlib.h>
#include <string.h>

#include "train/feed/targets.h"
#include "tests/support/shards/dataset_maker.h"
#include "tests/support/shards/loader.h"

static const struct {
    const char *more;
    int count;
    int32_t classes[3];
} cases[] = {
    {",\"label\":2", 1, {2}},
    {",\"labels\":[2,0]", 2, {0, 2}},
    {",\"labels\":[]", 0, {0}},
    {",\"objects\":[{\"label\":1,\"box\":[0,0,4,4]},{\"label\":0},{\"label\":1,\"box\":[2,2,4,4]}]", 2, {0, 1}},
    {",\"objects\":[{\"box\":[0,0,4,4]}]", 0, {0}},
    {",\"objects\":[]", 0, {0}},
    {",\"label\":1,\"objects\":[{\"label\":0}]", 1, {1}},
    {NULL, 0, {0}},
};
enum { CASES = sizeof cases / sizeof *cases, SAMPLES = 1200, PER_SHARD = 500 };

static void make(const char *dir, const char *first)
{
    made *samples = calloc(SAMPLES, sizeof *samples);
    assert_non_null(samples);
    for (int n = 0; n < SAMPLES; n++) {
        samples[n] = (made){.source = "a.jpg", .more = n == 0 && first ? first : cases[n % CASES].more};
        samples[n].image = make_png(4, 4, 2, 8, false);
    }
    made_split split = {.name = "train", .samples = samples, .count = SAMPLES, .per_shard = PER_SHARD};
    dataset_make(dir, &split, 1);
    for (int n = 0; n < SAMPLES; n++)
        picture_free(&samples[n].image);
    free(samples);
}

static mr_status read_targets(const mr_dataset *ds, unsigned threads, mr_targets *out, mr_error *err)
{
    mr_ranks *ranks;
    assert_int_equal(mr_ranks_begin(&ranks, err), MR_OK);
    mr_status status =
        mr_targets_read(ds, mr_manifest_split(mr_dataset_manifest(ds), "train"), threads, ranks, out, err);
    mr_ranks_end(ranks);
    return status;
}

static void expect_case(const mr_targets *t, uint64_t n)
{
    size_t c = n % CASES;
    assert_int_equal(t->at[n + 1] - t->at[n], cases[c].count);
    for (int i = 0; i < cases[c].count; i++)
        assert_int_equal(t->classes[t->at[n] + (uint64_t)i], cases[c].classes[i]);
}

static void test_what_the_source_states(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    mr_error err;
    make(dir, NULL);
    mr_dataset *ds = open_dataset_at(dir);
    for (unsigned threads = 1; threads <= 4; threads += 3) {
        mr_targets t = {0};
        uint64_t counts[3] = {0};
        if (read_targets(ds, threads, &t, &err) != MR_OK)
            fail_msg("%s", err.text);
        assert_int_equal(t.samples, SAMPLES);
        for (uint64_t n = 0; n < SAMPLES; n++)
            expect_case(&t, n);
        assert_int_equal(t.several, 2 * SAMPLES / CASES);
        assert_int_equal(t.none, 4 * SAMPLES / CASES);
        assert_int_equal(t.listed, 5 * SAMPLES / CASES);
        assert_int_equal(t.silent, SAMPLES / CASES);
        assert_int_equal(t.first_silent, CASES - 1);
        mr_targets_count(&t, counts);
        assert_int_equal(counts[0], 2 * SAMPLES / CASES);
        assert_int_equal(counts[1], 2 * SAMPLES / CASES);
        assert_int_equal(counts[2], 2 * SAMPLES / CASES);
        mr_targets_release(&t);
    }
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

static void test_a_class_that_does_not_exist(void **state)
{
    static const char *const wrong[] = {",\"labels\":[0,3]", ",\"objects\":[{\"label\":7}]"};
    (void)state;
    for (size_t i = 0; i < MR_COUNT(wrong); i++) {
        char *dir = support_tmpdir();
        mr_targets t = {0};
        mr_error err = {0};
        make(dir, wrong[i]);
        mr_dataset *ds = open_dataset_at(dir);
        assert_int_equal(read_targets(ds, 2, &t, &err), MR_BAD_DATA);
        assert_non_null(strstr(err.text, "train sample 0: has class "));
        mr_dataset_free(ds);
        support_tmpdir_remove(dir);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_the_source_states),
        cmocka_unit_test(test_a_class_that_does_not_exist),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
