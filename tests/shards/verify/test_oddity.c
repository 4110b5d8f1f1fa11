/* test_oddity.c - harmless warnings: from rank to rank, and summed over shards.
 * Invariant tested: the first image and the sum are those of the dataset, whichever rank counted them. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"
#include "shards/verify/parts.h"

static void counts_survive_the_way_between_ranks(void **state)
{
    mr_verify_shard sent = {.name = "train-00000"}, got = {.name = "train-00000"};
    (void)state;
    sent.oddities[0] = (mr_verify_oddity){.count = 3, .first = 17, .source = strdup("a/b.jpg")};
    sent.oddities[MR_ODDITY_COUNT - 1] = (mr_verify_oddity){.count = 1, .first = 4};
    json_t *json = mr_verify_oddity_json(&sent), *other = json_array();
    assert_true(mr_verify_oddity_unjson(json, &got));
    assert_int_equal(got.oddities[0].count, 3);
    assert_int_equal(got.oddities[0].first, 17);
    assert_string_equal(got.oddities[0].source, "a/b.jpg");
    assert_int_equal(got.oddities[MR_ODDITY_COUNT - 1].first, 4);
    assert_null(got.oddities[MR_ODDITY_COUNT - 1].source);
    assert_false(mr_verify_oddity_unjson(other, &got));
    json_decref(other);
    json_decref(json);
    mr_verify_oddity_free(&sent);
    mr_verify_oddity_free(&got);
}

static void one_warning_per_kind(void **state)
{
    mr_verify_shard shards[3] = {{.name = "train-00000"}, {.name = "train-00001"}, {.name = "val-00000"}};
    mr_verify_report r = {.shards = shards, .shard_count = 3};
    (void)state;
    shards[1].oddities[0] = (mr_verify_oddity){.count = 2, .first = 9};
    shards[2].oddities[0] = (mr_verify_oddity){.count = 5, .first = 0};
    mr_verify_oddity_warn(&r);
    assert_int_equal(r.warnings.count, 1);
    assert_string_equal(r.warnings.items[0].shard, "train-00001");
    assert_int_equal(r.warnings.items[0].sample, 9);
    assert_non_null(strstr(r.warnings.items[0].detail, "in 7 images, first in train-00001, sample 9"));
    mr_problems_free(&r.warnings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_survive_the_way_between_ranks),
        cmocka_unit_test(one_warning_per_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
