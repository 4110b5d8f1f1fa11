/* test_hostile_dataset.c - a whole dataset, or a checkpoint, made by an attacker.
 * Invariant tested: no name in it reaches a file outside its folder, and no number in it costs more than its own
 * size; a rejection gives the reason, cheaply and within 256 MiB. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "tests/support/sources/archive.h"
#include "tests/support/cost.h"
#include "tests/support/shards/dataset_maker.h"

static char *dir, *ds, *manifest, *text;

static int set_up(void **state)
{
    (void)state;
    dir = support_tmpdir();
    ds = support_path("%s/in/ds", dir);
    manifest = support_path("%s/manifest.json", ds);
    char *source = support_path("%s/source", dir), *up = support_path("%s/in", dir);
    mkdir(up, 0777);
    support_expect(0, "sample", source, "--layout", "imagenette", "--images", "40", "--quiet", (char *)NULL);
    support_expect(0, "ingest", source, ds, "--quiet", (char *)NULL);
    text = (char *)support_read(manifest, NULL);
    /* Whole shards beside the dataset: a name that led there would find all it wants. */
    char *command = support_path("cp '%s'/train-00000.mdb '%s'/train-00000.idx '%s'", ds, ds, up);
    assert_int_equal(system(command), 0);
    free(command);
    free(up);
    free(source);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(ds);
    free(manifest);
    free(text);
    support_tmpdir_remove(dir);
    return 0;
}

static void expect_all_refuse(const char *words)
{
    const char *const commands[][6] = {{"verify"}, {"inspect"}, {"show"}, {"export"}, {"reindex"}, {"replay"}};
    char *out = support_path("%s/out", dir);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        const char *argv[8] = {support_millrace_path(), commands[i][0], ds}, *name = commands[i][0];
        if (strcmp(name, "show") == 0)
            argv[3] = "train", argv[4] = "0";
        if (strcmp(name, "export") == 0)
            argv[3] = out;
        if (strcmp(name, "replay") == 0)
            argv[3] = "--global-batch", argv[4] = "4";
        support_expect_refusal(support_run(argv, &(support_limits){.directory = dir}), words);
        assert_false(support_exists(out));
    }
    free(out);
}

/* The manifest with every `from` (up to `times`) replaced. */
static void edit(const char *from, const char *to, int times)
{
    char *edited = NULL, *at = text, *hit;
    size_t len;
    FILE *f = open_memstream(&edited, &len);
    while (times-- && (hit = strstr(at, from))) {
        fprintf(f, "%.*s%s", (int)(hit - at), at, to);
        at = hit + strlen(from);
    }
    fputs(at, f);
    fclose(f);
    assert_string_not_equal(edited, text);
    support_write_text(manifest, edited);
    dataset_seal(ds);
    free(edited);
}

static void test_names(void **state)
{
    (void)state;
    static const char *const splits[] = {"\"../train\"", "\"a/../../train\"", "\"/tmp/train\"",  "\"..\"",      "\"\"",
                                         "\".train\"",   "\"tr\\u0000ain\"",  "\"tr\\u002f..\"", "\"train\\n\""};
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        edit("\"train\"", splits[i], -1);
        expect_all_refuse("manifest.json");
    }
    static const char *const shards[] = {"\"../train-00000\"", "\"train-00000.mdb/../../train-00000\"",
                                         "\"/etc/passwd\"", "\"train-00001\"", "7"};
    for (size_t i = 0; i < sizeof shards / sizeof *shards; i++) {
        edit("\"train-00000\"", shards[i], -1);
        expect_all_refuse("manifest.json");
    }
}

static void test_numbers(void **state)
{
    (void)state;
    static const char *const numbers[] = {
        "18446744073709551615", "9223372036854775807", "4294967295", "-1", "1e18", "0"};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char *claim = support_path("\"samples\": %s", numbers[i]), *at = strstr(text, "\"samples\": ");
        assert_non_null(at);
        char *from = support_path("%.*s", (int)strcspn(at, ",\n"), at);
        edit(from, claim, -1);
        expect_all_refuse("manifest.json");
        free(from);
        free(claim);
    }
    /* All numbers agree: four billion samples, in a file with room for some thousands, and an index to match that is
     * nothing but a hole. */
    char *at = strstr(text, "\"samples\": "), *from = support_path("%.*s", (int)strcspn(at, ",\n"), at);
    char *idx = support_path("%s/train-00000.idx", ds);
    edit(from, "\"samples\": 4000000000", -1);
    assert_int_equal(truncate(idx, (off_t)64 + (off_t)4000000000 * 64), 0);
    expect_all_refuse("manifest.json");
    free(idx);
    free(from);
}

static void test_shapes(void **state)
{
    (void)state;
    edit("\"millrace\"", "\"format\": 1, \"millrace\"", 1);
    expect_all_refuse("duplicate key in an object");
    size_t deep = 1000000;
    char *nested = malloc(deep + 64);
    memset(nested, '[', deep);
    nested[deep] = '\0';
    support_write_text(manifest, nested);
    expect_all_refuse("manifest.json");
    free(nested);
    char *lists = malloc(3 * 7000000 + 64), *p = lists + sprintf(lists, "{\"millrace\":\"dataset\",\"x\":[");
    for (int i = 0; i < 7000000; i++, p += 3)
        memcpy(p, "[],", 3);
    strcpy(p, "[]]}");
    support_write_text(manifest, lists);
    expect_all_refuse("MiB of memory, the limit is 512");
    free(lists);
    assert_int_equal(truncate(manifest, (off_t)300 << 20), 0);
    expect_all_refuse("more than the limit");
}

/* Splits without samples are files of no bytes, and each has as many counts as there are classes. */
static void test_classes_of_splits(void **state)
{
    (void)state;
    enum { CLASSES = 8192, SPLITS = 512 }; /* as many as --classes counts, then one split more */
    for (int splits = SPLITS; splits <= SPLITS + 1; splits++) {
        mr_buf b = {0};
        mr_buf_add_text(&b, "{\"millrace\":\"dataset\",\"format\":1,\"layout\":\"coco\",\"variant\":\"instances\","
                            "\"licence\":null,\"options\":{},\"classes\":[");
        for (int i = 0; i < CLASSES; i++)
            mr_buf_printf(&b, "%s{\"name\":\"%d\"}", i ? "," : "", i);
        mr_buf_add_text(&b, "],\"splits\":{");
        for (int i = 0; i < splits; i++)
            mr_buf_printf(&b, "%s\"s%d\":{\"samples\":0,\"images\":0,\"bytes\":0,\"shards\":[]}", i ? "," : "", i);
        mr_buf_add_text(&b, "}}");
        support_write(manifest, b.data, b.len);
        dataset_seal(ds);
        mr_buf_free(&b);
        support_result r = support_millrace("inspect", "--classes", "--json", ds, (char *)NULL);
        if (splits > SPLITS) {
            support_expect_refusal(r, "8192 classes in 513 splits");
            continue;
        }
        support_assert_cheap(&r);
        support_assert_status(&r, 0);
        print_message("%d classes in %d splits: %.0f MiB, %.2f s\n", CLASSES, splits, (double)r.peak_memory / (1 << 20),
                      r.cpu);
        support_result_free(&r);
    }
    support_expect(0, "inspect", ds, (char *)NULL);
}

/* A run's folder of theirs: what eval and predict open. */
static void test_checkpoints(void **state)
{
    (void)state;
    static const char *const states[] = {"", "[", "{}", "{\"a\":1,\"a\":2}", "null"};
    char *run = support_path("%s/run", dir), *step = support_path("%s/step-00000001", run);
    char *weights = support_path("%s/weights.npz", step), *json = support_path("%s/state.json", step);
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        const support_entry entry = {
            .path = i % 2 ? "../../escape.npy" : "cls.npy", .bytes = "\x93NUMPY\1\0\xff\xff", .len = 10};
        support_write_text(json, states[i]);
        support_archive(weights, "zip", &entry, 1);
        const char *eval[] = {support_millrace_path(), "eval", ds, run, NULL},
                   *predict[] = {eval[0], "predict", ds, run, NULL};
        const char *begin[] = {eval[0], "train",        ds,      "--model",  "vit", "--image-size", "24", "--patch",
                               "8",     "--hidden",     "16",    "--layers", "1",   "--heads",      "2",  "--mlp",
                               "32",    "--pretrained", weights, NULL};
        support_expect_refusal(support_run(eval, NULL), "");
        support_expect_refusal(support_run(predict, NULL), "");
        support_expect_refusal(support_run(begin, NULL), "weights.npz");
    }
    char *escape = support_path("%s/escape.npy", dir);
    assert_false(support_exists(escape));
    free(escape);
    free(json);
    free(weights);
    free(step);
    free(run);
}

/* ---- a sound run of ours ----------------------------------------------------------------------------------------- */

#define SMALL                                                                                                          \
    "--model", "vit", "--image-size", "24", "--patch", "8", "--hidden", "16", "--layers", "1", "--heads", "2",         \
        "--mlp", "32", "--dropout", "0", "--batch", "4", "--steps", "1", "--quiet"

static char *train(void)
{
    char *run = support_path("%s/own", dir);
    support_expect(0, "train", ds, SMALL, "--output", run, (char *)NULL);
    return run;
}

static void expect_misuse(support_result r, const char *words)
{
    assert_int_equal(r.status, 2);
    support_expect_refusal(r, words);
}

/* A dataset without anything to judge: no result is better than one of nothing. */
static void test_nothing_to_evaluate(void **state)
{
    (void)state;
    static const char words[] = "split \"void\" has no samples to evaluate", none[] = "it has no splits";
    char *run = train();
    edit("\"splits\": {", "\"splits\": {\"void\": {\"samples\": 0, \"images\": 0, \"bytes\": 0, \"shards\": []}, ", 1);
    expect_misuse(support_millrace("eval", ds, run, "--split", "void", (char *)NULL), words);
    expect_misuse(support_millrace("predict", ds, run, "--split", "void", (char *)NULL), words);
    expect_misuse(support_millrace("train", ds, SMALL, "--eval-split", "void", (char *)NULL), words);
    support_expect(0, "eval", ds, run, (char *)NULL);

    char *bare = support_path("%.*s\"splits\": {}}", (int)(strstr(text, "\"splits\"") - text), text);
    support_write_text(manifest, bare);
    dataset_seal(ds);
    expect_misuse(support_millrace("plan", ds, "--split", "train", "--global-batch", "4", (char *)NULL), none);
    expect_misuse(support_millrace("replay", ds, "--split", "train", "--global-batch", "4", (char *)NULL), none);
    expect_misuse(support_millrace("eval", ds, run, "--split", "train", (char *)NULL), none);
    expect_misuse(support_millrace("eval", ds, run, (char *)NULL), "has neither val nor test");
    free(bare);
    free(run);
}

static void add_classes(const char *name, size_t count)
{
    mr_buf classes = {0};
    mr_buf_add_text(&classes, "\"classes\": [");
    for (size_t i = 0; i < count; i++)
        mr_buf_printf(&classes, "{\"name\":\"%s%zu\"},", name, i);
    edit("\"classes\": [", mr_buf_text(&classes), 1);
    mr_buf_free(&classes);
}

/* So many classes of theirs, a fiftieth of the model. */
static double cost_of_classes(size_t count, void *ctx)
{
    (void)ctx;
    add_classes("own", count / 50);
    char *run = train();
    add_classes("other", count);
    support_result r = support_millrace("predict", ds, run, "--no-labels", "--top", "1", (char *)NULL);
    double cpu = r.cpu;
    support_assert_status(&r, 0);
    support_result_free(&r);
    support_tmpdir_remove(run);
    return cpu;
}

/* None of one is looked for in all of the other. */
static void test_many_classes(void **state)
{
    (void)state;
    support_assert_linear("classes of theirs", cost_of_classes, NULL, support_sanitized() ? 20000 : 100000);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {TEST(test_names),       TEST(test_numbers),
                                       TEST(test_shapes),      TEST(test_classes_of_splits),
                                       TEST(test_checkpoints), TEST(test_nothing_to_evaluate),
                                       TEST(test_many_classes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
