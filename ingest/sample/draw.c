/* draw.c - scenes become pixels.
 * Invariant: a pixel's coverage is counted in whole 1/1024 parts (4 lines of 256 steps), so edges are smooth and the
 * same everywhere.
 *
 *   paper (pattern, uneven light, grain)  <-  shadow of each figure  <-  figure, lit from the top left
 *   cartoon: white paper, faint pattern   <-  figure white, hatched or black  <-  outline in ink */
#include "ingest/sample/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 4, PART = 256, FULL = LINES * PART, GRID = 9 };

typedef struct colour {
    double c[3];
} colour;

typedef struct canvas {
    uint32_t width, height;
    float *rgb;      /* 0 to 255 */
    uint16_t *cover; /* one row */
} canvas;

static const colour palette[MR_COLOURS] = {
    {{214, 48, 49}},  {{232, 126, 34}},  {{241, 205, 60}}, {{46, 160, 90}},   {{52, 110, 219}},
    {{130, 70, 170}}, {{240, 130, 180}}, {{122, 80, 50}},  {{240, 240, 236}}, {{36, 36, 42}},
};

/* ---- polygons ------------------------------------------------------------------------------------------------- */

/* Adds the part of one line from x0 to x1 to the row's coverage. */
static void cover_span(const canvas *v, double x0, double x1)
{
    long a = lround(x0 * PART), b = lround(x1 * PART), end = (long)v->width * PART;
    a = a < 0 ? 0 : a;
    b = b > end ? end : b;
    while (a < b) {
        long pixel = a / PART, next = (pixel + 1) * PART;
        long upto = next < b ? next : b;
        v->cover[pixel] = (uint16_t)(v->cover[pixel] + (upto - a));
        a = upto;
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void cover_line(const canvas *v, const mr_point *points, size_t count, double y)
{
    double at[MR_OUTLINE_MAX];
    size_t n = 0;
    for (size_t i = 0, j = count - 1; i < count; j = i++) {
        mr_point a = points[j], b = points[i];
        if ((a.y > y) != (b.y > y))
            at[n++] = a.x + (y - a.y) * (b.x - a.x) / (b.y - a.y);
    }
    qsort(at, n, sizeof *at, by_value);
    for (size_t i = 0; i + 1 < n; i += 2)
        cover_span(v, at[i], at[i + 1]);
}

typedef colour (*paint_fn)(const void *ctx, uint32_t x, uint32_t y);

/* Fills a polygon (even-odd rule) with `opacity`. */
static void fill(const canvas *v, const mr_point *points, size_t count, double opacity, paint_fn paint, const void *ctx)
{
    double low = points[0].y, high = low;
    for (size_t i = 1; i < count; i++) {
        low = fmin(low, points[i].y);
        high = fmax(high, points[i].y);
    }
    long first = (long)floor(low), last = (long)ceil(high);
    for (long y = first < 0 ? 0 : first; y < last && y < (long)v->height; y++) {
        memset(v->cover, 0, v->width * sizeof *v->cover);
        for (int line = 0; line < LINES; line++)
            cover_line(v, points, count, (double)y + (line + .5) / LINES);
        float *row = v->rgb + (size_t)y * v->width * 3;
        for (uint32_t x = 0; x < v->width; x++) {
            if (!v->cover[x])
                continue;
            double share = (v->cover[x] > FULL ? FULL : v->cover[x]) * opacity / FULL;
            colour p = paint(ctx, x, (uint32_t)y);
            for (int k = 0; k < 3; k++)
                row[3 * x + k] = (float)(row[3 * x + k] * (1 - share) + p.c[k] * share);
        }
    }
}

static colour flat(const void *ctx, uint32_t x, uint32_t y)
{
    (void)x, (void)y;
    return *(const colour *)ctx;
}

static colour lit(const void *ctx, uint32_t x, uint32_t y)
{
    const mr_figure *f = ctx;
    double slope = ((x - f->cx) + (y - f->cy)) / (2 * f->radius); /* -1 towards the light, 1 away */
    colour p = palette[f->colour];
    for (int k = 0; k < 3; k++)
        p.c[k] = p.c[k] * (1 - .16 * slope) + (slope < 0 ? -14 * slope : 0);
    return p;
}

static colour hatched(const void *ctx, uint32_t x, uint32_t y)
{
    const mr_figure *f = ctx;
    double shade = f->colour % 3 == 0 ? 250 : f->colour % 3 == 2 ? 40 : (x + y) % 6 < 2 ? 70 : 235;
    return (colour){{shade, shade, shade}};
}

/* The outline in ink: a thin quadrilateral an edge, a little longer than it. */
static void ink(const canvas *v, const mr_figure *f, double width)
{
    const colour black = {{28, 28, 30}};
    for (size_t i = 0; i < f->count; i++) {
        if (f->shape == MR_SHAPE_ring && (i == f->count / 2 - 1 || i == f->count - 1))
            continue; /* the seam */
        mr_point a = f->outline[i], b = f->outline[(i + 1) % f->count];
        double dx = b.x - a.x, dy = b.y - a.y, length = sqrt(dx * dx + dy * dy);
        if (length < 1e-9)
            continue;
        dx *= width / 2 / length;
        dy *= width / 2 / length;
        const mr_point quad[] = {{a.x - dx - dy, a.y - dy + dx},
                                 {b.x + dx - dy, b.y + dy + dx},
                                 {b.x + dx + dy, b.y + dy - dx},
                                 {a.x - dx + dy, a.y - dy - dx}};
        fill(v, quad, MR_COUNT(quad), 1, flat, &black);
    }
}

static void shadow(const canvas *v, const mr_figure *f)
{
    const colour dark = {{0, 0, 0}};
    mr_point moved[MR_OUTLINE_MAX];
    for (size_t i = 0; i < f->count; i++)
        moved[i] = (mr_point){f->outline[i].x + f->radius * .07, f->outline[i].y + f->radius * .09};
    fill(v, moved, f->count, .28, flat, &dark);
}

/* ---- paper ---------------------------------------------------------------------------------------------------- */

typedef struct paper {
    double grid[GRID][GRID]; /* uneven light: smooth between the knots */
    double angle_x, angle_y; /* direction of stripes and gradient */
    uint32_t period;         /* for stripes, checks and dots */
    double contrast;
} paper;

static void paper_begin(paper *p, const mr_scene *scene, mr_random *r)
{
    for (int i = 0; i < GRID; i++)
        for (int k = 0; k < GRID; k++)
            p->grid[i][k] = mr_random_real(r, -1, 1);
    double x = mr_random_real(r, -1, 1), y = mr_random_real(r, .2, 1), length = sqrt(x * x + y * y);
    p->angle_x = x / length;
    p->angle_y = y / length;
    uint32_t side = scene->width < scene->height ? scene->width : scene->height;
    p->period = (uint32_t)mr_random_between(r, side / 16 + 4, side / 6 + 6);
    p->contrast = scene->cartoon ? 10 : mr_random_real(r, 14, 30);
}

/* -1 to 1 */
static double pattern(const paper *p, const mr_scene *scene, uint32_t x, uint32_t y)
{
    uint32_t n = p->period;
    switch (scene->paper) {
    case MR_PAPER_gradient:
        return (x * p->angle_x + y * p->angle_y) * 2 / (scene->width + scene->height) * 2 - 1;
    case MR_PAPER_stripes: {
        double phase = (x * p->angle_x + y * p->angle_y) / n;
        return phase - floor(phase) < .5 ? -1 : 1;
    }
    case MR_PAPER_checks:
        return (x / n + y / n) % 2 ? -1 : 1;
    case MR_PAPER_dots: {
        double dx = (double)(x % n) - n / 2., dy = (double)(y % n) - n / 2.;
        return dx * dx + dy * dy < n * n / 12. ? 1 : -.4;
    }
    case MR_PAPER_plain:
    case MR_PAPER_COUNT:
        break;
    }
    return 0;
}

static double uneven(const paper *p, double x, double y)
{
    int i = (int)y, k = (int)x;
    double v = y - i, u = x - k;
    u = u * u * (3 - 2 * u);
    v = v * v * (3 - 2 * v);
    double top = p->grid[i][k] * (1 - u) + p->grid[i][k + 1] * u;
    double bottom = p->grid[i + 1][k] * (1 - u) + p->grid[i + 1][k + 1] * u;
    return top * (1 - v) + bottom * v;
}

static void paper_fill(const canvas *v, const mr_scene *scene, mr_random *r)
{
    paper p;
    paper_begin(&p, scene, r);
    colour base = {{244, 243, 238}};
    if (!scene->cartoon)
        for (int k = 0; k < 3; k++) /* paler than the figures of that colour */
            base.c[k] = palette[scene->paper_colour].c[k] * .62 + 128 * .38;
    double blotch = scene->cartoon ? 4 : 16;
    float *out = v->rgb;
    for (uint32_t y = 0; y < v->height; y++) {
        double gy = (double)y * (GRID - 1.001) / v->height;
        for (uint32_t x = 0; x < v->width; x++) {
            double shade = p.contrast * pattern(&p, scene, x, y);
            shade += blotch * uneven(&p, (double)x * (GRID - 1.001) / v->width, gy);
            for (int k = 0; k < 3; k++)
                *out++ = (float)(base.c[k] + shade);
        }
    }
}

/* ---- images ------------------------------------------------------------------------------------------------- */

static uint8_t clamp(double value)
{
    return value <= 0 ? 0 : value >= 255 ? 255 : (uint8_t)(value + .5);
}

/* Grain of a camera, light, and the step to bytes. */
static void develop(const canvas *v, const mr_scene *scene, mr_random *r, mr_picture *out)
{
    double grain = scene->cartoon ? 5. / 64 : mr_random_real(r, 6, 18) / 64;
    size_t count = (size_t)v->width * v->height;
    uint64_t bits = 0;
    uint8_t *to = out->pixels;
    for (size_t i = 0; i < count; i++, bits >>= 7) {
        if (i % 9 == 0)
            bits = mr_random_u64(r);
        double noise = ((double)(bits & 127) - 63.5) * grain;
        const float *c = v->rgb + 3 * i;
        if (out->channels == 1) {
            *to++ = clamp((.299 * c[0] + .587 * c[1] + .114 * c[2]) * scene->light + noise);
            continue;
        }
        for (int k = 0; k < 3; k++)
            *to++ = clamp(c[k] * scene->light + noise);
    }
}

mr_status mr_scene_draw(const mr_scene *scene, mr_random *r, mr_picture *out, mr_error *err)
{
    size_t pixels = (size_t)scene->width * scene->height;
    canvas v = {scene->width, scene->height, NULL, NULL};
    mr_picture p = {scene->width, scene->height, scene->gray ? 1 : 3, NULL};
    mr_status status = MR_OK;
    v.rgb = mr_alloc(pixels, 3 * sizeof *v.rgb);
    v.cover = mr_alloc(scene->width, sizeof *v.cover);
    p.pixels = mr_alloc(pixels, p.channels);
    if (!v.rgb || !v.cover || !p.pixels) {
        status = mr_fail_memory(err, "drawing an image");
        goto done;
    }
    paper_fill(&v, scene, r);
    double side = scene->width < scene->height ? scene->width : scene->height;
    for (size_t i = 0; i < scene->count; i++) {
        const mr_figure *f = &scene->figures[i];
        if (!scene->cartoon)
            shadow(&v, f);
        fill(&v, f->outline, f->count, 1, scene->cartoon ? hatched : lit, f);
        if (scene->cartoon)
            ink(&v, f, 1.6 + side / 160);
    }
    develop(&v, scene, r, &p);
    *out = p;
    p.pixels = NULL;
done:
    free(v.rgb);
    free(v.cover);
    mr_picture_free(&p);
    return status;
}

mr_jpeg_style mr_jpeg_style_random(mr_random *r)
{
    mr_jpeg_style style = {.quality = (int)mr_random_between(r, 75, 95)};
    style.full_chroma = mr_random_below(r, 4) == 0;
    style.progressive = mr_random_below(r, 16) == 0;
    return style;
}
