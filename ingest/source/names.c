/* names.c - see names.h.
 * Invariant: a name is judged by its bytes alone. */
#include "ingest/source/names.h"

#include <string.h>
#include <strings.h>

bool mr_name_ends(const char *name, size_t len, const char *suffix)
{
    size_t n = strlen(suffix);
    return len >= n && strncasecmp(name + len - n, suffix, n) == 0;
}

bool mr_name_ends_in(const char *name, size_t len, const char *const *suffixes)
{
    while (*suffixes && !mr_name_ends(name, len, *suffixes))
        suffixes++;
    return *suffixes;
}

bool mr_path_is_hidden(const char *path, size_t len)
{
    const char *end = path + len;
    for (const char *part = path, *stop; part < end; part = stop + 1) {
        const char *slash = memchr(part, '/', (size_t)(end - part));
        stop = slash ? slash : end;
        size_t n = (size_t)(stop - part);
        if (n && *part == '.' && (n > 2 || memcmp(part, "..", n) != 0)) /* . and .. name no file of their own */
            return true;
    }
    return false;
}

bool mr_name_is_synset(const char *name, size_t len)
{
    bool synset = len == 9 && name[0] == 'n';
    for (size_t i = 1; synset && i < len; i++)
        synset = name[i] >= '0' && name[i] <= '9';
    return synset;
}

bool mr_name_is_image(const char *name, size_t len)
{
    static const char *const ends[] = {".jpg", ".jpeg", ".jpe", ".jif",  ".jfi", ".jfif", ".png",  ".webp", ".apng",
                                       ".gif", ".bmp",  ".tif", ".tiff", ".jp2", ".mpo",  ".heic", ".heif", ".avif",
                                       ".ppm", ".pgm",  ".pbm", ".jxl",  ".dng", ".svg",  ".ico",  ".tga",  NULL};
    return mr_name_ends_in(name, len, ends);
}
