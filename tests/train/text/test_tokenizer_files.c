/* test_tokenizer_files.c - tokenizers opened from files: known answers, folders, vocab.json and merges.txt.
 * Invariant tested: all ids are equal. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json/json.h"
#include "tests/support/support.h"
#include "tests/support/training/npz.h"
#include "train/text/parts.h"

enum { MAX = 4096 };

/* ---- known answers ----------------------------------------------------------------------------------------------- */

static mr_tokenizer *parity_tokenizer(const char *sub)
{
    char *path = support_parity(sub);
    mr_tokenizer *t = NULL;
    mr_error err;
    if (!path) {
        print_message("skipped: no parity fixture %s (MILLRACE_PARITY)\n", sub);
        skip();
    }
    if (mr_tokenizer_open(path, &t, &err) != MR_OK)
        fail_msg("%s", err.text);
    free(path);
    return t;
}

/* {"text":...,"ids":[...]}, or {"text":...,"input_ids":[...]}, cut and padded to the length that this has. */
static void check_case(const mr_tokenizer *t, mr_tokenizer_scratch *s, const json_t *one)
{
    const json_t *text = json_object_get(one, "text"), *whole = json_object_get(one, "ids");
    const json_t *wanted = whole ? whole : json_object_get(one, "input_ids");
    int32_t ids[MAX];
    size_t count, pad = 0, most = whole ? MAX : json_array_size(wanted);
    mr_error err;
    for (size_t i = json_array_size(wanted); i > 0 && !whole; i--, pad++)
        if (json_integer_value(json_array_get(wanted, i - 1)) != mr_tokenizer_pad(t))
            break;
    assert_int_equal(
        mr_tokenizer_encode(t, s, json_string_value(text), json_string_length(text), most, ids, &count, &err), MR_OK);
    assert_int_equal(count, json_array_size(wanted) - pad);
    for (size_t i = 0; i < count; i++)
        if (ids[i] != json_integer_value(json_array_get(wanted, i)))
            fail_msg("'%s': id %zu is %d, not %lld", json_string_value(text), i, ids[i],
                     json_integer_value(json_array_get(wanted, i)));
}

/* Every list of cases in the file. */
static void check_cases(const mr_tokenizer *t, const char *sub, size_t at_least)
{
    char *path = support_parity(sub);
    json_error_t why;
    json_t *doc = json_load_file(path, 0, &why), *list, *one;
    mr_tokenizer_scratch *s = mr_tokenizer_scratch_new();
    const char *key;
    size_t i, checked = 0;
    assert_true(doc && s);
    json_object_foreach(doc, key, list)
    {
        json_array_foreach(list, i, one)
        {
            check_case(t, s, one);
            checked++;
        }
    }
    assert_true(checked >= at_least);
    json_decref(doc);
    mr_tokenizer_scratch_free(s);
    free(path);
}

static void test_roberta(void **state)
{
    mr_tokenizer *t = parity_tokenizer("tokenizer"), *again;
    mr_buf json = {0};
    mr_error err;
    (void)state;
    assert_int_equal(mr_tokenizer_size(t), 50265);
    assert_int_equal(mr_tokenizer_pad(t), 1);
    check_cases(t, "tokenizer/cases.json", 65);
    assert_int_equal(mr_tokenizer_write(t, &json, &err), MR_OK);
    assert_int_equal(mr_tokenizer_parse(json.data, json.len, "again", &again, &err), MR_OK);
    check_cases(again, "tokenizer/cases.json", 65);
    mr_tokenizer_free(t);
    mr_tokenizer_free(again);
    t = parity_tokenizer("tokenizer/vocab.json");
    check_cases(t, "tokenizer/cases.json", 65);
    mr_tokenizer_free(t);
    mr_buf_free(&json);
}

static void test_tiny(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        mr_tokenizer *t = parity_tokenizer(i ? "tokenizer/tiny_tokenizer_pairs.json"
                                             : "tokenizer/tiny_tokenizer_strin"
                                               "gs.json");
        check_cases(t, "tokenizer/tiny_cases.json", 40);
        mr_tokenizer_free(t);
    }
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static void assert_open(const char *path, mr_status wanted, const char *words)
{
    mr_tokenizer *t = NULL;
    mr_error err;
    mr_status status = mr_tokenizer_open(path, &t, &err);
    if (status != wanted)
        fail_msg("%s: %d, not %d: %s", path, status, wanted, status == MR_OK ? "" : err.text);
    if (status != MR_OK && !strstr(err.text, words))
        fail_msg("'%s' has no '%s'", err.text, words);
    mr_tokenizer_free(t);
}

#define VOCAB "{\"<s>\":0,\"<pad>\":1,\"</s>\":2,\"a\":3,\"b\":4,\"ab\":5}"

static void test_files(void **state)
{
    const char *dir = *state;
    char *vocab = support_path("%s/vocab.json", dir), *merges = support_path("%s/merges.txt", dir);
    char *json = support_path("%s/tokenizer.json", dir), *fifo = support_path("%s/fifo", dir);
    static const struct {
        const char *merges;
        mr_status status;
        const char *words;
    } lines[] = {
        {"#version: 0.2\na b\n", MR_OK, ""},
        {"#version: 0.2\r\na b\r\n", MR_OK, ""},
        {"a b", MR_OK, ""},
        {"", MR_OK, ""},
        {"a b\n\n", MR_BAD_DATA, "merges.txt: line 2 is not two tokens"},
        {"a b a\n", MR_BAD_DATA, "line 1"},
        {"ab\n", MR_BAD_DATA, "line 1"},
        {"#version\nb b\n", MR_BAD_DATA, "merge 1 joins 'b' and 'b'"},
        {"a \xFF\n", MR_BAD_DATA, "merges.txt: is not UTF-8"},
    };
    assert_open(dir, MR_BAD_DATA, "holds neither tokenizer.json nor vocab.json");
    assert_open(json, MR_SYSTEM, "tokenizer.json");
    assert_open(vocab, MR_SYSTEM, "vocab.json");
    support_put(dir, "vocab.json", VOCAB);
    assert_open(dir, MR_SYSTEM, "merges.txt");
    for (size_t i = 0; i < MR_COUNT(lines); i++) {
        support_put(dir, "merges.txt", lines[i].merges);
        assert_open(i % 2 ? dir : vocab, lines[i].status, lines[i].words);
    }
    support_put(dir, "merges.txt", "a b\n");
    support_put(dir, "vocab.json", "[]");
    assert_open(dir, MR_BAD_DATA, "vocab.json: is not an object");
    support_put(dir, "vocab.json", "{\"<s>\":0,\"</s>\":2,\"a\":3,\"b\":4,\"ab\":5}");
    assert_open(dir, MR_BAD_DATA, "vocab.json: has no token <pad>");
    support_put(dir, "vocab.json", "{\"<s>\":0,\"<pad>\":1,\"</s>\":2,\"a\":true}");
    assert_open(dir, MR_BAD_DATA, "the id of token 'a' is not an integer");
    support_put(dir, "tokenizer.json", "{}");
    assert_open(dir, MR_BAD_DATA, "tokenizer.json: \"pre_tokenizer\" is missing");
    assert_int_equal(mkfifo(fifo, 0666), 0);
    assert_open(fifo, MR_BAD_DATA, "is not a regular file");
    free(vocab);
    free(merges);
    free(json);
    free(fifo);
}

/* <unk> and <mask> that a vocabulary lacks come after it, as RobertaTokenizerFast adds them. */
static void test_lacking(void **state)
{
    (void)state;
    mr_tokenizer *t = NULL;
    mr_error err;
    assert_int_equal(mr_tokenizer_parse_vocab(&(mr_vocab_file){VOCAB, strlen(VOCAB), "v"},
                                              &(mr_vocab_file){"a b", 3, "m"}, &t, &err),
                     MR_OK);
    assert_int_equal(mr_token_id(t, "<unk>"), 6);
    assert_int_equal(mr_token_id(t, "<mask>"), 7);
    assert_int_equal(mr_tokenizer_size(t), 8);
    mr_tokenizer_free(t);
    mr_tokenizer_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roberta),
        cmocka_unit_test(test_tiny),
        IN_TMPDIR(test_files),
        cmocka_unit_test(test_lacking),
    };
    return cmocka_run_group_tests_name("tokenizer_files", tests, NULL, NULL);
}
