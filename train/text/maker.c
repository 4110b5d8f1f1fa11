/* maker.c - words of texts and how often they come; what is learned from them is in learn.c.
 * Invariant: the order in which texts are added does not matter. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "text/learn.h"

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
        return mr_fail(err, MR_BAD_DATA, "more than %d bytes of different words; learn from fewer texts", MR_LEARN_MAX);
    if (!MR_GROW(m->words, m->word_count, m->word_room))
        return mr_fail_memory(err, "counting words");
    m->words[m->word_count++] = (mr_word){.at = (uint32_t)m->text.len, .len = (uint32_t)len, .count = 1};
    m->table[place] = (uint32_t)m->word_count;
    mr_buf_add(&m->text, text, len);
    return mr_buf_status(&m->text, err, "counting words");
}

mr_status mr_tokenizer_maker_add(mr_tokenizer_maker *m, const char *text, size_t len, mr_error *err)
{
    mr_status status = MR_OK;
    if (len > MR_LEARN_MAX)
        return mr_fail(err, MR_BAD_DATA, "a text of %zu bytes; the limit is %d", len, MR_LEARN_MAX);
    if (!mr_utf8_valid(text, len)) {
        mr_buf_clear(&m->valid);
        mr_utf8_repair(text, len, &m->valid);
        if (m->valid.failed)
            return mr_fail_memory(err, "counting words");
        text = mr_buf_text(&m->valid);
        len = m->valid.len;
    }
    for (size_t at = 0, end; at < len && status == MR_OK; at = end) {
        end = mr_piece_end(&m->classes, text, len, at);
        status = add_word(m, text + at, end - at, err);
    }
    return status;
}

/* ---- the tokenizer of what was learned --------------------------------------------------------------------------- */

/* A token's bytes in GPT-2's letters. */
static void add_letters(mr_buf *out, const mr_learned *l, uint32_t token)
{
    for (size_t i = 0; i < l->tokens[token].len; i++) {
        char letter[MR_BYTE_TEXT];
        size_t n = mr_byte_text(l->text.data[l->tokens[token].at + i], letter);
        mr_buf_add(out, letter, n);
    }
}

static const char name[] = "a learned tokenizer";

static mr_status fill(mr_tokenizer *t, const mr_learned *l, mr_buf *left, mr_buf *right, mr_error *err)
{
    static const char *const front[MR_LEARN_FRONT] = {"<s>", "<pad>", "</s>", "<unk>"};
    mr_status status = MR_OK;
    for (size_t i = 0; i < MR_LEARN_FRONT && status == MR_OK; i++)
        status = mr_token_add(t, front[i], strlen(front[i]), (int64_t)i, name, err);
    for (uint32_t i = 0; i < l->token_count && status == MR_OK; i++) {
        mr_buf_clear(left);
        add_letters(left, l, i);
        status = mr_buf_status(left, err, name);
        if (status == MR_OK)
            status = mr_token_add(t, mr_buf_text(left), left->len, MR_LEARN_FRONT + (int64_t)i, name, err);
    }
    if (status == MR_OK)
        status = mr_token_add(t, "<mask>", 6, MR_LEARN_FRONT + (int64_t)l->token_count, name, err);
    for (size_t i = 0; i < l->merge_count && status == MR_OK; i++) {
        mr_buf_clear(left);
        mr_buf_clear(right);
        add_letters(left, l, l->merges[i].left);
        add_letters(right, l, l->merges[i].right);
        status = left->failed || right->failed ? mr_fail_memory(err, name) : MR_OK;
        if (status == MR_OK)
            status = mr_merge_add(t, mr_buf_text(left), left->len, mr_buf_text(right), right->len, name, err);
    }
    for (size_t i = 0; i <= MR_LEARN_FRONT && status == MR_OK; i++) {
        bool mask = i == MR_LEARN_FRONT;
        const char *text = mask ? "<mask>" : front[i];
        const mr_added flags = {.id = -1, .lstrip = mask, .normalized = !mask, .special = true};
        status = mr_added_add(t, text, strlen(text), &flags, name, err);
    }
    return status == MR_OK ? mr_tokenizer_seal(t, name, err) : status;
}

mr_status mr_tokenizer_maker_finish(mr_tokenizer_maker *m, uint32_t size, mr_tokenizer **out, mr_error *err)
{
    mr_learned learned = {.token_count = 0};
    mr_tokenizer *t = NULL;
    mr_buf left = {0}, right = {0};
    if (size < MR_LEARN_FEWEST || size > MR_ID_MAX)
        return mr_fail(err, MR_MISUSE, "a tokenizer of %u tokens; it has %d, for the bytes and the special ones, to %d",
                       size, MR_LEARN_FEWEST, MR_ID_MAX);
    mr_status status = mr_learn(m, size - MR_LEARN_FRONT - 1, &learned, err);
    if (status == MR_OK)
        status = mr_tokenizer_new(&t, err);
    if (status == MR_OK)
        status = fill(t, &learned, &left, &right, err);
    mr_learned_free(&learned);
    mr_buf_free(&left);
    mr_buf_free(&right);
    if (status == MR_OK)
        *out = t;
    else
        mr_tokenizer_free(t);
    return status;
}
