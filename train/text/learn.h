/* learn.h - the input of learning a tokenizer, words with their counts, and its result, tokens and merges.
 * Invariant: tokens 0 to 255 are the bytes; merge n makes its token from two earlier ones. */
#ifndef MR_TOKENIZER_LEARN_H
#define MR_TOKENIZER_LEARN_H

#include "train/text/parts.h"

enum {
    MR_LEARN_MAX = 1 << 30, /* bytes of different words */
    MR_LEARN_TOKEN = 256,   /* bytes of a token; longer ones are not words */
    MR_LEARN_FRONT = 4,     /* <s>, <pad>, </s>, <unk> */
    MR_LEARN_MIN = MR_LEARN_FRONT + 256 + 1,
};

typedef struct mr_word {
    uint32_t at, len; /* in `text` */
    uint64_t count;
} mr_word;

struct mr_tokenizer_maker {
    mr_classes classes;
    mr_buf text, valid;
    mr_word *words;
    uint32_t *table; /* number of a word + 1 by its hash; 0: empty */
    size_t word_count, word_capacity, table_size;
    uint64_t seed; /* for the table's hashes */
};

typedef struct mr_learned_token {
    size_t at; /* in `text`: its bytes */
    uint32_t len;
} mr_learned_token;

typedef struct mr_learned {
    mr_buf text;
    mr_learned_token *tokens;
    mr_merge *merges;
    size_t token_count, token_capacity, merge_count, merge_capacity;
} mr_learned;

/* Learns until there are `max` tokens, including the bytes, or no pair occurs twice. */
mr_status mr_learn(const mr_tokenizer_maker *m, size_t max, mr_learned *out, mr_error *err);
void mr_learned_free(mr_learned *l);

#endif
