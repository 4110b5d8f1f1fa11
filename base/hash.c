/* hash.c - XXH3 from xxHash (vector code chosen at run time), SHA-256 from libcrypto.
 * Invariant: a digest is of exactly the bytes that were added, in order.
 *
 * SHA256_*() rather than EVP: the same vector code without loading providers; OpenSSL 3.0 crashes if an allocation
 * fails while it loads one. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/hash.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include <openssl/sha.h>
#if defined(__x86_64__)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

#include "base/scope.h"

struct mr_hasher {
    XXH3_state_t *xxh;
    SHA256_CTX sha;
    uint64_t bytes;
    bool with_sha;
};

uint64_t mr_hash64(const void *bytes, size_t len)
{
    return XXH3_64bits(bytes, len);
}

/* The kernel gives each process 16 random bytes: no state, no failure.  libc derives its own secrets from them, so they
 * are used hashed only. */
uint64_t mr_hash_seed(void)
{
    const void *random = (const void *)getauxval(AT_RANDOM);
    return random ? mr_hash64(random, 16) : 0;
}

uint64_t mr_hash64_seeded(const void *bytes, size_t len, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, len, seed);
}

void mr_hash128(const void *bytes, size_t len, uint8_t out[16])
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes, len));
    memcpy(out, canonical.digest, 16);
}

void mr_sha256(const void *bytes, size_t len, uint8_t out[32])
{
    SHA256_CTX sha;
    SHA256_Init(&sha); /* SHA256() itself uses EVP */
    SHA256_Update(&sha, bytes, len);
    SHA256_Final(out, &sha);
}

static void release(mr_hasher *h)
{
    if (!h)
        return;
    XXH3_freeState(h->xxh);
    free(h);
}

mr_status mr_hasher_begin(bool with_sha256, mr_hasher **out, mr_error *err)
{
    mr_hasher *h = mr_alloc(1, sizeof *h);
    if (!h)
        return mr_fail_memory(err, "hashing");
    h->xxh = XXH3_createState();
    h->with_sha = with_sha256;
    SHA256_Init(&h->sha);
    if (!h->xxh || XXH3_128bits_reset(h->xxh) != XXH_OK) {
        release(h);
        return mr_fail_memory(err, "hashing");
    }
    *out = h;
    return MR_OK;
}

void mr_hasher_add(mr_hasher *h, const void *bytes, size_t len)
{
    h->bytes += len;
    XXH3_128bits_update(h->xxh, bytes, len);
    if (h->with_sha)
        SHA256_Update(&h->sha, bytes, len);
}

mr_status mr_hasher_end(mr_hasher *h, mr_digest *out, mr_error *err)
{
    (void)err; /* neither library can fail here, but a replacement could */
    if (out) {
        XXH128_canonical_t canonical;
        mr_digest digest = {.bytes = h->bytes};
        XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(h->xxh));
        memcpy(digest.xxh3_128, canonical.digest, sizeof digest.xxh3_128);
        if (h->with_sha)
            SHA256_Final(digest.sha256, &h->sha);
        *out = digest;
    }
    release(h);
    return MR_OK;
}

struct mr_hash64_stream {
    XXH3_state_t *state;
};

mr_hash64_stream *mr_hash64_new(void)
{
    mr_hash64_stream *s = mr_alloc(1, sizeof *s);
    if (s && !(s->state = XXH3_createState())) {
        free(s);
        s = NULL;
    }
    if (s)
        mr_hash64_reset(s);
    return s;
}

void mr_hash64_reset(mr_hash64_stream *s)
{
    XXH3_64bits_reset(s->state);
}

void mr_hash64_add(mr_hash64_stream *s, const void *bytes, size_t len)
{
    XXH3_64bits_update(s->state, bytes, len);
}

uint64_t mr_hash64_end(mr_hash64_stream *s)
{
    return XXH3_64bits_digest(s->state);
}

void mr_hash64_free(mr_hash64_stream *s)
{
    if (!s)
        return;
    XXH3_freeState(s->state);
    free(s);
}

void mr_hex(const uint8_t *bytes, size_t len, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * len] = '\0';
}

static int nibble(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool mr_unhex(const char *text, uint8_t *bytes, size_t len)
{
    if (strlen(text) != 2 * len)
        return false;
    for (size_t i = 0; i < len; i++) {
        int high = nibble(text[2 * i]), low = nibble(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}
