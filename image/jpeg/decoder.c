/* decoder.c - a thread's tables and buffers; see decoder.h.
 * Invariant: results do not depend on what was decoded before. */
#include "image/jpeg/decoder.h"

#include <stdlib.h>
#include <string.h>

mr_jpeg_decoder *mr_jpeg_decoder_new(void)
{
    mr_jpeg_decoder *d = aligned_alloc(32, (sizeof *d + 31) & ~(size_t)31);
    if (!d)
        return NULL;
    memset(d, 0, sizeof *d);
    d->kernels = mr_jpeg_kernels_best();
    return d;
}

void mr_jpeg_decoder_free(mr_jpeg_decoder *d)
{
    if (!d)
        return;
    free(d->bytes.data);
    free(d->samples.data);
    free(d->entries.data);
    free(d);
}

void mr_jpeg_decoder_plain(mr_jpeg_decoder *d)
{
    d->kernels = &mr_jpeg_plain;
}

void *mr_jpeg_reserve(mr_jpeg_buffer *b, size_t need)
{
    if (need <= b->capacity)
        return b->data;
    free(b->data); /* not realloc, which would copy the old bytes */
    b->capacity = need + need / 4;
    b->data = malloc(b->capacity);
    if (!b->data)
        b->capacity = 0;
    return b->data;
}

uint32_t mr_jpeg_wide(const mr_jpeg_header *h)
{
    return mr_jpeg_divide_up(h->width, 8u * h->component[0].h);
}

uint32_t mr_jpeg_high(const mr_jpeg_header *h)
{
    return mr_jpeg_divide_up(h->height, 8u * h->component[0].v);
}

void mr_jpeg_mcu_add(mr_jpeg_mcu *mcu, const mr_jpeg_dc *dc, mr_jpeg_ac *ac, unsigned component)
{
    mr_jpeg_node *n = &mcu->node[2 * mcu->blocks];
    mcu->block[mcu->blocks].dc = dc;
    mcu->block[mcu->blocks].ac = ac;
    mcu->block[mcu->blocks].component = component;
    n[0] = (mr_jpeg_node){.table = dc->pair, .next = n + 1, .first = mr_jpeg_zigzag};
    n[1] = (mr_jpeg_node){.table = ac->pair, .next = mcu->node, .step = MR_JPEG_BLOCK, .first = mr_jpeg_zigzag + 1};
    if (mcu->blocks++)
        n[-1].next = n;
}

void mr_jpeg_mcu_pair(const mr_jpeg_mcu *mcu)
{
    for (unsigned i = 0; i < mcu->blocks; i++)
        mr_jpeg_ac_pair(mcu->block[i].ac);
}

void mr_jpeg_mcu_skip(const mr_jpeg_mcu *mcu)
{
    for (unsigned i = 0; i < mcu->blocks; i++)
        mr_jpeg_ac_skip(mcu->block[i].ac);
}

static bool make_tables(mr_jpeg_decoder *d)
{
    const mr_jpeg_header *h = &d->header;
    mr_jpeg_mcu *mcu = &d->mcu;
    mcu->blocks = 0;
    for (unsigned i = 0; i < h->components; i++) {
        const mr_jpeg_component *c = &h->component[i];
        if (!mr_jpeg_dc_make(&d->dc[c->dc], h->huffman[0][c->dc]) ||
            !mr_jpeg_ac_make(&d->ac[c->ac], h->huffman[1][c->ac]))
            return false;
        for (int b = 0; b < c->h * c->v; b++)
            mr_jpeg_mcu_add(mcu, &d->dc[c->dc], &d->ac[c->ac], i);
    }
    return true;
}

/* For such narrow images libjpeg-turbo upsamples without neighbours. */
static bool too_narrow(const mr_jpeg_header *h)
{
    return h->component[0].h == 2 && h->width <= 4;
}

bool mr_jpeg_open_header(const uint8_t *bytes, size_t len, mr_jpeg_header *out)
{
    return mr_jpeg_parse(bytes, len, out) && !too_narrow(out);
}

bool mr_jpeg_open(mr_jpeg_decoder *d, const uint8_t *bytes, size_t len)
{
    return mr_jpeg_open_header(bytes, len, &d->header) && make_tables(d);
}

bool mr_jpeg_open_scan(mr_jpeg_decoder *d, mr_jpeg_scan *s, const uint8_t *bytes, size_t len)
{
    *s = (mr_jpeg_scan){.kernels = d->kernels,
                        .mcu = &d->mcu,
                        .bytes = bytes,
                        .len = len,
                        .at = d->header.scan,
                        .restart = d->header.restart};
    s->unstuffed = mr_jpeg_reserve(&d->bytes, len - s->at + MR_JPEG_PADDING);
    return s->unstuffed != NULL;
}
