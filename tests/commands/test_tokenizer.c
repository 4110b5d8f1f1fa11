/* test_tokenizer.c - `millrace tokenizer`: what it learns from, where it writes, what it refuses.
 * Invariant tested: the file is what the maker makes of the same captions; a refusal leaves no file. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/file.h"
#include "tests/support/shards/dataset_maker.h"
#include "tests/support/support.h"
#include "train/text/tokenizer.h"

static const char *const captions[] = {"two dogs in a car", "two cats sleeping on a couch", "a dog",
                                       "caf\xC3\xA9, caf\xC3\xA9!", "cats"};

/* DIR/data: train has these captions, one of them in a column, val one; none in test. */
static char *make_dataset(const char *dir)
{
    picture image = make_jpeg((jpeg_kind){.width = 8, .height = 8, .components = 1});
    const made train[] = {
        {.source = "a.jpg",
         .image = image,
         .more = ",\"captions\":[{\"caption\":\"two dogs in a car\"},{\"caption\":\"two cats "
                 "sleeping on a couch\"}],\"columns\":{\"title\":\"a dog\"}"},
        {.source = "b.jpg", .shares = true, .more = ",\"captions\":[\"a dog\",\"caf\\u00e9, caf\xC3\xA9!\",\"\"]"},
        {.source = "c.jpg", .shares = true, .more = ",\"captions\":[]"},
        {.source = "d.jpg", .shares = true, .more = ",\"captions\":[{\"caption\":\"cats\"}]"},
    };
    const made val[] = {{.source = "e.jpg", .image = image, .more = ",\"columns\":{\"title\":\"words here\"}"}};
    const made test[] = {{.source = "f.jpg", .image = image}};
    const made_split splits[] = {{"train", train, 4, 4}, {"val", val, 1, 1}, {"test", test, 1, 1}};
    char *path = support_path("%s/data", dir);
    if (mkdir(path, 0777) != 0)
        fail_msg("cannot make %s", path);
    dataset_make(path, splits, 3);
    picture_free(&image);
    return path;
}

static void expected_file(const char *path, uint32_t size)
{
    mr_tokenizer_maker *m = mr_tokenizer_maker_new();
    mr_tokenizer *t = NULL;
    mr_buf json = {0};
    assert_non_null(m);
    for (size_t i = 0; i < MR_COUNT(captions); i++)
        assert_int_equal(mr_tokenizer_maker_add(m, captions[i], strlen(captions[i]), NULL), MR_OK);
    assert_int_equal(mr_tokenizer_maker_finish(m, size, &t, NULL), MR_OK);
    assert_int_equal(mr_tokenizer_write(t, &json, NULL), MR_OK);
    support_write(path, json.data, json.len);
    mr_buf_free(&json);
    mr_tokenizer_free(t);
    mr_tokenizer_maker_free(m);
}

static void assert_says(support_result r, int status, const char *out, const char *err)
{
    support_assert_status(&r, status);
    if (!strstr(r.out, out) || !strstr(r.err, err))
        fail_msg("no '%s' in '%s', or no '%s' in '%s'", out, r.out, err, r.err);
    support_result_free(&r);
}

static void test_learns(void **state)
{
    const char *dir = *state;
    char *data = make_dataset(dir), *file = support_path("%s/t.json", dir), *wanted = support_path("%s/wanted", dir);
    mr_tokenizer *t = NULL;
    expected_file(wanted, 266);
    assert_says(support_millrace("tokenizer", data, "--size", "266", "-o", file, (char *)NULL), 0,
                "t.json: 266 tokens learned from 5 texts (67 B) in \"captions\" of train; ", "");
    support_assert_same_file(file, wanted);
    assert_int_equal(mr_tokenizer_open(file, &t, NULL), MR_OK);
    mr_tokenizer_free(t);
    char *notes = support_path("%s/notes.json", dir);
    support_write_text(notes, "{\"mine\": 1}");
    assert_says(support_millrace("tokenizer", data, "--force", "-o", notes, (char *)NULL), 2, "", "is not a tokenizer");
    assert_int_equal(support_size(notes), 11);
    free(notes);
    /* There already: refused, then replaced. */
    assert_says(support_millrace("tokenizer", data, "--size", "300", "-o", file, (char *)NULL), 2, "",
                "--force replaces it");
    support_assert_same_file(file, wanted);
    assert_says(support_millrace("tokenizer", data, "--force", "-q", "-o", file, (char *)NULL), 0, "", "");
    expected_file(wanted, 8000);
    support_assert_same_file(file, wanted);
    assert_says(
        support_millrace("tokenizer", data, "--force", "--split=val", "--text-column=title", "-o", file, (char *)NULL),
        0, "learned from 1 text (10 B) in \"title\" of val, as no pair is left that occurs twice; ", "");
    free(data);
    free(file);
    free(wanted);
}

/* In the folder that it is called in, if nothing else is said. */
static void test_default_name(void **state)
{
    const char *dir = *state;
    char *data = make_dataset(dir), *file = support_path("%s/tokenizer.json", dir);
    const support_limits here = {.directory = dir};
    const char *const argv[] = {support_millrace_path(), "tokenizer", "data", NULL};
    assert_says(support_run(argv, &here), 0, "tokenizer.json: ", "");
    assert_true(support_exists(file));
    free(data);
    free(file);
}

static void test_refusals(void **state)
{
    const char *dir = *state;
    char *data = make_dataset(dir), *file = support_path("%s/t.json", dir),
         *nowhere = support_path("%s/no/t.json", dir);
    const struct {
        int status;
        const char *option, *value, *words;
    } cases[] = {
        {2, "--split", "dev", "has no such split; it has train, val, test"},
        {2, "--size", "260", "expected a number from 261"},
        {2, "--size", "16777216", "expected a number from 261"},
        {2, "--size", "many", "expected a number"},
        {2, "--output", dir, "is a directory"},
        {2, "--output", nowhere, "no/t.json: its folder does not exist"},
        {1, "--text-column", "story",
         "no sample of train has text in column \"story\"; the first has it in title, cap"
         "tions"},
        {2, "--split", "val", "choose a --text-column; the first sample has text in title"},
        {1, "--split", "test", "has no text to train on"},
        {2, "--spilt", "val", "--split"},
    };
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        assert_says(support_millrace("tokenizer", data, "-o", file, cases[i].option, cases[i].value, (char *)NULL),
                    cases[i].status, "", cases[i].words);
        assert_false(support_exists(file));
    }
    assert_says(support_millrace("tokenizer", (char *)NULL), 2, "", "tokenizer");
    assert_says(support_millrace("tokenizer", dir, (char *)NULL), 2, "", dir);
    assert_says(support_millrace("tokenizer", "--help", (char *)NULL), 0, "Exit status: 0 done", "");
    free(data);
    free(file);
    free(nowhere);
}

/* A sample whose meta is not what it was: nothing is written, and the sample is named. */
static void test_damage(void **state)
{
    const char *dir = *state;
    char *data = make_dataset(dir), *mdb = support_path("%s/train-00000.mdb", data),
         *file = support_path("%s/t.json", dir);
    size_t len;
    uint8_t *bytes = support_read(mdb, &len), *at = memmem(bytes, len, "sleeping", 8);
    assert_non_null(at);
    *at ^= 1;
    support_write(mdb, bytes, len);
    assert_says(support_millrace("tokenizer", data, "-o", file, (char *)NULL), 1, "", "train");
    assert_false(support_exists(file));
    free(bytes);
    free(data);
    free(mdb);
    free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(test_learns),
        IN_TMPDIR(test_default_name),
        IN_TMPDIR(test_refusals),
        IN_TMPDIR(test_damage),
    };
    return cmocka_run_group_tests_name("tokenizer_command", tests, NULL, NULL);
}
