/* manifest_seal.c - the last member of a manifest, which shows an edit of any other byte.
 *
 *    {                                          the hash is XXH3-128 of the file without the member:
 *     "millrace": "dataset",                    of everything before the comma, then "\n}\n"
 *     ...
 *     "splits": {...},
 *     "seal": "0123456789abcdef0123456789abcdef"
 *    }
 *
 * Invariant: the seal is at a fixed distance from the end, so finding it needs no JSON.  It detects accidents; a
 * deliberate edit can be sealed again, and only the dataset's digest (verify --expect) shows that. */
#include <string.h>

#include "shards/manifest/format.h"
#include "base/scope.h"
#include "shards/manifest/manifest.h"

#define OPENING ",\n \"seal\": \""
#define CLOSING "\"\n}\n"
#define END     "\n}\n"

enum { HEX = 32, TAIL = sizeof OPENING - 1 + HEX + sizeof CLOSING - 1 };

static mr_status hash_unsealed(const uint8_t *bytes, size_t len, uint8_t out[16], mr_error *err)
{
    mr_hasher *hasher;
    mr_digest digest;
    MR_TRY(mr_hasher_begin(false, &hasher, err));
    mr_hasher_add(hasher, bytes, len);
    mr_hasher_add(hasher, END, sizeof END - 1);
    MR_TRY(mr_hasher_end(hasher, &digest, err));
    memcpy(out, digest.xxh3_128, 16);
    return MR_OK;
}

mr_status mr_manifest_seal(mr_buf *out, size_t start, mr_error *err)
{
    uint8_t hash[16];
    char hex[HEX + 1];
    size_t end = sizeof END - 1;
    if (out->failed || out->len - start < end || memcmp(out->data + out->len - end, END, end) != 0)
        return mr_fail_memory(err, "writing the manifest");
    out->len -= end;
    MR_TRY(hash_unsealed(out->data + start, out->len - start, hash, err));
    mr_hex(hash, sizeof hash, hex);
    mr_buf_printf(out, OPENING "%s" CLOSING, hex);
    return mr_buf_status(out, err, "writing the manifest");
}

mr_status mr_manifest_check_seal(const void *bytes, size_t len, const char *name, mr_error *err)
{
    const uint8_t *tail = len >= TAIL ? (const uint8_t *)bytes + (len - TAIL) : bytes;
    size_t opening = sizeof OPENING - 1, closing = sizeof CLOSING - 1;
    uint8_t found[16];
    char hex[HEX + 1];
    if (len < TAIL || memcmp(tail, OPENING, opening) != 0 || memcmp(tail + opening + HEX, CLOSING, closing) != 0)
        return mr_fail(err, MR_BAD_DATA,
                       "%s: does not end with its seal: it was edited or damaged; restore the "
                       "original or ingest again",
                       name);
    MR_TRY(hash_unsealed(bytes, len - TAIL, found, err));
    mr_hex(found, sizeof found, hex);
    if (memcmp(tail + opening, hex, HEX) != 0)
        return mr_fail(err, MR_BAD_DATA,
                       "%s: its seal does not match its text: it was edited or damaged; restore the "
                       "original or ingest again",
                       name);
    return MR_OK;
}
