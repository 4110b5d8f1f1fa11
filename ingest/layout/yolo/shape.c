/* shape.c - see shape.h.
 * The rule: keypoints have one count in all lines, and nearly always are in the box that comes first, which is in the
 * image.  Read as a box, the first two corners of a polygon hold the other ones only where it is small and in the
 * middle part of the image.  Closed polygons and parallelograms (oriented boxes) do not count.
 * Points may lie a little outside of their box: annotators place ankles at its edge.
 * Invariant: a dataset of keypoints is never mistaken for one of polygons because of a few odd lines. */
#include "ingest/layout/yolo/shape.h"

#include <math.h>

static bool near(double a, double b, double most)
{
    return fabs(a - b) <= most;
}

/* The first four numbers are a box in the image, and the points are in it; `dims` 3: each has a visibility. */
static bool is_pose(const double *n, size_t count, unsigned dims)
{
    const double left = n[0] - n[2] / 2, right = n[0] + n[2] / 2, top = n[1] - n[3] / 2, bottom = n[1] + n[3] / 2;
    const double edge = 0.02, aside = 0.1 * n[2] + edge, above = 0.1 * n[3] + edge;
    if (n[2] <= 0 || n[3] <= 0 || left < -edge || top < -edge || right > 1 + edge || bottom > 1 + edge)
        return false;
    for (size_t i = 4; i + dims <= count; i += dims) {
        bool unseen = dims == 3 ? n[i + 2] == 0 : n[i] == 0 && n[i + 1] == 0;
        if (dims == 3 && n[i + 2] != 0 && n[i + 2] != 1 && n[i + 2] != 2)
            return false;
        if (!unseen &&
            (n[i] < left - aside || n[i] > right + aside || n[i + 1] < top - above || n[i + 1] > bottom + above))
            return false;
    }
    return true;
}

/* Corner 1 and 3 have the middle that 2 and 4 have, within a part of the diagonals. */
static bool is_parallelogram(const double *n)
{
    double across = fmax(hypot(n[0] - n[4], n[1] - n[5]), hypot(n[2] - n[6], n[3] - n[7]));
    return hypot(n[0] + n[4] - n[2] - n[6], n[1] + n[5] - n[3] - n[7]) <= 0.4 * across;
}

void mr_yolo_shape_add(mr_yolo_shape *s, const double *n, size_t count, uint32_t entry, uint64_t line)
{
    if (!s->lines++) {
        s->count = count;
        s->entry = entry;
        s->line = line;
    }
    s->varied = s->varied || count != s->count;
    s->flat += is_pose(n, count, 2);
    s->seen += (count - 4) % 3 == 0 && is_pose(n, count, 3);
    s->closed += near(n[0], n[count - 2], 1e-9) && near(n[1], n[count - 1], 1e-9);
    s->square += count == 8 && is_parallelogram(n);
}

bool mr_yolo_shape_is_pose(const mr_yolo_shape *s, size_t *keypoints, unsigned *dims)
{
    uint64_t most = s->lines - s->lines / 4;
    if (!s->lines || s->varied || s->closed >= most || s->square >= most)
        return false;
    *dims = s->seen >= most ? 3 : 2;
    *keypoints = (s->count - 4) / *dims;
    return s->seen >= most || s->flat >= most;
}
