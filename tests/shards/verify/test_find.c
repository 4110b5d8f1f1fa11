/* test_find.c - shards found by name, by size and by digest.
 * Invariant tested: another file of the dataset is found exactly if its size, and the digest if given, are equal. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"
#include "shards/verify/parts.h"

enum { COUNT = 5 };

static void shards_are_found(void **state)
{
    mr_shard shards[COUNT] = {{.first = 0}};
    const mr_shard *list[COUNT];
    mr_verify_find find = {0};
    const mr_verify_options o = {.level = MR_VERIFY_FULL}, fast = {.no_sha256 = true};
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        snprintf(shards[i].name, sizeof shards[i].name, "train-%05d", COUNT - i);
        shards[i].mdb.bytes = i < 2 ? 4096 : 8192;
        shards[i].mdb.xxh3_128[0] = (uint8_t)(i < 4 ? i : 3);
        shards[i].mdb.sha256[31] = (uint8_t)i;
        list[i] = &shards[i];
    }
    assert_int_equal(mr_verify_find_begin(list, COUNT, &find, NULL), MR_OK);
    const mr_verify_job job = {.find = &find, .options = &o, .shard = &shards[0]};
    const mr_verify_job no_sha256 = {.find = &find, .options = &fast, .shard = &shards[4]};
    assert_true(mr_verify_find_name(&find, "train-00003.mdb", 11));
    assert_false(mr_verify_find_name(&find, "train-00003.mdb", 10));
    assert_false(mr_verify_find_name(&find, "train-00006", 11));
    assert_ptr_equal(mr_verify_find_other(&job, false, 4096, NULL), &shards[1]);
    assert_null(mr_verify_find_other(&job, false, 4095, NULL));
    for (int i = 0; i < COUNT; i++)
        assert_ptr_equal(mr_verify_find_other(&job, false, shards[i].mdb.bytes, &shards[i].mdb), i ? &shards[i] : NULL);
    /* The fourth and the fifth differ in SHA-256 alone. */
    assert_ptr_equal(mr_verify_find_other(&no_sha256, false, 8192, &shards[4].mdb), &shards[3]);
    mr_verify_find_end(&find);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shards_are_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
