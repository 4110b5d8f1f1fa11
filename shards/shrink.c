/* shrink.c - rows of pixels become 64 x 64 cells.
 * Invariant: every cell is the mean of the pixels in it, or a pixel where pixels are larger; each row is read once.
 */
#include "shrink.h"

enum { SIDE = MR_ALIKE_SIDE };

/* The pixels of cell n: from edge(n) up to edge(n + 1), or one where pixels are larger than cells. */
static uint32_t edge(uint32_t n, uint32_t pixels)
{
    return (uint32_t)((uint64_t)n * pixels / SIDE);
}

static uint32_t extent(uint32_t n, uint32_t pixels)
{
    uint32_t len = edge(n + 1, pixels) - edge(n, pixels);
    return len ? len : 1;
}

void mr_shrink_row(mr_shrink *s, uint32_t y, const uint8_t *grey)
{
    uint64_t cells[SIDE];
    for (uint32_t n = 0; n < SIDE; n++) {
        const uint8_t *p = grey + edge(n, s->width), *end = p + extent(n, s->width);
        for (cells[n] = 0; p < end; p++)
            cells[n] += *p;
    }
    /* One cell in a tall picture; in a flat one a few that show the same row. */
    for (uint32_t row = (uint32_t)((uint64_t)y * SIDE / s->height); row < SIDE && edge(row, s->height) <= y; row++)
        if (y < edge(row, s->height) + extent(row, s->height))
            for (uint32_t n = 0; n < SIDE; n++)
                s->sums[row * SIDE + n] += cells[n];
}

void mr_soften(const float *from, int side, float *to)
{
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++) {
            float sum = 0;
            for (int dy = -1; dy <= 1; dy++)
                for (int dx = -1; dx <= 1; dx++) {
                    int row = y + dy < 0 ? 0 : y + dy < side ? y + dy : side - 1;
                    int column = x + dx < 0 ? 0 : x + dx < side ? x + dx : side - 1;
                    sum += from[row * side + column];
                }
            to[y * side + x] = sum / 9;
        }
}

void mr_shrink_end(const mr_shrink *s, mr_alike *out)
{
    float cells[SIDE * SIDE], softened[SIDE * SIDE];
    for (uint32_t y = 0; y < SIDE; y++)
        for (uint32_t x = 0; x < SIDE; x++)
            cells[y * SIDE + x] =
                (float)s->sums[y * SIDE + x] / ((float)extent(x, s->width) * (float)extent(y, s->height));
    /* Cells of a pixel or two have its grain, which no copy keeps. */
    bool small = s->width < 2 * SIDE || s->height < 2 * SIDE;
    mr_soften(cells, SIDE, softened);
    for (int i = 0; i < SIDE * SIDE; i++)
        out->grey[i] = (uint8_t)((small ? softened : cells)[i] + 0.5F);
}
