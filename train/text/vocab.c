/* vocab.c - a tokenizer from vocab.json and merges.txt, as transformers' RobertaTokenizerFast reads them.
 * Invariant: <s>, </s>, <unk>, <pad> and <mask> are added tokens, whatever the files contain; <mask> includes the white
 * space before it.
 *
 *      {"<s>":0,"<pad>":1, ... "\u0120the":5}          #version: 0.2
 *                                                      \u0120 t                      (as characters, not escapes) */
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "train/text/parts.h"

enum { MEMORY_MAX = 512 << 20 };

mr_status mr_tokenizer_json(const void *bytes, size_t len, const char *name, json_t **out, mr_error *err)
{
    MR_TRY(mr_json_bounded(bytes, len, MEMORY_MAX, name, err));
    return mr_json_parse(bytes, len, name, out, err);
}

mr_status mr_tokens_add(mr_tokenizer *t, json_t *vocab, const char *name, mr_error *err)
{
    const char *text;
    json_t *id;
    json_object_foreach(vocab, text, id)
    {
        if (!json_is_integer(id))
            return mr_fail(err, MR_BAD_DATA, "%s: the id of token '%.60s' is not an integer", name, text);
        MR_TRY(mr_token_add(t, text, strlen(text), json_integer_value(id), name, err));
    }
    return MR_OK;
}

static mr_status read_vocab(mr_tokenizer *t, const void *bytes, size_t len, const char *name, mr_error *err)
{
    MR_AUTO(json_decrefp) json_t *doc = NULL;
    MR_TRY(mr_tokenizer_json(bytes, len, name, &doc, err));
    if (!json_is_object(doc))
        return mr_fail(err, MR_BAD_DATA, "%s: is not an object of tokens and ids", name);
    return mr_tokens_add(t, doc, name, err);
}

/* The newline of the last line may be missing; an empty line is not a merge. */
static mr_status read_merges(mr_tokenizer *t, const char *text, size_t len, const char *name, mr_error *err)
{
    if (!mr_utf8_valid(text, len))
        return mr_fail(err, MR_BAD_DATA, "%s: is not UTF-8", name);
    for (size_t at = 0, line = 1; at < len; line++) {
        const char *from = text + at, *end = memchr(from, '\n', len - at);
        size_t n = end ? (size_t)(end - from) : len - at;
        at += n + 1;
        n -= n > 0 && from[n - 1] == '\r';
        if (n >= 8 && memcmp(from, "#version", 8) == 0)
            continue;
        const char *blank = n ? memchr(from, ' ', n) : NULL;
        if (!blank || memchr(blank + 1, ' ', n - (size_t)(blank - from) - 1))
            return mr_fail(err, MR_BAD_DATA, "%s: line %zu is not two tokens separated by a space", name, line);
        MR_TRY(mr_merge_add(t, from, (size_t)(blank - from), blank + 1, n - (size_t)(blank - from) - 1, name, err));
    }
    return MR_OK;
}

static mr_status add_specials(mr_tokenizer *t, const char *name, mr_error *err)
{
    static const char *const texts[] = {"<s>", "</s>", "<unk>", "<pad>", "<mask>"};
    for (size_t i = 0; i < MR_COUNT(texts); i++) {
        bool mask = strcmp(texts[i], "<mask>") == 0, optional = mask || strcmp(texts[i], "<unk>") == 0;
        const mr_added flags = {.id = -1, .lstrip = mask, .normalized = !mask, .special = true};
        if (!optional && mr_token_id(t, texts[i]) < 0)
            return mr_fail(err, MR_BAD_DATA, "%s: has no token %s", name, texts[i]);
        MR_TRY(mr_added_add(t, texts[i], strlen(texts[i]), &flags, name, err));
    }
    return MR_OK;
}

static mr_status fill(mr_tokenizer *t, const mr_vocab_file *vocab, const mr_vocab_file *merges, mr_error *err)
{
    MR_TRY(read_vocab(t, vocab->bytes, vocab->len, vocab->name, err));
    MR_TRY(read_merges(t, merges->bytes, merges->len, merges->name, err));
    MR_TRY(add_specials(t, vocab->name, err));
    return mr_tokenizer_seal(t, vocab->name, err);
}

mr_status mr_tokenizer_parse_vocab(const mr_vocab_file *vocab, const mr_vocab_file *merges, mr_tokenizer **out,
                                   mr_error *err)
{
    mr_tokenizer *t = NULL;
    MR_TRY(mr_tokenizer_new(&t, err));
    mr_status status = fill(t, vocab, merges, err);
    if (status == MR_OK)
        *out = t;
    else
        mr_tokenizer_free(t);
    return status;
}
