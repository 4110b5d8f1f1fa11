/* maker.c - counts the words of texts, and makes a tokenizer of what learn.c learns from them.
 * Invariant: the order in which texts are added does not matter. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/scope.h"
#include "train/text/learn.h"

mr_tokenizer_maker *mr_tokenizer_maker_new(void)
{
    mr_tokenizer_maker *m = mr_alloc(1, sizeof *m);
    if (!m)
        return NULL;
    mr_classes_fill(&m->classes);
    m->seed = mr_hash_seed();
    return m;
}

void mr_tokenizer_maker_free(mr_tokenizer_maker *m)
{
    if (!m)
        return;
    mr_buf_free(&m->text);
    mr_buf_free(&m->valid);
    free(m->words);
    free(m->table);
    free(m);
}

/* The place in the table where this word is, or would be. */
static size_t place_of(const mr_tokenizer_maker *m, const char *text, size_t len)
{
    size_t mask = m->table_size - 1, i = (size_t)mr_hash64_seeded(text, len, m->seed) & mask;
    for (; m->table[i]; i = (i + 1) & mask) {
        const mr_word *word = &m->words[m->table[i] - 1];
        if (word->len == len && memcmp(m->text.data + word->at, text, len) == 0)
            break;
    }
    return i;
}

static bool grow_table(mr_tokenizer_maker *m)
{
    size_t size = m->table_size ? m->table_size * 2 : 4096;
    uint32_t *grown = mr_alloc(size, sizeof *grown);
    if (!grown)
        return false;
    free(m->table);
    m->table = grown;
    m->table_size = size;
    for (size_t i = 0; i < m->word_count; i++) {
        const char *text = (const char *)m->text.data + m->words[i].at;
        grown[place_of(m, text, m->words[i].len)] = (uint32_t)i + 1;
    }
    return true;
}

static mr_status add_word(mr_tokenizer_maker *m, const char *text, size_t len, mr_error *err)
{
    if ((m->word_count + 1) * 2 > m->table_size && !grow_table(m))
        return mr_fail_memory(err, "counting words");
    size_t place = place_of(m, text, len);
    if (m->table[place]) {
        m->words[m->table[place] - 1].count++;
        return MR_OK;
    }
    if (len > MR_LEARN_MAX - m->text.len)
        return mr_fail(err, MR_BAD_DATA, "more than %d bytes of distinct words; learn from fewer texts", MR_LEARN_MAX);
    if (!MR_GROW(m->words, m->word_count, m->word_capacity))
        return mr_fail_memory(err, "counting words");
    m->words[m->word_count++] = (mr_word){.at = (uint32_t)m->text.len, .len = (uint32_t)len, .count = 1};
    m->table[place] = (uint32_t)m->word_count;
    mr_buf_add(&m->text, text, len);
    return mr_buf_status(&m->text, err, "counting words");
}

mr_status mr_tokenizer_maker_add(mr_tokenizer_maker *m, const char *text, size_t len, mr_error *err)
{
    if (len > MR_LEARN_MAX)
        return mr_fail(err, MR_BAD_DATA, "a text of %zu bytes; the limit is %d", len, MR_LEARN_MAX);
    MR_TRY(mr_utf8_make_valid(&text, &len, &m->valid, err));
    for (size_t at = 0, end; at < len; at = end) {
        end = mr_piece_end(&m->classes, text, len, at);
        MR_TRY(add_word(m, text + at, end - at, err));
    }
    return MR_OK;
}

/* ---- the tokenizer ----------------------------------------------------------------------------------------------- */

/* A token's bytes in GPT-2's letters. */
static void add_letters(mr_buf *out, const mr_learned *l, uint32_t token)
{
    for (size_t i = 0; i < l->tokens[token].len; i++) {
        char letter[MR_BYTE_TEXT];
        size_t n = mr_byte_text(l->text.data[l->tokens[token].at + i], letter);
        mr_buf_add(out, letter, n);
    }
}

static const char name[] = "a learned tokenizer", mask_token[] = "<mask>";
static const char *const front[MR_LEARN_FRONT] = {"<s>", "<pad>", "</s>", "<unk>"};

static mr_status add_tokens(mr_tokenizer *t, const mr_learned *l, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    for (size_t i = 0; i < MR_LEARN_FRONT; i++)
        MR_TRY(mr_token_add(t, front[i], strlen(front[i]), (int64_t)i, name, err));
    for (uint32_t i = 0; i < l->token_count; i++) {
        mr_buf_clear(&text);
        add_letters(&text, l, i);
        MR_TRY(mr_buf_status(&text, err, name));
        MR_TRY(mr_token_add(t, mr_buf_text(&text), text.len, MR_LEARN_FRONT + (int64_t)i, name, err));
    }
    return mr_token_add(t, mask_token, strlen(mask_token), MR_LEARN_FRONT + (int64_t)l->token_count, name, err);
}

static mr_status add_merges(mr_tokenizer *t, const mr_learned *l, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf left = {0}, right = {0};
    for (size_t i = 0; i < l->merge_count; i++) {
        mr_buf_clear(&left);
        mr_buf_clear(&right);
        add_letters(&left, l, l->merges[i].left);
        add_letters(&right, l, l->merges[i].right);
        if (left.failed || right.failed)
            return mr_fail_memory(err, name);
        MR_TRY(mr_merge_add(t, mr_buf_text(&left), left.len, mr_buf_text(&right), right.len, name, err));
    }
    return MR_OK;
}

static mr_status fill(mr_tokenizer *t, const mr_learned *l, mr_error *err)
{
    MR_TRY(add_tokens(t, l, err));
    MR_TRY(add_merges(t, l, err));
    const mr_added plain = {.id = -1, .normalized = true, .special = true};
    const mr_added stripping = {.id = -1, .lstrip = true, .special = true};
    for (size_t i = 0; i < MR_LEARN_FRONT; i++)
        MR_TRY(mr_added_add(t, front[i], strlen(front[i]), &plain, name, err));
    MR_TRY(mr_added_add(t, mask_token, strlen(mask_token), &stripping, name, err));
    return mr_tokenizer_seal(t, name, err);
}

mr_status mr_tokenizer_maker_finish(mr_tokenizer_maker *m, uint32_t size, mr_tokenizer **out, mr_error *err)
{
    MR_AUTO(mr_learned_free) mr_learned learned = {.token_count = 0};
    mr_tokenizer *t = NULL;
    if (size < MR_LEARN_MIN || size > MR_ID_MAX)
        return mr_fail(err, MR_MISUSE, "a tokenizer of %u tokens; it has %d, for the bytes and the special ones, to %d",
                       size, MR_LEARN_MIN, MR_ID_MAX);
    MR_TRY(mr_learn(m, size - MR_LEARN_FRONT - 1, &learned, err));
    MR_TRY(mr_tokenizer_new(&t, err));
    mr_status status = fill(t, &learned, err);
    if (status == MR_OK)
        *out = t;
    else
        mr_tokenizer_free(t);
    return status;
}
