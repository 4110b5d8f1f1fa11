/* codec_webp.c - WebP: its own walk over the RIFF chunks for the facts, libwebp for the pixels.
 * Invariant: `end` of a run of chunks is never past the end of the bytes; every chunk moves `at` forward by 8 or more.
 *
 *   "RIFF" u32 size "WEBP"   "VP8 " (lossy)  or  "VP8L" (lossless)                              simple
 *                            "VP8X" flags, canvas   { ALPH | VP8 | VP8L | EXIF | ... }          extended
 *                            "VP8X" with animation  { ANMF: x, y, w, h, { ALPH | VP8 | VP8L } } animated
 *   chunk: 4 letters, u32 length, body, a zero byte if the length is odd
 * Source: WebP Container Specification; RFC 6386, 9.1 (VP8); WebP Lossless Bitstream Specification, 3. */
#include <string.h>

#include "image/similar/shrink.h"
#include "base/scope.h"
#include "image/codec/codec.h"
#include "image/codec/webp_open.h"

enum { FLAG_ANIMATION = 0x02, FLAG_ALPHA = 0x10, RIFF_HEAD = 12, CHUNK_HEAD = 8, FRAME_HEAD = 16, CANVAS = 10 };

typedef struct chunk {
    const uint8_t *tag, *body;
    size_t len;
} chunk;

typedef struct run { /* a sequence of chunks: the file's, or a frame's */
    const uint8_t *bytes;
    size_t at, end;
} run;

typedef struct picture {
    uint32_t width, height;
    bool alpha, found;
} picture;

typedef struct walk {
    mr_image_limits limits;
    mr_image_facts facts;
    uint32_t chunks, frames;
    bool animation, exif;
    picture still;
} walk;

static bool webp_claims(const uint8_t *bytes, size_t len)
{
    return len >= RIFF_HEAD && !memcmp(bytes, "RIFF", 4) && !memcmp(bytes + 8, "WEBP", 4);
}

static bool is(const chunk *c, const char *tag)
{
    return !memcmp(c->tag, tag, 4);
}

/* MR_END: less than a chunk's header is left (padding). */
static mr_status take_chunk(walk *w, run *r, chunk *c, mr_error *err)
{
    size_t rest = r->end - r->at;
    const uint8_t *p = r->bytes + r->at;
    if (rest < CHUNK_HEAD)
        return MR_END;
    *c = (chunk){p, p + CHUNK_HEAD, mr_le32(p + 4)};
    if (c->len > rest - CHUNK_HEAD)
        return mr_fail(err, MR_BAD_SAMPLE, "WebP chunk at byte %zu goes past the end: damaged or cut short", r->at);
    r->at += CHUNK_HEAD + c->len;
    if (c->len & 1 && r->at < r->end)
        r->at++;
    if (++w->chunks > w->limits.max_segments)
        return mr_fail(err, MR_BAD_SAMPLE, "WebP has more than %u chunks, the limit", w->limits.max_segments);
    return MR_OK;
}

static mr_status lossy(const chunk *c, picture *p, mr_error *err)
{
    const uint8_t *b = c->body;
    if (c->len < 10 || memcmp(b + 3, "\x9d\x01\x2a", 3))
        return mr_fail(err, MR_BAD_SAMPLE, "WebP image (VP8) has a damaged header");
    bool inter = b[0] & 1, shown = b[0] & 16;
    if (inter || !shown || (b[0] >> 1 & 7) > 3 || mr_le24(b) >> 5 >= c->len)
        return mr_fail(err, MR_BAD_SAMPLE,
                       "WebP image (VP8) is not a key frame of a known profile that fits its chunk");
    p->width = mr_le16(b + 6) & 0x3fff;
    p->height = mr_le16(b + 8) & 0x3fff;
    return MR_OK;
}

static mr_status lossless(const chunk *c, picture *p, mr_error *err)
{
    if (c->len < 5 || c->body[0] != 0x2f || c->body[4] >> 5)
        return mr_fail(err, MR_BAD_SAMPLE, "WebP image (VP8L) has a damaged header");
    uint32_t bits = mr_le32(c->body + 1);
    p->width = (bits & 0x3fff) + 1;
    p->height = (bits >> 14 & 0x3fff) + 1;
    p->alpha = p->alpha || bits >> 28 & 1;
    return MR_OK;
}

/* Reads a chunk that is part of an image; ignores any other. */
static mr_status picture_chunk(const chunk *c, picture *p, mr_error *err)
{
    if (is(c, "ALPH") && !p->found) {
        p->alpha = true;
        return MR_OK;
    }
    if (p->found || (!is(c, "VP8 ") && !is(c, "VP8L")))
        return MR_OK;
    p->found = true;
    return is(c, "VP8 ") ? lossy(c, p, err) : lossless(c, p, err);
}

static mr_status animation_frame(walk *w, const chunk *c, mr_error *err)
{
    uint32_t n = ++w->frames;
    if (c->len < FRAME_HEAD)
        return mr_fail(err, MR_BAD_SAMPLE, "WebP frame %u is shorter than its header", n);
    const uint8_t *b = c->body;
    uint32_t x = mr_le24(b) * 2, y = mr_le24(b + 3) * 2, width = mr_le24(b + 6) + 1, height = mr_le24(b + 9) + 1;
    if (x + width > w->facts.width || y + height > w->facts.height)
        return mr_fail(err, MR_BAD_SAMPLE, "WebP frame %u exceeds the image", n);
    run r = {b, FRAME_HEAD, c->len};
    picture p = {0};
    chunk part;
    mr_status s;
    while ((s = take_chunk(w, &r, &part, err)) == MR_OK)
        if ((s = picture_chunk(&part, &p, err)) != MR_OK)
            break;
    if (s != MR_END)
        return s;
    if (!p.found || p.width != width || p.height != height)
        return mr_fail(err, MR_BAD_SAMPLE, "WebP frame %u does not contain an image of the size it states", n);
    if (p.alpha)
        w->facts.flags |= MR_FLAG_ALPHA;
    return MR_OK;
}

static mr_status extended_chunk(walk *w, const chunk *c, mr_error *err)
{
    if (is(c, "EXIF") && !w->exif) {
        w->exif = true;
        w->facts.orientation = mr_exif_orientation(c->body, c->len);
    }
    if (is(c, "ANMF") && w->animation)
        return animation_frame(w, c, err);
    return w->animation ? MR_OK : picture_chunk(c, &w->still, err);
}

static mr_status extended(walk *w, run *r, const chunk *head, mr_error *err)
{
    if (head->len < CANVAS)
        return mr_fail(err, MR_BAD_SAMPLE, "WebP header (VP8X) is too short");
    const uint8_t *b = head->body;
    w->animation = b[0] & FLAG_ANIMATION;
    w->facts.flags = b[0] & FLAG_ALPHA ? MR_FLAG_ALPHA : 0;
    w->facts.width = mr_le24(b + 4) + 1;
    w->facts.height = mr_le24(b + 7) + 1;
    mr_status s = mr_image_check_size("WebP", w->facts.width, w->facts.height, &w->limits, err);
    chunk c;
    while (s == MR_OK && (s = take_chunk(w, r, &c, err)) == MR_OK)
        s = extended_chunk(w, &c, err);
    if (s != MR_END)
        return s;
    if (w->animation ? !w->frames : !w->still.found)
        return mr_fail(err, MR_BAD_SAMPLE, "WebP has a header, but no image after it");
    if (!w->animation && (w->still.width != w->facts.width || w->still.height != w->facts.height))
        return mr_fail(err, MR_BAD_SAMPLE, "WebP states %u x %u pixels, but contains an image of %u x %u",
                       w->facts.width, w->facts.height, w->still.width, w->still.height);
    if (w->still.alpha)
        w->facts.flags |= MR_FLAG_ALPHA;
    if (w->frames > 1)
        w->facts.flags |= MR_FLAG_ANIMATED;
    return MR_OK;
}

static mr_status simple(walk *w, const chunk *c, mr_error *err)
{
    MR_TRY(picture_chunk(c, &w->still, err));
    if (!w->still.found)
        return mr_fail(err, MR_BAD_SAMPLE, "WebP starts with an unknown chunk: no image found");
    w->facts.width = w->still.width;
    w->facts.height = w->still.height;
    w->facts.flags = w->still.alpha ? MR_FLAG_ALPHA : 0;
    return mr_image_check_size("WebP", w->facts.width, w->facts.height, &w->limits, err);
}

static mr_status webp_examine(const uint8_t *bytes, size_t len, const mr_image_limits *limits, mr_image_facts *facts,
                              mr_error *err)
{
    walk w = {.limits = mr_image_limits_fill(limits)};
    chunk first;
    if (!webp_claims(bytes, len))
        return mr_fail(err, MR_BAD_SAMPLE, "not a WebP");
    uint32_t size = mr_le32(bytes + 4);
    if (size > len - 8)
        return mr_fail(err, MR_BAD_SAMPLE, "WebP ends after %zu of %llu bytes: the file is cut short", len,
                       8 + (unsigned long long)size);
    if (size < RIFF_HEAD)
        return mr_fail(err, MR_BAD_SAMPLE, "WebP states a size of %u bytes: too small for an image", size);
    run r = {bytes, RIFF_HEAD, 8 + (size_t)size};
    w.facts.orientation = 1;
    MR_TRY(take_chunk(&w, &r, &first, err));
    MR_TRY(is(&first, "VP8X") ? extended(&w, &r, &first, err) : simple(&w, &first, err));
    w.facts.codec = MR_CODEC_WEBP;
    w.facts.bits = 8;
    w.facts.components = w.facts.flags & MR_FLAG_ALPHA ? 4 : 3;
    *facts = w.facts;
    return MR_OK;
}

/* ---- pixels --------------------------------------------------------------------------------------------------- */

/* Y is grey already; the rows of a transparent image are blended over middle grey. */
static void shrink_rows(const WebPDecBuffer *from, mr_alike *out)
{
    const WebPYUVABuffer *p = &from->u.YUVA;
    mr_shrink shrink = {.width = (uint32_t)from->width, .height = (uint32_t)from->height};
    for (uint32_t y = 0; y < shrink.height; y++) {
        uint8_t *row = p->y + (ptrdiff_t)y * p->y_stride;
        const uint8_t *alpha = p->a ? p->a + (ptrdiff_t)y * p->a_stride : NULL;
        for (uint32_t x = 0; alpha && x < shrink.width; x++)
            row[x] = mr_grey_over(row[x], alpha[x]);
        mr_shrink_row(&shrink, y, row);
    }
    mr_shrink_end(&shrink, out);
}

/* One image, as YUV, the smallest form that still has every pixel.  `out` may be NULL. */
static mr_status decode_picture(const uint8_t *bytes, size_t len, const mr_image_limits *limits, mr_alike *out,
                                mr_error *err)
{
    WebPDecoderConfig config;
    MR_TRY(mr_webp_config(bytes, len, &config, err));
    MR_TRY(mr_image_check_size("WebP", (uint32_t)config.input.width, (uint32_t)config.input.height, limits, err));
    config.output.colorspace = config.input.has_alpha ? MODE_YUVA : MODE_YUV;
    VP8StatusCode code = WebPDecode(bytes, len, &config);
    if (code == VP8_STATUS_OK && out)
        shrink_rows(&config.output, out);
    WebPFreeDecBuffer(&config.output);
    return code == VP8_STATUS_OK ? MR_OK : mr_webp_failure(code, err);
}

/* The first frame, without the rest of the image around it. */
static mr_status decode_frame(const uint8_t *bytes, size_t len, const mr_image_limits *limits, mr_alike *out,
                              mr_error *err)
{
    MR_AUTO(mr_webp_frame_free) mr_webp_frame frame = {.demux = NULL};
    MR_TRY(mr_webp_frame_open(bytes, len, &frame, err));
    return decode_picture(frame.it.fragment.bytes, frame.it.fragment.size, limits, out, err);
}

static mr_status webp_shrink(const uint8_t *bytes, size_t len, const mr_image_limits *limits, mr_alike *out,
                             mr_error *err)
{
    mr_image_limits l = mr_image_limits_fill(limits);
    WebPBitstreamFeatures features;
    VP8StatusCode code = WebPGetFeatures(bytes, len, &features);
    if (code != VP8_STATUS_OK)
        return mr_webp_failure(code, err);
    return (features.has_animation ? decode_frame : decode_picture)(bytes, len, &l, out, err);
}

static mr_status webp_decode(const uint8_t *bytes, size_t len, const mr_image_limits *limits, uint32_t *oddities,
                             mr_alike *look, mr_error *err)
{
    (void)oddities;
    return webp_shrink(bytes, len, limits, look, err);
}

const mr_codec mr_codec_webp = {
    .name = "WebP",
    .suffix = "webp",
    .id = MR_CODEC_WEBP,
    .claims = webp_claims,
    .examine = webp_examine,
    .decode = webp_decode,
    .shrink = webp_shrink,
};
