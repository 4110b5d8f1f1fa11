/* cache.c - what drivers made of the text of the kernels, in the user's cache; see cache.h.
 * Invariant: a file is published whole, so that another process never reads a part of it. */
#include "device/launch/cache.h"

#include <fcntl.h>
#include <string.h>

#include "base/environment.h"
#include "base/files/file.h"
#include "base/hash.h"
#include "base/scope.h"
#include "device/launch/text.h"

/* The folder is made if `make`; false: there is no place for it. */
static bool path_of(const mr_launch_build *b, bool make, mr_buf *path)
{
    uint64_t digest = mr_hash64(mr_launch_text, b->text_size);
    mr_error ignored;
    digest = mr_hash64_seeded(b->device, strlen(b->device), digest);
    digest = mr_hash64_seeded(b->options, strlen(b->options) + 1, digest);
    if (!mr_env_cache_path(b->folder, path) || (make && mr_dir_make(mr_buf_text(path), &ignored) != MR_OK))
        return false;
    mr_buf_printf(path, "/%016llx", (unsigned long long)digest);
    return !path->failed;
}

bool mr_launch_cache_load(const mr_launch_build *b, mr_buf *file, const uint8_t **binary, size_t *size)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    mr_error ignored;
    uint64_t digest;
    if (!path_of(b, false, &path) ||
        mr_file_read_all(AT_FDCWD, mr_buf_text(&path), MR_LAUNCH_BINARY_MAX, file, &ignored) != MR_OK ||
        file->len <= sizeof digest)
        return false;
    memcpy(&digest, file->data, sizeof digest);
    *binary = (const uint8_t *)file->data + sizeof digest;
    *size = file->len - sizeof digest;
    return digest == mr_hash64(*binary, *size);
}

void mr_launch_cache_keep(const mr_launch_build *b, const void *binary, size_t size)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    mr_error ignored;
    uint64_t digest = mr_hash64(binary, size);
    MR_AUTO(mr_buf_free) mr_buf file = {0};
    if (size > MR_LAUNCH_BINARY_MAX - sizeof digest || !path_of(b, true, &path) ||
        !mr_buf_reserve(&file, size + sizeof digest))
        return;
    memcpy(file.data, &digest, sizeof digest);
    memcpy(file.data + sizeof digest, binary, size);
    (void)mr_file_publish(AT_FDCWD, mr_buf_text(&path), file.data, size + sizeof digest, &ignored);
}
