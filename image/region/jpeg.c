/* jpeg.c - a region of a JPEG: by millrace's own decoder, or by libjpeg-turbo with skipped rows, a crop with a margin
 * and an early stop.
 * Invariant: the pixels equal a full decode (ISLOW, fancy upsampling): every pixel's neighbours are decoded too.
 *
 *      skipped: entropy-decoded only                   top
 *      +--------+---------------------+--------+
 *      | margin |  region             | margin |       the crop starts at a whole iMCU, `margin` pixels or more left of
 *      +--------+---------------------+--------+       the region, and ends as far right of it; libjpeg handles the
 *      never read                                      neighbours above and below
 *
 * Fancy upsampling blends a chroma sample with its neighbours to the side (h2), above and below (v2).  At the edge of a
 * crop libjpeg repeats the last sample instead, as it does at the edge of the image: hence the margin.
 *
 * libjpeg asks for more bytes and reports progress even during long work (skipped rows, scans of a progressive file):
 * both callbacks check whether to stop. */
#include <string.h>

#include "image/codec/jpeg_source.h"
#include "image/jpeg/region.h"
#include "image/region/parts.h"

typedef struct jpeg_run {
    mr_jpeg_trap trap;
    struct jpeg_decompress_struct cinfo;
    mr_jpeg_source source;
    void (*count_scans)(j_common_ptr); /* the trap's own monitor */
    mr_pixels_scratch *scratch;
    const mr_pixels_job *job;
    size_t lead; /* pixels of the crop left of the region */
} jpeg_run;

static bool stopped(void *ctx)
{
    return mr_pixels_stopped(ctx);
}

static void on_progress(j_common_ptr cinfo)
{
    jpeg_run *run = cinfo->client_data;
    if (stopped(run->scratch)) {
        run->trap.status = MR_END;
        longjmp(run->trap.out, 1);
    }
    run->count_scans(cinfo);
}

/* ---- the region -------------------------------------------------------------------------------------------------- */

/* libjpeg smooths progressive files that lack their last scans over neighbouring blocks, farther than the margin
 * reaches. */
static bool smoothed(const struct jpeg_decompress_struct *c)
{
    if (!c->progressive_mode || !c->coef_bits)
        return false;
    for (int i = 0; i < c->num_components; i++)
        for (int k = 0; k < 10; k++)
            if (c->coef_bits[i][k])
                return true;
    return false;
}

static void crop_sides(jpeg_run *run)
{
    struct jpeg_decompress_struct *c = &run->cinfo;
    const mr_region *r = &run->job->region;
    JDIMENSION margin = (JDIMENSION)c->max_h_samp_factor, width = c->output_width;
    JDIMENSION from = r->left > margin ? r->left - margin : 0, to = r->left + r->width + margin;
    to = to < width ? to : width;
    if (to - from == width)
        return;
    JDIMENSION wide = to - from;
    jpeg_crop_scanline(c, &from, &wide);
    run->lead = r->left - from;
}

/* Pillow's arithmetic for the inverted CMYK that all programs write: each colour times black. */
static void put_row(const jpeg_run *run, const uint8_t *row, uint8_t *out)
{
    uint32_t width = run->job->region.width;
    if (run->cinfo.output_components == 3) {
        memcpy(out, row + run->lead * 3, (size_t)width * 3);
        return;
    }
    row += run->lead * 4;
    for (uint32_t x = 0; x < width; x++, row += 4, out += 3) {
        for (int i = 0; i < 3; i++) {
            unsigned t = (255u - row[i]) * row[3] + 128;
            out[i] = (uint8_t)(row[3] - (((t >> 8) + t) >> 8));
        }
    }
}

static void read_rows(jpeg_run *run)
{
    struct jpeg_decompress_struct *c = &run->cinfo;
    const mr_region *r = &run->job->region;
    size_t stride = (size_t)r->width * 3;
    bool straight = c->output_components == 3 && c->output_width == r->width;
    uint8_t *out = run->job->rgb;
    if (r->top)
        jpeg_skip_scanlines(c, r->top);
    JSAMPROW row =
        straight ? out : mr_pixels_reserve(&run->scratch->work, c->output_width, (size_t)c->output_components, 1);
    if (!row) {
        run->trap.status = mr_fail_memory(run->trap.err, "decoding a JPEG");
        return;
    }
    for (uint32_t y = 0; y < r->height; y++, out += stride) {
        if (straight)
            row = out;
        jpeg_read_scanlines(c, &row, 1);
        if (!straight)
            put_row(run, row, out);
    }
}

/* Everything that may jump. */
static void decode_region(jpeg_run *run)
{
    struct jpeg_decompress_struct *c = &run->cinfo;
    const mr_image_facts *facts = run->job->facts;
    if (setjmp(run->trap.out))
        return;
    mr_jpeg_trap_create(&run->trap, c);
    c->client_data = run;
    mr_jpeg_source_set(&run->source, c, run->job->bytes, run->job->len);
    jpeg_read_header(c, TRUE);
    if (c->image_width != facts->width || c->image_height != facts->height) {
        run->trap.status = mr_pixels_other_size("JPEG", c->image_width, c->image_height, facts, run->trap.err);
        return;
    }
    c->out_color_space = c->num_components == 4 ? JCS_CMYK : JCS_RGB;
    mr_jpeg_trap_start(&run->trap, c);
    run->lead = run->job->region.left;
    if (!smoothed(c))
        crop_sides(run);
    read_rows(run);
    /* After the last row, reads up to the end marker, so that a whole image is checked as by mr_image_decode(). */
    if (run->trap.status == MR_OK && c->output_scanline == c->output_height)
        jpeg_finish_decompress(c);
}

/* millrace's own decoder first; what it does not support, including damaged files, is left to libjpeg-turbo. */
static mr_jpeg_outcome decode_own(mr_pixels_scratch *s, const mr_pixels_job *job)
{
    const mr_region *r = &job->region;
    const mr_jpeg_job own = {
        .bytes = job->bytes,
        .len = job->len,
        .width = job->facts->width,
        .height = job->facts->height,
        .left = r->left,
        .top = r->top,
        .crop_width = r->width,
        .crop_height = r->height,
        .rgb = job->rgb,
        .stopped = stopped,
        .ctx = s,
        .seek = job->seek,
        .seek_len = job->seek_len,
    };
    mr_jpeg_outcome outcome = s->jpeg ? mr_jpeg_decode_region(s->jpeg, &own) : MR_JPEG_LEFT;
    s->counts.own += outcome == MR_JPEG_DONE;
    s->counts.seek += outcome == MR_JPEG_DONE && job->seek;
    s->counts.libjpeg += outcome == MR_JPEG_LEFT;
    return outcome;
}

mr_status mr_pixels_jpeg(mr_pixels_scratch *s, const mr_pixels_job *job, mr_error *err)
{
    switch (decode_own(s, job)) {
    case MR_JPEG_DONE:
        return MR_OK;
    case MR_JPEG_STOPPED:
        return MR_END;
    case MR_JPEG_LEFT:
        break;
    }
    /* The caller has accepted this size. */
    uint64_t pixels = (uint64_t)job->facts->width * job->facts->height;
    mr_image_limits limits = mr_image_limits_fill(NULL);
    limits.max_pixels = pixels > limits.max_pixels ? pixels : limits.max_pixels;
    limits.max_scans = UINT32_MAX; /* ingest checked --max-scans; here the passes over the pixels are limited */
    jpeg_run run = {.source = {.stopped = stopped, .ctx = s}, .scratch = s, .job = job};
    mr_jpeg_trap_set(&run.trap, &run.cinfo, &limits, err);
    run.count_scans = run.trap.progress.progress_monitor;
    run.trap.progress.progress_monitor = on_progress;
    decode_region(&run);
    jpeg_destroy_decompress(&run.cinfo);
    return run.trap.status;
}
