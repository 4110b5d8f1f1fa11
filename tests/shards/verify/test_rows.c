/* test_rows.c - the manifest's counts and classes against the rows of an index.
 * Invariant tested: one problem per shard and kind of contradiction, and none against a damaged index. */
#include <string.h>

#include "tests/support/support.h"
#include "shards/verify/parts.h"

enum { SAMPLES = 4 };

static char ant[] = "ant", bee[] = "bee";
static mr_class classes[2] = {{.name = ant}, {.name = bee}};
static const mr_manifest manifest = {.class_count = 2, .classes = classes};

static size_t problems_of(mr_row *rows, uint64_t images, bool index_good, const char *words)
{
    const mr_shard shard = {.name = "val-00001", .first = 10, .samples = SAMPLES, .images = images, .image_bytes = 30};
    mr_verify_shard out = {.name = shard.name};
    mr_verify_job job = {.manifest = &manifest, .shard = &shard, .out = &out, .rows = rows, .index_good = index_good};
    mr_verify_rows(&job);
    if (out.problems.count && !strstr(out.problems.items[0].detail, words))
        fail_msg("%s", out.problems.items[0].detail);
    size_t count = out.problems.count;
    mr_problems_free(&out.problems);
    return count;
}

static void rows_against_the_manifest(void **state)
{
    mr_row rows[SAMPLES] = {{.label = 0, .holder = 0, .image_len = 10},
                            {.label = -1, .holder = 1, .image_len = 10},
                            {.label = 1, .holder = 0, .image_len = 10},
                            {.label = 1, .holder = 3, .image_len = 10}};
    (void)state;
    assert_int_equal(problems_of(rows, 3, true, ""), 0);
    assert_int_equal(problems_of(rows, 4, true, "counts 4 images of 30 bytes in val-00001, whose index has 3"), 1);
    rows[1].label = rows[3].label = 2;
    assert_int_equal(problems_of(rows, 3, true, "has 2 classes, but its label in"), 1);
    assert_int_equal(problems_of(rows, 3, false, ""), 0);
}

static void expect_class(int32_t label, int32_t highest, const char *class_name, const char *words)
{
    const mr_verify_job job = {.manifest = &manifest};
    const mr_meta_facts facts = {.label = label, .highest = highest, .has_class = class_name != NULL};
    mr_buf name = {0};
    mr_buf_add_text(&name, class_name ? class_name : "");
    const char *fault = mr_verify_class(&job, &facts, &name);
    mr_buf_free(&name);
    if (words ? !fault || !strstr(fault, words) : fault != NULL)
        fail_msg("label %d, class %s: %s", (int)label, class_name, fault);
}

static void metas_against_the_manifest(void **state)
{
    (void)state;
    expect_class(-1, -1, NULL, NULL);
    expect_class(1, 1, "bee", NULL);
    expect_class(1, 1, "ant", "not the manifest's");
    expect_class(1, 1, "be", "not the manifest's");
    expect_class(-1, 1, "bee", "not the manifest's");
    expect_class(-1, 2, NULL, "outside the manifest's classes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_against_the_manifest),
        cmocka_unit_test(metas_against_the_manifest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
