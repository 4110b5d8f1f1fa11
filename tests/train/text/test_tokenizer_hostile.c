/* test_tokenizer_hostile.c - tokenizer files that are not supported or damaged: each is rejected in bounded time.
 * Invariant tested: every case fails with a message that names what is wrong, and the intact file it was made from
 * does not. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"
#include "train/text/parts.h"

/* A sound file, in parts that cases replace. */
static const char *const parts[][2] = {
    {"version", "\"version\":\"1.0\","},
    {"padding", "\"truncation\":null,\"padding\":null,"},
    {"added", "\"added_tokens\":[{\"id\":0,\"content\":\"<s>\",\"special\":true},{\"id\":7,\"content\":\"new\"}],"},
    {"normalizer", "\"normalizer\":null,"},
    {"pre", "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true},"},
    {"post", "\"post_processor\":{\"type\":\"RobertaProcessing\",\"sep\":[\"</s>\",2],\"cls\":[\"<s>\",0]},"},
    {"decoder", "\"decoder\":{\"type\":\"ByteLevel\"},"},
    {"model", "\"model\":{\"type\":\"BPE\",\"dropout\":null,"},
    {"vocab", "\"vocab\":{\"<s>\":0,\"<pad>\":1,\"</s>\":2,\"a\":3,\"b\":4,\"ab\":5,\"<unk>\":6},"},
    {"merges", "\"merges\":[\"a b\"]}}"},
};

/* The file with one part replaced; heap. */
static char *file_with(const char *part, const char *text)
{
    mr_buf out = {0};
    bool found = part == NULL;
    mr_buf_add_text(&out, "{");
    for (size_t i = 0; i < MR_COUNT(parts); i++) {
        bool this_one = part && strcmp(parts[i][0], part) == 0;
        found = found || this_one;
        mr_buf_add_text(&out, this_one ? text : parts[i][1]);
    }
    assert_true(found);
    char *copy = strdup(mr_buf_text(&out));
    mr_buf_free(&out);
    return copy;
}

static void assert_taken(const char *part, const char *text)
{
    char *json = file_with(part, text);
    mr_tokenizer *t = NULL;
    mr_error err;
    if (mr_tokenizer_parse(json, strlen(json), "a.json", &t, &err) != MR_OK)
        fail_msg("%s\n%s", err.text, json);
    mr_tokenizer_free(t);
    free(json);
}

static void assert_refused(const char *json, size_t len, const char *words)
{
    mr_tokenizer *t = NULL;
    mr_error err;
    assert_int_equal(mr_tokenizer_parse(json, len, "a.json", &t, &err), MR_BAD_DATA);
    assert_null(t);
    if (!strstr(err.text, words) || strncmp(err.text, "a.json: ", 8) != 0)
        fail_msg("'%s' has no '%s'", err.text, words);
}

static void test_refusals(void **state)
{
    static const struct {
        const char *part, *text, *words;
    } cases[] = {
        {"version", "\"version\":\"2.0\",", "\"2.0\""},
        {"version", "\"version\":\"1.0\",\"speed\":1,", "\"speed\", which this tokenizer does not support"},
        {"version", "\"version\":\"1.0\",\"version\":\"1.0\",", "duplicate key"},
        {"normalizer", "\"normalizer\":{\"type\":\"Lowercase\"},", "is Lowercase; this tokenizer requires null"},
        {"pre", "", "\"pre_tokenizer\" is missing; this tokenizer requires ByteLevel"},
        {"pre", "\"pre_tokenizer\":null,", "requires ByteLevel"},
        {"pre", "\"pre_tokenizer\":{\"type\":\"Whitespace\"},", "\"pre_tokenizer\" is Whitespace"},
        {"pre", "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true},", "\"add_prefix_space\""},
        {"pre", "\"pre_tokenizer\":{\"type\":\"ByteLevel\"},", "\"add_prefix_space\" of the pre_tokenizer is missing"},
        {"pre", "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false},",
         "\"use_regex\""},
        {"pre",
         "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\"},{\"type\":\"ByteLev"
         "el\"}]},",
         "is Sequence"},
        {"pre", "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\"}]},", "is Split"},
        {"post", "", "\"post_processor\" is missing"},
        {"post", "\"post_processor\":{\"type\":\"ByteLevel\"},", "\"post_processor\" is ByteLevel"},
        {"post", "\"post_processor\":{\"type\":\"RobertaProcessing\",\"sep\":[\"</s>\",0],\"cls\":[\"<s>\",0]},",
         "<s> TEXT </s>"},
        {"post", "\"post_processor\":{\"type\":\"RobertaProcessing\",\"sep\":[\"<s>\",0],\"cls\":[\"<s>\",0]},",
         "<s> TEXT </s>"},
        {"post", "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"A\"}}]},",
         "is TemplateProcessing"},
        {"post",
         "\"post_processor\":{\"type\":\"Sequence\",\"processors\":[{\"type\":\"BertProcessing\"},{\"type\":"
         "\"RobertaProcessing\",\"sep\":[\"</s>\",2],\"cls\":[\"<s>\",0]}]},",
         "is Sequence"},
        {"model", "\"model\":{\"type\":\"WordPiece\",", "\"model\" is WordPiece; this tokenizer requires BPE"},
        {"model", "\"model\":{\"type\":\"BPE\",\"dropout\":0.1,", "\"dropout\" of the model is 0.1"},
        {"model", "\"model\":{\"byte_fallback\":true,", "\"byte_fallback\""},
        {"model", "\"model\":{\"ignore_merges\":true,", "\"ignore_merges\""},
        {"model", "\"model\":{\"continuing_subword_prefix\":\"##\",",
         "\"continuing_subword_prefix\" of the model is \"##\""},
        {"model", "\"model\":{\"end_of_word_suffix\":\"</w>\",", "\"end_of_word_suffix\""},
        {"model", "\"model\":{\"unk_token\":\"[UNK]\",", "\"unk_token\" is \"[UNK]\""},
        {"model", "\"model\":{\"fuse_unk\":3,", "\"fuse_unk\""},
        {"model", "\"model\":{\"cache\":3,", "\"cache\""},
        {"vocab", "", "\"vocab\" is missing"},
        {"vocab", "\"vocab\":[],", "\"vocab\""},
        {"vocab", "\"vocab\":{},", "merge 1 joins 'a' and 'b', and the first is not a token"},
        {"vocab", "\"vocab\":{\"a\":0,\"a\":1},", "duplicate key"},
        {"vocab", "\"vocab\":{\"a\":\"0\"},", "the id of token 'a' is not an integer"},
        {"vocab", "\"vocab\":{\"a\":-1},", "token 'a' has the id -1"},
        {"vocab", "\"vocab\":{\"a\":4294967296},", "has the id 4294967296"},
        {"vocab", "\"vocab\":{\"a\":16777216},", "ids go from 0 to 16777215"},
        {"vocab", "\"vocab\":{\"a\":99999999999999999999},", "too big"},
        {"vocab", "\"vocab\":{\"<s>\":0,\"<pad>\":1,\"</s>\":2,\"a\":3,\"b\":3,\"ab\":5,\"<unk>\":6},",
         "the id 3, 'a' and 'b'"},
        {"vocab", "\"vocab\":{\"<s>\":0,\"</s>\":2,\"a\":3,\"b\":4,\"ab\":5,\"x\":6,\"<unk>\":1},",
         "has no token <pad>"},
        {"vocab", "\"vocab\":{\"<s>\":0,\"<pad>\":1,\"a\":3,\"b\":4,\"ab\":5,\"x\":6,\"<unk>\":2},",
         "has no token </s>"},
        {"vocab", "\"vocab\":{\"<s>\":0,\"<pad>\":1,\"</s>\":2,\"a\":3,\"b\":4,\"<unk>\":6},",
         "the result is not a token"},
        {"vocab", "\"vocab\":{\"<s>\":0,\"<pad>\":1,\"</s>\":2,\"a\":3,\"ab\":5,\"<unk>\":6},",
         "the second is not a token"},
        {"vocab", "\"vocab\":{\"\xFF\":0},", "0xff"},
        {"merges", "\"merges\":{}}}", "\"merges\""},
        {"merges", "\"x\":0}}", "\"x\""},
        {"merges", "\"merges\":[\"a b c\"]}}", "merge 1 is neither"},
        {"merges", "\"merges\":[\"a b\",\"ab\"]}}", "merge 2 is neither"},
        {"merges", "\"merges\":[[\"a\"]]}}", "merge 1 is neither"},
        {"merges", "\"merges\":[[\"a\",\"b\",\"a\"]]}}", "merge 1 is neither"},
        {"merges", "\"merges\":[[\"a\",0]]}}", "merge 1 is neither"},
        {"merges", "\"merges\":[0]}}", "merge 1 is neither"},
        {"merges", "\"merges\":[\"ab ab\"]}}", "the result is not a token"},
        {"merges", "\"merges\":[\"a b\"]}", "a.json: line"},
        {"merges", "\"merges\":[\"a b\"]}} x", "end of file expected"},
        {"added", "\"added_tokens\":{},", "\"added_tokens\""},
        {"added", "\"added_tokens\":[0],", "an added token is 0; this tokenizer requires an object"},
        {"added", "\"added_tokens\":[{\"id\":0}],", "added token 1 has no text"},
        {"added", "\"added_tokens\":[{\"content\":\"<s>\"}],", "added token 1 has no text, or no id"},
        {"added", "\"added_tokens\":[{\"id\":-5,\"content\":\"<s>\"}],", "added token 1 has no text, or no id"},
        {"added", "\"added_tokens\":[{\"id\":0,\"content\":\"\"}],", "has 0 bytes"},
        {"added", "\"added_tokens\":[{\"id\":0,\"content\":\"<s>\",\"lstrip\":1}],",
         "\"lstrip\" of an added token is 1"},
        {"added", "\"added_tokens\":[{\"id\":0,\"content\":\"<s>\",\"odd\":1}],", "\"odd\""},
        {"added", "\"added_tokens\":[{\"id\":4,\"content\":\"<s>\"}],", "'<s>' has the id 4; expected 0"},
        {"added", "\"added_tokens\":[{\"id\":9,\"content\":\"new\"}],", "'new' has the id 9; expected 7"},
        {"added", "\"added_tokens\":[{\"id\":0,\"content\":\"<s>\"},{\"id\":0,\"content\":\"<s>\"}],",
         "'<s>' occurs twice"},
        {"added", "\"added_tokens\":[{\"id\":0,\"content\":\"\\u0000\"}],", "a.json: line"},
    };
    (void)state;
    assert_taken(NULL, NULL);
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        char *json = file_with(cases[i].part, cases[i].text);
        assert_refused(json, strlen(json), cases[i].words);
        free(json);
    }
}

/* Other ways to say the same. */
static void test_taken(void **state)
{
    (void)state;
    assert_taken("version", "");
    assert_taken("padding", "\"truncation\":{\"max_length\":4},\"padding\":{\"strategy\":\"BatchLongest\"},");
    assert_taken("decoder", "");
    assert_taken("normalizer", "");
    assert_taken("added", "");
    assert_taken("pre", "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"ByteLevel\",\"add_pre"
                        "fix_space\":"
                        "false,\"use_regex\":true}]},");
    assert_taken("post", "\"post_processor\":{\"type\":\"Sequence\",\"processors\":[{\"type\":\"ByteLevel\"},{\"type\":"
                         "\"RobertaProcessing\",\"sep\":[\"</s>\",2],\"cls\":[\"<s>\",0]}]},");
    assert_taken("post", "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\""
                         "<s>\",\"type_id\":"
                         "0}},{\"Sequence\":{\"id\":\"A\"}},{\"SpecialToken\":{\"id\":\"</s>\"}}],\"special_tokens\":"
                         "{\"<s>\":{\"ids\":"
                         "[0]},\"</s>\":{\"ids\":[2]}}},");
    assert_taken("model", "\"model\":{");
    assert_taken("model", "\"model\":{\"unk_token\":\"<unk>\",\"fuse_unk\":true,\"continuing_subword_prefix\":\"\",");
    assert_taken("merges", "\"merges\":[[\"a\",\"b\"],\"#version: 0.2\"]}}");
    assert_taken("merges", "\"merges\":[\"a b\",\"a b\"]}}");
    /* Ids with holes; then a new token's place is the number of tokens, which has to be free. */
    assert_taken("vocab", "\"vocab\":{\"<s>\":0,\"<pad>\":1,\"</s>\":2,\"a\":30,\"b\":40,\"ab\":50,\"<unk>\":16777215}"
                          ",");
    char *json =
        file_with("vocab", "\"vocab\":{\"<s>\":0,\"<pad>\":1,\"</s>\":2,\"a\":30,\"b\":40,\"ab\":50,\"<unk>\":7},");
    assert_refused(json, strlen(json), "two tokens have the id 7");
    free(json);
}

/* Every beginning of a sound file, and every byte of it changed: taken or refused, and nothing worse. */
static void test_every_damage(void **state)
{
    (void)state;
    char *json = file_with(NULL, NULL);
    size_t len = strlen(json), refused = 0;
    mr_random r = support_random();
    for (size_t i = 0; i < 2 * len; i++) {
        char *copy = malloc(len + 1);
        size_t n = i < len ? i : len;
        mr_tokenizer *t = NULL;
        mr_error err;
        assert_non_null(copy);
        memcpy(copy, json, len);
        if (i >= len)
            copy[i - len] = (char)mr_random_below(&r, 256);
        mr_status status = mr_tokenizer_parse(copy, n, "a.json", &t, &err);
        if (i < len)
            assert_int_equal(status, MR_BAD_DATA);
        refused += status == MR_BAD_DATA;
        assert_true(status == MR_OK || status == MR_BAD_DATA);
        mr_tokenizer_free(t);
        free(copy);
    }
    assert_true(refused > len && refused < 2 * len);
    free(json);
}

static void test_sizes(void **state)
{
    (void)state;
    enum { DEEP = 100000, WIDE = 20 << 20 };
    char *text = malloc(WIDE);
    assert_non_null(text);
    memset(text, '[', DEEP);
    assert_refused(text, DEEP, "depth");
    memset(text, ' ', WIDE);
    for (size_t i = 0; i + 3 < WIDE; i += 3)
        memcpy(text + i, "[],", 3);
    text[0] = '[';
    assert_refused(text, WIDE, "MiB of memory");
    assert_refused(text, (size_t)MR_FILE_MAX + 1, "more than the limit");
    free(text);
}

/* An added token as long as they may be, of one letter, in a text that nearly has it at every place. */
static void test_long_added(void **state)
{
    (void)state;
    enum { LEN = 1 << 16 };
    static char b[MR_ADDED_MAX + 2], text[LEN];
    memset(b, 'b', MR_ADDED_MAX + 1);
    for (size_t more = 0; more < 2; more++) {
        char *added = support_path("\"added_tokens\":[{\"id\":7,\"content\":\"%s\"}],", b + !more);
        char *json = file_with("added", added);
        mr_tokenizer *t = NULL;
        mr_tokenizer_scratch *s = mr_tokenizer_scratch_new();
        int32_t *ids = mr_alloc(LEN + 2, sizeof *ids);
        size_t count = 0;
        if (more) {
            assert_refused(json, strlen(json), "has 1025 bytes");
        } else {
            for (size_t i = 0; i < LEN; i++)
                text[i] = i % MR_ADDED_MAX ? 'b' : 'a';
            memset(text + LEN - MR_ADDED_MAX - 10, 'b', MR_ADDED_MAX);
            assert_int_equal(mr_tokenizer_parse(json, strlen(json), "a.json", &t, NULL), MR_OK);
            assert_int_equal(mr_tokenizer_encode(t, s, text, LEN, LEN + 2, ids, &count, NULL), MR_OK);
            size_t found = 0;
            for (size_t i = 0; i < count; i++)
                found += ids[i] == 7;
            assert_int_equal(found, 1);
        }
        free(ids);
        mr_tokenizer_free(t);
        mr_tokenizer_scratch_free(s);
        free(added);
        free(json);
    }
}

/* A token of a blank that takes blanks along, before it, after it or both, in a text of nothing else; with another
 * between that takes none, and goes back to where it stands itself.  Read for each token, a run would take minutes. */
static void test_blanks(void **state)
{
    (void)state;
    enum { LEN = 1 << 20 };
    static char text[LEN];
    static int32_t ids[LEN + 2];
    static const struct {
        const char *flags;
        size_t count; /* of LEN blanks: the first takes all */
    } cases[] = {{"\"lstrip\":true,\"rstrip\":true", 1}, {"\"rstrip\":true", LEN}, {"\"lstrip\":true", LEN}};
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        char *added = support_path("\"added_tokens\":[{\"id\":7,\"content\":\" \",%s},"
                                   "{\"id\":8,\"content\":\"\\t\"}],",
                                   cases[i].flags);
        char *json = file_with("added", added);
        mr_tokenizer *t = NULL;
        mr_tokenizer_scratch *s = mr_tokenizer_scratch_new();
        size_t count = 0;
        memset(text, ' ', LEN);
        assert_int_equal(mr_tokenizer_parse(json, strlen(json), "a.json", &t, NULL), MR_OK);
        assert_int_equal(mr_tokenizer_encode(t, s, text, LEN, LEN + 2, ids, &count, NULL), MR_OK);
        assert_int_equal(count, cases[i].count + 2);
        for (size_t at = 1; at < LEN; at += 2)
            text[at] = '\t';
        assert_int_equal(mr_tokenizer_encode(t, s, text, LEN, LEN + 2, ids, &count, NULL), MR_OK);
        assert_in_range(count, LEN / 2 + 2, LEN + 2);
        mr_tokenizer_free(t);
        mr_tokenizer_scratch_free(s);
        free(added);
        free(json);
    }
}

/* So many that looking at all of them for each one would take minutes: each has its place, and none comes twice. */
static void test_many_added(void **state)
{
    enum { MANY = 300000, FIRST = 7 };
    mr_buf added = {0};
    mr_error err;
    (void)state;
    mr_buf_add_text(&added, "\"added_tokens\":[");
    for (int i = 0; i < MANY; i++)
        mr_buf_printf(&added, "%s{\"id\":%d,\"content\":\"t%d\"}", i ? "," : "", FIRST + i, i);
    size_t end = added.len;
    for (int twice = 0; twice < 2; twice++) {
        added.len = end;
        if (twice)
            mr_buf_printf(&added, ",{\"id\":%d,\"content\":\"t%d\"}", FIRST + MANY, MANY - 1);
        mr_buf_add_text(&added, "],");
        char *json = file_with("added", mr_buf_text(&added));
        mr_tokenizer *t = NULL;
        if (twice) {
            assert_refused(json, strlen(json), "added token 't299999' occurs twice");
        } else {
            if (mr_tokenizer_parse(json, strlen(json), "a.json", &t, &err) != MR_OK)
                fail_msg("%s", err.text);
            assert_int_equal(mr_token_id(t, "t0"), FIRST);
            assert_int_equal(mr_token_id(t, "t299999"), FIRST + MANY - 1);
            assert_int_equal(mr_token_id(t, "t300000"), -1);
            assert_int_equal(mr_token_id(t, "ab"), 5);
            mr_tokenizer_free(t);
        }
        free(json);
    }
    mr_buf_free(&added);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),   cmocka_unit_test(test_taken),      cmocka_unit_test(test_every_damage),
        cmocka_unit_test(test_sizes),      cmocka_unit_test(test_long_added), cmocka_unit_test(test_blanks),
        cmocka_unit_test(test_many_added),
    };
    return cmocka_run_group_tests_name("tokenizer_hostile", tests, NULL, NULL);
}
