/* test_maker.c - learned tokenizers: worked examples, and a slow implementation for random texts.
 * Invariant tested: equal texts, in any order, give equal bytes.
 * Covers text/learn.c. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"
#include "train/text/learn.h"

static mr_tokenizer *finish(mr_tokenizer_maker *m, uint32_t size)
{
    mr_tokenizer *t = NULL;
    mr_error err;
    if (mr_tokenizer_maker_finish(m, size, &t, &err) != MR_OK)
        fail_msg("%s", err.text);
    mr_tokenizer_maker_free(m);
    return t;
}

static mr_tokenizer_maker *maker_of(const char *const *texts, size_t count)
{
    mr_tokenizer_maker *m = mr_tokenizer_maker_new();
    assert_non_null(m);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(mr_tokenizer_maker_add(m, texts[i], strlen(texts[i]), NULL), MR_OK);
    return m;
}

static char *written(const mr_tokenizer *t)
{
    mr_buf out = {0};
    mr_error err;
    assert_int_equal(mr_tokenizer_write(t, &out, &err), MR_OK);
    char *text = strdup(mr_buf_text(&out));
    mr_buf_free(&out);
    return text;
}

/* "A B,C D": the merges in their order. */
static char *merges_of(const mr_tokenizer *t)
{
    mr_buf out = {0};
    for (size_t i = 0; i < t->merge_count; i++) {
        const mr_token *a = &t->tokens[t->merges[i].left], *b = &t->tokens[t->merges[i].right];
        mr_buf_printf(&out, "%s%.*s %.*s", i ? "," : "", (int)a->len, (const char *)t->text.data + a->at, (int)b->len,
                      (const char *)t->text.data + b->at);
    }
    char *text = strdup(mr_buf_text(&out));
    mr_buf_free(&out);
    return text;
}

static void assert_merges(const char *const *texts, size_t count, uint32_t size, const char *expected)
{
    mr_tokenizer *t = finish(maker_of(texts, count), size);
    char *merges = merges_of(t);
    assert_string_equal(merges, expected);
    assert_int_equal(mr_tokenizer_pad(t), 1);
    assert_int_equal(mr_token_id(t, "<s>"), 0);
    assert_int_equal(mr_token_id(t, "</s>"), 2);
    assert_int_equal(mr_token_id(t, "<unk>"), 3);
    assert_int_equal(mr_token_id(t, "<mask>"), mr_tokenizer_size(t) - 1);
    for (int byte = 0; byte < 256; byte++)
        assert_int_equal(t->bytes[byte], 4 + byte);
    free(merges);
    mr_tokenizer_free(t);
}

/* The words of the paper: low 5 times, lower 2, newest 6, widest 3. */
static void test_by_hand(void **state)
{
    (void)state;
    static const char *const one[] = {"aaaa ab"};
    static const char *const paper[] = {"low",    "low",    "low",    "low",    "low",    "lower",  "lower",  "newest",
                                        "newest", "newest", "newest", "newest", "newest", "widest", "widest", "widest"};
    /* aa stands at 3 places, none other twice; once merged, "aa aa" stands at one. */
    assert_merges(one, 1, 300, "a a");
    /* es and st come 9 times, "e" < "s"; then es t 9; lo and ow 7, "l" < "o"; lo w 7; e w, n e, w est 6, and so on. */
    assert_merges(paper, MR_COUNT(paper), 265, "e s,es t,l o,lo w");
    assert_merges(paper, MR_COUNT(paper), 268, "e s,es t,l o,lo w,e w,ew est,n ewest");
    assert_merges(paper, MR_COUNT(paper), 300, "e s,es t,l o,lo w,e w,ew est,n ewest,d est,i dest,w idest,e r,low er");
    assert_merges(paper, MR_COUNT(paper), 261, "");
    assert_merges(NULL, 0, 5000, "");
}

/* ---- a slow form ------------------------------------------------------------------------------------------------- */

typedef struct slow_word {
    char parts[80][32];
    size_t count;
} slow_word;

/* Counts every pair again for each merge: `words` are all words of all texts, one by one. */
static char *slow_merges(slow_word *words, size_t count, size_t most)
{
    mr_buf out = {0};
    for (size_t merge = 0; merge < most; merge++) {
        const char *left = NULL, *right = NULL;
        size_t best = 1;
        for (size_t w = 0; w < count; w++)
            for (size_t i = 0; i + 1 < words[w].count; i++) {
                const char *a = words[w].parts[i], *b = words[w].parts[i + 1];
                size_t n = 0;
                for (size_t v = 0; v < count; v++)
                    for (size_t k = 0; k + 1 < words[v].count; k++)
                        n += !strcmp(words[v].parts[k], a) && !strcmp(words[v].parts[k + 1], b);
                int order = left ? strcmp(a, left) : -1;
                if (n > best || (n == best && left && (order < 0 || (order == 0 && strcmp(b, right) < 0)))) {
                    best = n;
                    left = a;
                    right = b;
                }
            }
        if (!left)
            break;
        char a[32], b[32];
        strcpy(a, left);
        strcpy(b, right);
        mr_buf_printf(&out, "%s%s %s", merge ? "," : "", a, b);
        for (size_t w = 0; w < count; w++)
            for (size_t i = 0; i + 1 < words[w].count; i++)
                if (!strcmp(words[w].parts[i], a) && !strcmp(words[w].parts[i + 1], b)) {
                    strcat(words[w].parts[i], b);
                    memmove(words[w].parts[i + 1], words[w].parts[i + 2],
                            (words[w].count - i - 2) * sizeof words[w].parts[0]);
                    words[w].count--;
                }
    }
    char *text = strdup(mr_buf_text(&out));
    mr_buf_free(&out);
    return text;
}

/* Texts of one word each, of letters, with no blank before them. */
static void test_slow_form(void **state)
{
    (void)state;
    mr_random r = support_random();
    for (unsigned round = 0; round < 40; round++) {
        slow_word *words = mr_alloc(12, sizeof *words);
        mr_tokenizer_maker *m = mr_tokenizer_maker_new();
        assert_true(words && m);
        for (size_t w = 0; w < 12; w++) {
            char text[32] = {0};
            words[w].count = 1 + mr_random_below(&r, 14);
            for (size_t i = 0; i < words[w].count; i++)
                text[i] = words[w].parts[i][0] = "abc"[mr_random_below(&r, round % 2 ? 3 : 2)];
            assert_int_equal(mr_tokenizer_maker_add(m, text, words[w].count, NULL), MR_OK);
        }
        mr_tokenizer *t = finish(m, 261 + 12);
        char *merges = merges_of(t), *wanted = slow_merges(words, 12, t->merge_count);
        assert_string_equal(merges, wanted);
        free(merges);
        free(wanted);
        free(words);
        mr_tokenizer_free(t);
    }
}

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

static void test_order_and_round_trip(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "two dogs in a car",        "two cats\tsleeping on a couch", "don't  stop", "\xC3\xA9t\xC3\xA9", "\xFF\xC3",
        "\xEF\xBF\xBD\xEF\xBF\xBD", "dogs and cats, cats and dogs!", "\"\\ \x01"};
    const char *turned[MR_COUNT(texts)];
    for (size_t i = 0; i < MR_COUNT(texts); i++)
        turned[i] = texts[MR_COUNT(texts) - 1 - i];
    mr_tokenizer *a = finish(maker_of(texts, MR_COUNT(texts)), 290),
                 *b = finish(maker_of(turned, MR_COUNT(texts)), 290);
    mr_tokenizer *c;
    mr_error err;
    char *one = written(a), *two = written(b);
    assert_string_equal(one, two);
    if (mr_tokenizer_parse(one, strlen(one), "one.json", &c, &err) != MR_OK)
        fail_msg("%s", err.text);
    free(two);
    two = written(c);
    assert_string_equal(one, two);
    assert_int_equal(mr_tokenizer_size(c), mr_tokenizer_size(a));
    free(one);
    free(two);
    mr_tokenizer_free(a);
    mr_tokenizer_free(b);
    mr_tokenizer_free(c);
}

/* No token is made in two ways, and a pair is learned once. */
static void test_one_token_one_id(void **state)
{
    (void)state;
    mr_random r = support_random();
    mr_tokenizer_maker *m = mr_tokenizer_maker_new();
    for (unsigned i = 0; i < 3000; i++) {
        char word[12];
        size_t len = 2 + mr_random_below(&r, 10);
        for (size_t k = 0; k < len; k++)
            word[k] = "ab"[mr_random_below(&r, 2)];
        assert_int_equal(mr_tokenizer_maker_add(m, word, len, NULL), MR_OK);
    }
    mr_tokenizer *t = finish(m, 3000); /* adding a token twice would fail */
    assert_int_equal(t->merge_count, t->token_count - 261);
    assert_int_equal(mr_tokenizer_size(t), t->token_count);
    for (size_t i = 0; i < t->merge_count; i++)
        for (size_t k = i + 1; k < t->merge_count; k++)
            assert_false(t->merges[i].left == t->merges[k].left && t->merges[i].right == t->merges[k].right);
    mr_tokenizer_free(t);
}

/* One word of many letters: work by places, tokens of a bounded length. */
static void test_long_word(void **state)
{
    (void)state;
    size_t len = (support_sanitized() ? 400 : 1600) * MR_LEARN_TOKEN;
    char *text = malloc(len);
    mr_random r = support_random();
    for (unsigned kind = 0; kind < 2; kind++) {
        mr_tokenizer_maker *m = mr_tokenizer_maker_new();
        for (size_t i = 0; i < len; i++)
            text[i] = "abcd"[mr_random_below(&r, kind ? 4 : 1)];
        assert_int_equal(mr_tokenizer_maker_add(m, text, len, NULL), MR_OK);
        assert_int_equal(mr_tokenizer_maker_add(m, text, len, NULL), MR_OK);
        mr_tokenizer *t = finish(m, 3000);
        for (size_t i = 0; i < t->token_count; i++)
            assert_true(t->tokens[i].len <= MR_LEARN_TOKEN);
        if (kind == 0)
            assert_int_equal(mr_tokenizer_size(t), 261 + 8); /* aa to a^256 */
        else
            assert_int_equal(mr_tokenizer_size(t), 3000);
        mr_tokenizer_free(t);
    }
    free(text);
}

static void test_misuse(void **state)
{
    (void)state;
    mr_tokenizer_maker *m = mr_tokenizer_maker_new();
    mr_tokenizer *t = NULL;
    mr_error err;
    assert_int_equal(mr_tokenizer_maker_finish(m, 260, &t, &err), MR_MISUSE);
    assert_int_equal(mr_tokenizer_maker_finish(m, 1u << 24, &t, &err), MR_MISUSE);
    assert_null(t);
    assert_int_equal(mr_tokenizer_maker_add(m, NULL, 0, &err), MR_OK);
    mr_tokenizer_maker_free(m);
    mr_tokenizer_maker_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_slow_form),
        cmocka_unit_test(test_order_and_round_trip),
        cmocka_unit_test(test_one_token_one_id),
        cmocka_unit_test(test_long_word),
        cmocka_unit_test(test_misuse),
    };
    return cmocka_run_group_tests_name("tokenizer_maker", tests, NULL, NULL);
}
