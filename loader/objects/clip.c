/* clip.c - a polygon cut to the image.
 * Invariant: no point is outside afterwards, and the area inside is that of the polygon.
 * Source: Sutherland and Hodgman, "Reentrant polygon clipping", 1974: one edge of the image after the other.  Where a
 * polygon leaves the image and returns, it runs along the edge, so that it stays one polygon. */
#include "base/error.h"
#include "loader/objects/move.h"

bool mr_path_point(mr_path *p, double x, double y)
{
    for (int i = 0; i < 2; i++) {
        if (!MR_GROW(p->at, p->count, p->capacity))
            return false;
        p->at[p->count++] = i ? y : x;
    }
    return true;
}

typedef struct edge { /* what is at least 0 is inside: sign * coordinate + offset */
    int axis;         /* 0: x, 1: y */
    double sign, offset, limit;
} edge;

static double inside_by(const edge *e, const double *point)
{
    return e->sign * point[e->axis] + e->offset;
}

/* Where the way from `a` to `b` crosses the edge. */
static bool cross(const edge *e, const double *a, const double *b, mr_path *out)
{
    double from = inside_by(e, a), to = inside_by(e, b), share = from / (from - to);
    double at[2] = {a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share};
    at[e->axis] = e->limit; /* exactly, whatever the rounding */
    return mr_path_point(out, at[0], at[1]);
}

static bool cut(const edge *e, const mr_path *from, mr_path *to)
{
    to->count = 0;
    for (size_t i = 0; i < from->count; i += 2) {
        const double *here = from->at + i, *before = from->at + (i ? i : from->count) - 2;
        bool in = inside_by(e, here) >= 0, was_in = inside_by(e, before) >= 0;
        if (in != was_in && !cross(e, before, here, to))
            return false;
        if (in && !mr_path_point(to, here[0], here[1]))
            return false;
    }
    return true;
}

bool mr_path_clip(mr_path *p, mr_path *scratch, double width, double height)
{
    const edge edges[] = {{0, 1, 0, 0}, {0, -1, width, width}, {1, 1, 0, 0}, {1, -1, height, height}};
    for (size_t i = 0; i < MR_COUNT(edges); i += 2)
        if (!cut(&edges[i], p, scratch) || !cut(&edges[i + 1], scratch, p))
            return false;
    return true;
}
