/* coco.c - COCO 2017: boxes, polygons, a crowd, keypoints and captions of drawn scenes.
 * Invariant: a polygon is the outline that was drawn; a box is that outline's; a crowd's runs are the pixels whose
 * centres its figures cover.
 *
 *   annotations/{instances,captions,person_keypoints}_{train,val}2017.json
 *   train2017/000000004810.jpg   val2017/...      ids scattered, json order not theirs, one image in 20 unannotated */
#include "ingest/sample/sample.h"
#include "base/scope.h"

#include <stdlib.h>

/* A list of JSON objects to be written in shuffled order, as COCO's annotations follow no image. */
typedef struct list {
    mr_buf text;
    size_t *ends, count, capacity;
} list;

typedef struct album { /* one split */
    mr_sketch *s;
    const char *split;
    uint64_t next_id; /* the next annotation's */
    mr_buf images;
    list instances, keypoints, captions;
} album;

/* Category numbers with gaps, as in COCO. */
static const struct {
    unsigned id;
    const char *group;
} categories[MR_SHAPE_COUNT] = {
    [MR_SHAPE_person] = {1, "person"},    [MR_SHAPE_circle] = {3, "round"},     [MR_SHAPE_square] = {4, "angular"},
    [MR_SHAPE_triangle] = {7, "angular"}, [MR_SHAPE_star] = {8, "angular"},     [MR_SHAPE_ring] = {11, "round"},
    [MR_SHAPE_cross] = {13, "angular"},   [MR_SHAPE_hexagon] = {16, "angular"}, [MR_SHAPE_moon] = {17, "round"},
    [MR_SHAPE_heart] = {27, "round"},     [MR_SHAPE_arrow] = {90, "angular"},
};

static const char *const joints[MR_KEYPOINTS] = {
    "nose",           "left_eye",   "right_eye",   "left_ear",   "right_ear",   "left_shoulder",
    "right_shoulder", "left_elbow", "right_elbow", "left_wrist", "right_wrist", "left_hip",
    "right_hip",      "left_knee",  "right_knee",  "left_ankle", "right_ankle",
};

static void list_end_item(list *l)
{
    if (MR_GROW(l->ends, l->count, l->capacity))
        l->ends[l->count++] = l->text.len;
    else
        l->text.failed = true;
}

static void list_free(list *l)
{
    mr_buf_free(&l->text);
    free(l->ends);
}

/* ---- objects -------------------------------------------------------------------------------------------------- */

static void add_numbers(mr_buf *out, const double *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        mr_buf_add_text(out, i ? ", " : "");
        mr_sketch_number(out, numbers[i]);
    }
}

static void add_outline(mr_buf *out, const mr_figure *f)
{
    mr_buf_add_text(out, "{\"segmentation\": [[");
    for (size_t i = 0; i < f->count; i++) {
        mr_buf_add_text(out, i ? ", " : "");
        add_numbers(out, (const double[]){f->outline[i].x, f->outline[i].y}, 2);
    }
    mr_buf_add_text(out, "]]");
}

/* `keys`: members that only one of the files has, each followed by a comma. */
static void end_object(list *l, const mr_figure *f, mr_box box, double area, bool crowd, const char *keys,
                       uint64_t image, uint64_t id)
{
    mr_buf_add_text(&l->text, ", \"area\": ");
    mr_sketch_number(&l->text, area);
    mr_buf_printf(&l->text, ", \"iscrowd\": %d, %s\"image_id\": %llu, \"bbox\": [", crowd, keys,
                  (unsigned long long)image);
    add_numbers(&l->text, (const double[]){box.x, box.y, box.width, box.height}, 4);
    mr_buf_printf(&l->text, "], \"category_id\": %u, \"id\": %llu}", categories[f->shape].id, (unsigned long long)id);
    list_end_item(l);
}

/* Three numbers a joint: x, y and 2 seen, 1 hidden, 0 not marked. */
static void add_person(album *a, const mr_figure *f, uint64_t image, uint64_t id, mr_random *r)
{
    mr_buf keys = {0};
    unsigned marked = 0;
    bool none = mr_random_below(r, 6) == 0;
    mr_buf_add_text(&keys, "\"keypoints\": [");
    for (size_t i = 0; i < MR_KEYPOINTS; i++) {
        mr_point p = mr_figure_at(f, mr_person_keypoints[i].x, mr_person_keypoints[i].y);
        unsigned chance = (unsigned)mr_random_below(r, 8), seen = none || chance == 0 ? 0 : chance == 1 ? 1 : 2;
        mr_buf_printf(&keys, "%s%d, %d, %u", i ? ", " : "", seen ? (int)p.x : 0, seen ? (int)p.y : 0, seen);
        marked += seen > 0;
    }
    mr_buf_printf(&keys, "], \"num_keypoints\": %u, ", marked);
    add_outline(&a->keypoints.text, f);
    end_object(&a->keypoints, f, mr_figure_box(f), mr_figure_area(f), false, mr_buf_text(&keys), image, id);
    a->keypoints.text.failed |= keys.failed;
    mr_buf_free(&keys);
}

static void add_figure(album *a, const mr_figure *f, uint64_t image, mr_random *r)
{
    uint64_t id = a->next_id++;
    add_outline(&a->instances.text, f);
    end_object(&a->instances, f, mr_figure_box(f), mr_figure_area(f), false, "", image, id);
    if (f->shape == MR_SHAPE_person)
        add_person(a, f, image, id, r);
}

/* ---- crowds --------------------------------------------------------------------------------------------------- */

static mr_box unite(mr_box a, mr_box b)
{
    double right = a.x + a.width > b.x + b.width ? a.x + a.width : b.x + b.width;
    double bottom = a.y + a.height > b.y + b.height ? a.y + a.height : b.y + b.height;
    double x = a.x < b.x ? a.x : b.x, y = a.y < b.y ? a.y : b.y;
    return (mr_box){x, y, right - x, bottom - y};
}

static bool any_covers(const mr_scene *scene, size_t first, double x, double y)
{
    for (size_t i = first; i < scene->count; i++)
        if (mr_figure_covers(&scene->figures[i], x, y))
            return true;
    return false;
}

/* The figures from `first` on as one crowd: runs of 0 and 1 in turn, down the columns, starting with 0. */
static void add_crowd(album *a, const mr_scene *scene, size_t first, uint64_t image)
{
    mr_buf *out = &a->instances.text;
    mr_box box = mr_figure_box(&scene->figures[first]);
    for (size_t i = first + 1; i < scene->count; i++)
        box = unite(box, mr_figure_box(&scene->figures[i]));
    uint64_t run = 0, area = 0;
    bool now = false, begun = false;
    mr_buf_add_text(out, "{\"segmentation\": {\"counts\": [");
    for (uint32_t x = 0; x < scene->width; x++)
        for (uint32_t y = 0; y < scene->height; y++, run++) {
            double cx = x + .5, cy = y + .5;
            bool inside = cx >= box.x && cy >= box.y && cx <= box.x + box.width && cy <= box.y + box.height &&
                          any_covers(scene, first, cx, cy);
            area += inside;
            if (inside == now)
                continue;
            mr_buf_printf(out, "%s%llu", begun ? ", " : "", (unsigned long long)run);
            begun = true;
            now = inside;
            run = 0;
        }
    mr_buf_printf(out, "%s%llu], \"size\": [%u, %u]}", begun ? ", " : "", (unsigned long long)run, scene->height,
                  scene->width);
    end_object(&a->instances, &scene->figures[first], box, (double)area, true, "", image, a->next_id++);
}

static void add_captions(album *a, const mr_scene *scene, uint64_t image)
{
    mr_buf words = {0};
    for (unsigned i = 0; i < MR_CAPTIONS; i++) {
        mr_buf_clear(&words);
        mr_scene_caption(scene, i, &words);
        mr_buf_printf(&a->captions.text, "{\"image_id\": %llu, \"id\": %llu, \"caption\": \"%s\"}",
                      (unsigned long long)image, (unsigned long long)a->next_id++, mr_buf_text(&words));
        a->captions.text.failed |= words.failed;
        list_end_item(&a->captions);
    }
    mr_buf_free(&words);
}

/* ---- files ---------------------------------------------------------------------------------------------------- */

/* What the three files begin with is the same: info, licences, images. */
static void begin_file(const album *a, mr_buf *out)
{
    mr_buf_add_text(out, "{\"info\": {\"description\": \"Drawn by millrace sample\", \"url\": \"\", "
                         "\"version\": \"1.0\", \"year\": 2017, "
                         "\"contributor\": \"millrace\", \"date_created\": \"2017/09/01\"}, "
                         "\"licenses\": [{\"url\": \"https://creativecommons.org/publicdomain/zero/1.0/\", \"id\": 1, "
                         "\"name\": \"CC0 1.0\"}], \"images\": [");
    mr_buf_add(out, a->images.data, a->images.len);
    out->failed |= a->images.failed;
}

static void add_shuffled(list *l, mr_random *r, mr_buf *out)
{
    size_t *order = mr_alloc(l->count, sizeof *order);
    if (!order || l->text.failed) {
        out->failed = true;
        free(order);
        return;
    }
    for (size_t i = 0; i < l->count; i++)
        order[i] = i;
    mr_random_shuffle(r, order, l->count, sizeof *order);
    mr_buf_add_text(out, "], \"annotations\": [");
    for (size_t i = 0; i < l->count; i++) {
        size_t begin = order[i] ? l->ends[order[i] - 1] : 0;
        mr_buf_add_text(out, i ? ", " : "");
        mr_buf_add(out, l->text.data + begin, l->ends[order[i]] - begin);
    }
    mr_buf_add_text(out, "]");
    free(order);
}

static void add_categories(mr_buf *out)
{
    static const mr_shape by_id[MR_SHAPE_COUNT] = {
        MR_SHAPE_person, MR_SHAPE_circle,  MR_SHAPE_square, MR_SHAPE_triangle, MR_SHAPE_star,  MR_SHAPE_ring,
        MR_SHAPE_cross,  MR_SHAPE_hexagon, MR_SHAPE_moon,   MR_SHAPE_heart,    MR_SHAPE_arrow,
    };
    mr_buf_add_text(out, ", \"categories\": [");
    for (size_t i = 0; i < MR_SHAPE_COUNT; i++)
        mr_buf_printf(out, "%s{\"supercategory\": \"%s\", \"id\": %u, \"name\": \"%s\"}", i ? ", " : "",
                      categories[by_id[i]].group, categories[by_id[i]].id, mr_shape_words[by_id[i]]);
    mr_buf_add_text(out, "]");
}

static void add_person_category(mr_buf *out)
{
    mr_buf_add_text(out, ", \"categories\": [{\"supercategory\": \"person\", \"id\": 1, \"name\": \"person\", "
                         "\"keypoints\": [");
    for (size_t i = 0; i < MR_KEYPOINTS; i++)
        mr_buf_printf(out, "%s\"%s\"", i ? ", " : "", joints[i]);
    mr_buf_add_text(out, "], \"skeleton\": [[16, 14], [14, 12], [17, 15], [15, 13], [12, 13], [6, 12], [7, 13], "
                         "[6, 7], [6, 8], [7, 9], [8, 10], [9, 11], "
                         "[2, 3], [1, 2], [1, 3], [2, 4], [3, 5], [4, 6], [5, 7]]}]");
}

static mr_status write_file(album *a, const char *name, list *items, void (*tail)(mr_buf *), mr_random *r,
                            mr_error *err)
{
    mr_buf text = {0};
    begin_file(a, &text);
    add_shuffled(items, r, &text);
    if (tail)
        tail(&text);
    mr_buf_add_text(&text, "}");
    mr_status status = mr_sketch_write(a->s, &text, err, "annotations/%s_%s2017.json", name, a->split);
    mr_buf_free(&text);
    return status;
}

/* ---- images ------------------------------------------------------------------------------------------------- */

static mr_shape any_shape(mr_random *r)
{
    return mr_random_below(r, 4) == 0 ? MR_SHAPE_person : (mr_shape)mr_random_below(r, MR_SHAPE_CLASSES);
}

/* One to five figures; in a crowd one and many small ones of one shape.  Returns where the crowd begins, or count. */
static size_t compose(mr_scene *scene, bool empty, bool crowd, mr_random *r)
{
    if (empty)
        return 0;
    mr_shape shape = any_shape(r);
    for (int tries = 0; tries < 8 && !scene->count; tries++)
        mr_scene_add(scene, shape, mr_random_real(r, .14, .26), r);
    size_t first = scene->count;
    for (uint64_t more = crowd ? 9 : mr_random_below(r, 5); more; more--) {
        shape = crowd ? MR_SHAPE_star : any_shape(r);
        mr_scene_add(scene, shape, crowd ? .07 : mr_random_real(r, .07, .22), r);
    }
    return crowd ? first : scene->count;
}

/* One or two large figures, no crowd, no person. */
static size_t compose_simply(mr_scene *scene, bool empty, mr_random *r)
{
    unsigned figures = 1 + (unsigned)mr_random_below(r, 2);
    mr_shape shape = (mr_shape)mr_random_below(r, MR_SHAPE_CLASSES);
    mr_scene_add_apart(scene, shape, empty ? 0 : figures, r);
    return scene->count;
}

static mr_status draw_one(album *a, uint64_t n, uint64_t in_split, mr_error *err)
{
    mr_scene scene;
    MR_AUTO(mr_buf_free) mr_buf bytes = {0};
    uint32_t width, height;
    mr_random r = mr_sketch_random(a->s, n);
    uint64_t image = (n * 4801 + a->s->seed % 999983) % 999983; /* distinct: no common divisor */
    mr_sketch_size(a->s, a->s->simple ? 1 : mr_random_real(&r, 1.2, 1.5), &r, &width, &height);
    mr_scene_begin(&scene, width, height, false, &r);
    bool empty = in_split % 20 == 2;
    size_t crowd = a->s->simple ? compose_simply(&scene, empty, &r) : compose(&scene, empty, in_split == 1, &r);
    mr_buf_printf(&a->images,
                  "%s{\"license\": 1, \"file_name\": \"%012llu.jpg\", \"coco_url\": \"\", \"height\": %u, "
                  "\"width\": %u, \"date_captured\": \"2013-11-14 17:02:52\", \"flickr_url\": \"\", \"id\": %llu}",
                  in_split ? ", " : "", (unsigned long long)image, height, width, (unsigned long long)image);
    for (size_t i = 0; i < crowd; i++)
        add_figure(a, &scene.figures[i], image, &r);
    if (crowd < scene.count)
        add_crowd(a, &scene, crowd, image);
    if (scene.count)
        add_captions(a, &scene, image);
    MR_TRY(mr_sketch_jpeg(&scene, &r, &bytes, err));
    return mr_sketch_write(a->s, &bytes, err, "%s2017/%012llu.jpg", a->split, (unsigned long long)image);
}

static mr_status draw_split(mr_sketch *s, enum mr_sketch_split split, uint64_t first, mr_error *err)
{
    uint64_t count = s->in_split[split] = mr_sketch_share(s, split, false);
    album a = {.s = s, .split = mr_sketch_coco.splits[split], .next_id = 100000 + first * 100};
    mr_random r = mr_sketch_random(s, UINT64_C(1) << 41 | first);
    mr_status status = MR_OK;
    for (uint64_t i = 0; i < count && status == MR_OK; i++)
        status = draw_one(&a, first + i, i, err);
    if (status == MR_OK)
        status = write_file(&a, "instances", &a.instances, add_categories, &r, err);
    if (status == MR_OK)
        status = write_file(&a, "captions", &a.captions, NULL, &r, err);
    if (status == MR_OK)
        status = write_file(&a, "person_keypoints", &a.keypoints, add_person_category, &r, err);
    mr_buf_free(&a.images);
    list_free(&a.instances);
    list_free(&a.captions);
    list_free(&a.keypoints);
    return status;
}

static mr_status draw(mr_sketch *s, mr_error *err)
{
    MR_TRY(draw_split(s, MR_TRAIN, 0, err));
    return draw_split(s, MR_VAL, s->in_split[MR_TRAIN], err);
}

const mr_sketch_layout mr_sketch_coco = {
    .name = "coco",
    .variants = "",
    .min_side = 320,
    .max_side = 427,
    .splits = {"train", "val", NULL},
    .draw = draw,
};
