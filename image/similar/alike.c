/* alike.c - aligns one small grey image with another and measures how well they agree.
 * Invariant: every step is bounded by constants: all pairs of images cost about the same.
 *
 *      64 x 64   8 rotations and reflections: alike if one of them agrees
 *      32 x 32   8 of those, 9 shapes, 9 offsets: the best offset of each shape; hill climbing from the CLIMBS best
 *                (shift, turn, zoom, stretch, shear in ever smaller steps) selects one
 *      64 x 64   hill climbing again, then the verdict */
#include "image/similar/alike.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "image/similar/overlay.h"
#include "image/similar/shrink.h"

enum {
    SIDE = MR_ALIKE_SIDE,
    WAYS = 8,
    CLIMBS = 6,
    ROUNDS = 8,
    BLOCKS_MIN = 6, /* fewer may agree by chance: any two spots look alike */
};

/* What copies reach and other images do not: the mean agreement without alignment, except rotation and reflection;
 * the median after alignment; and that of whole images without details.  Measured on exports of Roboflow and others:
 * 399 of 405 pairs of copies are recognised (rotated up to 15 degrees, squares cut out, brighter).  Of 2,116 pairs of
 * other photographs, 16 of them with the same name, 1 is reported, and is in fact a pair of copies with different
 * names; the means of the rest are below 0.26, their medians below 0.46.  Of 600 pairs of traffic signs that fill the
 * image 11 are reported, of 2,324 pairs of the same sign 9 %: they differ in little. */
static const float alike_unmoved = 0.6F, alike_moved = 0.82F, alike_entire = 0.995F;
/* At the middle level, after the first step and at the top: every recognised copy reached them.  They only save
 * time. */
static const float enough_to_climb = 0.42F, enough_to_go_on = 0.55F;

static const mr_level coarse = {SIDE / 2, SIDE / 16, 8, 2, true}, middle = {SIDE / 2, SIDE / 16, 4, 1, false};
static const mr_level fine = {SIDE, SIDE / 8, 8, 1, false};
static const mr_level entire = {SIDE, 0, SIDE, 1, true}; /* in one block */

/* The rotations and reflections of a square. */
static const float ways[WAYS][4] = {{1, 0, 0, 1}, {-1, 0, 0, 1}, {1, 0, 0, -1}, {-1, 0, 0, -1},
                                    {0, 1, 1, 0}, {0, 1, -1, 0}, {0, -1, 1, 0}, {0, -1, -1, 0}};

/* ---- search --------------------------------------------------------------------------------------------------- */

/* One step, forward or backward, of one kind of difference between copies. */
static mr_warp moved(const mr_warp *w, int kind, float step)
{
    enum { ACROSS, DOWN, TURN, ZOOM, STRETCH, SHEAR };
    mr_warp to = *w;
    float a = 0.06F * step; /* moves a border cell of the middle level as far as a shift does */
    const float *m = w->m;
    if (kind == ACROSS)
        to.x += step / (SIDE / 2.0F);
    else if (kind == DOWN)
        to.y += step / (SIDE / 2.0F);
    else if (kind == TURN)
        to = (mr_warp){{m[0] - a * m[2], m[1] - a * m[3], m[2] + a * m[0], m[3] + a * m[1]}, w->x, w->y};
    else if (kind == ZOOM)
        to = (mr_warp){{m[0] * (1 + a), m[1] * (1 + a), m[2] * (1 + a), m[3] * (1 + a)}, w->x, w->y};
    else if (kind == STRETCH)
        to = (mr_warp){{m[0] * (1 + a), m[1] * (1 - a), m[2] * (1 + a), m[3] * (1 - a)}, w->x, w->y};
    else
        to = (mr_warp){{m[0], m[1] + a * m[0], m[2], m[3] + a * m[2]}, w->x, w->y};
    return to;
}

/* Without bounds an image could be shrunk until it agrees with anything. */
static bool allowed(const mr_warp *w)
{
    float area = fabsf(w->m[0] * w->m[3] - w->m[1] * w->m[2]);
    return area > 0.45F && area < 2.2F && fabsf(w->x) < 0.19F && fabsf(w->y) < 0.19F;
}

/* Hill climbing with steps that are halved when none helps; returns the agreement at the top. */
static float climb(const mr_overlay *v, mr_warp *w, float step, float last, int rounds)
{
    enum { KINDS = 6 };
    float best = mr_overlay_agreement(v, w, 1);
    for (int round = 0; round < rounds && step > last; round++) {
        bool better = false;
        for (int i = 0; i < 2 * KINDS; i++) {
            mr_warp to = moved(w, i / 2, i % 2 ? step : -step);
            float here = allowed(&to) ? mr_overlay_agreement(v, &to, 1) : 0;
            if (here > best) {
                best = here;
                *w = to;
                better = true;
            }
        }
        if (!better)
            step /= 2;
    }
    return best;
}

typedef struct start {
    float agreement;
    mr_warp warp;
} start;

static void keep_best(start best[CLIMBS], const start *s)
{
    int at = CLIMBS;
    while (at > 0 && s->agreement > best[at - 1].agreement)
        at--;
    if (at == CLIMBS)
        return;
    memmove(&best[at + 1], &best[at], (size_t)(CLIMBS - 1 - at) * sizeof *best);
    best[at] = *s;
}

/* The best offset of each shape. */
static void try_way(const mr_overlay *v, const float *way, start best[CLIMBS])
{
    static const float zooms[] = {0.85F, 1, 1.18F}, turns[] = {-0.17F, 0, 0.17F}, shifts[] = {-0.08F, 0, 0.08F};
    for (int shape = 0; shape < 9; shape++) {
        float zoom = zooms[shape / 3], turn = zoom * turns[shape % 3];
        start top = {.agreement = -1};
        for (int place = 0; place < 9; place++) {
            start s = {0,
                       {{zoom * way[0] - turn * way[2], zoom * way[1] - turn * way[3], turn * way[0] + zoom * way[2],
                         turn * way[1] + zoom * way[3]},
                        shifts[place / 3],
                        shifts[place % 3]}};
            s.agreement = mr_overlay_agreement(v, &s.warp, 1);
            if (s.agreement > top.agreement)
                top = s;
        }
        keep_best(best, &top);
    }
}

static int best_first(const void *a, const void *b)
{
    const start *x = a, *y = b;
    return (x->agreement < y->agreement) - (x->agreement > y->agreement);
}

/* The best warp at the middle level.  Each start climbs one step, and the best two to the top. */
static start search(const float *a, const float *b)
{
    mr_overlay v;
    start best[CLIMBS];
    for (int i = 0; i < CLIMBS; i++)
        best[i].agreement = -1;
    mr_overlay_make(&v, &coarse, a, b);
    for (int way = 0; way < WAYS; way++)
        try_way(&v, ways[way], best);
    mr_overlay_make(&v, &middle, a, b);
    for (int i = 0; i < CLIMBS; i++)
        best[i].agreement = climb(&v, &best[i].warp, 1, 0.3F, 1);
    qsort(best, CLIMBS, sizeof *best, best_first);
    for (int i = 0; i < 2 && best[i].agreement >= enough_to_climb; i++)
        best[i].agreement = climb(&v, &best[i].warp, 1, 0.3F, ROUNDS);
    return best[best[1].agreement > best[0].agreement];
}

/* ---- verdict -------------------------------------------------------------------------------------------------- */

static void to_floats(const mr_alike *from, float *to)
{
    for (int i = 0; i < SIDE * SIDE; i++)
        to[i] = from->grey[i];
}

/* Halves the side and softens. */
static void make_rough(const float *from, float *to)
{
    float half[SIDE * SIDE / 4];
    for (int y = 0; y < SIDE / 2; y++)
        for (int x = 0; x < SIDE / 2; x++) {
            const float *p = from + 2 * y * SIDE + 2 * x;
            half[y * (SIDE / 2) + x] = (p[0] + p[1] + p[SIDE] + p[SIDE + 1]) / 4;
        }
    mr_soften(half, SIDE / 2, to);
}

/* The best agreement over all rotations and reflections. */
static float unmoved_agreement(const mr_level *at, const float *a, const float *b, int least)
{
    mr_overlay v;
    float best = 0;
    mr_overlay_make(&v, at, a, b);
    for (int way = 0; way < WAYS; way++) {
        mr_warp w = {{ways[way][0], ways[way][1], ways[way][2], ways[way][3]}, 0, 0};
        float here = mr_overlay_agreement(&v, &w, least);
        best = here > best ? here : best;
    }
    return best;
}

bool mr_alike_plain(const mr_alike *a)
{
    uint8_t low = 255, high = 0;
    for (size_t i = 0; i < sizeof a->grey; i++) {
        low = a->grey[i] < low ? a->grey[i] : low;
        high = a->grey[i] > high ? a->grey[i] : high;
    }
    return high - low < 4; /* noise, or JPEG at its worst, on a single tone */
}

bool mr_alike_compare(const mr_alike *a, const mr_alike *b)
{
    float whole_a[SIDE * SIDE], whole_b[SIDE * SIDE], rough_a[SIDE * SIDE / 4], rough_b[SIDE * SIDE / 4];
    mr_overlay v;
    if (mr_alike_plain(a) || mr_alike_plain(b))
        return false;
    to_floats(a, whole_a);
    to_floats(b, whole_b);
    /* A gradient or a spot has hardly any block with details: the whole image must agree almost perfectly. */
    if (unmoved_agreement(&fine, whole_a, whole_b, BLOCKS_MIN) >= alike_unmoved ||
        unmoved_agreement(&entire, whole_a, whole_b, 1) >= alike_entire)
        return true;
    make_rough(whole_a, rough_a);
    make_rough(whole_b, rough_b);
    start s = search(rough_a, rough_b);
    if (s.agreement < enough_to_go_on)
        return false;
    mr_overlay_make(&v, &fine, whole_a, whole_b);
    climb(&v, &s.warp, 0.5F, 0.06F, ROUNDS);
    return mr_overlay_common(&v, &s.warp, BLOCKS_MIN) >= alike_moved;
}

/* 96 % of copies reach it, but less than half of the other images with similar hashes (near.h). */
static const float enough_to_decode = 0.45F;

void mr_alike_rough_make(const mr_alike *a, mr_alike_rough *out)
{
    float whole[SIDE * SIDE], rough[SIDE * SIDE / 4];
    to_floats(a, whole);
    make_rough(whole, rough);
    for (size_t i = 0; i < sizeof out->grey; i++)
        out->grey[i] = (uint8_t)(rough[i] + 0.5F);
}

bool mr_alike_rough_compare(const mr_alike_rough *a, const mr_alike_rough *b, mr_alike_window window, unsigned way)
{
    float from[SIDE * SIDE / 4], to[SIDE * SIDE / 4];
    mr_overlay v;
    for (int i = 0; i < SIDE * SIDE / 4; i++) {
        from[i] = a->grey[i];
        to[i] = b->grey[i];
    }
    mr_overlay_make(&v, &middle, from, to);
    /* A quarter turn to the left and one to the right: `way` does not say which image is turned. */
    bool quarter = way == 5 || way == 6;
    for (unsigned i = quarter ? 5 : way; i <= (quarter ? 6 : way); i++) {
        mr_warp w = {
            {ways[i][0] * window.zoom, ways[i][1] * window.zoom, ways[i][2] * window.zoom, ways[i][3] * window.zoom},
            window.x,
            window.y};
        if (mr_overlay_agreement(&v, &w, BLOCKS_MIN) >= enough_to_decode)
            return true;
    }
    /* This says nothing about an image with little detail. */
    float each[MR_BLOCKS_MAX];
    mr_warp still = {{1, 0, 0, 1}, 0, 0};
    return mr_overlay_each(&v, &still, each) < BLOCKS_MIN;
}
