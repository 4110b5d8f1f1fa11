/* means.c - the mean luma of each block, from its DC coefficient alone, while the scan is checked; see region.h.
 * Invariant: the verdict is that of mr_jpeg_check(): every code of the scan is read.
 *
 *      MCU   Y0 | Y1 | Y2 | Y3 | Cb Cr         parts: each block of luma, then all chroma
 *
 * A DC coefficient is 8 times the mean of its block, less 128 (ITU-T T.81, A.3.3). */
#include <string.h>

#include "image/jpeg/decoder.h"

enum { PARTS = MR_JPEG_BLOCKS };

typedef struct parts {
    mr_jpeg_mcu mcu[PARTS];
    unsigned count;
} parts;

static void divide(mr_jpeg_decoder *d, parts *p)
{
    const mr_jpeg_header *h = &d->header;
    const mr_jpeg_component *luma = &h->component[0];
    memset(p, 0, sizeof *p);
    for (int b = 0; b < luma->h * luma->v; b++)
        mr_jpeg_mcu_add(&p->mcu[p->count++], &d->dc[luma->dc], &d->ac[luma->ac], 0);
    for (unsigned c = 1; c < h->components; c++)
        mr_jpeg_mcu_add(&p->mcu[p->count], &d->dc[h->component[c].dc], &d->ac[h->component[c].ac], c);
    p->count += h->components > 1;
}

static uint8_t mean_of(int dc, int quant)
{
    int mean = (dc * quant + 8 * 128 + 4) >> 3;
    return (uint8_t)(mean < 0 ? 0 : mean > 255 ? 255 : mean);
}

/* All MCUs; `grey` has room for whole MCUs. */
static bool collect(mr_jpeg_decoder *d, mr_jpeg_scan *s, uint8_t *grey, uint32_t stride)
{
    const mr_jpeg_component *luma = &d->header.component[0];
    uint32_t wide = mr_jpeg_wide(&d->header), high = mr_jpeg_high(&d->header);
    int quant = d->header.quant[luma->quant][0], dc[PARTS];
    parts p;
    divide(d, &p);
    mr_jpeg_mcu_skip(&d->mcu); /* the tables of all parts */
    for (uint32_t y = 0; y < high; y++)
        for (uint32_t x = 0; x < wide; x++) {
            if (!mr_jpeg_scan_skip_parts(s, p.mcu, p.count, dc))
                return false;
            uint8_t *to = grey + (size_t)y * luma->v * stride + (size_t)x * luma->h;
            for (unsigned b = 0; b < (unsigned)(luma->h * luma->v); b++)
                to[b / luma->h * stride + b % luma->h] = mean_of(dc[b], quant);
        }
    return mr_jpeg_scan_complete(s);
}

mr_jpeg_outcome mr_jpeg_check_means(mr_jpeg_decoder *d, const uint8_t *bytes, size_t len, uint64_t max_pixels,
                                    mr_jpeg_means *out)
{
    mr_jpeg_scan scan;
    const mr_jpeg_header *h = &d->header;
    if (!mr_jpeg_open(d, bytes, len) || (uint64_t)h->width * h->height > max_pixels ||
        !mr_jpeg_open_scan(d, &scan, bytes, len))
        return MR_JPEG_LEFT;
    uint32_t stride = mr_jpeg_wide(h) * h->component[0].h;
    /* Each MCU takes at least two bits: a header that claims more costs no memory. */
    if ((uint64_t)mr_jpeg_wide(h) * mr_jpeg_high(h) > (uint64_t)len * 4)
        return MR_JPEG_LEFT;
    uint8_t *grey = mr_jpeg_reserve(&d->samples, (size_t)stride * mr_jpeg_high(h) * h->component[0].v);
    if (!grey)
        return MR_JPEG_LEFT;
    mr_jpeg_scan_begin(&scan);
    if (!collect(d, &scan, grey, stride))
        return MR_JPEG_LEFT;
    *out = (mr_jpeg_means){grey, mr_jpeg_divide_up(h->width, 8), mr_jpeg_divide_up(h->height, 8), stride};
    return MR_JPEG_DONE;
}
