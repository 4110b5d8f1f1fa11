/* gzip_input.c - decompresses a gzip stream with zlib, member by member; zlib compares each CRC-32 and length.
 * Invariant: the end of the stream is reported only after a whole member, never inside one.
 *
 *      member member ... [zeros] [garbage]         as gzip reads it: zeros are padding; what follows them, or does not
 *      1F 8B  1F 8B                                start with a member's magic, is ignored                          */
#include "ingest/archive/gzip_input.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

enum { WINDOW = 15, GZIP_ONLY = 16 }; /* inflateInit2(): the largest window, plus a gzip wrapper and no other */

typedef enum gzip_place { IN_MEMBER, BETWEEN_MEMBERS, AT_END } gzip_place;

struct gzip_input {
    z_stream z; /* next_in, avail_in: what was pulled and not yet used */
    gzip_pull pull;
    void *ctx;
    gzip_place place;
    bool garbage, failed;
    const char *why;
};

static const Bytef magic[] = {0x1F, 0x8B};

gzip_input *mr_gzip_begin(gzip_pull pull, void *ctx)
{
    gzip_input *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->pull = pull;
    g->ctx = ctx;
    if (inflateInit2(&g->z, WINDOW + GZIP_ONLY) != Z_OK) {
        free(g);
        return NULL;
    }
    return g;
}

void mr_gzip_end(gzip_input *g)
{
    if (g)
        inflateEnd(&g->z);
    free(g);
}

const char *mr_gzip_why(const gzip_input *g)
{
    return g->why;
}

bool mr_gzip_has_garbage(const gzip_input *g)
{
    return g->garbage;
}

/* Makes sure that there is input.  1: there is; 0: the end; -1: the pull failed. */
static int refill(gzip_input *g)
{
    const void *bytes;
    if (g->z.avail_in)
        return 1;
    ssize_t n = g->pull(g->ctx, &bytes);
    if (n <= 0)
        return (int)n;
    g->z.next_in = (z_const Bytef *)bytes;
    g->z.avail_in = (uInt)n;
    return 1;
}

/* After a member.  1: another begins, and zlib has its magic; 0: the stream ends; -1: the pull failed. */
static int next_member(gzip_input *g)
{
    int more;
    size_t zeros = 0, known = 0;
    while ((more = refill(g)) == 1 && g->z.next_in[0] == 0) {
        g->z.next_in++;
        g->z.avail_in--;
        zeros = 1;
    }
    while (more == 1 && !zeros && known < sizeof magic && g->z.next_in[0] == magic[known]) {
        g->z.next_in++;
        g->z.avail_in--;
        known++;
        more = refill(g);
    }
    if (more < 0)
        return -1;
    if (known < sizeof magic) {
        g->garbage = more == 1 || known;
        return 0;
    }
    /* The two bytes may be from two blocks, so zlib gets a copy. */
    z_const Bytef *rest = g->z.next_in;
    uInt left = g->z.avail_in;
    inflateReset(&g->z);
    g->z.next_in = (z_const Bytef *)magic;
    g->z.avail_in = sizeof magic;
    g->z.avail_out = 0;
    inflate(&g->z, Z_NO_FLUSH);
    g->z.next_in = rest;
    g->z.avail_in = left;
    return 1;
}

/* zlib's messages for a failed check do not say what was compared. */
static const char *failure(const gzip_input *g, int result)
{
    if (result == Z_MEM_ERROR)
        return "out of memory";
    if (!g->z.msg)
        return "the compressed data are damaged";
    static const char *const table[][2] = {
        {"incorrect data check", "checksum mismatch: the unpacked data does not match the stored CRC-32"},
        {"incorrect length check", "checksum mismatch: the unpacked data does not match the stored length"},
        {"header crc mismatch", "checksum mismatch: gzip's header does not match its stored CRC-16"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(g->z.msg, table[i][0]) == 0)
            return table[i][1];
    return g->z.msg;
}

/* One step inside a member.  False: it failed. */
static bool step_inside(gzip_input *g)
{
    int more = refill(g);
    if (more == 0)
        g->why = "the gzip stream is truncated";
    if (more != 1)
        return false;
    int result = inflate(&g->z, Z_NO_FLUSH);
    if (result == Z_STREAM_END)
        g->place = BETWEEN_MEMBERS;
    else if (result != Z_OK && result != Z_BUF_ERROR) {
        g->why = failure(g, result);
        return false;
    }
    return true;
}

/* Goes on to the next member, or to the end.  False: the pull failed. */
static bool step_between(gzip_input *g)
{
    Bytef *at = g->z.next_out;
    uInt left = g->z.avail_out;
    int more = next_member(g);
    g->place = more == 1 ? IN_MEMBER : AT_END;
    g->z.next_out = at;
    g->z.avail_out = left;
    return more >= 0;
}

ssize_t mr_gzip_read(gzip_input *g, void *out, size_t capacity)
{
    uInt want = capacity < INT_MAX ? (uInt)capacity : INT_MAX;
    g->z.next_out = out;
    g->z.avail_out = want;
    while (g->z.avail_out && g->place != AT_END && !g->failed)
        g->failed = !(g->place == IN_MEMBER ? step_inside(g) : step_between(g));
    /* What came out before the failure is returned first. */
    ssize_t n = (ssize_t)(want - g->z.avail_out);
    return g->failed && n == 0 ? -1 : n;
}
