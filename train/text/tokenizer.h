/* tokenizer.h - text to token ids: byte-level BPE as in RoBERTa and GPT-2.
 * Invariant: ids are those of the `tokenizers` package for the same file; an open tokenizer does not change, and any
 * number of threads may use it, each with its own scratch.
 * Source: tokenizers 0.21 (ByteLevel, BPE, RobertaProcessing); openai/gpt-2 src/encoder.py. */
#ifndef MR_TOKENIZER_H
#define MR_TOKENIZER_H

#include "base/buf.h"
#include "millrace.h"

/* Opening and encoding: millrace.h.  The same from the bytes of a tokenizer.json, as a checkpoint keeps it. */
mr_status mr_tokenizer_parse(const void *json, size_t len, const char *name, mr_tokenizer **out, mr_error *err);
/* The tokenizer as a tokenizer.json (flat; merges as pairs) that mr_tokenizer_parse() and `tokenizers` read. */
mr_status mr_tokenizer_write(const mr_tokenizer *t, mr_buf *out, mr_error *err);

/* Id of the added token or token with this text; -1: none. */
int32_t mr_token_id(const mr_tokenizer *t, const char *text);

/* ---- learning a tokenizer ---------------------------------------------------------------------------------------- */

/* Learns merges from texts, the most frequent pair first (among equals the first in byte order): `size` ids, <s> 0,
 * <pad> 1, </s> 2, <unk> 3, then the 256 bytes, the merges, and <mask>.  Fewer if no more pairs occur twice. */
typedef struct mr_tokenizer_maker mr_tokenizer_maker;
mr_tokenizer_maker *mr_tokenizer_maker_new(void);
mr_status mr_tokenizer_maker_add(mr_tokenizer_maker *m, const char *text, size_t len, mr_error *err);
mr_status mr_tokenizer_maker_finish(mr_tokenizer_maker *m, uint32_t size, mr_tokenizer **out, mr_error *err);
void mr_tokenizer_maker_free(mr_tokenizer_maker *m);

#endif
