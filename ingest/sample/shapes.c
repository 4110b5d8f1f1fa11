/* shapes.c - the contents of a drawn image: outlines, places, sizes, descriptions.
 * Invariant: a figure is its outline; what is drawn, boxed, masked and measured is one polygon, inside the image.
 *
 *   own measures: unit circle, y down      ring: one polygon, out along the rim, in by a seam, back along the hole
 *         (0,-1)                                 48 ---- 49
 *     (-1,0)  + (1,0)                             0      97      the seams 48-49 and 97-0 coincide */
#include "ingest/sample/sample.h"

#include <math.h>
#include <string.h>

enum { STEPS = 48 }; /* steps around a full circle: 7.5 degrees each */

const char *const mr_shape_words[MR_SHAPE_COUNT] = {
#define X(word) #word,
    MR_SHAPES(X)
#undef X
};
const char *const mr_colour_words[MR_COLOURS] = {"red",    "orange", "yellow", "green", "blue",
                                                 "purple", "pink",   "brown",  "white", "black"};
const char *const mr_paper_words[MR_PAPER_COUNT] = {
#define X(word, adjective) adjective,
    MR_PAPERS(X)
#undef X
};

static const mr_point square[] = {{-.7, -.7}, {.7, -.7}, {.7, .7}, {-.7, .7}};
static const mr_point triangle[] = {{0, -1}, {.866, .5}, {-.866, .5}};
static const mr_point cross[] = {{-.28, -.95}, {.28, -.95}, {.28, -.28}, {.95, -.28}, {.95, .28},   {.28, .28},
                                 {.28, .95},   {-.28, .95}, {-.28, .28}, {-.95, .28}, {-.95, -.28}, {-.28, -.28}};
static const mr_point arrow[] = {{1, 0}, {.25, -.68}, {.25, -.27}, {-.95, -.27}, {-.95, .27}, {.25, .27}, {.25, .68}};
static const mr_point person[] = {
    {-.12, -.58}, {-.22, -.70}, {-.22, -.86}, {-.10, -.98}, {.10, -.98},  {.22, -.86},  {.22, -.70},  {.12, -.58},
    {.36, -.52},  {.74, -.20},  {.62, -.06},  {.28, -.26},  {.24, .18},   {.38, .90},   {.16, .94},   {0, .34},
    {-.16, .94},  {-.38, .90},  {-.24, .18},  {-.28, -.26}, {-.62, -.06}, {-.74, -.20}, {-.36, -.52},
};

/* Its left is the onlooker's right. */
const mr_point mr_person_keypoints[MR_KEYPOINTS] = {
    {0, -.76},    {.08, -.84}, {-.08, -.84}, {.20, -.78}, {-.20, -.78}, {.30, -.46},
    {-.30, -.46}, {.48, -.32}, {-.48, -.32}, {.64, -.16}, {-.64, -.16}, {.14, .14},
    {-.14, .14},  {.20, .52},  {-.20, .52},  {.26, .86},  {-.26, .86},
};

/* The point `step` of a circle, by turning a unit vector again and again. */
static void circle_points(mr_point out[STEPS + 1])
{
    const double c = 0.99144486137381041, s = 0.13052619222005159; /* cosine and sine of 7.5 degrees */
    mr_point p = {1, 0};
    for (int i = 0; i <= STEPS; i++) {
        out[i] = p;
        p = (mr_point){p.x * c - p.y * s, p.x * s + p.y * c};
    }
    out[STEPS] = out[0];
}

static size_t star(mr_point *out)
{
    const double c = 0.80901699437494742, s = 0.58778525229247313; /* cosine and sine of 36 degrees */
    mr_point p = {0, -1};
    for (size_t i = 0; i < 10; i++) {
        double k = i % 2 ? 0.45 : 1;
        out[i] = (mr_point){p.x * k, p.y * k};
        p = (mr_point){p.x * c - p.y * s, p.x * s + p.y * c};
    }
    return 10;
}

static size_t heart(const mr_point *circle, mr_point *out)
{
    for (size_t i = 0; i < STEPS; i++) {
        double c = circle[i].x, s = circle[i].y;
        double c2 = 2 * c * c - 1, c3 = (4 * c * c - 3) * c, c4 = 2 * c2 * c2 - 1;
        out[i] = (mr_point){s * s * s, -(13 * c - 5 * c2 - 2 * c3 - c4) / 17 - .1};
    }
    return STEPS;
}

static size_t moon(const mr_point *circle, mr_point *out)
{
    size_t n = 0;
    for (int i = 6; i <= 42; i++)
        out[n++] = circle[i];
    for (int i = 32; i > 15; i--) /* back along a circle of radius 0.765 around (1, 0), through the same tips */
        out[n++] = (mr_point){1 + .7654 * circle[i].x, .7654 * circle[i].y};
    return n;
}

static size_t ring(const mr_point *circle, mr_point *out)
{
    for (size_t i = 0; i <= STEPS; i++) {
        out[i] = circle[i];
        const mr_point *back = &circle[STEPS - i];
        out[STEPS + 1 + i] = (mr_point){.58 * back->x, .58 * back->y};
    }
    return 2 * (STEPS + 1);
}

static size_t copy(const mr_point *points, size_t count, mr_point *out)
{
    memcpy(out, points, count * sizeof *out);
    return count;
}

static size_t unit_outline(mr_shape shape, mr_point out[MR_OUTLINE_MAX])
{
    mr_point circle[STEPS + 1];
    circle_points(circle);
    switch (shape) {
    case MR_SHAPE_circle:
    case MR_SHAPE_COUNT:
        break;
    case MR_SHAPE_square:
        return copy(square, MR_COUNT(square), out);
    case MR_SHAPE_triangle:
        return copy(triangle, MR_COUNT(triangle), out);
    case MR_SHAPE_star:
        return star(out);
    case MR_SHAPE_ring:
        return ring(circle, out);
    case MR_SHAPE_cross:
        return copy(cross, MR_COUNT(cross), out);
    case MR_SHAPE_hexagon:
        for (size_t i = 0; i < 6; i++)
            out[i] = circle[8 * i];
        return 6;
    case MR_SHAPE_moon:
        return moon(circle, out);
    case MR_SHAPE_heart:
        return heart(circle, out);
    case MR_SHAPE_arrow:
        return copy(arrow, MR_COUNT(arrow), out);
    case MR_SHAPE_person:
        return copy(person, MR_COUNT(person), out);
    }
    return copy(circle, STEPS, out);
}

mr_point mr_figure_at(const mr_figure *f, double x, double y)
{
    return (mr_point){f->cx + f->radius * (x * f->turn.x - y * f->turn.y),
                      f->cy + f->radius * (x * f->turn.y + y * f->turn.x)};
}

static void trace(mr_figure *f)
{
    f->count = unit_outline(f->shape, f->outline);
    for (size_t i = 0; i < f->count; i++)
        f->outline[i] = mr_figure_at(f, f->outline[i].x, f->outline[i].y);
}

/* Turned by up to about atan(most) either way. */
static mr_point random_turn(mr_point from, double most, mr_random *r)
{
    double y = mr_random_real(r, -most, most), length = sqrt(1 + y * y);
    mr_point by = {1 / length, y / length};
    return (mr_point){from.x * by.x - from.y * by.y, from.x * by.y + from.y * by.x};
}

/* ---- scenes --------------------------------------------------------------------------------------------------- */

void mr_scene_begin(mr_scene *scene, uint32_t width, uint32_t height, bool cartoon, mr_random *r)
{
    scene->width = width;
    scene->height = height;
    scene->cartoon = cartoon;
    scene->gray = !cartoon && mr_random_below(r, 10) == 0;
    scene->paper = (mr_paper)mr_random_below(r, MR_PAPER_COUNT);
    scene->paper_colour = (unsigned)mr_random_below(r, MR_COLOURS);
    scene->light = 1;
    scene->count = 0;
}

static bool is_free(const mr_scene *scene, double x, double y, double radius)
{
    for (size_t i = 0; i < scene->count; i++) {
        const mr_figure *f = &scene->figures[i];
        double dx = x - f->cx, dy = y - f->cy, apart = radius + f->radius;
        if (dx * dx + dy * dy < apart * apart)
            return false;
    }
    return true;
}

static double shorter_side(const mr_scene *scene)
{
    return scene->width < scene->height ? scene->width : scene->height;
}

static void put(mr_scene *scene, mr_shape shape, double radius, double x, double y, mr_random *r)
{
    mr_figure *f = &scene->figures[scene->count++];
    *f = (mr_figure){.shape = shape, .cx = x, .cy = y, .radius = radius};
    f->colour = (unsigned)mr_random_below(r, MR_COLOURS - 1);
    f->colour += f->colour >= scene->paper_colour; /* any but the paper's */
    f->turn = random_turn((mr_point){1, 0}, shape == MR_SHAPE_person ? .15 : .45, r);
    trace(f);
}

bool mr_scene_add(mr_scene *scene, mr_shape shape, double size, mr_random *r)
{
    double radius = size * shorter_side(scene), margin = radius * 1.04 + 1;
    if (scene->count == MR_FIGURES_MAX || 2 * margin > shorter_side(scene))
        return false;
    for (int tries = 0; tries < 60; tries++) {
        double x = mr_random_real(r, margin, scene->width - margin),
               y = mr_random_real(r, margin, scene->height - margin);
        if (!is_free(scene, x, y, radius))
            continue;
        put(scene, shape, radius, x, y, r);
        return true;
    }
    return false;
}

/* Puts one at a place, given by width and height, over what is there. */
static void add_at(mr_scene *scene, mr_shape shape, double size, double x, double y, mr_random *r)
{
    if (scene->count < MR_FIGURES_MAX)
        put(scene, shape, size * shorter_side(scene), x * scene->width, y * scene->height, r);
}

static double keep_inside(double at, double radius, double side)
{
    double margin = radius * 1.04 + 1;
    return at < margin ? margin : at > side - margin ? side - margin : at;
}

void mr_scene_add_apart(mr_scene *scene, mr_shape shape, unsigned count, mr_random *r)
{
    unsigned next = (unsigned)shape;
    scene->paper = MR_PAPER_plain;
    for (unsigned right = 0; right < count; right++) {
        double y = mr_random_real(r, .44, .56);
        add_at(scene, (mr_shape)next, .22, right ? .75 : .25, y, r);
        next = (next + 1 + (unsigned)mr_random_below(r, MR_SHAPE_CLASSES - 1)) % MR_SHAPE_CLASSES;
    }
}

void mr_scene_jitter(mr_scene *scene, mr_random *r)
{
    scene->light = mr_random_real(r, 0.82, 1.18);
    double most = shorter_side(scene) * .05;
    for (size_t i = 0; i < scene->count; i++) {
        mr_figure *f = &scene->figures[i];
        f->cx = keep_inside(f->cx + mr_random_real(r, -most, most), f->radius, scene->width);
        f->cy = keep_inside(f->cy + mr_random_real(r, -most, most), f->radius, scene->height);
        f->turn = random_turn(f->turn, .15, r);
        trace(f);
    }
}

/* ---- measures ------------------------------------------------------------------------------------------------- */

mr_box mr_figure_box(const mr_figure *f)
{
    mr_point low = f->outline[0], high = low;
    for (size_t i = 1; i < f->count; i++) {
        low.x = fmin(low.x, f->outline[i].x);
        low.y = fmin(low.y, f->outline[i].y);
        high.x = fmax(high.x, f->outline[i].x);
        high.y = fmax(high.y, f->outline[i].y);
    }
    return (mr_box){low.x, low.y, high.x - low.x, high.y - low.y};
}

double mr_figure_area(const mr_figure *f)
{
    double twice = 0;
    for (size_t i = 0, j = f->count - 1; i < f->count; j = i++)
        twice += f->outline[j].x * f->outline[i].y - f->outline[i].x * f->outline[j].y;
    return fabs(twice) / 2;
}

bool mr_figure_covers(const mr_figure *f, double x, double y)
{
    bool inside = false;
    for (size_t i = 0, j = f->count - 1; i < f->count; j = i++) {
        mr_point a = f->outline[j], b = f->outline[i];
        if ((a.y > y) != (b.y > y) && x < a.x + (y - a.y) * (b.x - a.x) / (b.y - a.y))
            inside = !inside;
    }
    return inside;
}
