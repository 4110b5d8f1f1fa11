/* roboflow.c - exports of Roboflow in four formats, filled with shapes.
 * Invariant: the copies of one source image share the stem before ".rf." and are all in train, so nothing leaks.
 *
 *   folder        train/circle/shape_0007_jpg.rf.<32 hex>.jpg     valid/...   test/...
 *   clip          the same, and train/_tokenization.txt: one caption per class, sorted, no final newline
 *   multi-class   train/shape_0007_jpg.rf.<32 hex>.jpg and train/_classes.csv: 0 or 1 per class, blank after the comma
 *   coco          the same images and train/_annotations.coco.json: boxes; category 0 is Roboflow's pseudo category */
#include "ingest/sample/sample.h"
#include "base/scope.h"

#include <string.h>

enum { COPIES = 3 };

typedef struct export
{
    mr_sketch *s;
    bool folders; /* one folder per class, one figure per image */
    const char *split;
    uint64_t in_split;         /* images of the split so far */
    mr_buf csv, images, boxes; /* annotations of the split; COCO's two lists */
    uint64_t box_count;
    bool drawn[MR_SHAPE_CLASSES]; /* classes that the split has a folder of */
}
export;

/* The classes by name, as exports list them; 0 in COCO files is the pseudo category, so numbers there start at 1. */
static const mr_shape sorted[MR_SHAPE_CLASSES] = {
    MR_SHAPE_arrow, MR_SHAPE_circle, MR_SHAPE_cross,  MR_SHAPE_heart, MR_SHAPE_hexagon,
    MR_SHAPE_moon,  MR_SHAPE_ring,   MR_SHAPE_square, MR_SHAPE_star,  MR_SHAPE_triangle,
};

static unsigned category_of(mr_shape shape)
{
    for (unsigned i = 0; i < MR_SHAPE_CLASSES; i++)
        if (sorted[i] == shape)
            return i + 1;
    return 0;
}

/* One subject; where an image may have several: none in one of nine, otherwise one to three different ones. */
static void compose(const export *e, uint64_t group, mr_scene *scene, mr_random *r)
{
    uint32_t width, height;
    mr_sketch_size(e->s, 1, r, &width, &height);
    mr_scene_begin(scene, width, height, false, r);
    mr_shape subject = (mr_shape)(group % MR_SHAPE_CLASSES);
    if (e->folders) {
        scene->paper = e->s->simple ? MR_PAPER_plain : scene->paper;
        mr_scene_add(scene, subject, e->s->simple ? .42 : mr_random_real(r, .22, .42), r);
        return;
    }
    uint64_t wanted = group % 9 == 8 ? 0 : 1 + mr_random_below(r, e->s->simple ? 2 : 3);
    if (e->s->simple) {
        mr_scene_add_apart(scene, subject, (unsigned)wanted, r);
        return;
    }
    for (uint64_t i = 0; i < wanted; i++) {
        mr_scene_add(scene, subject, mr_random_real(r, .12, .24), r);
        subject = (mr_shape)((subject + 1 + mr_random_below(r, 3)) % MR_SHAPE_CLASSES);
    }
}

/* ---- annotations ---------------------------------------------------------------------------------------------- */

static void annotate_csv(export *e, const char *file, const mr_scene *scene, bool unlabeled)
{
    mr_buf_printf(&e->csv, "\n%s, %d", file, unlabeled);
    for (size_t i = 0; i < MR_SHAPE_CLASSES; i++) {
        bool seen = false;
        for (size_t k = 0; k < scene->count; k++)
            seen |= scene->figures[k].shape == sorted[i];
        mr_buf_printf(&e->csv, ", %d", seen);
    }
}

static void add_box(export *e, const mr_figure *f)
{
    mr_box box = mr_figure_box(f);
    const double numbers[] = {box.x, box.y, box.width, box.height};
    mr_buf_printf(&e->boxes, "%s{\"id\":%llu,\"image_id\":%llu,\"category_id\":%u,\"bbox\":[", e->box_count ? "," : "",
                  (unsigned long long)e->box_count, (unsigned long long)e->in_split, category_of(f->shape));
    for (size_t i = 0; i < 4; i++) {
        mr_buf_add_text(&e->boxes, i ? "," : "");
        mr_sketch_number(&e->boxes, numbers[i]);
    }
    mr_buf_add_text(&e->boxes, "],\"area\":");
    mr_sketch_number(&e->boxes, box.width * box.height);
    mr_buf_add_text(&e->boxes, ",\"segmentation\":[],\"iscrowd\":0}");
    e->box_count++;
}

static void annotate_coco(export *e, const char *file, const mr_scene *scene)
{
    mr_buf_printf(&e->images,
                  "%s{\"id\":%llu,\"license\":1,\"file_name\":\"%s\",\"height\":%u,\"width\":%u,"
                  "\"date_captured\":\"2024-01-01T00:00:00+00:00\"}",
                  e->in_split ? "," : "", (unsigned long long)e->in_split, file, scene->height, scene->width);
    for (size_t i = 0; i < scene->count; i++)
        add_box(e, &scene->figures[i]);
}

static mr_status write_coco(export *e, mr_error *err)
{
    mr_buf text = {0};
    mr_buf_add_text(&text, "{\"info\":{\"year\":\"2024\",\"version\":\"1\","
                           "\"description\":\"Drawn by millrace sample\","
                           "\"contributor\":\"\",\"url\":\"\",\"date_created\":\"2024-01-01T00:00:00+00:00\"},"
                           "\"licenses\":[{\"id\":1,\"url\":\"https://creativecommons.org/publicdomain/zero/1.0/\","
                           "\"name\":\"CC0 1.0\"}],"
                           "\"categories\":[{\"id\":0,\"name\":\"shapes\",\"supercategory\":\"none\"}");
    for (unsigned i = 0; i < MR_SHAPE_CLASSES; i++)
        mr_buf_printf(&text, ",{\"id\":%u,\"name\":\"%s\",\"supercategory\":\"shapes\"}", i + 1,
                      mr_shape_words[sorted[i]]);
    mr_buf_printf(&text, "],\"images\":[%s],\"annotations\":[%s]}", mr_buf_text(&e->images), mr_buf_text(&e->boxes));
    text.failed |= e->images.failed || e->boxes.failed;
    mr_status status = mr_sketch_write(e->s, &text, err, "%s/_annotations.coco.json", e->split);
    mr_buf_free(&text);
    return status;
}

static mr_status write_tokens(export *e, mr_error *err)
{
    mr_buf text = {0};
    for (unsigned i = 0; i < MR_SHAPE_CLASSES; i++)
        if (e->drawn[sorted[i]])
            mr_buf_printf(&text, "%sAn example picture from the Shapes dataset depicting %s %s", text.len ? "\n" : "",
                          mr_article(mr_shape_words[sorted[i]]), mr_shape_words[sorted[i]]);
    mr_status status = mr_sketch_write(e->s, &text, err, "%s/_tokenization.txt", e->split);
    mr_buf_free(&text);
    return status;
}

/* ---- images and splits ------------------------------------------------------------------------------------- */

/* Copy `copy` of the source image `group`; `n` numbers the files of the whole dataset. */
static mr_status draw_one(export *e, uint64_t n, uint64_t group, uint64_t copy, mr_error *err)
{
    mr_scene scene;
    mr_buf bytes = {0}, name = {0};
    mr_random source = mr_sketch_random(e->s, group), r = mr_sketch_random(e->s, n | UINT64_C(1) << 40);
    bool png = group % 15 == 11;
    compose(e, group, &scene, &source);
    if (copy)
        mr_scene_jitter(&scene, &r);
    mr_buf_printf(&name, "shape_%04llu_%s.rf.", (unsigned long long)group, png ? "png" : "jpg");
    mr_sketch_hex(&r, 16, &name);
    mr_buf_add_text(&name, png ? ".png" : ".jpg");
    mr_status status = png ? mr_sketch_png(&scene, &r, &bytes, err) : mr_sketch_jpeg(&scene, &r, &bytes, err);
    const char *folder = e->folders ? mr_shape_words[group % MR_SHAPE_CLASSES] : "";
    if (status == MR_OK)
        status =
            mr_sketch_write(e->s, &bytes, err, "%s/%s%s%s", e->split, folder, *folder ? "/" : "", mr_buf_text(&name));
    if (status == MR_OK && !e->folders) {
        annotate_csv(e, mr_buf_text(&name), &scene, !scene.count && group % 18 == 8);
        annotate_coco(e, mr_buf_text(&name), &scene);
    }
    e->in_split++;
    e->drawn[group % MR_SHAPE_CLASSES] = true;
    mr_buf_free(&bytes);
    mr_buf_free(&name);
    return status;
}

static mr_status write_annotations(export *e, mr_error *err)
{
    if (strcmp(e->s->variant, "multi-class") == 0)
        return mr_sketch_write(e->s, &e->csv, err, "%s/_classes.csv", e->split);
    if (strcmp(e->s->variant, "coco") == 0)
        return write_coco(e, err);
    return strcmp(e->s->variant, "clip") == 0 ? write_tokens(e, err) : MR_OK;
}

/* Draws one split; *n and *group go on from split to split. */
static mr_status draw_split(mr_sketch *s, enum mr_sketch_split split, uint64_t *n, uint64_t *group, mr_error *err)
{
    uint64_t count = s->in_split[split] = mr_sketch_share(s, split, true), copies = split == MR_TRAIN ? COPIES : 1;
    export e = {.s = s, .split = mr_sketch_roboflow.splits[split]};
    e.folders = strcmp(s->variant, "folder") == 0 || strcmp(s->variant, "clip") == 0;
    mr_buf_add_text(&e.csv, "filename, Unlabeled");
    for (size_t i = 0; i < MR_SHAPE_CLASSES; i++)
        mr_buf_printf(&e.csv, ", %s", mr_shape_words[sorted[i]]);
    mr_status status = MR_OK;
    for (uint64_t i = 0; i < count && status == MR_OK; i++, ++*n)
        status = draw_one(&e, *n, *group + i / copies, i % copies, err);
    *group += (count + copies - 1) / copies;
    if (status == MR_OK)
        status = write_annotations(&e, err);
    mr_buf_free(&e.csv);
    mr_buf_free(&e.images);
    mr_buf_free(&e.boxes);
    return status;
}

static mr_status write_readmes(mr_sketch *s, mr_error *err)
{
    static const struct {
        const char *variant, *words;
    } formats[] = {
        {"folder", "folder"}, {"multi-class", "Multi-Class Classification"}, {"coco", "COCO"}, {"clip", "clip"}};
    const char *words = "";
    for (size_t i = 0; i < MR_COUNT(formats); i++)
        if (strcmp(s->variant, formats[i].variant) == 0)
            words = formats[i].words;
    mr_buf text = {0};
    mr_buf_add_text(&text, "# Shapes > drawn\n\nProvided by millrace sample\nLicense: CC0 1.0\n\n");
    mr_status status = mr_sketch_write(s, &text, err, "README.dataset.txt");
    mr_buf_clear(&text);
    mr_buf_printf(&text,
                  "\nShapes - v1 drawn\n==============================\n\n"
                  "This dataset was drawn by millrace sample in the form of a roboflow.com export.\n\n"
                  "It includes %llu images.\nShapes are annotated in %s format.\n\n"
                  "The following augmentation was applied to create %d versions of each source image:\n"
                  "* Random shift and rotation of the shapes\n* Random brightness adjustment\n\n\n",
                  (unsigned long long)s->images, words, COPIES);
    if (status == MR_OK)
        status = mr_sketch_write(s, &text, err, "README.roboflow.txt");
    mr_buf_free(&text);
    return status;
}

static mr_status draw(mr_sketch *s, mr_error *err)
{
    uint64_t n = 0, group = 0;
    MR_TRY(write_readmes(s, err));
    for (int split = MR_TRAIN; split <= MR_TEST; split++)
        MR_TRY(draw_split(s, (enum mr_sketch_split)split, &n, &group, err));
    return MR_OK;
}

const mr_sketch_layout mr_sketch_roboflow = {
    .name = "roboflow",
    .variants = "folder multi-class coco clip",
    .min_side = 224,
    .max_side = 224,
    .splits = {"train", "valid", "test"},
    .draw = draw,
};
