/* test_stage_files.c - which files of a folder are millrace's.
 * Invariant tested: other files in DATASET or DATASET.partial are never removed or replaced. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/support.h"

static char *dir, *source;

static int set_up(void **state)
{
    (void)state;
    dir = support_tmpdir();
    source = support_path("%s/source", dir);
    support_expect(0, "sample", source, "--layout", "imagenette", "--images", "120", "--seed", "3", "--quiet",
                   (char *)NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(source);
    support_tmpdir_remove(dir);
    return 0;
}

/* What `inspect --croissant` is told to be written beside a dataset describes that one, and goes with it. */
static void test_a_croissant_goes_with_its_dataset(void **state)
{
    (void)state;
    char *target = support_path("%s/described", dir);
    support_expect(0, "ingest", source, target, "--quiet", (char *)NULL);
    support_put(dir, "described/croissant.json", "{}");
    support_expect(0, "ingest", source, target, "--force", "--quiet", (char *)NULL);
    char *path = support_path("%s/croissant.json", target);
    assert_false(support_exists(path));
    support_expect(0, "verify", target, "--quiet", (char *)NULL);
    free(path);
    free(target);
}

static void test_files_of_others_are_left_alone(void **state)
{
    (void)state;
    char *target = support_path("%s/out", dir), *partial = support_path("%s/out.partial", dir);
    support_put(dir, "out.partial/thesis.txt", "precious");
    support_expect(2, "ingest", source, target, (char *)NULL);
    char *list = support_list(partial);
    assert_string_equal(list, "thesis.txt\n");
    free(list);
    support_tmpdir_remove(strdup(partial));
    support_write_text(partial, "a file");
    support_expect(2, "ingest", source, target, (char *)NULL);
    assert_int_equal(unlink(partial), 0);

    /* manifest.json is a common name: it makes no dataset of a folder of other things. */
    support_put(dir, "out/manifest.json", "{}");
    support_put(dir, "out/app.js", "x");
    support_expect(2, "ingest", source, target, "--force", (char *)NULL);
    list = support_list(target);
    assert_string_equal(list, "app.js\nmanifest.json\n");
    free(list);
    char *path = support_path("%s/app.js", target);
    assert_int_equal(unlink(path), 0);
    free(path);
    support_put(dir, "out/train-00000.mdb-lock", ""); /* as py-lmdb leaves them */
    support_expect(0, "ingest", source, target, "--force", "--quiet", (char *)NULL);
    support_expect(0, "verify", target, "--quiet", (char *)NULL);
    free(target);
    free(partial);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_files_of_others_are_left_alone),
        TEST(test_a_croissant_goes_with_its_dataset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
