/* parts.h - what the tokenizer's files share: the tables, how they are filled, how a text is split into pieces.
 * Invariant: after mr_tokenizer_seal() nothing in a mr_tokenizer changes.
 *
 *      text --added tokens--> stretches --letters, numbers, spaces, others--> pieces --bytes, merges--> ids */
#ifndef MR_TOKENIZER_PARTS_H
#define MR_TOKENIZER_PARTS_H

#include "base/string_map.h"
#include "base/json/json.h"
#include "train/text/tokenizer.h"

enum {
    MR_FILE_MAX = 64 << 20, /* bytes of a file; roberta-base has 3.5 MB */
    MR_ID_MAX = (1 << 24) - 1,
    MR_ADDED_MAX = 1024, /* bytes of an added token, which is searched for at every place of a text */
    MR_BYTE_TEXT = 3,
};

/* ---- characters (unicode.c, pieces.c) -------------------------------------------------------- */

enum { MR_OTHER, MR_LETTER, MR_NUMBER, MR_SPACE, MR_CLASS = 3, MR_OF_WORD = 4 };

uint8_t mr_class_of(uint32_t code); /* a class, and MR_OF_WORD */

/* The classes of characters of one or two bytes in UTF-8, for speed. */
typedef struct mr_classes {
    uint8_t low[0x800];
} mr_classes;

void mr_classes_fill(mr_classes *c);
/* The class of the character at `at` of valid UTF-8, and its length. */
uint8_t mr_classes_at(const mr_classes *c, const char *at, size_t *len);

/* The end of the piece that begins at text + at, at < len; the text is valid UTF-8.  The pattern:
 * 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
size_t mr_piece_end(const mr_classes *c, const char *text, size_t len, size_t at);

/* Appends the text with invalid UTF-8 replaced by U+FFFD, one for each maximal part. */
void mr_utf8_repair(const char *text, size_t len, mr_buf *out);
/* Makes *text valid in the same way: as it is, or repaired in `scratch`. */
mr_status mr_utf8_make_valid(const char **text, size_t *len, mr_buf *scratch, mr_error *err);

/* GPT-2's letter for a byte, in UTF-8 with a NUL after it; its length. */
size_t mr_byte_text(uint8_t byte, char out[MR_BYTE_TEXT]);

/* ---- tables ------------------------------------------------------------------------------------------------------ */

typedef struct mr_token {
    size_t at; /* in `text` */
    uint32_t len;
    int32_t id;
} mr_token;

typedef struct mr_added {
    size_t at;
    uint32_t len;
    int32_t id;
    bool single_word, lstrip, rstrip, normalized, special;
} mr_added;

typedef struct mr_merge {
    uint32_t left, right, merged; /* numbers of tokens */
} mr_merge;

typedef struct mr_merge_slot {
    uint64_t pair; /* id of the left one << 32 | id of the right one; UINT64_MAX: empty */
    uint32_t rank;
    int32_t merged;
} mr_merge_slot;

/* Added tokens that are searched for together, sorted by their bytes. */
typedef struct mr_added_set {
    const mr_added **items;
    size_t count;
    bool first[256]; /* first bytes of them */
} mr_added_set;

struct mr_tokenizer {
    mr_buf text;      /* the text of all tokens */
    mr_token *tokens; /* the vocabulary, in the order of the file */
    mr_added *added;  /* in the order of the file */
    mr_merge *merges; /* by rank */
    size_t token_count, token_capacity, added_count, added_capacity, merge_count, merge_capacity;
    mr_string_map by_text, added_by_text;
    uint64_t seed;     /* for the table's hashes */
    int64_t added_end; /* largest id of an added token + 1; 0: none */
    int32_t unk;       /* for bytes without a token; -1: they are left out */
    bool fuse_unk;     /* several of them become one */

    mr_classes classes; /* from here on: by mr_tokenizer_seal() */
    mr_merge_slot *table;
    size_t table_mask;
    mr_added_set sets[2]; /* those not "normalized", then those that are */
    int32_t bytes[256];   /* -1: no token */
    int32_t begin, end, pad;
    uint32_t size;
    uint64_t hash; /* a hash of everything that determines ids; a scratch is valid for one hash */
};

/* ---- filling them (tables.c); `name` is the file, for messages ----------------------------------------- */

mr_status mr_tokenizer_new(mr_tokenizer **out, mr_error *err);
/* Number of a token in `tokens`; SIZE_MAX: none. */
size_t mr_token_find(const mr_tokenizer *t, const char *text, size_t len);
mr_status mr_token_add(mr_tokenizer *t, const char *text, size_t len, int64_t id, const char *name, mr_error *err);
mr_status mr_merge_add(mr_tokenizer *t, const char *left, size_t left_len, const char *right, size_t right_len,
                       const char *name, mr_error *err);
/* `flags`: all but at and len; id -1: the next one. */
mr_status mr_added_add(mr_tokenizer *t, const char *text, size_t len, const mr_added *flags, const char *name,
                       mr_error *err);
mr_status mr_tokenizer_seal(mr_tokenizer *t, const char *name, mr_error *err);

/* What the pair of ids merges to; NULL: nothing. */
const mr_merge_slot *mr_merge_of(const mr_tokenizer *t, int32_t left, int32_t right);

int mr_token_by_id(const void *a, const void *b); /* orders two mr_token, for qsort() */

/* ---- the files of a vocabulary (vocab.c) ------------------------------------------------------------------------- */

typedef struct mr_vocab_file { /* in memory */
    const void *bytes;
    size_t len;
    const char *name;
} mr_vocab_file;

/* vocab.json and merges.txt. */
mr_status mr_tokenizer_parse_vocab(const mr_vocab_file *vocab, const mr_vocab_file *merges, mr_tokenizer **out,
                                   mr_error *err);
/* An object of tokens and ids. */
mr_status mr_tokens_add(mr_tokenizer *t, json_t *vocab, const char *name, mr_error *err);
/* mr_json_parse() with a limit on memory. */
mr_status mr_tokenizer_json(const void *bytes, size_t len, const char *name, json_t **out, mr_error *err);

#endif
