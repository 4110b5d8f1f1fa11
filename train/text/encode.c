/* encode.c - a text to ids: added tokens first, then pieces, each by its merges or from the cache.
 * Invariant: work ends after `max` ids; any piece of n bytes costs at most n log n.
 * Source: tokenizers 0.21, added_vocabulary.rs (find_matches: which token, which white space belongs to it) and
 * bpe/word.rs (merge_all: lowest rank first, among equals the leftmost; a candidate is valid while its pair gives the
 * same token). */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/scope.h"
#include "train/text/parts.h"

enum { SLOTS = 1 << 14, SLOT_TEXT = 30, SLOT_IDS = 8, TEXT_MAX = 1 << 29, NONE = -1 };

typedef struct slot { /* 64 bytes: a cache line */
    uint8_t len, count;
    char text[SLOT_TEXT];
    int32_t ids[SLOT_IDS];
} slot;

typedef struct symbol {
    int32_t id;            /* NONE: merged into the one before it */
    int32_t before, after; /* symbols; NONE at the ends */
} symbol;

typedef struct candidate {
    uint32_t rank;
    int32_t at, merged;
} candidate;

struct mr_tokenizer_scratch {
    slot *slots;
    uint64_t hash; /* the hash of the tokenizer whose pieces the slots hold */
    mr_buf valid;
    symbol *symbols;
    candidate *heap;
    size_t symbol_capacity, heap_capacity;
};

typedef struct encoder {
    const mr_tokenizer *t;
    mr_tokenizer_scratch *s;
    int32_t *ids;
    size_t count, max; /* without </s> */
    size_t heap_count;
} encoder;

mr_tokenizer_scratch *mr_tokenizer_scratch_new(void)
{
    mr_tokenizer_scratch *s = mr_alloc(1, sizeof *s);
    if (s)
        s->slots = mr_alloc(SLOTS, sizeof *s->slots);
    if (s && s->slots)
        return s;
    free(s);
    return NULL;
}

void mr_tokenizer_scratch_free(mr_tokenizer_scratch *s)
{
    if (!s)
        return;
    free(s->slots);
    free(s->symbols);
    free(s->heap);
    mr_buf_free(&s->valid);
    free(s);
}

static bool full(const encoder *e)
{
    return e->count == e->max;
}

static void emit(encoder *e, int32_t id)
{
    if (!full(e))
        e->ids[e->count++] = id;
}

/* ---- one piece by its merges ------------------------------------------------------------------------------------- */

static bool precedes(candidate a, candidate b)
{
    return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
}

static bool push(encoder *e, int32_t at)
{
    mr_tokenizer_scratch *s = e->s;
    const symbol *left = &s->symbols[at];
    const mr_merge_slot *m = left->after == NONE ? NULL : mr_merge_of(e->t, left->id, s->symbols[left->after].id);
    if (!m)
        return true;
    if (!MR_GROW(s->heap, e->heap_count, s->heap_capacity))
        return false;
    candidate c = {.rank = m->rank, .at = at, .merged = m->merged};
    size_t i = e->heap_count++;
    for (; i > 0 && precedes(c, s->heap[(i - 1) / 2]); i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = c;
    return true;
}

static candidate pop(encoder *e)
{
    candidate *heap = e->s->heap, top = heap[0], last = heap[--e->heap_count];
    size_t i = 0, n = e->heap_count;
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && precedes(heap[child + 1], heap[child]);
        if (!precedes(heap[child], last))
            break;
        heap[i] = heap[child];
    }
    heap[i] = last;
    return top;
}

/* The piece's bytes as symbols; their number.  Bytes without a token become <unk>, or are left out if there is none. */
static size_t spell(encoder *e, const char *piece, size_t len)
{
    symbol *symbols = e->s->symbols;
    size_t n = 0;
    bool unknown = false;
    for (size_t i = 0; i < len; i++) {
        int32_t id = e->t->bytes[(uint8_t)piece[i]];
        bool known = id != NONE, fused = !known && unknown && e->t->fuse_unk;
        unknown = !known;
        if (!known)
            id = fused ? NONE : e->t->unk;
        if (id == NONE)
            continue;
        symbols[n] = (symbol){.id = id, .before = (int32_t)n - 1, .after = (int32_t)n + 1};
        n++;
    }
    if (n)
        symbols[n - 1].after = NONE;
    return n;
}

static mr_status merge_piece(encoder *e, const char *piece, size_t len, mr_error *err)
{
    mr_tokenizer_scratch *s = e->s;
    if (len > s->symbol_capacity) {
        symbol *grown = mr_realloc(s->symbols, len, sizeof *grown);
        if (!grown)
            return mr_fail_memory(err, "tokenizing a text");
        s->symbols = grown;
        s->symbol_capacity = len;
    }
    size_t n = spell(e, piece, len);
    bool ok = true;
    e->heap_count = 0;
    for (size_t i = 0; i < n && ok; i++)
        ok = push(e, (int32_t)i);
    while (e->heap_count && ok) {
        candidate c = pop(e);
        symbol *left = &s->symbols[c.at], *right = left->after == NONE ? NULL : &s->symbols[left->after];
        const mr_merge_slot *m = left->id == NONE || !right ? NULL : mr_merge_of(e->t, left->id, right->id);
        if (!m || m->merged != c.merged)
            continue; /* its pair has changed since */
        left->id = c.merged;
        left->after = right->after;
        right->id = NONE;
        if (left->after != NONE)
            s->symbols[left->after].before = c.at;
        ok = (left->before == NONE || push(e, left->before)) && push(e, c.at);
    }
    if (!ok)
        return mr_fail_memory(err, "tokenizing a text");
    for (int32_t i = n ? 0 : NONE; i != NONE && !full(e); i = s->symbols[i].after)
        emit(e, s->symbols[i].id);
    return MR_OK;
}

/* The same, with a cache; a piece that did not fit into `ids` is not cached. */
static mr_status encode_piece(encoder *e, const char *piece, size_t len, mr_error *err)
{
    if (len > SLOT_TEXT)
        return merge_piece(e, piece, len, err);
    slot *known = &e->s->slots[mr_hash64(piece, len) % SLOTS];
    if (known->len == len && memcmp(known->text, piece, len) == 0) {
        for (size_t i = 0; i < known->count; i++)
            emit(e, known->ids[i]);
        return MR_OK;
    }
    size_t before = e->count;
    MR_TRY(merge_piece(e, piece, len, err));
    size_t count = e->count - before;
    if (full(e) || count > SLOT_IDS)
        return MR_OK;
    known->len = (uint8_t)len;
    known->count = (uint8_t)count;
    memcpy(known->text, piece, len);
    memcpy(known->ids, e->ids + before, count * sizeof *known->ids);
    return MR_OK;
}

static mr_status encode_pieces(encoder *e, const char *text, size_t len, mr_error *err)
{
    for (size_t at = 0, end; at < len && !full(e); at = end) {
        end = mr_piece_end(&e->t->classes, text, len, at);
        MR_TRY(encode_piece(e, text + at, end - at, err));
    }
    return MR_OK;
}

/* ---- added tokens ------------------------------------------------------------------------------------------------ */

/* The first item from `low` whose byte `depth` is at least `byte`; items before `high` are longer than `depth`. */
static size_t narrow(const mr_tokenizer *t, const mr_added_set *set, size_t low, size_t high, size_t depth,
                     unsigned byte)
{
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (t->text.data[set->items[middle]->at + depth] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The longest token at the beginning of the text; NULL: none. */
static const mr_added *longest(const mr_tokenizer *t, const mr_added_set *set, const char *text, size_t len)
{
    const mr_added *best = NULL;
    size_t low = 0, high = set->count;
    for (size_t depth = 0; low < high; depth++) {
        if (set->items[low]->len == depth)
            best = set->items[low++]; /* the others follow it */
        if (depth == len)
            break;
        unsigned byte = (uint8_t)text[depth];
        low = narrow(t, set, low, high, depth, byte);
        high = narrow(t, set, low, high, depth, byte + 1);
    }
    return best;
}

static size_t character_before(const char *text, size_t at)
{
    do
        at--;
    while (((uint8_t)text[at] & 0xC0) == 0x80);
    return at;
}

static bool stands_alone(const encoder *e, const char *text, size_t len, size_t start, size_t stop)
{
    const mr_classes *c = &e->t->classes;
    size_t n;
    return !(start > 0 && mr_classes_at(c, text + character_before(text, start), &n) & MR_OF_WORD) &&
           !(stop < len && mr_classes_at(c, text + stop, &n) & MR_OF_WORD);
}

static bool is_space(const encoder *e, const char *at, size_t *len)
{
    return (mr_classes_at(&e->t->classes, at, len) & MR_CLASS) == MR_SPACE;
}

typedef struct match {
    size_t start, stop; /* where the token is in the text */
    size_t from;        /* end of the token before it */
    size_t blanks;      /* end of the white space that belongs to a token before it; 0: none */
} match;

/* Adds the white space before and after the token, if it is such a token, but not what belongs to an earlier one.  A
 * token of white space that is part of an earlier one's ends there too: so each run of white space is read once. */
static void widen(const encoder *e, const mr_added *a, const char *text, size_t len, match *m)
{
    size_t n;
    while (a->lstrip && m->start > m->from && is_space(e, text + character_before(text, m->start), &n))
        m->start = character_before(text, m->start);
    if (a->lstrip && m->start < m->from)
        m->start = m->from;
    if (!a->rstrip)
        return;
    if (m->stop < m->blanks)
        m->stop = m->blanks;
    while (m->stop < len && is_space(e, text + m->stop, &n))
        m->stop += n;
    m->blanks = m->stop;
}

static mr_status encode_set(encoder *e, unsigned which, const char *text, size_t len, mr_error *err)
{
    if (which == MR_COUNT(e->t->sets))
        return encode_pieces(e, text, len, err);
    const mr_added_set *set = &e->t->sets[which];
    match m = {0};
    for (size_t at = 0; at < len && set->count && !full(e);) {
        const mr_added *a = set->first[(uint8_t)text[at]] ? longest(e->t, set, text + at, len - at) : NULL;
        m.start = at;
        m.stop = at += a ? a->len : 1;
        if (!a || (a->single_word && !stands_alone(e, text, len, m.start, m.stop)))
            continue;
        widen(e, a, text, len, &m);
        if (m.from < m.start)
            MR_TRY(encode_set(e, which + 1, text + m.from, m.start - m.from, err));
        if (m.start < m.stop) /* otherwise white space that belongs to an earlier token */
            emit(e, a->id);
        m.from = m.stop;
    }
    return m.from < len && !full(e) ? encode_set(e, which + 1, text + m.from, len - m.from, err) : MR_OK;
}

mr_status mr_tokenizer_encode(const mr_tokenizer *t, mr_tokenizer_scratch *s, const char *text, size_t len, size_t max,
                              int32_t *ids, size_t *count, mr_error *err)
{
    if (max < 2)
        return mr_fail(err, MR_MISUSE, "a text has at least 2 tokens, <s> and </s>; %zu are too few", max);
    if (len > TEXT_MAX)
        return mr_fail(err, MR_BAD_SAMPLE, "a text of %zu bytes; the limit is %d", len, TEXT_MAX);
    if (s->hash != t->hash) {
        memset(s->slots, 0, SLOTS * sizeof *s->slots);
        s->hash = t->hash;
    }
    MR_TRY(mr_utf8_make_valid(&text, &len, &s->valid, err));
    encoder e = {.t = t, .s = s, .ids = ids, .max = max - 1};
    emit(&e, t->begin);
    MR_TRY(encode_set(&e, 0, text, len, err));
    ids[e.count++] = t->end;
    *count = e.count;
    return MR_OK;
}
