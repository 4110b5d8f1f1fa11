/* tables.c - a tokenizer's tables, filled token by token and merge by merge, then sealed.
 * Invariant: tokens have distinct texts and distinct ids, and merges are of tokens.
 * Ids of added tokens are those of tokenizers 0.21 (added_vocabulary.rs): the vocabulary's if it has the text,
 * otherwise the next after it. */
#include "train/text/parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/scope.h"
#include "base/text.h"

enum { SHOWN = 60 }; /* bytes of a token in a message */

static int shown(size_t len)
{
    return len > SHOWN ? SHOWN : (int)len;
}

mr_status mr_tokenizer_new(mr_tokenizer **out, mr_error *err)
{
    mr_tokenizer *t = mr_alloc(1, sizeof *t);
    if (!t)
        return mr_fail_memory(err, "opening a tokenizer");
    t->unk = -1;
    t->seed = mr_hash_seed();
    *out = t;
    return MR_OK;
}

void mr_tokenizer_free(mr_tokenizer *t)
{
    if (!t)
        return;
    mr_buf_free(&t->text);
    free(t->tokens);
    free(t->added);
    free(t->merges);
    mr_string_map_release(&t->by_text);
    mr_string_map_release(&t->added_by_text);
    free(t->table);
    free(t->sets[0].items);
    free(t->sets[1].items);
    free(t);
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static const void *token_text(const void *tokenizer, size_t number, size_t *len)
{
    const mr_tokenizer *t = tokenizer;
    *len = t->tokens[number].len;
    return *len ? t->text.data + t->tokens[number].at : NULL;
}

static const void *added_text(const void *tokenizer, size_t number, size_t *len)
{
    const mr_tokenizer *t = tokenizer;
    *len = t->added[number].len;
    return t->text.data + t->added[number].at;
}

size_t mr_token_find(const mr_tokenizer *t, const char *text, size_t len)
{
    return mr_string_map_find(&t->by_text, token_text, t, text, len);
}

int32_t mr_token_id(const mr_tokenizer *t, const char *text)
{
    size_t len = strlen(text), n = mr_string_map_find(&t->added_by_text, added_text, t, text, len);
    if (n != SIZE_MAX)
        return t->added[n].id;
    n = mr_token_find(t, text, len);
    return n == SIZE_MAX ? -1 : t->tokens[n].id;
}

mr_status mr_token_add(mr_tokenizer *t, const char *text, size_t len, int64_t id, const char *name, mr_error *err)
{
    if (id < 0 || id > MR_ID_MAX)
        return mr_fail(err, MR_BAD_DATA, "%s: token '%.*s' has the id %lld; ids go from 0 to %d", name, shown(len),
                       text, (long long)id, MR_ID_MAX);
    if (mr_token_find(t, text, len) != SIZE_MAX)
        return mr_fail(err, MR_BAD_DATA, "%s: token '%.*s' occurs twice", name, shown(len), text);
    if (len > MR_FILE_MAX || (t->token_count + 1) * 2 > UINT32_MAX)
        return mr_fail(err, MR_BAD_DATA, "%s: too many tokens", name);
    if (!MR_GROW(t->tokens, t->token_count, t->token_capacity) ||
        !mr_string_map_add(&t->by_text, token_text, t, text, len))
        return mr_fail_memory(err, name);
    t->tokens[t->token_count++] = (mr_token){.at = t->text.len, .len = (uint32_t)len, .id = (int32_t)id};
    mr_buf_add(&t->text, text, len);
    return mr_buf_status(&t->text, err, name);
}

mr_status mr_merge_add(mr_tokenizer *t, const char *left, size_t left_len, const char *right, size_t right_len,
                       const char *name, mr_error *err)
{
    size_t a = mr_token_find(t, left, left_len), b = mr_token_find(t, right, right_len), both = SIZE_MAX;
    MR_AUTO(mr_buf_free) mr_buf joined = {0};
    if (a != SIZE_MAX && b != SIZE_MAX) {
        mr_buf_add(&joined, left, left_len);
        mr_buf_add(&joined, right, right_len);
        both = joined.failed ? SIZE_MAX : mr_token_find(t, mr_buf_text(&joined), joined.len);
    }
    MR_TRY(mr_buf_status(&joined, err, name));
    if (both == SIZE_MAX)
        return mr_fail(err, MR_BAD_DATA, "%s: merge %zu joins '%.*s' and '%.*s', and %s is not a token", name,
                       t->merge_count + 1, shown(left_len), left, shown(right_len), right,
                       a == SIZE_MAX   ? "the first"
                       : b == SIZE_MAX ? "the second"
                                       : "the result");
    if (t->merge_count == UINT32_MAX || !MR_GROW(t->merges, t->merge_count, t->merge_capacity))
        return mr_fail_memory(err, name);
    t->merges[t->merge_count++] = (mr_merge){(uint32_t)a, (uint32_t)b, (uint32_t)both};
    return MR_OK;
}

/* ---- added tokens ------------------------------------------------------------------------------------------------ */

static int64_t new_id(const mr_tokenizer *t)
{
    int64_t tokens = (int64_t)t->token_count;
    return t->added_end > tokens ? t->added_end : tokens;
}

mr_status mr_added_add(mr_tokenizer *t, const char *text, size_t len, const mr_added *flags, const char *name,
                       mr_error *err)
{
    size_t n = mr_token_find(t, text, len);
    mr_added a = *flags;
    int64_t id = n == SIZE_MAX ? new_id(t) : t->tokens[n].id;
    if (len == 0 || len > MR_ADDED_MAX)
        return mr_fail(err, MR_BAD_DATA, "%s: added token '%.*s' has %zu bytes; expected 1 to %d", name, shown(len),
                       text, len, MR_ADDED_MAX);
    if (mr_string_map_find(&t->added_by_text, added_text, t, text, len) != SIZE_MAX)
        return mr_fail(err, MR_BAD_DATA, "%s: added token '%.*s' occurs twice", name, shown(len), text);
    if (id > MR_ID_MAX || (a.id >= 0 && a.id != id))
        return mr_fail(err, MR_BAD_DATA, "%s: added token '%.*s' has the id %d; expected %lld", name, shown(len), text,
                       a.id, (long long)id);
    if (!MR_GROW(t->added, t->added_count, t->added_capacity) ||
        !mr_string_map_add(&t->added_by_text, added_text, t, text, len))
        return mr_fail_memory(err, name);
    a.at = t->text.len;
    a.len = (uint32_t)len;
    a.id = (int32_t)id;
    t->added_end = id >= t->added_end ? id + 1 : t->added_end;
    t->added[t->added_count++] = a;
    mr_buf_add(&t->text, text, len);
    return mr_buf_status(&t->text, err, name);
}

static int by_bytes(const void *a, const void *b, void *text)
{
    const mr_added *x = *(const mr_added *const *)a, *y = *(const mr_added *const *)b;
    const uint8_t *bytes = text;
    int order = memcmp(bytes + x->at, bytes + y->at, x->len < y->len ? x->len : y->len);
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

static bool make_set(mr_tokenizer *t, bool normalized)
{
    mr_added_set *set = &t->sets[normalized];
    set->items = mr_alloc(t->added_count, sizeof *set->items);
    if (!set->items)
        return false;
    for (size_t i = 0; i < t->added_count; i++) {
        if (t->added[i].normalized != normalized)
            continue;
        set->items[set->count++] = &t->added[i];
        set->first[t->text.data[t->added[i].at]] = true;
    }
    if (set->count)
        qsort_r(set->items, set->count, sizeof *set->items, by_bytes, t->text.data);
    return true;
}

/* ---- sealing ----------------------------------------------------------------------------------------------------- */

/* Ids come from untrusted files: the seed has to affect every bit, which one multiplication does not do. */
static size_t pair_hash(const mr_tokenizer *t, uint64_t pair)
{
    return (size_t)mr_hash64_seeded(&pair, sizeof pair, t->seed);
}

static uint64_t pair_of(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

const mr_merge_slot *mr_merge_of(const mr_tokenizer *t, int32_t left, int32_t right)
{
    uint64_t pair = pair_of(left, right);
    for (size_t i = pair_hash(t, pair) & t->table_mask;; i = (i + 1) & t->table_mask) {
        if (t->table[i].pair == pair)
            return &t->table[i];
        if (t->table[i].pair == UINT64_MAX)
            return NULL;
    }
}

/* A merge that is listed twice has its last rank, as in tokenizers. */
static bool make_table(mr_tokenizer *t)
{
    size_t size = 16;
    while (size < t->merge_count * 2)
        size *= 2;
    t->table = mr_alloc(size, sizeof *t->table);
    if (!t->table)
        return false;
    for (size_t i = 0; i < size; i++)
        t->table[i].pair = UINT64_MAX;
    t->table_mask = size - 1;
    for (size_t rank = 0; rank < t->merge_count; rank++) {
        const mr_merge *m = &t->merges[rank];
        uint64_t pair = pair_of(t->tokens[m->left].id, t->tokens[m->right].id);
        size_t i = pair_hash(t, pair) & t->table_mask;
        while (t->table[i].pair != UINT64_MAX && t->table[i].pair != pair)
            i = (i + 1) & t->table_mask;
        t->table[i] = (mr_merge_slot){.pair = pair, .rank = (uint32_t)rank, .merged = t->tokens[m->merged].id};
    }
    return true;
}

int mr_token_by_id(const void *a, const void *b)
{
    const mr_token *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* No id twice; the largest gives the size.  An added token with the text of a vocabulary's token is the same token. */
static mr_status check_ids(mr_tokenizer *t, const char *name, mr_error *err)
{
    size_t count = t->token_count;
    MR_AUTO(mr_scope_free) mr_token *all = mr_alloc(t->token_count + t->added_count, sizeof *all);
    if (!all)
        return mr_fail_memory(err, name);
    if (count)
        memcpy(all, t->tokens, count * sizeof *all);
    for (size_t i = 0; i < t->added_count; i++) {
        const mr_added *a = &t->added[i];
        if (mr_token_find(t, (const char *)t->text.data + a->at, a->len) == SIZE_MAX)
            all[count++] = (mr_token){.at = a->at, .len = a->len, .id = a->id};
    }
    qsort(all, count, sizeof *all, mr_token_by_id);
    for (size_t i = 1; i < count; i++)
        if (all[i].id == all[i - 1].id)
            return mr_fail(err, MR_BAD_DATA, "%s: two tokens have the id %d, '%.*s' and '%.*s'", name, all[i].id,
                           shown(all[i - 1].len), (const char *)t->text.data + all[i - 1].at, shown(all[i].len),
                           (const char *)t->text.data + all[i].at);
    t->size = count ? (uint32_t)all[count - 1].id + 1 : 0;
    return MR_OK;
}

static mr_status special(const mr_tokenizer *t, const char *text, int32_t *id, const char *name, mr_error *err)
{
    *id = mr_token_id(t, text);
    return *id >= 0 ? MR_OK : mr_fail(err, MR_BAD_DATA, "%s: has no token %s", name, text);
}

/* Depends on byte order and on this process's seed, as it does not leave the process. */
static void make_hash(mr_tokenizer *t, size_t table_size)
{
    const uint64_t parts[] = {mr_hash64(t->table, table_size * sizeof *t->table), mr_hash64(t->bytes, sizeof t->bytes),
                              (uint64_t)(uint32_t)t->unk << 1 | t->fuse_unk};
    t->hash = mr_hash64(parts, sizeof parts);
}

mr_status mr_tokenizer_seal(mr_tokenizer *t, const char *name, mr_error *err)
{
    MR_TRY(check_ids(t, name, err));
    MR_TRY(special(t, "<s>", &t->begin, name, err));
    MR_TRY(special(t, "</s>", &t->end, name, err));
    MR_TRY(special(t, "<pad>", &t->pad, name, err));
    for (int byte = 0; byte < 256; byte++) {
        char text[MR_BYTE_TEXT];
        size_t len = mr_byte_text((uint8_t)byte, text), n = mr_token_find(t, text, len);
        t->bytes[byte] = n == SIZE_MAX ? -1 : t->tokens[n].id;
    }
    if (!make_table(t) || !make_set(t, false) || !make_set(t, true))
        return mr_fail_memory(err, name);
    mr_classes_fill(&t->classes);
    make_hash(t, t->table_mask + 1);
    return MR_OK;
}

uint32_t mr_tokenizer_size(const mr_tokenizer *t)
{
    return t->size;
}

int32_t mr_tokenizer_pad(const mr_tokenizer *t)
{
    return t->pad;
}
