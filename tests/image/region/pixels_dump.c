/* pixels_dump.c - decodes and resizes what standard input asks for; for oracles that are not written in C.
 * Invariant: each line of input gives one answer, in order.
 *
 *      in    LEFT TOP WIDTH HEIGHT  OUT_W OUT_H CROP_LEFT CROP_TOP CROP_W CROP_H  FLIP BICUBIC TURN  PATH
 *            WIDTH 0: the whole picture; OUT_W 0: no resize; TURN 1: EXIF orientation applied (region: as seen)
 *      out   "ok WIDTH HEIGHT\n" and the RGB bytes, or "bad REASON\n" */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image/region/pixels.h"
#include "image/resize/resize.h"

typedef struct request {
    mr_region region;
    mr_resize_job job;
    unsigned flip, bicubic, turn;
    char path[4096];
} request;

typedef struct tools {
    mr_pixels_scratch *scratch;
    mr_resizer *resizer;
} tools;

static bool ask(request *q)
{
    mr_resize_job *j = &q->job;
    return scanf("%" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32
                 " %" SCNu32 " %" SCNu32 " %u %u %u %4095[^\n]",
                 &q->region.left, &q->region.top, &q->region.width, &q->region.height, &j->out_width, &j->out_height,
                 &j->crop_left, &j->crop_top, &j->crop_width, &j->crop_height, &q->flip, &q->bicubic, &q->turn,
                 q->path) == 14;
}

static uint8_t *slurp(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    uint8_t *bytes = NULL;
    if (f && !fseek(f, 0, SEEK_END)) {
        long size = ftell(f);
        rewind(f);
        bytes = size > 0 ? malloc((size_t)size) : NULL;
        *len = bytes ? fread(bytes, 1, (size_t)size, f) : 0;
    }
    if (f)
        fclose(f);
    return bytes;
}

static void answer(const uint8_t *rgb, uint32_t width, uint32_t height)
{
    printf("ok %" PRIu32 " %" PRIu32 "\n", width, height);
    fwrite(rgb, 3, (size_t)width * height, stdout);
}

static mr_status resize(tools *t, request *q, const uint8_t *rgb, mr_error *err)
{
    mr_resize_job *j = &q->job;
    j->rgb = rgb;
    j->in_width = q->region.width;
    j->in_height = q->region.height;
    j->flip = q->flip;
    j->bicubic = q->bicubic;
    uint8_t *out = mr_alloc((size_t)j->crop_width * j->crop_height, 3);
    mr_status s = out ? mr_resize_u8(t->resizer, j, out, err) : mr_fail_memory(err, "resizing");
    if (s == MR_OK)
        answer(out, j->crop_width, j->crop_height);
    free(out);
    return s;
}

static mr_status work(tools *t, request *q, const uint8_t *bytes, size_t len, mr_error *err)
{
    mr_image_facts facts;
    const uint8_t *rgb;
    mr_status s = mr_image_examine(bytes, len, NULL, &facts, err);
    if (s != MR_OK)
        return s;
    uint8_t turn = q->turn ? facts.orientation : 1;
    if (!q->region.width) {
        q->region = (mr_region){0, 0, facts.width, facts.height};
        mr_orient_size(turn, &q->region.width, &q->region.height);
    }
    mr_region stored = mr_orient_region(turn, facts.width, facts.height, &q->region);
    s = mr_pixels_decode(t->scratch, bytes, len, &facts, &stored, &rgb, err);
    if (s == MR_OK)
        s = mr_orient_pixels(t->scratch, turn, rgb, &stored, &rgb, err);
    if (s == MR_OK && q->job.out_width)
        return resize(t, q, rgb, err);
    if (s == MR_OK)
        answer(rgb, q->region.width, q->region.height);
    return s;
}

int main(void)
{
    tools t = {mr_pixels_scratch_new(), mr_resizer_new()};
    request q = {0};
    if (!t.scratch || !t.resizer)
        return 3;
    while (ask(&q)) {
        size_t len = 0;
        mr_error err = {.text = "cannot be read"};
        uint8_t *bytes = slurp(q.path, &len);
        if (!bytes || work(&t, &q, bytes, len, &err) != MR_OK)
            printf("bad %s\n", err.text);
        fflush(stdout);
        free(bytes);
    }
    mr_pixels_scratch_free(t.scratch);
    mr_resizer_free(t.resizer);
    return 0;
}
