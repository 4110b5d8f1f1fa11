/* test_tokenizer.c - texts to ids: merges, added tokens, special tokens, bytes that are not UTF-8, threads.
 * Invariant tested: expected values were worked out by hand, or by a slow and simple implementation.
 * Covers text/encode.c, text/parse.c, text/tables.c, text/unicode.c, text/vocab.c. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"
#include "train/text/parts.h"

enum { MAX = 4096 };

#define ROBERTA    "\"post_processor\":{\"type\":\"RobertaProcessing\",\"sep\":[\"</s>\",2],\"cls\":[\"<s>\",0]}"
#define BYTE_LEVEL "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"

static mr_tokenizer *must_parse(const char *json)
{
    mr_tokenizer *t = NULL;
    mr_error err;
    if (mr_tokenizer_parse(json, strlen(json), "a.json", &t, &err) != MR_OK)
        fail_msg("%s", err.text);
    return t;
}

/* Ids of a text without <s> and </s>, as words: "5 6 7"; in a buffer of the test. */
static const char *ids_of(const mr_tokenizer *t, const char *text, size_t len, size_t most)
{
    static char out[20 * MAX];
    mr_tokenizer_scratch *s = mr_tokenizer_scratch_new();
    int32_t *ids = mr_alloc(most, sizeof *ids); /* so that one too many is seen */
    size_t count = 0, at = 0;
    mr_error err;
    if (!s || !ids || most > MAX)
        abort();
    if (mr_tokenizer_encode(t, s, text, len, most, ids, &count, &err) != MR_OK)
        fail_msg("%s", err.text);
    assert_true(count >= 2 && count <= most && ids[0] == t->begin && ids[count - 1] == t->end);
    out[0] = '\0';
    for (size_t i = 1; i + 1 < count; i++)
        at += (size_t)snprintf(out + at, sizeof out - at, "%s%d", i > 1 ? " " : "", ids[i]);
    free(ids);
    mr_tokenizer_scratch_free(s);
    return out;
}

static void assert_ids(const mr_tokenizer *t, const char *text, const char *expected)
{
    assert_string_equal(ids_of(t, text, strlen(text), MAX), expected);
}

static mr_tokenizer *learn(const char *text, uint32_t size)
{
    mr_tokenizer_maker *m = mr_tokenizer_maker_new();
    mr_tokenizer *t = NULL;
    mr_error err;
    assert_non_null(m);
    assert_int_equal(mr_tokenizer_maker_add(m, text, strlen(text), &err), MR_OK);
    if (mr_tokenizer_maker_finish(m, size, &t, &err) != MR_OK)
        fail_msg("%s", err.text);
    mr_tokenizer_maker_free(m);
    return t;
}

/* ---- merges ------------------------------------------------------------------------------------------------------ */

/* <s> 0 <pad> 1 </s> 2, a 3 to e 7, then tokens of merges. */
#define LETTERS               "\"<s>\":0,\"<pad>\":1,\"</s>\":2,\"a\":3,\"b\":4,\"c\":5,\"d\":6,\"e\":7,"
#define FILE_OF(model, added) "{" BYTE_LEVEL "," ROBERTA ",\"model\":{" model "},\"added_tokens\":[" added "]}"

static void test_merges(void **state)
{
    (void)state;
    /* bc comes before ab, and what comes of it before either again. */
    mr_tokenizer *t = must_parse(FILE_OF("\"type\":\"BPE\",\"vocab\":{" LETTERS "\"ab\":8,\"bc\":9,\"abc\":10,\"aa\":1"
                                         "1,\"aaaa\":12},"
                                         "\"merges\":[\"b c\",\"a b\",[\"a\",\"bc\"],\"a a\",\"aa aa\"]",
                                         ""));
    assert_ids(t, "abc", "10");
    assert_ids(t, "ab", "8");
    assert_ids(t, "abab", "8 8");
    assert_ids(t, "abcab", "10 8");
    assert_ids(t, "aaa", "11 3");
    assert_ids(t, "aaaaaaa", "12 11 3");
    assert_ids(t, "aabc", "3 10");
    assert_ids(t, "", "");
    assert_ids(t, "xay b", "3 4"); /* bytes without a token are left out */
    mr_tokenizer_free(t);
    t = must_parse(
        FILE_OF("\"unk_token\":\"d\",\"fuse_unk\":true,\"vocab\":{" LETTERS "\"ab\":8},\"merges\":[\"a b\"]", ""));
    assert_ids(t, "axyb", "3 6 4");
    assert_ids(t, "x\xC3\xA9 z", "6 6"); /* two pieces */
    mr_tokenizer_free(t);
    t = must_parse(FILE_OF("\"unk_token\":\"d\",\"vocab\":{" LETTERS "\"ad\":8},\"merges\":[\"a d\"]", ""));
    assert_ids(t, "axyb", "8 6 4"); /* an unknown byte merges as its token does */
    mr_tokenizer_free(t);
}

/* The definition: while there is a pair that merges, the first of those of lowest rank does. */
static const char *slow_ids(const mr_tokenizer *t, const char *piece, size_t len)
{
    static char out[20 * MAX];
    int32_t ids[MAX];
    size_t n = 0, at = 0;
    for (size_t i = 0; i < len; i++)
        ids[n++] = t->bytes[(uint8_t)piece[i]];
    for (;;) {
        const mr_merge_slot *best = NULL;
        size_t place = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            const mr_merge_slot *m = mr_merge_of(t, ids[i], ids[i + 1]);
            if (m && (!best || m->rank < best->rank)) {
                best = m;
                place = i;
            }
        }
        if (!best)
            break;
        ids[place] = best->merged;
        memmove(ids + place + 1, ids + place + 2, (n - place - 2) * sizeof *ids);
        n--;
    }
    out[0] = '\0';
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(out + at, sizeof out - at, "%s%d", i ? " " : "", ids[i]);
    return out;
}

static void test_slow_form(void **state)
{
    (void)state;
    mr_random r = support_random();
    char text[3000];
    for (size_t i = 0; i < sizeof text - 1; i++)
        text[i] = "aabcdeee "[mr_random_below(&r, 9)];
    text[sizeof text - 1] = '\0';
    mr_tokenizer *t = learn(text, 400);
    for (unsigned n = 0; n < 600; n++) {
        char piece[400];
        size_t len = 1 + mr_random_below(&r, n % 10 ? 30 : sizeof piece - 1);
        for (size_t i = 0; i < len; i++)
            piece[i] = "abcde"[mr_random_below(&r, n % 2 ? 5 : 2)];
        assert_string_equal(ids_of(t, piece, len, MAX), slow_ids(t, piece, len));
    }
    mr_tokenizer_free(t);
}

/* A quadratic way would take minutes. */
static void test_long_words(void **state)
{
    (void)state;
    mr_tokenizer *t = learn("abab cdcd abcd aaaa aaaa abab bbbb cccc dddd", 300);
    mr_tokenizer_scratch *s = mr_tokenizer_scratch_new();
    mr_random r = support_random();
    enum { LEN = 1 << 20 };
    char *text = malloc(LEN);
    int32_t ids[64], *all = malloc((LEN + 2) * sizeof *all);
    size_t count, total;
    mr_error err;
    assert_true(s && text && all);
    for (unsigned kind = 0; kind < 5; kind++) {
        static const char *const letters[] = {"a", "abcd", " ", "'", " a"};
        for (size_t i = 0; i < LEN; i++)
            text[i] = letters[kind][mr_random_below(&r, strlen(letters[kind]))];
        size_t len = kind == 1 && support_sanitized() ? LEN / 8 : LEN;
        assert_int_equal(mr_tokenizer_encode(t, s, text, len, len + 2, all, &total, &err), MR_OK);
        assert_int_equal(mr_tokenizer_encode(t, s, text, len, 64, ids, &count, &err), MR_OK);
        assert_true(count == 64 && total > 64);
        assert_memory_equal(ids, all, 63 * sizeof *ids);
    }
    free(all);
    free(text);
    mr_tokenizer_scratch_free(s);
    mr_tokenizer_free(t);
}

/* ---- added tokens ------------------------------------------------------------------------------------------------ */

#define ADDED(id, text, more) "{\"id\":" #id ",\"content\":\"" text "\"" more "}"
#define PLAIN_MODEL           "\"vocab\":{" LETTERS "\"\xC4\xA0\":8},\"merges\":[]"

static void test_added(void **state)
{
    (void)state;
    mr_tokenizer *t = must_parse(FILE_OF(
        PLAIN_MODEL,
        ADDED(0, "<s>", ",\"special\":true") "," ADDED(9, "<m>", ",\"lstrip\":true") "," ADDED(
            10, "<mm>", "") "," ADDED(11, "<m>a",
                                      ",\"rstrip\":true") "," ADDED(12, "de",
                                                                    ",\"single_word\":true") "," ADDED(13, "\xC3\xA9",
                                                                                                       "")));
    assert_int_equal(mr_tokenizer_size(t), 14);
    assert_ids(t, "a<s>b", "3 0 4");
    assert_ids(t, "a  <m>b", "3 9 4"); /* blanks before it go with it */
    assert_ids(t, "a <mm>b", "3 8 10 4");
    assert_ids(t, " <m>a\xC2\xA0 b", "8 11 4"); /* the longest; spaces after it go with it */
    assert_ids(t, "<m>a <m>", "11 9");
    assert_ids(t, "<m", "");
    assert_ids(t, "de", "12");
    assert_ids(t, "a de!", "3 8 12");
    assert_ids(t, "ade", "3 6 7");
    assert_ids(t, "dea", "6 7 3");
    assert_ids(t, "de_", "6 7");        /* _ is a part of words */
    assert_ids(t, "de\xCC\x81", "6 7"); /* a mark too */
    assert_ids(t,
               "\xE2\x80\x8D"
               "de",
               "6 7"); /* and a joiner */
    assert_ids(t, "de-de", "12 12");
    assert_ids(t,
               "b\xC3\xA9"
               "b",
               "4 13 4");
    mr_tokenizer_free(t);
    /* Those that look at the normalized text come second, even if they are longer. */
    t = must_parse(
        FILE_OF(PLAIN_MODEL, ADDED(9, "<ab", ",\"normalized\":true") "," ADDED(10, "ab", ",\"normalized\":false")));
    assert_ids(t, "<ab", "10");
    mr_tokenizer_free(t);
    t = must_parse(FILE_OF(PLAIN_MODEL, ADDED(9, "<ab", "") "," ADDED(10, "ab", "")));
    assert_ids(t, "<ab", "9");
    mr_tokenizer_free(t);
}

/* A stretch between added tokens is a text of its own to the pattern: its last blanks stay together. */
static void test_stretches(void **state)
{
    (void)state;
    mr_tokenizer *t = must_parse(FILE_OF("\"vocab\":{" LETTERS "\"\xC4\xA0\":8,\"\xC4\xA0\xC4\xA0\":9},"
                                         "\"merges\":[\"\xC4\xA0 \xC4\xA0\"]",
                                         ADDED(10, "<x>", "")));
    assert_ids(t, "a  b", "3 8 8 4");
    assert_ids(t, "a  <x>b", "3 9 10 4");
    mr_tokenizer_free(t);
}

/* ---- ends, bytes, threads ---------------------------------------------------------------------------------------- */

static void test_ends(void **state)
{
    (void)state;
    mr_tokenizer *t = must_parse(FILE_OF(PLAIN_MODEL, ADDED(9, "<x>", "")));
    mr_tokenizer_scratch *s = mr_tokenizer_scratch_new();
    int32_t ids[8] = {0};
    size_t count = 7;
    mr_error err;
    assert_string_equal(ids_of(t, "a b<x>c", 7, 2), "");
    assert_string_equal(ids_of(t, "a b<x>c", 7, 3), "3");
    assert_string_equal(ids_of(t, "a b<x>c", 7, 5), "3 8 4");
    assert_string_equal(ids_of(t, "a b<x>c", 7, 6), "3 8 4 9");
    assert_string_equal(ids_of(t, "a b<x>c", 7, 7), "3 8 4 9 5");
    assert_string_equal(ids_of(t, "a b<x>c", 7, 8), "3 8 4 9 5");
    /* A piece that was cut is not remembered as cut. */
    assert_int_equal(mr_tokenizer_encode(t, s, "abcd", 4, 3, ids, &count, &err), MR_OK);
    assert_int_equal(count, 3);
    assert_int_equal(mr_tokenizer_encode(t, s, "abcd", 4, 8, ids, &count, &err), MR_OK);
    assert_int_equal(count, 6);
    assert_int_equal(mr_tokenizer_encode(t, s, "abcd", 4, 1, ids, &count, &err), MR_MISUSE);
    assert_int_equal(mr_tokenizer_encode(t, s, NULL, 0, 8, ids, &count, &err), MR_OK);
    assert_int_equal(count, 2);
    mr_tokenizer_scratch_free(s);
    mr_tokenizer_free(t);
}

static void test_one_scratch_many_tokenizers(void **state)
{
    (void)state;
    mr_tokenizer *a = must_parse(FILE_OF("\"vocab\":{" LETTERS "\"ab\":8},\"merges\":[\"a b\"]", ""));
    mr_tokenizer *b = must_parse(FILE_OF("\"vocab\":{" LETTERS "\"ab\":9},\"merges\":[\"a b\"]", ""));
    mr_tokenizer_scratch *s = mr_tokenizer_scratch_new();
    int32_t ids[8];
    size_t count;
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(mr_tokenizer_encode(i % 2 ? b : a, s, "ab", 2, 8, ids, &count, NULL), MR_OK);
        assert_int_equal(ids[1], i % 2 ? 9 : 8);
    }
    mr_tokenizer_scratch_free(s);
    mr_tokenizer_free(a);
    mr_tokenizer_free(b);
}

/* The same as of U+FFFD, one for each maximal part; a NUL is a byte like others. */
static void test_bytes(void **state)
{
    (void)state;
    mr_tokenizer *t = learn("x", 261);
    char *broken = strdup(ids_of(t,
                                 "a\xE6\x9D"
                                 "b\xFF\xC3",
                                 6, MAX));
    assert_ids(t,
               "a\xEF\xBF\xBD"
               "b\xEF\xBF\xBD\xEF\xBF\xBD",
               broken);
    assert_string_equal(broken, "101 243 195 193 102 243 195 193 243 195 193");
    assert_string_equal(ids_of(t, "a\0b", 3, MAX), "101 4 102");
    assert_ids(t, "a <mask> b<unk>", "101 260 36 102 3"); /* what a learned one has without being told */
    free(broken);
    mr_tokenizer_free(t);
}

static void *encode_many(void *arg)
{
    const mr_tokenizer *t = arg;
    mr_tokenizer_scratch *s = mr_tokenizer_scratch_new();
    uint64_t sum = 0;
    mr_random r;
    mr_random_seed(&r, 5);
    for (unsigned n = 0; n < 3000; n++) {
        char text[60];
        int32_t ids[64];
        size_t count = 0;
        for (size_t i = 0; i < sizeof text; i++)
            text[i] = "abcde '\xC3"[mr_random_below(&r, 8)];
        if (!s || mr_tokenizer_encode(t, s, text, sizeof text, 64, ids, &count, NULL) != MR_OK)
            break;
        for (size_t i = 0; i < count; i++)
            sum = sum * 31 + (uint64_t)ids[i];
    }
    mr_tokenizer_scratch_free(s);
    return (void *)(uintptr_t)sum;
}

static void test_threads(void **state)
{
    (void)state;
    mr_tokenizer *t = learn("ab ab abc abc de de dead bead bead", 290);
    void *sums[4];
    pthread_t threads[4];
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, encode_many, t), 0);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], &sums[i]), 0);
    for (unsigned i = 1; i < 4; i++)
        assert_ptr_equal(sums[i], sums[0]);
    mr_tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merges),
        cmocka_unit_test(test_slow_form),
        cmocka_unit_test(test_long_words),
        cmocka_unit_test(test_added),
        cmocka_unit_test(test_stretches),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_one_scratch_many_tokenizers),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests_name("tokenizer", tests, NULL, NULL);
}
