/* tokenizer.h - text to token ids: byte-level BPE as in RoBERTa and GPT-2.
 * Invariant: ids are those of the `tokenizers` package for the same file; an open tokenizer does not change, and any
 * number of threads may use it, each with its own scratch.
 * Source: tokenizers 0.21 (ByteLevel, BPE, RobertaProcessing); openai/gpt-2 src/encoder.py. */
#ifndef MR_TOKENIZER_H
#define MR_TOKENIZER_H

#include "base/buf.h"

typedef struct mr_tokenizer mr_tokenizer;
typedef struct mr_tokenizer_scratch mr_tokenizer_scratch; /* a bounded cache of words */

/* `path`: tokenizer.json, vocab.json with merges.txt beside it, or a directory that holds either.
 * MR_BAD_DATA names the file and what is wrong with it: not BPE, a component that is not supported (normalizer, another
 * pre-tokenizer ...), an id twice, a merge of unknown tokens, <s>, <pad> or </s> missing ... */
mr_status mr_tokenizer_open(const char *path, mr_tokenizer **out, mr_error *err);
void mr_tokenizer_free(mr_tokenizer *t); /* NULL is fine */
/* The same from the bytes of a tokenizer.json, as a checkpoint keeps it. */
mr_status mr_tokenizer_parse(const void *json, size_t len, const char *name, mr_tokenizer **out, mr_error *err);
/* The tokenizer as a tokenizer.json (flat; merges as pairs) that mr_tokenizer_parse() and `tokenizers` read. */
mr_status mr_tokenizer_write(const mr_tokenizer *t, mr_buf *out, mr_error *err);

uint32_t mr_tokenizer_size(const mr_tokenizer *t); /* 1 + the largest id */
int32_t mr_tokenizer_pad(const mr_tokenizer *t);   /* id of <pad> */
/* Id of the added token or token with this text; -1: none. */
int32_t mr_token_id(const mr_tokenizer *t, const char *text);

mr_tokenizer_scratch *mr_tokenizer_scratch_new(void); /* NULL: no memory */
void mr_tokenizer_scratch_free(mr_tokenizer_scratch *s);

/* <s> text </s>, not padded, truncated to `max` ids (2 or more), of which the last is always </s>: *count of them in
 * ids[max].  Bytes that are not UTF-8 become U+FFFD, one for each maximal part, as with Python's errors="replace".
 * MR_SYSTEM: no memory. */
mr_status mr_tokenizer_encode(const mr_tokenizer *t, mr_tokenizer_scratch *s, const char *text, size_t len, size_t max,
                              int32_t *ids, size_t *count, mr_error *err);

/* ---- learning a tokenizer ---------------------------------------------------------------------------------------- */

/* Learns merges from texts, the most frequent pair first (of equals the first in byte order): `size` ids, <s> 0,
 * <pad> 1, </s> 2, <unk> 3, then the 256 bytes, the merges, and <mask>.  Fewer if no more pairs occur twice. */
typedef struct mr_tokenizer_maker mr_tokenizer_maker;
mr_tokenizer_maker *mr_tokenizer_maker_new(void);
mr_status mr_tokenizer_maker_add(mr_tokenizer_maker *m, const char *text, size_t len, mr_error *err);
mr_status mr_tokenizer_maker_finish(mr_tokenizer_maker *m, uint32_t size, mr_tokenizer **out, mr_error *err);
void mr_tokenizer_maker_free(mr_tokenizer_maker *m);

#endif
