/* learn.c - learns merges: the most frequent pair of neighbours becomes one token, repeatedly.
 * Invariant: a pair's count is the number of its present places, each weighted by the count of its word; work is
 * proportional to the places that change, so n bytes of words cost n log n in all.
 *
 *      nodes:  [h]<->[e]<->[l]<->[l]<->[o]   [ ]<->[h]<-> ...         one chain per word
 *      pairs:  (h,e): count 2, places 0, 6;  (l,l): ...              a place is the left token's node
 *      heap:   the most frequent on top, among equals the first in byte order; counts in it may be too large
 *
 * Source: Sennrich et al., "Neural Machine Translation of Rare Words with Subword Units", 2016, algorithm 1. */
#include "train/text/learn.h"

#include <stdlib.h>
#include <string.h>

enum { GONE = -1, END = -1, NONE = -1 };

typedef struct node {
    int32_t token; /* GONE: part of the one before it */
    int32_t before, after;
    uint32_t word;
} node;

typedef struct pair {
    uint32_t left, right;
    uint64_t count;
    int32_t *places; /* some may be outdated */
    size_t place_count, place_capacity;
    bool raised; /* not yet in the heap with this count */
} pair;

typedef struct entry {
    uint64_t count;
    uint32_t pair;
} entry;

typedef struct learner {
    const mr_tokenizer_maker *m;
    mr_learned *out;
    node *nodes;
    pair *pairs;
    uint32_t *pair_table; /* numbers + 1 by hash */
    uint32_t *raised;
    entry *heap;
    size_t pair_count, pair_capacity, pair_table_size, raised_count, raised_capacity, heap_count, heap_capacity;
} learner;

void mr_learned_free(mr_learned *l)
{
    mr_buf_free(&l->text);
    free(l->tokens);
    free(l->merges);
}

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

static const uint8_t *bytes_of(const learner *l, uint32_t token)
{
    return l->out->text.data + l->out->tokens[token].at;
}

/* A new token with these bytes, which are not those of l->out->text; NONE: no memory. */
static int32_t add_token(learner *l, const uint8_t *bytes, size_t len)
{
    mr_learned *out = l->out;
    if (!MR_GROW(out->tokens, out->token_count, out->token_capacity))
        return NONE;
    out->tokens[out->token_count++] = (mr_learned_token){.at = out->text.len, .len = (uint32_t)len};
    mr_buf_add(&out->text, bytes, len);
    return out->text.failed ? NONE : (int32_t)out->token_count - 1;
}

static int compare_tokens(const learner *l, uint32_t a, uint32_t b)
{
    size_t a_len = l->out->tokens[a].len, b_len = l->out->tokens[b].len;
    int order = memcmp(bytes_of(l, a), bytes_of(l, b), a_len < b_len ? a_len : b_len);
    return order ? order : (a_len > b_len) - (a_len < b_len);
}

/* ---- the heap ---------------------------------------------------------------------------------------------------- */

static bool precedes(const learner *l, entry a, entry b)
{
    if (a.count != b.count)
        return a.count > b.count;
    const pair *x = &l->pairs[a.pair], *y = &l->pairs[b.pair];
    int order = x->left == y->left ? 0 : compare_tokens(l, x->left, y->left);
    return (order ? order : compare_tokens(l, x->right, y->right)) < 0;
}

static bool push(learner *l, entry e)
{
    if (!MR_GROW(l->heap, l->heap_count, l->heap_capacity))
        return false;
    size_t i = l->heap_count++;
    for (; i > 0 && precedes(l, e, l->heap[(i - 1) / 2]); i = (i - 1) / 2)
        l->heap[i] = l->heap[(i - 1) / 2];
    l->heap[i] = e;
    return true;
}

static entry pop(learner *l)
{
    entry top = l->heap[0], last = l->heap[--l->heap_count];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < l->heap_count; i = child) {
        child += child + 1 < l->heap_count && precedes(l, l->heap[child + 1], l->heap[child]);
        if (!precedes(l, l->heap[child], last))
            break;
        l->heap[i] = l->heap[child];
    }
    l->heap[i] = last;
    return top;
}

/* ---- pairs ------------------------------------------------------------------------------------------------------- */

static size_t pair_place(const learner *l, uint32_t left, uint32_t right)
{
    uint64_t key = ((uint64_t)left << 32 | right) * 0x9E3779B97F4A7C15u; /* Knuth, TAOCP 3, section 6.4 */
    size_t mask = l->pair_table_size - 1, i = (size_t)(key ^ key >> 32) & mask;
    for (; l->pair_table[i]; i = (i + 1) & mask) {
        const pair *p = &l->pairs[l->pair_table[i] - 1];
        if (p->left == left && p->right == right)
            break;
    }
    return i;
}

static bool grow_pairs(learner *l)
{
    size_t size = l->pair_table_size ? l->pair_table_size * 2 : 4096;
    uint32_t *grown = mr_alloc(size, sizeof *grown);
    if (!grown)
        return false;
    free(l->pair_table);
    l->pair_table = grown;
    l->pair_table_size = size;
    for (size_t i = 0; i < l->pair_count; i++)
        grown[pair_place(l, l->pairs[i].left, l->pairs[i].right)] = (uint32_t)i + 1;
    return true;
}

/* One more place of the pair that node `at` begins. */
static bool add_place(learner *l, int32_t at)
{
    uint32_t left = (uint32_t)l->nodes[at].token, right = (uint32_t)l->nodes[l->nodes[at].after].token;
    if ((l->pair_count + 1) * 2 > l->pair_table_size && !grow_pairs(l))
        return false;
    size_t place = pair_place(l, left, right);
    if (!l->pair_table[place]) {
        if (!MR_GROW(l->pairs, l->pair_count, l->pair_capacity))
            return false;
        l->pairs[l->pair_count++] = (pair){.left = left, .right = right};
        l->pair_table[place] = (uint32_t)l->pair_count;
    }
    uint32_t number = l->pair_table[place] - 1;
    pair *p = &l->pairs[number];
    if (!MR_GROW(p->places, p->place_count, p->place_capacity))
        return false;
    p->places[p->place_count++] = at;
    p->count += l->m->words[l->nodes[at].word].count;
    if (p->raised)
        return true;
    if (!MR_GROW(l->raised, l->raised_count, l->raised_capacity))
        return false;
    p->raised = true;
    l->raised[l->raised_count++] = number;
    return true;
}

static void remove_place(learner *l, int32_t at)
{
    uint32_t left = (uint32_t)l->nodes[at].token, right = (uint32_t)l->nodes[l->nodes[at].after].token;
    l->pairs[l->pair_table[pair_place(l, left, right)] - 1].count -= l->m->words[l->nodes[at].word].count;
}

/* Pairs that have become more frequent get a new entry, unless they are too long. */
static bool push_raised(learner *l)
{
    for (size_t i = 0; i < l->raised_count; i++) {
        pair *p = &l->pairs[l->raised[i]];
        p->raised = false;
        if (p->count >= 2 && l->out->tokens[p->left].len + l->out->tokens[p->right].len <= MR_LEARN_TOKEN &&
            !push(l, (entry){.count = p->count, .pair = l->raised[i]}))
            return false;
    }
    l->raised_count = 0;
    return true;
}

/* ---- learning ----------------------------------------------------------------------------------------------------- *
 * No token is made in two ways, and no pair returns: nothing merges across the ends of what becomes one token, so its
 * bytes merge as they would alone, in the same way and order everywhere. */

/* Words as chains of bytes; node i is byte i of the maker's text. */
static bool begin(learner *l)
{
    const mr_tokenizer_maker *m = l->m;
    l->nodes = mr_alloc(m->text.len, sizeof *l->nodes);
    if (!l->nodes)
        return false;
    for (unsigned byte = 0; byte < 256; byte++)
        if (add_token(l, &(uint8_t){(uint8_t)byte}, 1) == NONE)
            return false;
    for (uint32_t w = 0; w < m->word_count; w++)
        for (uint32_t i = 0; i < m->words[w].len; i++) {
            int32_t at = (int32_t)(m->words[w].at + i);
            l->nodes[at] = (node){.token = m->text.data[at],
                                  .before = i ? at - 1 : END,
                                  .word = w,
                                  .after = i + 1 < m->words[w].len ? at + 1 : END};
        }
    for (size_t i = 0; i < m->text.len; i++)
        if (l->nodes[i].after != END && !add_place(l, (int32_t)i))
            return false;
    return push_raised(l);
}

static bool merge_at(learner *l, int32_t at, int32_t token)
{
    node *left = &l->nodes[at], *right = &l->nodes[left->after];
    if (left->before != END)
        remove_place(l, left->before);
    remove_place(l, at);
    if (right->after != END)
        remove_place(l, left->after);
    left->token = token;
    left->after = right->after;
    right->token = GONE;
    if (left->after != END)
        l->nodes[left->after].before = at;
    return (left->before == END || add_place(l, left->before)) && (left->after == END || add_place(l, at));
}

/* Every place of the pair, from left to right: "aaa" is (aa)a.  Places are in that order: all of a pair are added when
 * the younger of its two tokens is made, from places in that order. */
static bool merge_pair(learner *l, uint32_t number, int32_t token)
{
    pair p = l->pairs[number];
    l->pairs[number].places = NULL;
    l->pairs[number].place_count = l->pairs[number].place_capacity = 0;
    bool ok = true;
    for (size_t i = 0; i < p.place_count && ok; i++) {
        const node *left = &l->nodes[p.places[i]];
        if (left->token == (int32_t)p.left && left->after != END && l->nodes[left->after].token == (int32_t)p.right)
            ok = merge_at(l, p.places[i], token);
    }
    free(p.places);
    return ok;
}

static bool learn_one(learner *l, uint32_t number)
{
    mr_learned *out = l->out;
    const pair *p = &l->pairs[number];
    uint8_t joined[MR_LEARN_TOKEN];
    size_t left = out->tokens[p->left].len, right = out->tokens[p->right].len;
    memcpy(joined, bytes_of(l, p->left), left);
    memcpy(joined + left, bytes_of(l, p->right), right);
    int32_t token = add_token(l, joined, left + right);
    if (token == NONE || !MR_GROW(out->merges, out->merge_count, out->merge_capacity))
        return false;
    out->merges[out->merge_count++] = (mr_merge){p->left, p->right, (uint32_t)token};
    return merge_pair(l, number, token) && push_raised(l);
}

mr_status mr_learn(const mr_tokenizer_maker *m, size_t max, mr_learned *out, mr_error *err)
{
    learner l = {.m = m, .out = out};
    bool ok = begin(&l);
    while (ok && l.heap_count && out->token_count < max) {
        entry top = pop(&l);
        uint64_t count = l.pairs[top.pair].count;
        if (count == top.count)
            ok = learn_one(&l, top.pair);
        else if (count >= 2 && count < top.count)
            ok = push(&l, (entry){.count = count, .pair = top.pair});
    }
    for (size_t i = 0; i < l.pair_count; i++)
        free(l.pairs[i].places);
    free(l.nodes);
    free(l.pairs);
    free(l.pair_table);
    free(l.raised);
    free(l.heap);
    return ok ? MR_OK : mr_fail_memory(err, "learning a tokenizer");
}
