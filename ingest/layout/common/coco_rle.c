/* coco_rle.c - see coco_rle.h. */
#include "ingest/layout/common/coco_rle.h"

void mr_coco_rle_run(mr_coco_rle *r, int64_t run)
{
    r->any = true;
    r->bad = r->bad || run < 0 || __builtin_add_overflow(r->pixels, (uint64_t)run, &r->pixels);
    r->last[1] = r->last[0];
    r->last[0] = run;
}

void mr_coco_rle_text(mr_coco_rle *r, const char *text, size_t len)
{
    size_t runs = 0;
    r->any = true;
    for (size_t i = 0; i < len && !r->bad; runs++) {
        uint64_t bits = 0;
        unsigned shift = 0, c = 0x20;
        for (; i < len && c & 0x20 && !r->bad; i++, shift += 5) {
            c = (unsigned char)text[i] - 48u;
            r->bad = c > 63 || shift > 50;
            bits |= r->bad ? 0 : (uint64_t)(c & 0x1F) << shift;
        }
        int64_t run = (int64_t)bits - (c & 0x10 ? (int64_t)1 << shift : 0);
        r->bad = r->bad || c & 0x20; /* it ends within a number */
        r->bad = r->bad || (runs > 2 && __builtin_add_overflow(run, r->last[1], &run));
        if (!r->bad)
            mr_coco_rle_run(r, run);
    }
}

void mr_coco_rle_size(mr_coco_rle *r, int64_t side)
{
    if (r->sizes < 2 && side >= 0 && side <= UINT32_MAX)
        r->size[r->sizes++] = (uint64_t)side;
    else
        r->bad = true;
}

bool mr_coco_rle_fits(const mr_coco_rle *r, uint32_t width, uint32_t height)
{
    return r->any && !r->bad && r->sizes == 2 && r->pixels == r->size[0] * r->size[1] &&
           (!height || height == r->size[0]) && (!width || width == r->size[1]);
}
