/* test_hub_configs.c - README.md says which Parquet files are which split of which config.
 * Covers layout/hub/configs.c. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/sources/hub.h"

static void put_card(const char *configs)
{
    char *path = support_path("%s/README.md", hub_source);
    char *text =
        support_path("---\nlicense: mit\ndataset_info:\n- config_name: other\n  a: &x [1]\n  b: *x\n%stags:\n- a\n---\n"
                     "# Title\nconfigs:\n- not: these\n",
                     configs);
    support_write_text(path, text);
    free(text);
    free(path);
}

static void drop_target(void)
{
    support_result r = support_run((const char *[]){"rm", "-rf", hub_target, NULL}, NULL);
    support_result_free(&r);
}

/* What ingest says about these splits: "train 3, test 2". */
static void splits_are(const char *option, const char *value, const char *const *splits)
{
    hub_ingest(0, "layout hub", option, value);
    for (size_t i = 0; splits[i]; i += 2) {
        support_expect(0, "show", hub_target, splits[i], splits[i + 1], (char *)NULL);
        char *next = support_path("%d", atoi(splits[i + 1]) + 1);
        support_result r = support_millrace("show", hub_target, splits[i], next, (char *)NULL);
        assert_int_not_equal(r.status, 0);
        support_result_free(&r);
        free(next);
    }
    drop_target();
}

/* Each split, and the number of its last sample. */
#define SPLITS_ARE(option, value, ...) splits_are(option, value, (const char *const[]){__VA_ARGS__, NULL})

static void the_card_says_the_splits(void **state)
{
    (void)state;
    support_hub_rows(hub_source, "a-1.parquet", 2, 2, 4);
    support_hub_rows(hub_source, "a-2.parquet", 2, 2, 14);
    support_hub_rows(hub_source, "b/train-00000-of-00001.parquet", 3, 2, 24);
    put_card("configs:\n- config_name: default\n  data_files:\n  - split: train\n    path: a-*\n  - split: test\n"
             "    path:\n    - b/*.parquet\n");
    SPLITS_ARE(NULL, NULL, "train", "3", "test", "2");
    put_card("configs:\n- data_files: {train: 'a-1.parquet', validation: ['a-[2-9].parquet', './b/**']}\n");
    SPLITS_ARE(NULL, NULL, "train", "1", "val", "4");
    put_card("configs:\n- config_name: x\n  data_files: \"**/*.parquet\"\n");
    SPLITS_ARE(NULL, NULL, "train", "6");
    SPLITS_ARE("--config", "x", "train", "6");
    put_card(
        "configs:\r\n- config_name: x\r\n  data_files:\r\n  - 'a-1.parquet'\r\n  - b/train-00000-of-00001.parquet\r\n"
        "- config_name: 'y z'\r\n  data_files: a-2.parquet\r\n");
    hub_ingest(2, "the source holds 2 configs; choose one with --config: x, y z", NULL, NULL);
    hub_ingest(2, "--config q does not exist; choose one of: x, y z", "--config", "q");
    SPLITS_ARE("--config", "x", "train", "4");
    SPLITS_ARE("--config", "y z", "train", "1");
    put_card("configs:\n- config_name: x\n  data_dir: b/\n- config_name: y\n  data_dir: .\n  data_files: 'a-*'\n");
    SPLITS_ARE("--config", "x", "train", "2");
}

static void what_the_card_leaves_open_is_an_error(void **state)
{
    (void)state;
    support_hub_rows(hub_source, "a.parquet", 2, 2, 4);
    support_hub_rows(hub_source, "b.parquet", 2, 2, 14);
    put_card("configs:\n- data_files:\n  - split: test\n    path: a.parquet\n");
    hub_ingest(1,
               "b.parquet: is not in any config of README.md; --exclude b.parquet leaves it out, --exclude README.md "
               "takes splits and configs from the file names",
               NULL, NULL);
    SPLITS_ARE("--exclude", "b.parquet", "test", "1");
    SPLITS_ARE("--exclude", "README.md", "train", "3");
    put_card("configs:\n- data_files:\n  - split: test\n    path: '*'\n  - split: train\n    path: b.*\n");
    hub_ingest(1, "b.parquet: is in two splits of config default, test and train, as README.md says", NULL, NULL);
    put_card("configs:\n- data_files: [{split: a, path: {b: c}}]\n");
    hub_ingest(
        1, "README.md: configs: line 2 of them: a path is neither a string nor a list of strings; --exclude README.md",
        NULL, NULL);
    put_card("configs:\n- data_files: 'a.parquet\n");
    hub_ingest(1, "README.md: line", NULL, NULL);
    put_card("configs:\n- data_files: '**/**/**/a'\n");
    hub_ingest(1, "or has more than 2 **", NULL, NULL);
}

/* A card without configs, or for other files, changes nothing. */
static void other_cards_change_nothing(void **state)
{
    (void)state;
    support_hub_rows(hub_source, "train.parquet", 2, 2, 4);
    support_hub_rows(hub_source, "test.parquet", 3, 2, 14);
    put_card("");
    SPLITS_ARE(NULL, NULL, "train", "1", "test", "2");
    put_card("configs:\n- data_files: data/*.csv\n");
    SPLITS_ARE(NULL, NULL, "train", "1", "test", "2");
    char *path = support_path("%s/README.md", hub_source);
    support_write_text(path, "---\nconfigs:\n- data_files: 'test.parquet'\n"); /* no end of the YAML */
    SPLITS_ARE(NULL, NULL, "train", "1", "test", "2");
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_card_says_the_splits, hub_set_up, hub_tear_down),
        cmocka_unit_test_setup_teardown(what_the_card_leaves_open_is_an_error, hub_set_up, hub_tear_down),
        cmocka_unit_test_setup_teardown(other_cards_change_nothing, hub_set_up, hub_tear_down),
    };
    return cmocka_run_group_tests_name("hub_configs", tests, NULL, NULL);
}
