/* test_commands.c - what users see who misspell something or have lost a file.
 * Invariant tested: wrong use and damage are reported in one sentence with the names that were given, the way out,
 * and the documented exit code. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/error.h"
#include "tests/support/support.h"

#define WRONG "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static int set_up(void **state)
{
    char *dir = support_tmpdir();
    SAYS(dir, 0, "", "", "sample", "drawn", "--layout", "imagenette", "--images", "12", "--size", "32", "-q");
    SAYS(dir, 0, "", "", "ingest", "drawn", "ds", "--quiet");
    *state = dir;
    return 0;
}

static support_result run(const char *dir, const char *const *args)
{
    const char *argv[8] = {support_millrace_path()};
    for (size_t n = 1; *args; n++)
        argv[n] = *args++;
    return support_run(argv, &(support_limits){.directory = dir});
}

#define RUN(dir, ...) run(dir, (const char *const[]){__VA_ARGS__, NULL})

static void assert_holds(const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("no \"%s\" in:\n%s", words, text);
}

static void remove_file(const char *dir, const char *name)
{
    char *path = support_path("%s/%s", dir, name);
    assert_int_equal(unlink(path), 0);
    free(path);
}

/* ---- the command line ------------------------------------------------------------------------------------------- */

#define TRY(command) "Try 'millrace " command " --help'.\n"

static void test_options(void **state)
{
    const char *dir = *state;
    SAYS(dir, 2, "", "millrace show: unknown option -1\n" TRY("show"), "show", "ds", "train", "-1");
    SAYS(dir, 2, "", "millrace show: N -1: expected a number from 0\n" TRY("show"), "show", "ds", "train", "--", "-1");
    SAYS(dir, 2, "", "millrace verify: unknown option -qx\n" TRY("verify"), "verify", "-qx", "ds");
    SAYS(dir, 2, "", "millrace verify: unknown option --junti; did you mean --junit?\n" TRY("verify"), "verify", "ds",
         "--junti=x");
    SAYS(dir, 2, "", "millrace verify: --junit needs a value: --junit FILE\n" TRY("verify"), "verify", "ds", "--junit");
    SAYS(dir, 2, "", "millrace verify: -j needs a value: -j N\n" TRY("verify"), "verify", "ds", "-qj");
    SAYS(dir, 2, "", "millrace verify: --json yes: use true or false\n" TRY("verify"), "verify", "ds", "--json=yes");
    SAYS(dir, 2, "", "millrace verify: --j could be --json or --junit\n" TRY("verify"), "verify", "ds", "--j");
    SAYS(dir, 2, "",
         "millrace: unknown command 'verfiy'; did you mean 'millrace verify'?\n"
         "Try 'millrace --help'.\n",
         "help", "verfiy");
    /* A value may look like an option, and a beginning that only one option has is enough. */
    SAYS(dir, 2, "", "millrace verify: --jobs --json: expected a number from 1 to 1024\n" TRY("verify"), "verify", "ds",
         "--jobs", "--json");
    SAYS(dir, 0, "", "", "verify", "ds", "-qj2", "--no-sha");
    SAYS(dir, 2, "", "millrace verify: unexpected argument '--help'\n" TRY("verify"), "verify", "ds", "--", "--help");
}

/* ---- what is told of work done ---------------------------------------------------------------------------------- */

static void test_sums_of_splits(void **state)
{
    const char *dir = *state;
    support_result ingest = RUN(dir, "ingest", "drawn", "again", "--json");
    support_result inspect = RUN(dir, "inspect", "ds", "--json");
    support_assert_status(&ingest, 0);
    support_assert_status(&inspect, 0);
    json_t *made = json_loads(ingest.out, 0, NULL), *found = json_loads(inspect.out, 0, NULL), *sums;
    static const char *const words[] = {"samples", "images", "bytes", "shards"};
    const char *split;
    assert_int_equal(json_object_size(json_object_get(made, "splits")), 2);
    json_object_foreach(json_object_get(made, "splits"), split, sums)
    {
        const json_t *same = json_object_get(json_object_get(found, "splits"), split);
        for (size_t i = 0; i < MR_COUNT(words); i++) {
            const json_t *number = json_object_get(sums, words[i]);
            assert_true(json_equal(number, json_object_get(same, words[i])) && json_integer_value(number) > 0);
        }
    }
    json_decref(made);
    json_decref(found);
    support_result_free(&ingest);
    support_result_free(&inspect);
}

/* Lines that belong together stand together, and all stand in from the first. */
static void test_bench(void **state)
{
    support_result r = RUN(*state, "bench", "ds", "--seconds", "0.1", "--threads", "1");
    support_assert_status(&r, 0);
    const char *ratios = strstr(r.out, " times its rate\n"), *both = strstr(r.out, " and the same resize\n");
    assert_non_null(ratios);
    assert_ptr_equal(strchr(strchr(ratios, '\n') + 1, '\n'), both ? strchr(both, '\n') : NULL);
    assert_holds(r.out, " ms when warm\n  The bottleneck is ");
    for (const char *at = strchr(r.out, '\n') + 1; *at; at = strchr(at, '\n') + 1)
        assert_int_equal(strncmp(at, "  ", 2), 0);
    support_result_free(&r);
}

static void test_layouts_to_draw(void **state)
{
    SAYS(*state, 2, "", "millrace sample: --layout hub: use imagenette, roboflow, coco or newyorker\n" TRY("sample"),
         "sample", "new", "--layout", "hub");
}

/* ---- places ----------------------------------------------------------------------------------------------------- */

static void test_places_that_are_not_there(void **state)
{
    const char *dir = *state;
    SAYS(dir, 2, "", "millrace: nope/x.xml: its folder does not exist\n", "verify", "ds", "--junit", "nope/x.xml");
    static const char gone[] = "millrace: nope/x: its folder does not exist\n";
    SAYS(dir, 2, "", gone, "show", "ds", "train", "0", "--image", "nope/x");
    SAYS(dir, 2, "", gone, "show", "ds", "train", "0", "--image", "nope/x", "--force");
    SAYS(dir, 2, "", gone, "export", "ds", "nope/x");
    SAYS(dir, 2, "", gone, "export", "ds", "nope/x", "--to", "tar");
    SAYS(dir, 2, NULL, gone, "ingest", "drawn", "other", "--report", "nope/x");
}

static void test_inputs_that_are_not_there(void **state)
{
    const char *dir = *state;
    static const char *const inputs[][6] = {
        {"train", "ds", "--options", "no.yaml"},       {"train", "ds", "--pretrained", "no.npz"},
        {"train", "ds", "--config", "no/config.json"}, {"train", "ds", "--tokenizer", "no.json"},
        {"train", "ds", "--pretrained-classes", "no"}, {"report", "ds", "--dataset", "no"},
        {"export", "ds", "out", "--link", "no", NULL},
    };
    for (size_t i = 0; i < MR_COUNT(inputs); i++) {
        const char *const *p = inputs[i];
        size_t at = p[4] ? 3 : 2;
        char *words = support_path("millrace %s: %s %s: no such file or folder\nTry 'millrace %s --help'.\n", p[0],
                                   p[at], p[at + 1], p[0]);
        SAYS(dir, 2, "", words, p[0], p[1], p[2], p[3], p[4]);
        free(words);
    }
    SAYS(dir, 2, "",
         "millrace: ftp://host/ds: datasets are read from folders, and from URLs of http, https, s3, gs and hf; "
         "download this one first\n",
         "verify", "ftp://host/ds");
    SAYS(dir, 2, "",
         "millrace: ftp://host/a.tar: archives are read from URLs of http, https, s3, gs and hf; download this one "
         "first\n",
         "ingest", "ftp://host/a.tar", "out");
    SAYS(dir, 2, "", "millrace: --device: unknown device 'gpu'; an NVIDIA GPU is cuda, any other is opencl\n", "replay",
         "ds", "--global-batch", "1", "--size", "8", "--device", "gpu");
}

static void test_batches_that_are_not_filled(void **state)
{
    support_result r = RUN(*state, "replay", "ds", "--global-batch", "10000");
    support_assert_status(&r, 2);
    assert_holds(r.err, "millrace: --global-batch 10000: split train has ");
    assert_holds(r.err, " samples, which do not fill a batch; use a smaller one, or --tail pad or partial\n");
    support_result_free(&r);
}

/* The reason stands alone: what each layout needs does not help who named the wrong folder. */
static void test_a_source_without_files(void **state)
{
    char *empty = support_path("%s/empty", (const char *)*state);
    assert_int_equal(mkdir(empty, 0777), 0);
    free(empty);
    SAYS(*state, 1, "", "millrace: empty: holds no files\n", "ingest", "empty", "out");
}

/* As an unset variable of a script makes them. */
static void test_places_without_a_name(void **state)
{
    const char *dir = *state;
    static const char nothing[] = "millrace export: OUT: the path is empty\nTry 'millrace export --help'.\n";
    static const char *const places[][5] = {
        {"ingest", "drawn", "other", "--report", ""},
        {"show", "ds", "train", "--image", ""},
        {"verify", "ds", "--junit", "", NULL},
    };
    for (size_t i = 0; i < MR_COUNT(places); i++) {
        const char *const *p = places[i];
        char *words = support_path("millrace %s: %s: the value is empty; leave the option out for its default\n"
                                   "Try 'millrace %s --help'.\n",
                                   p[0], p[*p[3] ? 3 : 2], p[0]);
        SAYS(dir, 2, "", words, p[0], p[1], p[2], p[3], p[4]);
        free(words);
    }
    SAYS(dir, 2, "", "millrace: drawn: is a directory; name a file\n", "verify", "ds", "--junit", "drawn");
    SAYS(dir, 2, "", nothing, "export", "ds", "");
    SAYS(dir, 2, "", nothing, "export", "ds", "", "--to", "tar", "--force");
    static const char *const options[] = {"output", "log", "pretrained"};
    for (size_t i = 0; i < MR_COUNT(options); i++) {
        char *words = support_path(
            "millrace train: --%s: the value is empty; leave the option out for its default\n" TRY("train"),
            options[i]);
        char *option = support_path("--%s", options[i]);
        SAYS(dir, 2, "", words, "train", "ds", "--model", "vit", option, "");
        free(option);
        free(words);
    }
    char *other = support_path("%s/other", dir);
    assert_false(support_exists(other));
    free(other);
}

static void test_what_is_read_is_not_written_over(void **state)
{
    const char *dir = *state;
    char *ds = support_path("%s/ds", dir), *source = support_path("%s/drawn", dir), *said;
    uint64_t before = support_tree_hash(ds), drawn = support_tree_hash(source);
    SAYS(dir, 0, "", "", "export", "ds", "drawn.tar", "-q");
    char *tar = support_path("%s/drawn.tar", dir), *twin = support_path("%s/twin", dir),
         *new = support_path("%s/to_new", dir);
    char *weights = support_path("%s/weights", dir);
    assert_int_equal(link(tar, twin), 0);
    assert_int_equal(symlink("ds/new", new), 0);
    support_write_text(weights, "{}");
    static const char *const tries[][10] = {
        {"ds/manifest.json", "ds", "verify", "ds", "--junit", "ds/manifest.json"},
        {"ds/../ds/x.xml", "ds", "verify", "ds", "--junit", "ds/../ds/x.xml"},
        {"ds/x.jpg", "ds", "show", "ds", "train", "0", "--image", "ds/x.jpg"},
        {"ds/t.json", "ds", "tokenizer", "ds", "-o", "ds/t.json"},
        {"ds", "ds", "train", "ds", "--output", "ds"},
        {"ds/run", "ds", "train", "ds", "--output", "ds/run"},
        {"ds/manifest.json", "ds", "train", "ds", "--log", "ds/manifest.json"},
        {"drawn/r.json", "drawn", "ingest", "drawn", "other", "--report", "drawn/r.json"},
        {"to_new", "ds", "verify", "ds", "--junit", "to_new"},
        {"twin", "drawn.tar", "ingest", "drawn.tar", "other", "--report", "twin"},
        {"weights", "weights", "train", "ds", "--pretrained", "weights", "--log", "weights"},
        {"weights", "./weights", "train", "ds", "--config", "./weights", "--log", "weights"},
    };
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        said = support_path("millrace: %s: is the input (%s) or is inside it; choose another path to write to\n",
                            tries[i][0], tries[i][1]);
        support_says(dir, 2, "", said, tries[i] + 2);
        free(said);
    }
    assert_true(support_tree_hash(ds) == before);
    assert_true(support_tree_hash(source) == drawn);
    free(weights);
    free(new);
    free(twin);
    free(tar);
    char *other = support_path("%s/other", dir);
    assert_false(support_exists(other));
    free(other);
    free(source);
    free(ds);
}

/* Where the dataset is going to be, and where it grows, nothing else is put. */
static void test_reports_in_what_is_made(void **state)
{
    const char *dir = *state;
    static const char *const tries[][2] = {
        {"ds/r.json", "ds"},
        {"new", "new"},
        {"new/manifest.json", "new/"},
        {"new/report.json", "./new"},
        {"new.partial/report.json", "new//"},
        {"new.partial", "new"},
    };
    for (size_t i = 0; i < MR_COUNT(tries); i++) {
        char *said = support_path("millrace: --report %s: is inside the dataset (%s), which has a report of its own; "
                                  "name another file\n",
                                  tries[i][0], tries[i][1]);
        SAYS(dir, 2, "", said, "ingest", "drawn", tries[i][1], "--force", "--report", tries[i][0]);
        free(said);
    }
    char *new = support_path("%s/new", dir), *partial = support_path("%s/new.partial", dir);
    assert_false(support_exists(new));
    assert_false(support_exists(partial));
    free(partial);
    free(new);
    SAYS(dir, 0, "", "", "export", "ds", "drawn.tar", "-q");
    static const char script[] = "\"$0\" ingest - new --report drawn.tar <drawn.tar";
    support_result r = support_run((const char *[]){"sh", "-c", script, support_millrace_path(), NULL},
                                   &(support_limits){.directory = dir});
    support_assert_status(&r, 2);
    assert_string_equal(r.err, "millrace: --report drawn.tar: standard input reads this file; name another file\n");
    support_result_free(&r);
}

static void test_places_inside_the_dataset(void **state)
{
    const char *dir = *state;
    uint64_t before;
    char *ds = support_path("%s/ds", dir), *tar = support_path("%s/val.tar", dir);
    before = support_tree_hash(ds);
    static const char *const places[] = {"ds/out", "ds/a/b", "./ds/../ds/out.tar"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char *said =
            support_path("millrace: %s: is inside the dataset ds, where nothing else belongs; export to another "
                         "place\n",
                         places[i]);
        SAYS(dir, 2, "", said, "export", "ds", places[i]);
        SAYS(dir, 2, "", said, "export", "ds", places[i], "--force");
        free(said);
    }
    SAYS(dir, 2, "", "millrace: .: holds the dataset itself; export to another place\n", "export", "ds", ".", "-q",
         "--force");
    assert_true(support_tree_hash(ds) == before);

    /* A name that ends in .tar is a wish. */
    SAYS(dir, 0, "", "", "export", "ds", "val.tar", "--split", "val", "--quiet");
    SAYS(dir, 0, "", "", "export", "ds", "folder.tar", "--to", "folder", "--quiet");
    assert_true(support_size(tar) > 1024);
    char *folder = support_path("%s/folder.tar/train", dir);
    assert_true(support_exists(folder));
    free(folder);
    free(tar);
    free(ds);
}

/* ---- damage ----------------------------------------------------------------------------------------------------- */

static void test_lost_files(void **state)
{
    const char *dir = *state;
    static const char lost[] = "millrace: ds: train-00000.idx: is missing; `millrace reindex` rebuilds it\n";
    remove_file(dir, "ds/train-00000.idx");
    SAYS(dir, 1, "", lost, "inspect", "ds");
    SAYS(dir, 1, "", lost, "inspect", "--json", "ds");
    SAYS(dir, 1, "", lost, "inspect", "--classes", "ds");
    SAYS(dir, 1, "", lost, "show", "ds", "val", "0");
    SAYS(dir, 1, NULL, lost, "seek", "ds");
    SAYS(dir, 0, "", "", "reindex", "ds", "--quiet");
    SAYS(dir, 0, NULL, "", "inspect", "ds");

    char *index = support_path("%s/ds/val-00000.idx", dir), *said;
    said = support_path("millrace: ds: val-00000.idx: 0 bytes instead of %llu; `millrace reindex` rebuilds it\n",
                        (unsigned long long)support_size(index));
    support_write(index, "", 0);
    SAYS(dir, 1, "", said, "inspect", "ds");
    SAYS(dir, 1, NULL, said, "seek", "--force", "ds");
    free(said);
    free(index);
    SAYS(dir, 0, "", "", "reindex", "ds", "--quiet");

    remove_file(dir, "ds/train-00000.mdb");
    said = support_path("millrace: ds: train-00000.mdb: is missing; `millrace verify` shows what is intact\n");
    SAYS(dir, 1, "", said, "inspect", "ds");
    SAYS(dir, 1, NULL, said, "seek", "--force", "ds");
    free(said);
}

static void test_another_dataset(void **state)
{
    const char *dir = *state;
    support_result r = RUN(dir, "verify", "ds", "--expect", WRONG, "--junit", "x.xml");
    support_assert_status(&r, 1);
    assert_string_equal(r.err, "");
    assert_holds(r.out, ", expected " WRONG "\nds: intact, but not the expected dataset\n  12 samples in 2 shards ");
    assert_holds(r.out, "  checked digests, indexes and every record in ");
    assert_holds(r.out, "/s, with 2 seek indexes\n  digest ");
    support_result_free(&r);
    char *xml = support_path("%s/x.xml", dir), *text = (char *)support_read(xml, NULL);
    assert_holds(text, "tests=\"3\" failures=\"1\"");
    assert_holds(text, "name=\"dataset\" time=\"0.000\">\n"
                       "    <failure type=\"expect\" message=\"not the expected dataset: ");
    free(text);
    free(xml);
    r = RUN(dir, "verify", "ds", "--expect", WRONG, "--json", "--quick");
    support_assert_status(&r, 1);
    assert_holds(r.out, "\"ok\": false,\n \"whole\": true,\n");
    support_result_free(&r);
    r = RUN(dir, "verify", "ds", "--expect", WRONG, "--quick");
    assert_holds(r.out, "\nds: intact as far as checked, but not the expected dataset\n");
    support_result_free(&r);

    remove_file(dir, "ds/val-00000.idx");
    r = RUN(dir, "verify", "ds", "--expect", WRONG);
    support_assert_status(&r, 1);
    assert_holds(r.out, "\nds: damaged, 1 of 2 shards, ");
    support_result_free(&r);
    r = RUN(dir, "verify", "ds", "--expect", WRONG, "--json");
    assert_holds(r.out, "\"ok\": false,\n \"whole\": false,\n");
    support_result_free(&r);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, support_tmpdir_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_options),
        TEST(test_places_that_are_not_there),
        TEST(test_inputs_that_are_not_there),
        TEST(test_batches_that_are_not_filled),
        TEST(test_a_source_without_files),
        TEST(test_places_without_a_name),
        TEST(test_what_is_read_is_not_written_over),
        TEST(test_reports_in_what_is_made),
        TEST(test_places_inside_the_dataset),
        TEST(test_lost_files),
        TEST(test_another_dataset),
        TEST(test_bench),
        TEST(test_sums_of_splits),
        TEST(test_layouts_to_draw),
    };
    return cmocka_run_group_tests_name("commands", tests, NULL, NULL);
}
