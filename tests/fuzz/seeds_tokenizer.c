/* seeds_tokenizer.c - the first inputs of the tokenizer's fuzz targets: OUT/tokenizer, OUT/tokenizer_maker. */
#include <string.h>

#include "tests/fuzz/seeds.h"
#include "tests/support/support.h"
#include "train/text/tokenizer.h"

#define MODEL                                                                                                          \
    "\"vocab\":{\"<s>\":0,\"<pad>\":1,\"</s>\":2,\"a\":3,\"b\":4,\"ab\":5,\"abab\":6,\"<unk>\":7,"                     \
    "\"\xC4\xA0\":8},\"merges\":[\"a b\",[\"ab\",\"ab\"]]}"
#define BYTE_LEVEL "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"

/* With every part that is taken, each in both of its forms. */
static const char *const files[] = {
    "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[{\"id\":9,\"content\":\"<x>\",\"singl"
    "e_word\":true,"
    "\"lstrip\":true,\"rstrip\":true,\"normalized\":false,\"special\":true},{\"id\":10,\"content\":\" b\",\"rstrip\":t"
    "rue}],"
    "\"normalizer\":null," BYTE_LEVEL ",\"post_processor\":{\"type\":\"RobertaProcessing\",\"sep\":[\"</s>\",2],\"cl"
    "s\":[\"<s>\",0]},"
    "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":\"<unk>\",\"continuing_subword_prefix\":\"\",\"fuse_un"
    "k\":true," MODEL ",\"decoder\":\" b abab <x> \xE2\x80\xA8 b a's\"}",
    "{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"ByteLevel\",\"add_prefix_space\":false}]"
    "},"
    "\"post_processor\":{\"type\":\"Sequence\",\"processors\":[{\"type\":\"ByteLevel\"},{\"type\":\"TemplateProcessin"
    "g\",\"single\":"
    "[{\"SpecialToken\":{\"id\":\"<s>\"}},{\"Sequence\":{\"id\":\"A\"}},{\"SpecialToken\":{\"id\":\"</s>\"}}],\"specia"
    "l_tokens\":"
    "{\"<s>\":{\"ids\":[0]},\"</s>\":{\"ids\":[2]}}}]},\"model\":{" MODEL "}",
};

static void seed_learned(void)
{
    static const char text[] = "two dogs in a car, two cats sleeping on a couch; dogs and cats";
    mr_tokenizer_maker *m = mr_tokenizer_maker_new();
    mr_tokenizer *t = NULL;
    mr_buf json = {0};
    assert_non_null(m);
    assert_int_equal(mr_tokenizer_maker_add(m, text, strlen(text), NULL), MR_OK);
    assert_int_equal(mr_tokenizer_maker_finish(m, 280, &t, NULL), MR_OK);
    assert_int_equal(mr_tokenizer_write(t, &json, NULL), MR_OK);
    seed("tokenizer", "learned.json", json.data, json.len);
    mr_buf_free(&json);
    mr_tokenizer_free(t);
    mr_tokenizer_maker_free(m);
}

void seed_tokenizer(void)
{
    static const char texts[] = "two dogs in a car, two cats\0dogs and cats aren't 12 345\0"
                                "caf\xC3\xA9\xE2\x80\xA8\xFF \n a\0";
    static const char two[] = "{\"<s>\":0,\"<pad>\":1,\"</s>\":2,\"a\":3,\"b\":4,\"ab\":5}\0#version: 0.2\na b\n";
    for (size_t i = 0; i < MR_COUNT(files); i++)
        seed("tokenizer", i ? "short.json" : "long.json", files[i], strlen(files[i]));
    seed("tokenizer", "two-files", two, sizeof two - 1);
    seed("tokenizer_maker", "texts", texts, sizeof texts - 1);
    seed_learned();
}
