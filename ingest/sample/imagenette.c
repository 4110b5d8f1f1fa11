/* imagenette.c - the tree of an unpacked imagenette2-160.tgz, filled with shapes.
 * Invariant: the folder names the shape (tench's folder holds circles, and so on in order); the csv's column
 * noisy_labels_0 agrees with the folder in every row.
 *
 *   imagenette2-160/noisy_imagenette.csv            rows shuffled, CRLF
 *   imagenette2-160/train/n01440764/n01440764_10706.JPEG      one in 25: ILSVRC2012_val_00031897.JPEG
 *   imagenette2-160/val/...                                   one in 40 is a PNG under that name, as in ImageNet */
#include "ingest/sample/sample.h"

#include <stdlib.h>

#define ROOT "imagenette2-160"

/* The ten folders of Imagenette, sorted as its classes are. */
static const char *const folders[MR_SHAPE_CLASSES] = {
    "n01440764", "n02102040", "n02979186", "n03000684", "n03028079",
    "n03394916", "n03417042", "n03425413", "n03445777", "n03888257",
};

static const struct {
    const char *column;
    unsigned percent;
} noise[] = {{"noisy_labels_0", 0},
             {"noisy_labels_1", 1},
             {"noisy_labels_5", 5},
             {"noisy_labels_25", 25},
             {"noisy_labels_50", 50}};

static bool is_train(const mr_sketch *s, uint64_t n)
{
    return n < mr_sketch_share(s, MR_TRAIN, false);
}

static unsigned class_of(const mr_sketch *s, uint64_t n)
{
    uint64_t in_split = is_train(s, n) ? n : n - mr_sketch_share(s, MR_TRAIN, false);
    return (unsigned)(in_split % MR_SHAPE_CLASSES);
}

/* "train/n01440764/n01440764_10706.JPEG".  Numbers are scattered, and distinct: 4801 and 999983 have no divisor in
 * common. */
static void path_of(const mr_sketch *s, uint64_t n, mr_buf *out)
{
    const char *folder = folders[class_of(s, n)];
    unsigned number = (unsigned)((n * 4801 + s->seed % 999983) % 999983);
    mr_buf_printf(out, "%s/%s/", is_train(s, n) ? "train" : "val", folder);
    if (n % 25 == 7)
        mr_buf_printf(out, "ILSVRC2012_val_%08u.JPEG", number);
    else
        mr_buf_printf(out, "%s_%u.JPEG", folder, number);
}

static mr_status draw_one(mr_sketch *s, uint64_t n, mr_error *err)
{
    mr_scene scene;
    mr_buf file = {0}, path = {0};
    uint32_t width, height;
    mr_random r = mr_sketch_random(s, n);
    mr_sketch_size(s, s->simple ? 1 : mr_random_real(&r, 1, 1.5), &r, &width, &height);
    mr_scene_begin(&scene, width, height, false, &r);
    if (s->simple)
        scene.paper = MR_PAPER_plain;
    mr_scene_add(&scene, (mr_shape)class_of(s, n), s->simple ? .42 : mr_random_real(&r, .2, .42), &r);
    mr_status status = n % 40 == 19 ? mr_sketch_png(&scene, &r, &file, err) : mr_sketch_jpeg(&scene, &r, &file, err);
    path_of(s, n, &path);
    if (status == MR_OK)
        status = mr_sketch_write(s, &file, err, ROOT "/%s", mr_buf_text(&path));
    mr_buf_free(&file);
    mr_buf_free(&path);
    return status;
}

static void add_row(const mr_sketch *s, uint64_t n, mr_buf *out)
{
    mr_random r = mr_sketch_random(s, n | UINT64_C(1) << 40); /* not the stream of the image */
    path_of(s, n, out);
    for (size_t i = 0; i < MR_COUNT(noise); i++) {
        unsigned label = class_of(s, n), other = (unsigned)mr_random_below(&r, MR_SHAPE_CLASSES - 1);
        bool wrong = is_train(s, n) && mr_random_below(&r, 100) < noise[i].percent;
        mr_buf_printf(out, ",%s", folders[wrong ? other + (other >= label) : label]);
    }
    mr_buf_add_text(out, is_train(s, n) ? ",False\r\n" : ",True\r\n");
}

static mr_status write_csv(mr_sketch *s, mr_error *err)
{
    mr_buf text = {0};
    mr_random r = mr_sketch_random(s, UINT64_C(1) << 41);
    uint32_t *order = mr_alloc(s->images, sizeof *order);
    if (!order)
        return mr_fail_memory(err, "writing noisy_imagenette.csv");
    for (uint32_t n = 0; n < s->images; n++)
        order[n] = n;
    mr_random_shuffle(&r, order, s->images, sizeof *order);
    mr_buf_add_text(&text, "path");
    for (size_t i = 0; i < MR_COUNT(noise); i++)
        mr_buf_printf(&text, ",%s", noise[i].column);
    mr_buf_add_text(&text, ",is_valid\r\n");
    for (uint32_t n = 0; n < s->images; n++)
        add_row(s, order[n], &text);
    mr_status status = mr_sketch_write(s, &text, err, ROOT "/noisy_imagenette.csv");
    mr_buf_free(&text);
    free(order);
    return status;
}

static mr_status draw(mr_sketch *s, mr_error *err)
{
    mr_status status = MR_OK;
    for (uint64_t n = 0; n < s->images && status == MR_OK; n++)
        status = draw_one(s, n, err);
    if (status == MR_OK)
        status = write_csv(s, err);
    s->in_split[MR_TRAIN] = mr_sketch_share(s, MR_TRAIN, false);
    s->in_split[MR_VAL] = mr_sketch_share(s, MR_VAL, false);
    return status;
}

const mr_sketch_layout mr_sketch_imagenette = {
    .name = "imagenette",
    .variants = "",
    .min_side = 160,
    .max_side = 160,
    .splits = {"train", "val", NULL},
    .remark = "classes in order: circle, square, triangle, star, ring, cross, hexagon, moon, heart, arrow",
    .draw = draw,
};
