/* jpeg_odd.c - the table of what can be wrong with a JPEG; see support/jpeg_odd.h.
 * Source: ITU-T T.81, annex B, for what each segment holds; JFIF 1.02; Adobe's technical note 5116. */
#include "tests/support/images/jpeg_odd.h"

#include <stdlib.h>
#include <string.h>

enum {
    HUFFMAN_ONE = ODD_BASELINE | ODD_RESTARTS | ODD_GRAY | ODD_CMYK | ODD_YCCK, /* sequential, one scan */
    SEQUENTIAL = HUFFMAN_ONE | ODD_SCANS | ODD_ARITHMETIC,
    PROGRESSIVE = ODD_PROGRESSIVE | ODD_PROGRESSIVE_RESTARTS | ODD_PROGRESSIVE_CMYK,
    HUFFMAN = HUFFMAN_ONE | ODD_SCANS | PROGRESSIVE,
    ALL = HUFFMAN | ODD_ARITHMETIC,
    YCC = ODD_BASELINE | ODD_RESTARTS | ODD_SCANS | ODD_PROGRESSIVE | ODD_PROGRESSIVE_RESTARTS,
};
enum {
    SOF2 = 0xc2,
    DHT = 0xc4,
    RST0 = 0xd0,
    EOI = 0xd9,
    SOS = 0xda,
    DQT = 0xdb,
    DRI = 0xdd,
    APP0 = 0xe0,
    APP14 = 0xee
};

#define B(text) sizeof(text) - 1, text
#define ADOBE(transform)                                                                                               \
    B("\xff\xee\0\16"                                                                                                  \
      "Adobe\0\144\0\0\0\0" transform)
#define STRAY B("stray bytes, twenty of them; and a few more, so that no decoder has them all in its hands already")
#define CODED "\xff\0\xff\0\xff\0\xff\0\xff\0\xff\0\xff\0\xff\0\xff\0\xff\0"

const odd_case odd_cases[] = {
    /* Nothing that a decoder warns of. */
    {"fill bytes", ALL, ODD_FINE, 0, false, DQT, 0, 0, ODD_SPLICE, 0, B("\xff\xff\xff")},
    {"fill bytes before the end", ALL, ODD_FINE, 0, false, EOI, 0, 0, ODD_SPLICE, 0, B("\xff\xff\xff")},
    {"bytes after the end", ALL, ODD_FINE, 0, false, 0, 0, 0, ODD_SPLICE, 0, B("what a camera leaves \xff\xd8\xff")},
    {"a restart marker in the header", ALL, ODD_FINE, 0, false, DQT, 0, 0, ODD_SPLICE, 0, B("\xff\xd3\xff\1")},
    {"a restart marker at the end", ALL, ODD_FINE, 0, false, EOI, 0, 0, ODD_SPLICE, 0, B("\xff\xd5")},
    {"a comment of length 0", ALL, ODD_FINE, 0, false, DQT, 0, 0, ODD_SPLICE, 0, B("\xff\xfe\0\0")},
    {"a comment of length 1", ALL, ODD_FINE, 0, false, SOS, -1, 0, ODD_SPLICE, 0, B("\xff\xfe\0\1")},
    {"a comment of length 0 at the end", ALL, ODD_FINE, 0, false, EOI, 0, 0, ODD_SPLICE, 0, B("\xff\xfe\0\0")},
    {"an application's segment of length 0", ALL, ODD_FINE, 0, false, DQT, 0, 0, ODD_SPLICE, 0, B("\xff\xe1\0\0")},
    {"a JFIF segment of length 1", ALL, ODD_FINE, 0, false, DQT, 0, 0, ODD_SPLICE, 0, B("\xff\xe0\0\1")},
    {"an Adobe segment of length 0", ALL, ODD_FINE, 0, false, DQT, 0, 0, ODD_SPLICE, 0, B("\xff\xee\0\0")},
    {"a number of lines of length 1", ALL, ODD_FINE, 0, false, DQT, 0, 0, ODD_SPLICE, 0, B("\xff\xdc\0\1")},
    {"a comment of length 1 and its text", ALL, ODD_TOLD, MR_ODDITY_STRAY_BYTES, false, DQT, 0, 0, ODD_SPLICE, 0,
     B("\xff\xfe\0\1text")},
    {"a restart interval of length 0", ALL, ODD_REFUSED, 0, false, DQT, 0, 0, ODD_SPLICE, 0, B("\xff\xdd\0\0")},
    {"a short JFIF segment", ALL, ODD_FINE, 0, false, DQT, 0, 0, ODD_SPLICE, 0, B("\xff\xe0\0\10JFIF\0\2")},
    {"a short Adobe segment", ALL, ODD_FINE, 0, false, DQT, 0, 0, ODD_SPLICE, 0,
     B("\xff\xee\0\7"
       "Adobe")},
    {"an unknown transform beside JFIF", YCC | ODD_GRAY, ODD_FINE, 0, false, DQT, 0, 0, ODD_SPLICE, 0, ADOBE("\7")},
    {"a colour profile's part 5 of 2", ALL, ODD_FINE, 0, false, DQT, 0, 0, ODD_SPLICE, 0,
     B("\xff\xe2\0\24"
       "ICC_PROFILE\0\5\2body")},
    {"a comment between scans", PROGRESSIVE | ODD_SCANS, ODD_FINE, 0, false, SOS, 1, 0, ODD_SPLICE, 0,
     B("\xff\xfe\0\4hi")},
    {"the last scan is not there", PROGRESSIVE, ODD_FINE, 0, true, SOS, -1, 0, ODD_DROP, 0, 0, NULL},

    /* Harmless. */
    {"JFIF 2.01", ALL, ODD_TOLD, MR_ODDITY_JFIF_REVISION, false, APP0, 0, 9, ODD_SPLICE, 2, B("\2\1")},
    {"JFIF 0.00", ALL, ODD_TOLD, MR_ODDITY_JFIF_REVISION, false, APP0, 0, 9, ODD_SPLICE, 2, B("\0\0")},
    {"JFIF 255.255", ALL, ODD_TOLD, MR_ODDITY_JFIF_REVISION, false, APP0, 0, 9, ODD_SPLICE, 2, B("\xff\xff")},
    {"scan parameters 0, 0, 0", SEQUENTIAL, ODD_TOLD, MR_ODDITY_SCAN_PARAMETERS, false, SOS, -1, -3, ODD_SPLICE, 3, 3,
     NULL},
    {"scan parameters 1, 63, 0", SEQUENTIAL, ODD_TOLD, MR_ODDITY_SCAN_PARAMETERS, false, SOS, 0, -3, ODD_SPLICE, 1,
     B("\1")},
    {"scan parameters 0, 63, 1/1", SEQUENTIAL, ODD_TOLD, MR_ODDITY_SCAN_PARAMETERS, false, SOS, 0, -1, ODD_SPLICE, 1,
     B("\x11")},
    {"scan parameters 255", SEQUENTIAL, ODD_TOLD, MR_ODDITY_SCAN_PARAMETERS, false, SOS, 0, -3, ODD_SPLICE, 3,
     B("\xff\xff\xff")},
    {"a stray byte in the header", ALL, ODD_TOLD, MR_ODDITY_STRAY_BYTES, false, DQT, 0, 0, ODD_SPLICE, 0, B("x")},
    {"zeros before the frame", ALL, ODD_TOLD, MR_ODDITY_STRAY_BYTES, false, DQT, -1, 67 + 2, ODD_SPLICE, 0, 9000, NULL},
    {"stray bytes before a table", HUFFMAN, ODD_TOLD, MR_ODDITY_STRAY_BYTES, false, DHT, 0, 0, ODD_SPLICE, 0, STRAY},
    {"stray bytes before the scan", ALL, ODD_TOLD, MR_ODDITY_STRAY_BYTES, false, SOS, 0, 0, ODD_SPLICE, 0, STRAY},
    {"stray bytes before the last scan", PROGRESSIVE | ODD_SCANS, ODD_TOLD, MR_ODDITY_STRAY_BYTES, false, SOS, -1, 0,
     ODD_SPLICE, 0, STRAY},
    {"a stray byte after a scan", HUFFMAN, ODD_QUIET, MR_ODDITY_STRAY_BYTES, false, EOI, 0, 0, ODD_SPLICE, 0, B("x")},
    {"stray bytes before the end", HUFFMAN, ODD_TOLD, MR_ODDITY_STRAY_BYTES, false, EOI, 0, 0, ODD_SPLICE, 0, STRAY},
    {"coded bytes before the end", HUFFMAN, ODD_TOLD, MR_ODDITY_STRAY_BYTES, false, EOI, 0, 0, ODD_SPLICE, 0,
     B(CODED CODED)},
    {"zeros before the end", HUFFMAN, ODD_TOLD, MR_ODDITY_STRAY_BYTES, false, EOI, 0, 0, ODD_SPLICE, 0, 70000, NULL},
    {"a stray byte before a restart", HUFFMAN, ODD_QUIET, MR_ODDITY_STRAY_BYTES, false, RST0, 0, 0, ODD_SPLICE, 0,
     B("x")},
    {"stray bytes before a restart", HUFFMAN, ODD_TOLD, MR_ODDITY_STRAY_BYTES, false, RST0, 0, 0, ODD_SPLICE, 0, STRAY},
    {"stray bytes before the last restart", HUFFMAN, ODD_TOLD, MR_ODDITY_STRAY_BYTES, false, RST0, -1, 0, ODD_SPLICE, 0,
     STRAY},
    {"an unknown transform", YCC, ODD_TOLD, MR_ODDITY_ADOBE_TRANSFORM, false, APP0, 0, 0, ODD_SPLICE, 18, ADOBE("\7")},
    {"the transform of four colours", YCC, ODD_TOLD, MR_ODDITY_ADOBE_TRANSFORM, false, APP0, 0, 0, ODD_SPLICE, 18,
     ADOBE("\2")},
    {"an unknown transform of YCCK", ODD_YCCK, ODD_TOLD, MR_ODDITY_ADOBE_TRANSFORM, false, APP14, 0, 15, ODD_SPLICE, 1,
     B("\1")},
    {"an unknown transform of CMYK", ODD_CMYK | ODD_PROGRESSIVE_CMYK, ODD_TOLD, MR_ODDITY_ADOBE_TRANSFORM, true, APP14,
     0, 15, ODD_SPLICE, 1, B("\3")},

    /* Pixels are missing, and a decoder would make some up. */
    {"an early end", HUFFMAN, ODD_DAMAGED, 0, true, SOS, 0, 40, ODD_SPLICE, 0, B("\xff\xd9")},
    {"an early end of the last scan", HUFFMAN, ODD_DAMAGED, 0, true, SOS, -1, 20, ODD_SPLICE, 0, B("\xff\xd9")},
    {"no code at all", HUFFMAN, ODD_DAMAGED, 0, true, SOS, 0, 30, ODD_SPLICE, 40, B(CODED CODED)},
    {"a restart inside the coded bytes", HUFFMAN, ODD_DAMAGED, 0, true, SOS, 0, 20, ODD_SPLICE, 0, B("\xff\xd0")},
    {"a missing restart", HUFFMAN, ODD_DAMAGED, 0, true, RST0, 0, 0, ODD_SPLICE, 2, 0, NULL},
    {"a missing last restart", HUFFMAN, ODD_DAMAGED, 0, true, RST0, -1, 0, ODD_SPLICE, 2, 0, NULL},
    {"a restart of another number", ALL, ODD_DAMAGED, 0, true, RST0, 0, 1, ODD_SPLICE, 1, B("\xd5")},
    {"an unexpected restart", HUFFMAN, ODD_DAMAGED, 0, true, RST0, 0, 0, ODD_SPLICE, 1, B("\xfe")},
    {"another restart interval", HUFFMAN, ODD_DAMAGED, 0, true, DRI, 0, 4, ODD_SPLICE, 2, B("\0\1")},
    {"no restart interval", HUFFMAN, ODD_DAMAGED, 0, true, DRI, 0, 0, ODD_DROP, 0, 0, NULL},
    {"progressive parameters 1, 63, 0 of the averages", PROGRESSIVE, ODD_DAMAGED, 0, true, SOS, 0, -3, ODD_SPLICE, 3,
     B("\1\x3f\0")},
    {"no averages", PROGRESSIVE, ODD_DAMAGED, 0, true, SOS, 0, 0, ODD_DROP, 0, 0, NULL},
    {"a scan that others refine is not there", PROGRESSIVE, ODD_DAMAGED, 0, true, SOS, 1, 0, ODD_DROP, 0, 0, NULL},
    {"a scan twice", PROGRESSIVE, ODD_DAMAGED, 0, true, SOS, -1, 0, ODD_DOUBLE, 0, 0, NULL},
    {"a scan's marker is replaced", PROGRESSIVE | ODD_SCANS, ODD_DAMAGED, 0, true, SOS, 1, 0, ODD_SPLICE, 1, B("\xfe")},
    {"the last scan's marker is replaced", PROGRESSIVE | ODD_SCANS, ODD_DAMAGED, 0, true, SOS, -1, 0, ODD_SPLICE, 1,
     B("\xfe")},
    {"a component without a scan", ODD_SCANS, ODD_DAMAGED, 0, true, SOS, -1, 0, ODD_DROP, 0, 0, NULL},
    {"a second scan of all", HUFFMAN_ONE, ODD_DAMAGED, 0, true, SOS, 0, 0, ODD_DOUBLE, 0, 0, NULL},
    {"a table's marker is replaced", HUFFMAN, ODD_DAMAGED, 0, true, DHT, 0, 0, ODD_SPLICE, 1, B("\xfe")},
    {"a quantiser's marker is replaced", ALL, ODD_DAMAGED, 0, true, DQT, 0, 0, ODD_SPLICE, 1, B("\xfe")},
    {"a broken table after the scan", ALL, ODD_DAMAGED, 0, false, EOI, 0, 0, ODD_SPLICE, 0, B("\xff\xc4\0\5\0\0\0")},

    /* No file that can be read. */
    {"no end", ALL, ODD_REFUSED, 0, true, EOI, 0, 0, ODD_SPLICE, 2, 0, NULL},
    {"an unknown marker", ALL, ODD_REFUSED, 0, false, DQT, 0, 0, ODD_SPLICE, 0, B("\xff\2")},
    {"an unknown marker at the end", ALL, ODD_REFUSED, 0, false, EOI, 0, 0, ODD_SPLICE, 0, B("\xff\xbf\0\4hi")},
    {"a second picture inside", ALL, ODD_REFUSED, 0, false, DQT, 0, 0, ODD_SPLICE, 0, B("\xff\xd8")},
    {"a frame's marker is replaced", PROGRESSIVE, ODD_REFUSED, 0, true, SOF2, 0, 0, ODD_SPLICE, 1, B("\xfe")},
};
const size_t odd_case_count = MR_COUNT(odd_cases);

picture odd_good(mr_random *r, unsigned i)
{
    static const jpeg_make kinds[ODD_KINDS] = {
        {.components = 3, .h = {2}, .v = {2}},
        {.components = 3, .h = {2}, .restart = 2, .optimized = true},
        {.components = 1},
        {.components = 4, .h = {1}, .v = {1}},
        {.components = 4, .h = {1}, .v = {1}, .restart = 3}, /* restarts make pixels_jpeg_make() take YCCK */
        {.components = 3, .scans = true},
        {.components = 3, .h = {2}, .v = {2}, .progressive = true},
        {.components = 3, .progressive = true, .restart = 2},
        {.components = 4, .h = {1}, .v = {1}, .progressive = true},
        {.components = 3, .arithmetic = true, .restart = 3},
    };
    jpeg_make k = kinds[i];
    k.width = 50 + (unsigned)mr_random_below(r, 30);
    k.height = 50 + (unsigned)mr_random_below(r, 30);
    return pixels_jpeg_make(r, &k);
}

static bool is_marker(picture p, size_t at, uint8_t marker)
{
    return p.bytes[at] == 0xff && (marker == RST0 ? (p.bytes[at + 1] & 0xf8) == RST0 : p.bytes[at + 1] == marker);
}

static size_t segment_end(picture p, size_t at)
{
    return at + 2 + ((size_t)p.bytes[at + 2] << 8 | p.bytes[at + 3]);
}

/* From one marker to the next: over a segment, and over coded bytes and restarts. */
static size_t next(picture p, size_t at, bool restarts)
{
    bool segment = p.bytes[at + 1] < RST0 || p.bytes[at + 1] > EOI;
    for (at = segment ? segment_end(p, at) : at + 2; at + 1 < p.len; at++)
        if (p.bytes[at] == 0xff && p.bytes[at + 1] && (restarts || !is_marker(p, at, RST0)))
            break;
    return at;
}

/* The nth of these markers, the last one if nth is negative; p.len: there are not so many. */
static size_t find(picture p, uint8_t marker, int nth)
{
    size_t last = p.len;
    int seen = 0;
    for (size_t at = 2; marker && at + 1 < p.len; at = next(p, at, true)) {
        if (!is_marker(p, at, marker))
            continue;
        last = at;
        if (++seen == nth)
            return at;
    }
    return nth < 0 ? last : p.len;
}

bool odd_make(const odd_case *c, unsigned kind, picture good, picture *out)
{
    size_t at = find(good, c->marker, c->nth < 0 ? -1 : c->nth + 1), part = at;
    if (!(c->kinds & kind) || (c->marker && at == good.len))
        return false;
    if (c->act != ODD_SPLICE)
        part = next(good, at, false);
    at = c->at < 0 ? segment_end(good, at) - (size_t)-c->at : at + (size_t)c->at;
    if (c->act == ODD_DOUBLE) {
        *out = picture_splice(good, part, good.bytes + at, part - at);
        return true;
    }
    size_t cut = c->act == ODD_DROP ? part - at : c->cut;
    picture rest = picture_copy(good.bytes, good.len - cut);
    uint8_t *zeros = pixels_take(c->len);
    memcpy(rest.bytes + at, good.bytes + at + cut, good.len - at - cut);
    *out = picture_splice(rest, at, c->bytes ? (const void *)c->bytes : zeros, c->len);
    picture_free(&rest);
    free(zeros);
    return true;
}
