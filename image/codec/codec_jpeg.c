/* codec_jpeg.c - JPEG: its own walk over the markers for the facts.  Whether the pixels decode is checked by millrace's
 * own decoder for most sound files, and by libjpeg-turbo for all others.
 * Invariant: `at` only grows, so the walk visits each byte once; jpeg_trap handles libjpeg's failures.
 *
 *   FFD8  { FF marker, u16 length, body } ...  FFDA header, coded bytes (FF00 is a coded FF; FFD0 to FFD7 restarts)
 *         { segments, further scans } ...      FFD9  anything that a camera appended
 * Source: ITU-T T.81, annex B; EXIF 2.32, 4.7.2. */
#include <string.h>

#include "image/similar/shrink.h"
#include "base/scope.h"
#include "image/codec/codec.h"
#include "image/codec/jpeg_source.h"
#include "image/jpeg/region.h"

enum {
    SOF0 = 0xc0,
    SOF1 = 0xc1,
    SOF2 = 0xc2,
    DHT = 0xc4,
    JPG = 0xc8,
    SOF9 = 0xc9,
    SOF10 = 0xca,
    DAC = 0xcc,
    SOF15 = 0xcf,
    RST0 = 0xd0,
    RST7 = 0xd7,
    SOI = 0xd8,
    EOI = 0xd9,
    SOS = 0xda,
    DQT = 0xdb,
    DNL = 0xdc,
    DRI = 0xdd,
    APP0 = 0xe0,
    APP1 = 0xe1,
    APP15 = 0xef,
    JPEG_LS = 0xf7,
    COM = 0xfe,
    TEM = 0x01,
};

typedef struct walk {
    const uint8_t *bytes;
    size_t len, at;
    mr_image_limits limits;
    mr_image_facts facts;      /* codec is set once a frame header was read */
    uint8_t ids[4], blocks[4]; /* ids of the frame's components, and their blocks in an MCU */
    uint32_t scans, segments;
    bool exif;
} walk;

static bool jpeg_claims(const uint8_t *bytes, size_t len)
{
    return len >= 3 && bytes[0] == 0xff && bytes[1] == SOI && bytes[2] == 0xff;
}

/* The next marker that matters; 0 if there is none.  Coded FF bytes, restarts, fill bytes and stray bytes between
 * segments are skipped alike, as libjpeg does, so the walk need not know where a scan ends. */
static int next_marker(walk *w)
{
    const uint8_t *p = w->bytes + w->at, *end = w->bytes + w->len;
    while (p < end && (p = memchr(p, 0xff, (size_t)(end - p)))) {
        while (p < end && *p == 0xff)
            p++;
        if (p == end)
            break;
        int marker = *p++;
        if (marker && marker != TEM && (marker < RST0 || marker > RST7)) {
            w->at = (size_t)(p - w->bytes);
            return marker;
        }
    }
    w->at = w->len;
    return 0;
}

static mr_status cut_short(const walk *w, mr_error *err)
{
    if (w->scans)
        return mr_fail(err, MR_BAD_SAMPLE, "JPEG ends inside scan %u: no end marker; the file is cut short", w->scans);
    return mr_fail(err, MR_BAD_SAMPLE, "JPEG ends inside its header: the file is cut short");
}

/* libjpeg skips these by their length.  One of 0 or 1, less than the length's own bytes, skips nothing. */
static bool is_skipped(int marker)
{
    return marker == COM || marker == DNL || (marker >= APP0 && marker <= APP15);
}

/* The body of the segment at `at`; moves `at` past it. */
static mr_status take_segment(walk *w, int marker, const uint8_t **body, size_t *len, mr_error *err)
{
    if (w->len - w->at < 2)
        return cut_short(w, err);
    size_t n = mr_be16(w->bytes + w->at);
    if (n < 2 && is_skipped(marker))
        n = 2;
    if (n < 2)
        return mr_fail(err, MR_BAD_SAMPLE, "JPEG segment 0xff%02x at byte %zu has an impossible length",
                       (unsigned)marker, w->at - 2);
    if (n > w->len - w->at)
        return cut_short(w, err);
    *body = w->bytes + w->at + 2;
    *len = n - 2;
    w->at += n;
    return MR_OK;
}

/* Why a frame type is rejected; NULL if it is not. */
static const char *refused_frame(int marker)
{
    switch (marker) {
    case SOF0:
    case SOF1:
    case SOF2:
        return NULL;
    case SOF9:
    case SOF10:
#ifdef D_ARITH_CODING_SUPPORTED
        return NULL;
#else
        return "arithmetic-coded";
#endif
    case 0xc3:
    case 0xcb:
        return "lossless";
    default:
        return "hierarchical";
    }
}

static mr_status check_components(unsigned count, mr_error *err)
{
    if (count == 1 || count == 3 || count == 4)
        return MR_OK;
    return mr_fail(err, MR_BAD_SAMPLE, "JPEG of %u components: only 1, 3 and 4 are supported", count);
}

static mr_status frame(walk *w, int marker, const uint8_t *body, size_t len, mr_error *err)
{
    const char *kind = refused_frame(marker);
    if (w->facts.codec)
        return mr_fail(err, MR_BAD_SAMPLE, "JPEG has two frame headers");
    if (kind)
        return mr_fail(err, MR_BAD_SAMPLE, "%s JPEG: not supported; convert it to baseline JPEG or PNG", kind);
    if (len < 6 || len != 6 + 3 * (size_t)body[5])
        return mr_fail(err, MR_BAD_SAMPLE, "JPEG frame header has an impossible length");
    if (body[0] != 8)
        return mr_fail(err, MR_BAD_SAMPLE, "%u-bit JPEG: only 8 bits per channel are supported; convert it to PNG",
                       body[0]);
    uint32_t height = mr_be16(body + 1), width = mr_be16(body + 3);
    MR_TRY(check_components(body[5], err));
    MR_TRY(mr_image_check_size("JPEG", width, height, &w->limits, err));
    if (width > JPEG_MAX_DIMENSION || height > JPEG_MAX_DIMENSION)
        return mr_fail(err, MR_BAD_SAMPLE, "JPEG of %u x %u pixels: decoders reject sides above %ld", width, height,
                       (long)JPEG_MAX_DIMENSION);
    for (unsigned i = 0; i < body[5]; i++) {
        unsigned h = body[7 + 3 * i] >> 4, v = body[7 + 3 * i] & 15;
        if (h < 1 || h > 4 || v < 1 || v > 4)
            return mr_fail(err, MR_BAD_SAMPLE, "JPEG component %u has sampling factors %u x %u, not 1 to 4", i, h, v);
        w->ids[i] = body[6 + 3 * i];
        w->blocks[i] = (uint8_t)(h * v);
    }
    uint32_t flags = (marker == SOF2 || marker == SOF10 ? MR_FLAG_PROGRESSIVE : 0u) |
                     (marker == SOF9 || marker == SOF10 ? MR_FLAG_ARITHMETIC : 0u);
    w->facts = (mr_image_facts){width, height, MR_CODEC_JPEG, w->facts.orientation, body[5], 8, flags};
    return MR_OK;
}

static mr_status scan(walk *w, const uint8_t *body, size_t len, mr_error *err)
{
    if (!w->facts.codec)
        return mr_fail(err, MR_BAD_SAMPLE, "JPEG has a scan before any frame header");
    unsigned count = len ? body[0] : 0, blocks = 0;
    if (count < 1 || count > 4 || len != 4 + 2 * (size_t)count)
        return mr_fail(err, MR_BAD_SAMPLE, "JPEG scan header has an impossible length");
    for (unsigned i = 0; i < count; i++) {
        unsigned c = 0;
        while (c < w->facts.components && w->ids[c] != body[1 + 2 * i])
            c++;
        if (c == w->facts.components)
            return mr_fail(err, MR_BAD_SAMPLE, "JPEG scan names component %u, which is not in the frame",
                           body[1 + 2 * i]);
        blocks += w->blocks[c];
    }
    if (count > 1 && blocks > D_MAX_BLOCKS_IN_MCU)
        return mr_fail(err, MR_BAD_SAMPLE, "JPEG scan interleaves %u blocks: the standard allows %d", blocks,
                       D_MAX_BLOCKS_IN_MCU);
    uint32_t allowed = mr_image_scans_allowed(&w->limits, (uint64_t)w->facts.width * w->facts.height);
    if (++w->scans > allowed)
        return mr_fail(err, MR_BAD_SAMPLE, "JPEG has more than %u scans, the limit for its size", allowed);
    return MR_OK;
}

/* The first Exif segment counts; a second one continues it or is a mistake.  After a scan it is ignored, as by other
 * programs. */
static void app1(walk *w, const uint8_t *body, size_t len)
{
    if (w->exif || w->scans || len < 10 || memcmp(body, "Exif\0\0", 6) ||
        (memcmp(body + 6, "II*\0", 4) && memcmp(body + 6, "MM\0*", 4)))
        return;
    w->exif = true;
    w->facts.orientation = mr_exif_orientation(body, len);
}

static mr_status segment(walk *w, int marker, mr_error *err)
{
    const uint8_t *body = NULL;
    size_t len = 0;
    if (marker == SOI)
        return mr_fail(err, MR_BAD_SAMPLE, "JPEG: a second image starts at byte %zu, before the end of the first",
                       w->at - 2);
    if (marker == JPEG_LS && !w->facts.codec)
        return mr_fail(err, MR_BAD_SAMPLE, "JPEG-LS: not supported; convert it to PNG");
    bool sof = marker >= SOF0 && marker <= SOF15 && marker != DHT && marker != DAC && marker != JPG;
    bool known = sof || marker == DHT || marker == DAC || (marker >= SOS && marker <= DRI) || marker == COM ||
                 (marker >= APP0 && marker <= APP15);
    if (!known)
        return mr_fail(err, MR_BAD_SAMPLE, "JPEG has an unknown marker 0xff%02x at byte %zu: damaged", (unsigned)marker,
                       w->at - 2);
    MR_TRY(take_segment(w, marker, &body, &len, err));
    if (sof)
        return frame(w, marker, body, len, err);
    if (marker == SOS)
        return scan(w, body, len, err);
    if (marker == APP1)
        app1(w, body, len);
    return MR_OK;
}

static mr_status jpeg_examine(const uint8_t *bytes, size_t len, const mr_image_limits *limits, mr_image_facts *facts,
                              mr_error *err)
{
    walk w = {.bytes = bytes, .len = len, .at = 2, .limits = mr_image_limits_fill(limits), .facts.orientation = 1};
    int marker;
    if (!jpeg_claims(bytes, len))
        return mr_fail(err, MR_BAD_SAMPLE, "not a JPEG");
    while ((marker = next_marker(&w)) != EOI) {
        if (!marker)
            return cut_short(&w, err);
        if (++w.segments > w.limits.max_segments)
            return mr_fail(err, MR_BAD_SAMPLE, "JPEG has more than %u segments, the limit", w.limits.max_segments);
        MR_TRY(segment(&w, marker, err));
    }
    if (!w.facts.codec)
        return mr_fail(err, MR_BAD_SAMPLE, "JPEG contains only tables: no frame header, no image");
    if (!w.scans)
        return mr_fail(err, MR_BAD_SAMPLE, "JPEG has a header and an end marker, but no scan between them");
    *facts = w.facts;
    return MR_OK;
}

/* ---- pixels --------------------------------------------------------------------------------------------------- */

typedef struct jpeg_run {
    mr_jpeg_trap trap;
    struct jpeg_decompress_struct cinfo;
    mr_jpeg_source source;
    bool with_look; /* only if the first component is grey */
    mr_shrink shrink;
} jpeg_run;

static void shrink_row(jpeg_run *run, uint8_t *row, uint32_t y)
{
    size_t components = (size_t)run->cinfo.output_components;
    for (size_t x = 0; components > 1 && x < run->cinfo.output_width; x++)
        row[x] = row[components * x];
    mr_shrink_row(&run->shrink, y, row);
}

/* Everything that may jump.  The colours stay as stored: converting them would find no damage. */
static void decode_rows(jpeg_run *run, const uint8_t *bytes, size_t len)
{
    struct jpeg_decompress_struct *c = &run->cinfo;
    if (setjmp(run->trap.out))
        return;
    mr_jpeg_trap_create(&run->trap, c);
    mr_jpeg_source_set(&run->source, c, bytes, len);
    jpeg_read_header(c, TRUE);
    run->trap.status = mr_image_check_size("JPEG", c->image_width, c->image_height, &run->trap.limits, run->trap.err);
    if (run->trap.status == MR_OK)
        run->trap.status = check_components((unsigned)c->num_components, run->trap.err);
    if (run->trap.status != MR_OK)
        return;
    c->out_color_space = c->jpeg_color_space;
    c->do_block_smoothing = FALSE;
    mr_jpeg_trap_start(&run->trap, c);
    JDIMENSION row_bytes = c->output_width * (JDIMENSION)c->output_components;
    JSAMPARRAY row = c->mem->alloc_sarray((j_common_ptr)c, JPOOL_IMAGE, row_bytes, 1);
    run->with_look = run->with_look && (c->jpeg_color_space == JCS_GRAYSCALE || c->jpeg_color_space == JCS_YCbCr);
    run->shrink.width = c->output_width;
    run->shrink.height = c->output_height;
    while (c->output_scanline < c->output_height) {
        JDIMENSION y = c->output_scanline;
        jpeg_read_scanlines(c, row, 1);
        if (run->with_look)
            shrink_row(run, row[0], y);
    }
    jpeg_finish_decompress(c);
}

/* From an eighth of the image's size; false: there are too few blocks for a look. */
static bool look_at_means(const mr_jpeg_means *means, mr_alike *look)
{
    enum { FEWEST = MR_ALIKE_SIDE / 2 };
    mr_shrink shrink = {.width = means->width, .height = means->height};
    if (means->width < FEWEST || means->height < FEWEST)
        return false;
    for (uint32_t y = 0; y < means->height; y++)
        mr_shrink_row(&shrink, y, means->grey + (size_t)y * means->stride);
    mr_shrink_end(&shrink, look);
    return true;
}

/* Damage to a single-scan file shows in its entropy-coded bytes, so no pixel is computed.  A decoder per call costs
 * 130 KB and its tables, a twentieth of the time for a photograph.  *looked: `look`, unless NULL, is filled. */
static bool sound(const uint8_t *bytes, size_t len, const mr_image_limits *limits, mr_alike *look, bool *looked)
{
    mr_jpeg_decoder *d = mr_jpeg_decoder_new();
    mr_jpeg_means means;
    bool done;
    if (look) {
        done = d && mr_jpeg_check_means(d, bytes, len, limits->max_pixels, &means) == MR_JPEG_DONE;
        *looked = done && look_at_means(&means, look);
    } else {
        done = d && mr_jpeg_check(d, bytes, len, limits->max_pixels) == MR_JPEG_DONE;
    }
    mr_jpeg_decoder_free(d);
    return done;
}

static mr_status jpeg_decode(const uint8_t *bytes, size_t len, const mr_image_limits *limits, uint32_t *oddities,
                             mr_alike *look, mr_error *err)
{
    mr_image_limits l = mr_image_limits_fill(limits);
    bool looked = !look;
    if (!sound(bytes, len, &l, look, &looked)) {
        jpeg_run run = {.with_look = look != NULL};
        mr_jpeg_trap_set(&run.trap, &run.cinfo, &l, err);
        decode_rows(&run, bytes, len);
        jpeg_destroy_decompress(&run.cinfo);
        *oddities = run.trap.oddities;
        if (run.trap.status != MR_OK)
            return run.trap.status;
        if (run.with_look)
            mr_shrink_end(&run.shrink, look);
        looked = looked || run.with_look;
    }
    return looked ? MR_OK : mr_jpeg_shrink(bytes, len, &l, look, err);
}

const mr_codec mr_codec_jpeg = {
    .name = "JPEG",
    .suffix = "jpg",
    .id = MR_CODEC_JPEG,
    .claims = jpeg_claims,
    .examine = jpeg_examine,
    .decode = jpeg_decode,
    .shrink = mr_jpeg_shrink,
};
