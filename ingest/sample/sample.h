/* sample.h - datasets of drawn shapes, in the names and files of a layout.
 * Invariant: every byte written is a function of (layout, variant, images, seed, sizes): independent of clock, host,
 * locale and compiler: no trigonometry of the C library, whose last bit differs, and never two random numbers among the
 * arguments of one call, whose order is up to the compiler.
 *
 *   mr_sketch (one dataset)  --layout's interface-->  mr_scene (what is seen)  --draw-->  mr_picture  --encode-->  file
 *                                                     |  boxes, polygons, captions --> the layout's annotations */
#ifndef MR_SAMPLE_H
#define MR_SAMPLE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/random.h"
#include "image/encode/encode.h"

/* ---- what is seen: shapes.c ----------------------------------------------------------------------------- */

/* The first ten are classes of the classification layouts; the person is drawn for keypoints only. */
#define MR_SHAPES(X)                                                                                                   \
    X(circle) X(square) X(triangle) X(star) X(ring) X(cross) X(hexagon) X(moon) X(heart) X(arrow) X(person)

typedef enum mr_shape {
#define X(word) MR_SHAPE_##word,
    MR_SHAPES(X)
#undef X
        MR_SHAPE_COUNT
} mr_shape;

enum { MR_SHAPE_CLASSES = 10, MR_COLOURS = 10, MR_OUTLINE_MAX = 100, MR_FIGURES_MAX = 12, MR_KEYPOINTS = 17 };

typedef struct mr_point {
    double x, y; /* pixels from the top left */
} mr_point;

typedef struct mr_figure {
    mr_shape shape;
    unsigned colour;       /* index of mr_colour_words */
    double cx, cy, radius; /* of a circle around it */
    mr_point turn;         /* unit vector: how it is turned */
    size_t count;
    mr_point outline[MR_OUTLINE_MAX];
} mr_figure;

/* X(word, adjective for captions) */
#define MR_PAPERS(X)                                                                                                   \
    X(plain, "plain") X(gradient, "shaded") X(stripes, "striped") X(checks, "checkered") X(dots, "dotted")

typedef enum mr_paper {
#define X(word, adjective) MR_PAPER_##word,
    MR_PAPERS(X)
#undef X
        MR_PAPER_COUNT
} mr_paper;

typedef struct mr_scene {
    uint32_t width, height;
    bool cartoon; /* ink on paper instead of colours */
    bool gray;    /* one channel; one in ten unless it is a cartoon, whose layout decides */
    mr_paper paper;
    unsigned paper_colour;
    double light; /* 1: as it is; augmented copies are lighter or darker */
    size_t count;
    mr_figure figures[MR_FIGURES_MAX]; /* the first one is the image's subject */
} mr_scene;

typedef struct mr_box {
    double x, y, width, height;
} mr_box;

extern const char *const mr_shape_words[MR_SHAPE_COUNT];
extern const char *const mr_colour_words[MR_COLOURS];
extern const char *const mr_paper_words[MR_PAPER_COUNT];

/* A paper and no figures. */
void mr_scene_begin(mr_scene *scene, uint32_t width, uint32_t height, bool cartoon, mr_random *r);
/* Puts a figure where it overlaps no other; false if no place was found. `size`: radius by the shorter side. */
bool mr_scene_add(mr_scene *scene, mr_shape shape, double size, mr_random *r);
/* Figures of different shapes, this one first, on plain paper: one at the left, one at the right.  `count`: 1 or 2. */
void mr_scene_add_apart(mr_scene *scene, mr_shape shape, unsigned count, mr_random *r);
/* The same scene seen again: figures shifted and turned a little, another light. */
void mr_scene_jitter(mr_scene *scene, mr_random *r);

mr_box mr_figure_box(const mr_figure *f);
double mr_figure_area(const mr_figure *f);
bool mr_figure_covers(const mr_figure *f, double x, double y);
/* A place on the figure given in its own measures (the circle around it is the unit circle, y down). */
mr_point mr_figure_at(const mr_figure *f, double x, double y);
extern const mr_point mr_person_keypoints[MR_KEYPOINTS]; /* COCO's order, in the figure's measures */

/* "an" or "a"; "a large red circle"; all figures with their places. */
const char *mr_article(const char *word);
void mr_figure_describe(const mr_scene *scene, const mr_figure *f, mr_buf *out);
void mr_scene_describe(const mr_scene *scene, mr_buf *out);
/* One of five wordings, as five people caption each image of COCO; the scene is not empty. */
enum { MR_CAPTIONS = 5 };
void mr_scene_caption(const mr_scene *scene, unsigned way, mr_buf *out);

/* ---- pixels: draw.c -------------------------------------------------------------------------------------- */

mr_status mr_scene_draw(const mr_scene *scene, mr_random *r, mr_picture *out, mr_error *err);
mr_jpeg_style mr_jpeg_style_random(mr_random *r);

/* ---- datasets: sketch.c, layouts.c and a file a layout ------------------------------------------------------ */

typedef struct mr_sketch {
    const char *dir;
    const char *variant; /* one of the layout's */
    uint64_t images, seed;
    uint32_t min_side, max_side; /* of the shorter side */
    bool simple;                 /* square images, plain paper, a large figure, or one at a side or both */
    uint64_t files, bytes;       /* written so far */
    uint64_t in_split[3];        /* images: train, val, test */
    char *last_folder;           /* known to exist */
} mr_sketch;

typedef struct mr_sketch_layout {
    const char *name;
    const char *variants; /* "folder multi-class coco clip", the default first; "": none */
    uint32_t min_side, max_side;
    const char *splits[3]; /* their names there; NULL: none */
    const char *remark;    /* for the summary; NULL: none */
    mr_status (*draw)(mr_sketch *s, mr_error *err);
} mr_sketch_layout;

#define MR_SKETCH_LAYOUTS(X) X(imagenette) X(roboflow) X(coco) X(newyorker)
#define X(word)              extern const mr_sketch_layout mr_sketch_##word;
MR_SKETCH_LAYOUTS(X)
#undef X
extern const mr_sketch_layout *const mr_sketch_layouts[]; /* NULL-terminated */
enum { MR_SKETCH_MIN_IMAGES = 10, MR_SKETCH_MAX_IMAGES = 100000, MR_SKETCH_MIN_SIDE = 32, MR_SKETCH_MAX_SIDE = 4096 };

/* ---- for layouts ---- */

enum mr_sketch_split { MR_TRAIN, MR_VAL, MR_TEST };

/* 70 / 20 / 10 % of the images, at least one per split; without a test split its part goes to val. */
uint64_t mr_sketch_share(const mr_sketch *s, enum mr_sketch_split split, bool has_test);
/* The random stream of image n, which is drawn in the same way whatever other images there are. */
mr_random mr_sketch_random(const mr_sketch *s, uint64_t n);
/* A size in the requested range, `wide` times as long as broad, in landscape or portrait format. */
void mr_sketch_size(const mr_sketch *s, double wide, mr_random *r, uint32_t *width, uint32_t *height);
mr_status mr_sketch_path(mr_sketch *s, mr_buf *path, mr_error *err, const char *format, ...) MR_PRINTF(4, 5);
/* Writes one file under the dataset's folder and counts it. */
mr_status mr_sketch_write(mr_sketch *s, const mr_buf *bytes, mr_error *err, const char *format, ...) MR_PRINTF(4, 5);
/* Draws and encodes a scene as the layouts do by default: a JPEG of ordinary style. */
mr_status mr_sketch_jpeg(const mr_scene *scene, mr_random *r, mr_buf *out, mr_error *err);
mr_status mr_sketch_png(const mr_scene *scene, mr_random *r, mr_buf *out, mr_error *err);
/* Appends 2 * bytes lower-case hex digits. */
void mr_sketch_hex(mr_random *r, size_t bytes, mr_buf *out);
/* A number with at most two decimals and no needless zeros, whatever the locale. */
void mr_sketch_number(mr_buf *out, double value);

#endif
