/* names.c - see names.h.
 * Invariant: a name is judged by its bytes alone. */
#include "ingest/source/names.h"

#include <ctype.h>
#include <stdint.h>
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

bool mr_name_is_mark(const char *name, size_t len, size_t at)
{
    const uint8_t *byte = (const uint8_t *)name + at;
    return at + 1 < len &&
           ((byte[0] == 0xCC && byte[1] >= 0x80) || (byte[0] == 0xCD && byte[1] >= 0x80 && byte[1] < 0xB0));
}

static bool is_ascii(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((uint8_t)name[i] >= 0x80)
            return false;
    return true;
}

static bool has_marks(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (mr_name_is_mark(name, len, i))
            return true;
    return false;
}

/* The next ASCII character without a mark after it, at `at` or later; moves `at` past it. */
static int next_plain(const char *name, size_t len, size_t *at)
{
    while (*at < len && ((uint8_t)name[*at] >= 0x80 || mr_name_is_mark(name, len, *at + 1)))
        ++*at;
    return *at < len ? tolower((unsigned char)name[(*at)++]) : -1;
}

bool mr_name_alike(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t i = 0, j = 0;
    int x, y;
    if (a_len == b_len)
        return strncasecmp(a, b, a_len) == 0 && memcmp(a, b, a_len) != 0;
    if (has_marks(a, a_len) == has_marks(b, b_len) || is_ascii(a, a_len) || is_ascii(b, b_len))
        return false;
    do {
        x = next_plain(a, a_len, &i);
        y = next_plain(b, b_len, &j);
    } while (x == y && x >= 0);
    return x == y;
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
