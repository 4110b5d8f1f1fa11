/* shrink.c - rows of pixels become 64 x 64 cells.
 * Invariant: every cell is the mean of what it covers, including parts of pixels; each row is read once. */
#include "image/similar/shrink.h"

#include <stddef.h>

enum { SIDE = MR_ALIKE_SIDE };

/* How much of a cell a pixel covers, in units where a pixel is SIDE wide and a cell `pixels` wide. */
static uint64_t share(uint64_t cell, uint64_t pixel, uint64_t pixels)
{
    uint64_t low = cell * pixels > pixel * SIDE ? cell * pixels : pixel * SIDE;
    uint64_t high = (cell + 1) * pixels < (pixel + 1) * SIDE ? (cell + 1) * pixels : (pixel + 1) * SIDE;
    return high > low ? high - low : 0;
}

/* Once per image: divisions would cost more than all else. */
static void divide(mr_shrink *s)
{
    for (uint64_t cell = 0; cell < SIDE; cell++) {
        uint64_t first = cell * s->width / SIDE, last = ((cell + 1) * s->width - 1) / SIDE;
        s->spans[cell] = (mr_shrink_span){(uint32_t)first, (uint32_t)last, (uint32_t)share(cell, first, s->width),
                                          last > first ? (uint32_t)share(cell, last, s->width) : 0};
    }
    s->divided = true;
}

static uint64_t sum_of_cell(const mr_shrink_span *span, const uint8_t *grey)
{
    uint64_t between = 0;
    for (size_t x = (size_t)span->first + 1; x < span->last; x++)
        between += grey[x];
    return (uint64_t)grey[span->first] * span->head + (uint64_t)grey[span->last] * span->tail + SIDE * between;
}

void mr_shrink_row(mr_shrink *s, uint32_t y, const uint8_t *grey)
{
    uint64_t cells[SIDE];
    if (!s->divided)
        divide(s);
    for (uint64_t n = 0; n < SIDE; n++)
        cells[n] = sum_of_cell(&s->spans[n], grey);
    uint64_t first = (uint64_t)y * SIDE / s->height, end = ((uint64_t)y + 1) * SIDE;
    for (uint64_t row = first; row < SIDE && row * s->height < end; row++) {
        uint64_t weight = share(row, y, s->height);
        for (uint32_t n = 0; n < SIDE; n++)
            s->sums[row * SIDE + n] += weight * cells[n];
    }
}

/* At the edge the nearest cells are repeated. */
static float soften_edge(const float *from, int side, int x, int y)
{
    float sum = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
            int row = y + dy < 0 ? 0 : y + dy < side ? y + dy : side - 1;
            int column = x + dx < 0 ? 0 : x + dx < side ? x + dx : side - 1;
            sum += from[row * side + column];
        }
    return sum / 9;
}

void mr_soften(const float *from, int side, float *to)
{
    for (int y = 0; y < side; y++) {
        bool edge = y == 0 || y == side - 1;
        for (int x = 0; x < side; x += edge ? 1 : side - 1)
            to[y * side + x] = soften_edge(from, side, x, y);
        const float *at = from + y * side;
        for (int x = 1; !edge && x < side - 1; x++)
            to[y * side + x] = (at[x - side - 1] + at[x - side] + at[x - side + 1] + at[x - 1] + at[x] + at[x + 1] +
                                at[x + side - 1] + at[x + side] + at[x + side + 1]) /
                               9;
    }
}

void mr_shrink_end(const mr_shrink *s, mr_alike *out)
{
    float cells[SIDE * SIDE], softened[SIDE * SIDE];
    for (int i = 0; i < SIDE * SIDE; i++)
        cells[i] = (float)s->sums[i] / ((float)s->width * (float)s->height);
    /* Cells of one or two pixels show their noise, which copies do not keep. */
    bool small = s->width < 2 * SIDE || s->height < 2 * SIDE;
    mr_soften(cells, SIDE, softened);
    for (int i = 0; i < SIDE * SIDE; i++)
        out->grey[i] = (uint8_t)((small ? softened : cells)[i] + 0.5F);
}
