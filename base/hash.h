/* hash.h - XXH3 against accidental damage, SHA-256 against tampering.
 * Source: xxHash 0.8 (XXH3 with its default secret and seed 0, canonical big-endian form when printed), FIPS 180-4. */
#ifndef MR_HASH_H
#define MR_HASH_H

#include "base/buf.h"

typedef struct mr_digest { /* of a whole file */
    uint64_t bytes;
    uint8_t xxh3_128[16]; /* canonical (big-endian) form */
    uint8_t sha256[32];   /* all zero unless requested */
} mr_digest;

uint64_t mr_hash64(const void *bytes, size_t len);
/* For hash tables of untrusted text: a secret of this process, so that an attacker cannot choose colliding keys.  Not
 * for hashes that are stored or sent to another process. */
uint64_t mr_hash_seed(void);
uint64_t mr_hash64_seeded(const void *bytes, size_t len, uint64_t seed);
void mr_hash128(const void *bytes, size_t len, uint8_t out[16]);
void mr_sha256(const void *bytes, size_t len, uint8_t out[32]);

/* Streaming: begin, add as often as needed, end.  `end` also releases; it must be called exactly once. */
typedef struct mr_hasher mr_hasher;
mr_status mr_hasher_begin(bool with_sha256, mr_hasher **out, mr_error *err);
void mr_hasher_add(mr_hasher *h, const void *bytes, size_t len);
mr_status mr_hasher_end(mr_hasher *h, mr_digest *out, mr_error *err); /* out may be NULL: only release */

/* A record's XXH3-64 computed in pieces, for readers that stream a file. */
typedef struct mr_hash64_stream mr_hash64_stream;
mr_hash64_stream *mr_hash64_new(void); /* NULL: out of memory */
void mr_hash64_reset(mr_hash64_stream *s);
void mr_hash64_add(mr_hash64_stream *s, const void *bytes, size_t len);
uint64_t mr_hash64_end(mr_hash64_stream *s);
void mr_hash64_free(mr_hash64_stream *s);

void mr_hex(const uint8_t *bytes, size_t len, char *out);    /* 2 * len characters and a NUL */
bool mr_unhex(const char *text, uint8_t *bytes, size_t len); /* false unless exactly 2 * len hex digits */

#endif
