/* test_tokenizer_oracle.c - classes of code points and ids of random texts are those of the `tokenizers` package for
 * the files that millrace learns and writes. MILLRACE_TOKENIZERS_TEXTS asks for more than 4,000 texts.
 * Invariant tested: without that package every test here is skipped with a message. */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "tests/support/support.h"
#include "tests/support/training/npz.h"
#include "train/text/parts.h"

static char *dir;

static mr_tokenizer *open_tokenizer(const char *path)
{
    mr_tokenizer *t = NULL;
    mr_error err;
    if (mr_tokenizer_open(path, &t, &err) != MR_OK)
        fail_msg("%s", err.text);
    return t;
}

/* Learned from this very folder's texts, in the same words as the random texts. */
static void write_learned(const char *path)
{
    mr_tokenizer_maker *m = mr_tokenizer_maker_new();
    mr_tokenizer *t;
    mr_buf out = {0};
    mr_error err;
    char *source = support_path("%s/tests/train/text/tokenizer_oracle.py", MILLRACE_SOURCE_DIR);
    size_t len;
    char *text = (char *)support_read(source, &len);
    assert_non_null(m);
    assert_int_equal(mr_tokenizer_maker_add(m, text, len, &err), MR_OK);
    assert_int_equal(mr_tokenizer_maker_finish(m, 700, &t, &err), MR_OK);
    assert_int_equal(mr_tokenizer_write(t, &out, &err), MR_OK);
    support_write(path, out.data, out.len);
    mr_buf_free(&out);
    mr_tokenizer_free(t);
    mr_tokenizer_maker_free(m);
    free(source);
    free(text);
}

static bool ask(void)
{
    const char *texts = getenv("MILLRACE_TOKENIZERS_TEXTS"), *seed = getenv("MILLRACE_TEST_SEED");
    char *learned = support_path("%s/learned.json", dir), *roberta = support_parity("tokenizer");
    const char *args[] = {dir, texts ? texts : "4000", seed ? seed : "1", learned, roberta, NULL};
    write_learned(learned);
    bool ran = support_python_ran("train/text/tokenizer_oracle.py", args, NULL);
    free(learned);
    free(roberta);
    return ran;
}

static void check_classes(void)
{
    char *path = support_path("%s/classes", dir);
    size_t len;
    uint8_t *classes = support_read(path, &len);
    assert_int_equal(len, 0x110000);
    for (uint32_t code = 0; code < len; code++)
        if (classes[code] != 255 && mr_class_of(code) != classes[code])
            fail_msg("U+%04X is %d, not %d", code, mr_class_of(code), classes[code]);
    free(classes);
    free(path);
}

static void fail_ids(const char *path, const char *text, size_t len, const int32_t *ids, size_t count,
                     const int32_t *wanted, size_t wanted_count)
{
    mr_buf out = {0};
    mr_buf_printf(&out, "%s: ids of '%.*s' (", path, (int)len, text);
    for (size_t i = 0; i < len; i++)
        mr_buf_printf(&out, "\\x%02x", (uint8_t)text[i]);
    mr_buf_add_text(&out, ") are");
    for (size_t i = 0; i < count; i++)
        mr_buf_printf(&out, " %d", ids[i]);
    mr_buf_add_text(&out, ", not");
    for (size_t i = 0; i < wanted_count; i++)
        mr_buf_printf(&out, " %d", wanted[i]);
    fail_msg("%s", mr_buf_text(&out));
}

/* Every text of a file of cases; what we write of the tokenizer gives the same. */
static size_t check_cases(const char *tokenizer, const uint8_t *cases, size_t len)
{
    mr_tokenizer *t = open_tokenizer(tokenizer), *again;
    mr_tokenizer_scratch *s = mr_tokenizer_scratch_new();
    mr_buf json = {0};
    mr_error err;
    size_t texts = 0, count;
    int32_t ids[4000], wanted[4000];
    assert_non_null(s);
    assert_int_equal(mr_tokenizer_write(t, &json, &err), MR_OK);
    if (mr_tokenizer_parse(json.data, json.len, "again", &again, &err) != MR_OK)
        fail_msg("%s: %s", tokenizer, err.text);
    for (size_t at = 0; at < len; texts++) {
        uint32_t n, ids_n;
        memcpy(&n, cases + at, 4);
        const char *text = (const char *)cases + at + 4;
        memcpy(&ids_n, cases + at + 4 + n, 4);
        assert_true(ids_n <= MR_COUNT(wanted));
        memcpy(wanted, cases + at + 8 + n, 4 * (size_t)ids_n);
        at += 8 + n + 4 * (size_t)ids_n;
        for (unsigned k = 0; k < 2; k++) {
            assert_int_equal(mr_tokenizer_encode(k ? again : t, s, text, n, MR_COUNT(ids), ids, &count, &err), MR_OK);
            if (count != ids_n || memcmp(ids, wanted, count * sizeof *ids) != 0)
                fail_ids(tokenizer, text, n, ids, count, wanted, ids_n);
        }
    }
    mr_buf_free(&json);
    mr_tokenizer_free(again);
    mr_tokenizer_free(t);
    mr_tokenizer_scratch_free(s);
    return texts;
}

static void test_oracle(void **state)
{
    (void)state;
    size_t texts = 0, files = 0;
    if (!ask())
        skip();
    check_classes();
    for (unsigned i = 0; i < 20; i++) {
        char *cases = support_path("%s/%u.cases", dir, i), *path = support_path("%s/%u.path", dir, i);
        if (support_exists(cases)) {
            size_t len;
            uint8_t *bytes = support_read(cases, &len);
            char *tokenizer = (char *)support_read(path, NULL);
            texts += check_cases(tokenizer, bytes, len);
            files++;
            free(bytes);
            free(tokenizer);
        }
        free(cases);
        free(path);
    }
    print_message("%zu texts by %zu tokenizers\n", texts, files);
    assert_true(files >= 13);
}

static int set_up(void **state)
{
    (void)state;
    dir = support_tmpdir();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    support_tmpdir_remove(dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_oracle, set_up, tear_down)};
    return cmocka_run_group_tests_name("tokenizer_oracle", tests, NULL, NULL);
}
