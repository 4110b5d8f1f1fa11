/* overlay.c - how well a warped image agrees with another, block by block; see overlay.h.
 * Invariant: sums are added in an order that the level alone decides. */
#include "image/similar/overlay.h"

#include <math.h>
#include <stdlib.h>

/* A block is compared if its details, in at least one image, deviate by this many grey levels; JPEG noise is less. */
static const float noise = 1.0F;

/* Row y of the first image, warped: what is at every step-th column of the second one, from the margin on.  Bilinear
 * interpolation; outside the image its edge is repeated. */
static void row_of_a(const mr_overlay *v, const mr_warp *w, int y, float *restrict out)
{
    const mr_level *l = v->at;
    const float *restrict p = v->a;
    const int side = l->side, count = (side - 2 * l->margin) / l->step;
    const float middle_at = (float)(side - 1) / 2, last = (float)side - 1.001F;
    const float dx = (float)l->margin - middle_at, dy = (float)y - middle_at;
    const float from_x = middle_at + w->m[0] * dx + w->m[1] * dy + w->x * (float)side;
    const float from_y = middle_at + w->m[2] * dx + w->m[3] * dy + w->y * (float)side;
    const float step_x = w->m[0] * (float)l->step, step_y = w->m[2] * (float)l->step;
#pragma omp simd
    for (int i = 0; i < count; i++) {
        float at_x = from_x + step_x * (float)i, at_y = from_y + step_y * (float)i;
        at_x = at_x < 0 ? 0 : at_x;
        at_x = at_x > last ? last : at_x;
        at_y = at_y < 0 ? 0 : at_y;
        at_y = at_y > last ? last : at_y;
        int column = (int)at_x, row = (int)at_y, at = row * side + column;
        float right = at_x - (float)column, down = at_y - (float)row;
        float top = p[at] + right * (p[at + 1] - p[at]);
        float bottom = p[at + side] + right * (p[at + side + 1] - p[at + side]);
        out[i] = top + down * (bottom - top);
    }
}

/* Adds a row of a block's cells, y below the block's middle; *product: sum of the products of both images' values. */
static void add_row(mr_block_sums *s, float *product, const float *a, const float *b, float y, const mr_level *l)
{
    const int cells = l->block / l->step;
    const float half = (float)(l->block - l->step) / 2;
    float row = 0;
    for (int i = 0; i < cells; i++) {
        row += a[i];
        s->vv += a[i] * a[i];
        s->x += a[i] * ((float)(i * l->step) - half);
        *product += a[i] * b[i];
    }
    s->v += row;
    s->y += row * y;
}

void mr_overlay_make(mr_overlay *v, const mr_level *at, const float *a, const float *b)
{
    const int count = (at->side - 2 * at->margin) / at->step, cells = at->block / at->step;
    const float half = (float)(at->block - at->step) / 2;
    v->at = at;
    v->a = a;
    v->across = (at->side - 2 * at->margin) / at->block;
    for (int y = 0; y < count; y++)
        for (int x = 0; x < count; x++)
            v->b[y * count + x] = b[(at->margin + y * at->step) * at->side + at->margin + x * at->step];
    for (int i = 0; i < v->across * v->across; i++) {
        const float *block = v->b + i / v->across * cells * count + i % v->across * cells;
        float squares = 0;
        v->of_b[i] = (mr_block_sums){0};
        for (int y = 0; y < cells; y++)
            add_row(&v->of_b[i], &squares, block + y * count, block + y * count, (float)(y * at->step) - half, at);
    }
}

/* The correlation of a block without its mean and slope, 0 if it is negative; -1: a block without details. */
static float correlation(const mr_level *l, mr_block_sums a, mr_block_sums b, float uv)
{
    const int across = l->block / l->step;
    float n = (float)(across * across), least = noise * noise * n;
    /* Sum of the squared coordinates in a block; infinite to keep the slope. */
    float places = l->slopes ? INFINITY : n * (float)(l->block * l->block - l->step * l->step) / 12;
    float uu = a.vv - a.v * a.v / n - (a.x * a.x + a.y * a.y) / places;
    float vv = b.vv - b.v * b.v / n - (b.x * b.x + b.y * b.y) / places;
    uv -= a.v * b.v / n + (a.x * b.x + a.y * b.y) / places;
    if (uu < least && vv < least)
        return -1;
    return uv > 0 ? uv / sqrtf((uu < least ? least : uu) * (vv < least ? least : vv)) : 0;
}

int mr_overlay_each(const mr_overlay *v, const mr_warp *w, float each[MR_BLOCKS_MAX])
{
    const mr_level *l = v->at;
    const int cells = l->block / l->step, count = cells * v->across;
    const float half = (float)(l->block - l->step) / 2;
    int counted = 0;
    for (int down = 0; down < v->across; down++) {
        mr_block_sums a[MR_ACROSS_MAX] = {{0}};
        float both[MR_ACROSS_MAX] = {0}, row[MR_ALIKE_SIDE];
        for (int y = 0; y < cells; y++) {
            row_of_a(v, w, l->margin + down * l->block + y * l->step, row);
            for (int i = 0; i < v->across; i++)
                add_row(&a[i], &both[i], row + i * cells, v->b + (down * cells + y) * count + i * cells,
                        (float)(y * l->step) - half, l);
        }
        for (int i = 0; i < v->across; i++) {
            float here = correlation(l, a[i], v->of_b[down * v->across + i], both[i]);
            if (here >= 0)
                each[counted++] = here;
        }
    }
    return counted;
}

float mr_overlay_agreement(const mr_overlay *v, const mr_warp *w, int least)
{
    float each[MR_BLOCKS_MAX], sum = 0;
    int count = mr_overlay_each(v, w, each);
    for (int i = 0; i < count; i++)
        sum += each[i];
    return count >= least ? sum / (float)count : 0;
}

static int by_value(const void *a, const void *b)
{
    const float *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

float mr_overlay_common(const mr_overlay *v, const mr_warp *w, int least)
{
    float each[MR_BLOCKS_MAX];
    int count = mr_overlay_each(v, w, each);
    qsort(each, (size_t)count, sizeof *each, by_value);
    return count >= least ? each[(count - 1) / 2] : 0;
}
