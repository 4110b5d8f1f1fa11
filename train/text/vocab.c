/* vocab.c - a tokenizer out of vocab.json and merges.txt, as transformers' RobertaTokenizerFast takes them.
 * Invariant: <s>, </s>, <unk>, <pad> and <mask> are added tokens, whatever the files say; <mask> takes the blanks
 * before it along.
 *
 *      {"<s>":0,"<pad>":1, ... "\u0120the":5}          #version: 0.2
 *                                                      \u0120 t                      (as characters, not as escapes) */
#include <string.h>

#include "base/text.h"
#include "json/json.h"
#include "text/parts.h"

static const uint64_t memory_most = (uint64_t)512 << 20;

static mr_status read_vocab(mr_tokenizer *t, const void *bytes, size_t len, const char *name, mr_error *err)
{
    json_t *doc = NULL, *id;
    const char *text;
    mr_status status = mr_json_bounded(bytes, len, memory_most, name, err);
    if (status == MR_OK)
        status = mr_json_parse(bytes, len, name, &doc, err);
    if (status == MR_OK && !json_is_object(doc))
        status = mr_fail(err, MR_BAD_DATA, "%s: is not an object of tokens and ids", name);
    if (status == MR_OK) {
        json_object_foreach(doc, text, id)
        {
            if (!json_is_integer(id))
                status = mr_fail(err, MR_BAD_DATA, "%s: token '%.60s' has no integer for an id", name, text);
            else
                status = mr_token_add(t, text, strlen(text), json_integer_value(id), name, err);
            if (status != MR_OK)
                break;
        }
    }
    json_decref(doc);
    return status;
}

/* The file's last line may end or not; a blank line is not a merge. */
static mr_status read_merges(mr_tokenizer *t, const char *text, size_t len, const char *name, mr_error *err)
{
    mr_status status = MR_OK;
    if (!mr_utf8_valid(text, len))
        return mr_fail(err, MR_BAD_DATA, "%s: is not UTF-8", name);
    for (size_t at = 0, line = 1; at < len && status == MR_OK; line++) {
        const char *from = text + at, *end = memchr(from, '\n', len - at);
        size_t n = end ? (size_t)(end - from) : len - at;
        at += n + 1;
        n -= n > 0 && from[n - 1] == '\r';
        if (n >= 8 && memcmp(from, "#version", 8) == 0)
            continue;
        const char *blank = n ? memchr(from, ' ', n) : NULL;
        if (!blank || memchr(blank + 1, ' ', n - (size_t)(blank - from) - 1))
            return mr_fail(err, MR_BAD_DATA, "%s: line %zu is not two tokens with a blank between them", name, line);
        status = mr_merge_add(t, from, (size_t)(blank - from), blank + 1, n - (size_t)(blank - from) - 1, name, err);
    }
    return status;
}

static mr_status add_specials(mr_tokenizer *t, const char *name, mr_error *err)
{
    static const char *const texts[] = {"<s>", "</s>", "<unk>", "<pad>", "<mask>"};
    mr_status status = MR_OK;
    for (size_t i = 0; i < MR_COUNT(texts) && status == MR_OK; i++) {
        bool mask = strcmp(texts[i], "<mask>") == 0, may_lack = mask || strcmp(texts[i], "<unk>") == 0;
        const mr_added flags = {.id = -1, .lstrip = mask, .normalized = !mask, .special = true};
        if (!may_lack && mr_token_id(t, texts[i]) < 0)
            return mr_fail(err, MR_BAD_DATA, "%s: there is not a token %s", name, texts[i]);
        status = mr_added_add(t, texts[i], strlen(texts[i]), &flags, name, err);
    }
    return status;
}

mr_status mr_tokenizer_parse_vocab(const void *vocab, size_t vocab_len, const char *vocab_name, const void *merges,
                                   size_t merges_len, const char *merges_name, mr_tokenizer **out, mr_error *err)
{
    mr_tokenizer *t = NULL;
    mr_status status = mr_tokenizer_new(&t, err);
    if (status == MR_OK)
        status = read_vocab(t, vocab, vocab_len, vocab_name, err);
    if (status == MR_OK)
        status = read_merges(t, merges, merges_len, merges_name, err);
    if (status == MR_OK)
        status = add_specials(t, vocab_name, err);
    if (status == MR_OK)
        status = mr_tokenizer_seal(t, vocab_name, err);
    if (status == MR_OK)
        *out = t;
    else
        mr_tokenizer_free(t);
    return status;
}
