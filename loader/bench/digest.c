/* digest.c - one XXH3-128 over bytes that several ranks hold.
 * Invariant: a saved state holds no address: the receiver uses its own copy of the default secret. */
#include "loader/bench/digest.h"

#include <stdlib.h>
#include <string.h>

#define XXH_STATIC_LINKING_ONLY /* the state's size and its pointer */
#include <xxhash.h>
#if defined(__x86_64__)
#include <xxh_x86dispatch.h>
#endif

struct mr_running_digest {
    XXH3_state_t *state;
};

mr_running_digest *mr_running_digest_new(void)
{
    mr_running_digest *d = mr_alloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->state = XXH3_createState();
    if (!d->state) {
        free(d);
        return NULL;
    }
    mr_running_digest_begin(d);
    return d;
}

void mr_running_digest_free(mr_running_digest *d)
{
    if (!d)
        return;
    XXH3_freeState(d->state);
    free(d);
}

void mr_running_digest_begin(mr_running_digest *d)
{
    /* The whole state is saved, so nothing of an earlier digest may remain in it. */
    memset(d->state, 0, sizeof *d->state);
    XXH3_128bits_reset(d->state);
}

void mr_running_digest_add(mr_running_digest *d, const void *bytes, size_t len)
{
    if (len)
        XXH3_128bits_update(d->state, bytes, len);
}

void mr_running_digest_end(const mr_running_digest *d, uint8_t out[16])
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(d->state));
    memcpy(out, canonical.digest, 16);
}

size_t mr_running_digest_size(void)
{
    return sizeof(XXH3_state_t);
}

void mr_running_digest_save(const mr_running_digest *d, mr_buf *out)
{
    XXH3_state_t state = *d->state;
    state.extSecret = NULL;
    mr_buf_add(out, &state, sizeof state);
}

bool mr_running_digest_load(mr_running_digest *d, const void *bytes, size_t len)
{
    if (len < sizeof *d->state)
        return false;
    mr_running_digest_begin(d);
    const unsigned char *secret = d->state->extSecret;
    memcpy(d->state, bytes, sizeof *d->state);
    d->state->extSecret = secret;
    return true;
}
