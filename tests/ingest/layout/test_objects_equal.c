/* test_objects_equal.c - the same 200 pictures as COCO, YOLO, Pascal VOC, CreateML and tables.
 * Invariant tested: the objects of all of them are equal within half a pixel, the cost of VOC's whole numbers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "shards/dataset/dataset.h"
#include "shards/format/objects.h"
#include "tests/support/images/image.h"

enum { PICTURES = 200, TRAIN = 150, BOXES = 6 };

static const char *const names[] = {"cat", "dog & co", "eel"}; /* in the order that sorting gives */

typedef struct box {
    int label;
    double x, y, width, height;
} box;

typedef struct drawn {
    unsigned width, height;
    size_t count;
    box boxes[BOXES];
} drawn;

static drawn pictures[PICTURES];

static void draw(void)
{
    mr_random random = support_random();
    for (size_t i = 0; i < PICTURES; i++) {
        drawn *p = &pictures[i];
        *p = (drawn){.width = 40 + (unsigned)i, .height = 30 + (unsigned)mr_random_below(&random, 300)};
        p->count = mr_random_below(&random, BOXES + 1);
        for (size_t k = 0; k < p->count; k++) {
            box *b = &p->boxes[k];
            b->label = (int)mr_random_below(&random, MR_COUNT(names));
            b->width = 2 + (double)mr_random_below(&random, (p->width - 4) * 100) / 100;
            b->height = 2 + (double)mr_random_below(&random, (p->height - 4) * 100) / 100;
            b->x = (double)mr_random_below(&random, (uint64_t)((p->width - b->width) * 100) + 1) / 100;
            b->y = (double)mr_random_below(&random, (uint64_t)((p->height - b->height) * 100) + 1) / 100;
        }
    }
}

static const char *split_of(size_t number)
{
    return number < TRAIN ? "train" : "valid";
}

/* ---- one writer a format ----------------------------------------------------------------------------------------- */

static void put_picture(const char *root, const char *folder, size_t i)
{
    picture p = make_jpeg((jpeg_kind){.width = pictures[i].width, .height = pictures[i].height, .components = 1});
    support_writef(p.bytes, p.len, "%s/%s/p%03zu.jpg", root, folder, i);
    picture_free(&p);
}

static void put(const char *root, const char *folder, size_t i, const char *ending, mr_buf *text)
{
    support_write_textf(mr_buf_text(text), "%s/%s/p%03zu%s", root, folder, i, ending);
    mr_buf_clear(text);
}

static void put_table(const char *root, const char *name, mr_buf *text)
{
    support_put(root, name, mr_buf_text(text));
    mr_buf_clear(text);
}

static void write_coco(const char *root)
{
    MR_AUTO(mr_buf_free) mr_buf images = {0}, annotations = {0}, whole = {0};
    for (size_t i = 0, id = 1; i < PICTURES; i++) {
        const drawn *p = &pictures[i];
        bool first = i == 0 || i == TRAIN;
        put_picture(root, split_of(i), i);
        mr_buf_printf(&images, "%s{\"id\":%zu,\"file_name\":\"p%03zu.jpg\",\"width\":%u,\"height\":%u}",
                      first ? "" : ",", i, i, p->width, p->height);
        for (size_t k = 0; k < p->count; k++, id++)
            mr_buf_printf(&annotations,
                          "%s{\"id\":%zu,\"image_id\":%zu,\"category_id\":%d,\"bbox\":[%.2f,%.2f,%.2f,%.2f]}",
                          annotations.len ? "," : "", id, i, 10 + 7 * p->boxes[k].label, p->boxes[k].x, p->boxes[k].y,
                          p->boxes[k].width, p->boxes[k].height);
        if (i + 1 != TRAIN && i + 1 != PICTURES)
            continue;
        mr_buf_printf(&whole,
                      "{\"images\":[%s],\"annotations\":[%s],\"categories\":[{\"id\":24,\"name\":\"%s\"},"
                      "{\"id\":10,\"name\":\"%s\"},{\"id\":17,\"name\":\"%s\"}]}",
                      mr_buf_text(&images), mr_buf_text(&annotations), names[2], names[0], names[1]);
        put_table(root, i < TRAIN ? "annotations/instances_train.json" : "annotations/instances_valid.json", &whole);
        mr_buf_clear(&images);
        mr_buf_clear(&annotations);
    }
}

static void write_yolo(const char *root)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    for (size_t i = 0; i < PICTURES; i++) {
        const drawn *p = &pictures[i];
        char *folder = support_path("%s/images", split_of(i)), *labels = support_path("%s/labels", split_of(i));
        put_picture(root, folder, i);
        for (size_t k = 0; k < p->count; k++) {
            const box *b = &p->boxes[k];
            mr_buf_printf(&text, "%d %.6f %.6f %.6f %.6f\n", b->label, (b->x + b->width / 2) / p->width,
                          (b->y + b->height / 2) / p->height, b->width / p->width, b->height / p->height);
        }
        put(root, labels, i, ".txt", &text);
        free(folder);
        free(labels);
    }
    mr_buf_printf(&text, "train: ../train/images\nval: ../valid/images\nnames: ['%s', '%s', '%s']\n", names[0],
                  names[1], names[2]);
    put_table(root, "data.yaml", &text);
}

/* `first`: the number of the first pixel.  From 1 the last pixel counts, from 0 its edge: the same number. */
static void add_xml(const drawn *p, int first, mr_buf *text)
{
    mr_buf_printf(text, "<annotation><size><width>%u</width><height>%u</height></size>", p->width, p->height);
    for (size_t k = 0; k < p->count; k++) {
        const box *b = &p->boxes[k];
        mr_buf_printf(text,
                      "<object><name>%s</name><bndbox><xmin>%.0f</xmin><ymin>%.0f</ymin><xmax>%.0f</xmax>"
                      "<ymax>%.0f</ymax></bndbox></object>",
                      b->label == 1 ? "dog &amp; co" : names[b->label], round(b->x) + first, round(b->y) + first,
                      round(b->x + b->width), round(b->y + b->height));
    }
    mr_buf_add_text(text, "</annotation>");
}

static void write_voc(const char *root)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    for (size_t i = 0; i < PICTURES; i++) {
        put_picture(root, split_of(i), i);
        add_xml(&pictures[i], 0, &text);
        put(root, split_of(i), i, ".xml", &text);
    }
}

static void write_voc_kit(const char *root)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0}, train = {0}, val = {0};
    for (size_t i = 0; i < PICTURES; i++) {
        put_picture(root, "JPEGImages", i);
        add_xml(&pictures[i], 1, &text);
        put(root, "Annotations", i, ".xml", &text);
        mr_buf_printf(i < TRAIN ? &train : &val, "p%03zu\n", i);
    }
    put_table(root, "ImageSets/Main/train.txt", &train);
    put_table(root, "ImageSets/Main/val.txt", &val);
}

static void write_createml(const char *root)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    for (size_t i = 0; i < PICTURES; i++) {
        const drawn *p = &pictures[i];
        put_picture(root, split_of(i), i);
        mr_buf_printf(&text, "%s{\"image\":\"p%03zu.jpg\",\"annotations\":[", i == 0 || i == TRAIN ? "[" : ",", i);
        for (size_t k = 0; k < p->count; k++) {
            const box *b = &p->boxes[k];
            mr_buf_printf(&text,
                          "%s{\"label\":\"%s\",\"coordinates\":{\"x\":%.3f,\"y\":%.3f,\"width\":%.2f,"
                          "\"height\":%.2f}}",
                          k ? "," : "", names[b->label], b->x + b->width / 2, b->y + b->height / 2, b->width,
                          b->height);
        }
        mr_buf_add_text(&text, i + 1 == TRAIN || i + 1 == PICTURES ? "]}]" : "]}");
        if (i + 1 == TRAIN || i + 1 == PICTURES)
            put_table(root, i < TRAIN ? "train/_annotations.createml.json" : "valid/_annotations.createml.json", &text);
    }
}

/* A row for each box, and one for a picture without any. */
static void write_table(const char *root)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    for (size_t i = 0; i < PICTURES; i++) {
        const drawn *p = &pictures[i];
        put_picture(root, split_of(i), i);
        if (i == 0 || i == TRAIN)
            mr_buf_add_text(&text, "filename,width,height,class,xmin,ymin,xmax,ymax\n");
        for (size_t k = 0; k < p->count; k++) {
            const box *b = &p->boxes[k];
            mr_buf_printf(&text, "p%03zu.jpg,%u,%u,%s,%.2f,%.2f,%.2f,%.2f\n", i, p->width, p->height, names[b->label],
                          b->x, b->y, b->x + b->width, b->y + b->height);
        }
        if (!p->count)
            mr_buf_printf(&text, "p%03zu.jpg,%u,%u,,,,,\n", i, p->width, p->height);
        if (i + 1 == TRAIN || i + 1 == PICTURES)
            put_table(root, i < TRAIN ? "train/_annotations.csv" : "valid/_annotations.csv", &text);
    }
}

/* Parts of the picture's width and height, and ids. */
static void write_parts(const char *root)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    for (size_t i = 0; i < PICTURES; i++) {
        const drawn *p = &pictures[i];
        put_picture(root, split_of(i), i);
        if (i == 0 || i == TRAIN)
            mr_buf_add_text(&text, "ImageID,LabelName,XMin,XMax,YMin,YMax\n");
        for (size_t k = 0; k < p->count; k++) {
            const box *b = &p->boxes[k];
            mr_buf_printf(&text, "p%03zu,%s,%.6f,%.6f,%.6f,%.6f\n", i, names[b->label], b->x / p->width,
                          (b->x + b->width) / p->width, b->y / p->height, (b->y + b->height) / p->height);
        }
        if (!p->count)
            mr_buf_printf(&text, "p%03zu,,,,,\n", i);
        if (i + 1 == TRAIN || i + 1 == PICTURES)
            put_table(root, i < TRAIN ? "train-boxes.csv" : "validation-boxes.csv", &text);
    }
}

/* ---- comparison -------------------------------------------------------------------------------------------------- */

static void compare(const char *format, size_t i, const mr_objects *found, const mr_manifest *m)
{
    const drawn *p = &pictures[i];
    if (!found->known || found->count != p->count)
        fail_msg("%s: image %zu has %zu objects, not %zu", format, i, found->count, p->count);
    for (size_t k = 0; k < p->count; k++) {
        const box *b = &p->boxes[k];
        const mr_object *o = &found->items[k];
        const double want[4] = {b->x, b->y, b->x + b->width, b->y + b->height};
        const mr_milli got[4] = {o->box[0], o->box[1], o->box[0] + o->box[2], o->box[1] + o->box[3]};
        assert_true(o->has_box && o->label >= 0);
        assert_string_equal(m->classes[o->label].name, names[b->label]);
        for (int side = 0; side < 4; side++)
            if (fabs((double)got[side] / 1000 - want[side]) > 0.502)
                fail_msg("%s: image %zu, object %zu, side %d: %g instead of %g", format, i, k, side,
                         (double)got[side] / 1000, want[side]);
    }
}

static void check(const char *format, const char *dst)
{
    MR_AUTO(mr_objects_free) mr_objects found = {0};
    mr_sample_view view = {0};
    mr_dataset *ds = NULL;
    mr_error err;
    assert_int_equal(mr_dataset_open(dst, &ds, &err), MR_OK);
    for (size_t i = 0; i < PICTURES; i++) {
        const char *split = i < TRAIN ? "train" : "val";
        if (mr_dataset_read_meta(ds, split, i < TRAIN ? i : i - TRAIN, &view, &err) != MR_OK ||
            mr_objects_parse(view.meta, view.meta_len, &found, &err) != MR_OK)
            fail_msg("%s: %s", format, err.text);
        compare(format, i, &found, mr_dataset_manifest(ds));
    }
    mr_sample_view_free(&view);
    mr_dataset_free(ds);
}

static const struct {
    const char *name, *layout;
    void (*write)(const char *root);
} formats[] = {{"coco", "coco", write_coco},
               {"yolo", "yolo", write_yolo},
               {"voc", "voc", write_voc},
               {"voc-kit", "voc", write_voc_kit},
               {"createml", "createml", write_createml},
               {"table", "table", write_table},
               {"parts", "table", write_parts}};

static void test_equal(void **state)
{
    draw();
    for (size_t i = 0; i < MR_COUNT(formats); i++) {
        char *root = support_path("%s/%s", (char *)*state, formats[i].name);
        char *dst = support_path("%s/%s.mr", (char *)*state, formats[i].name);
        char *tar = support_path("%s/%s.tar", (char *)*state, formats[i].name);
        char *again = support_path("%s/%s.tar.mr", (char *)*state, formats[i].name);
        formats[i].write(root);
        support_expect(0, "ingest", "--quiet", root, dst, (char *)NULL);
        support_result r = support_millrace("inspect", "--json", dst, (char *)NULL);
        char *layout = support_path("\"layout\": \"%s\"", formats[i].layout);
        assert_non_null(strstr(r.out, layout));
        check(formats[i].name, dst);
        const char *const pack[] = {"tar", "-cf", tar, "-C", root, ".", NULL};
        support_result packed = support_run(pack, NULL);
        support_assert_status(&packed, 0);
        support_expect(0, "ingest", "--quiet", tar, again, (char *)NULL);
        assert_true(support_dataset_hash(dst) == support_dataset_hash(again));
        support_result_free(&packed);
        support_result_free(&r);
        free(layout);
        free(root);
        free(dst);
        free(tar);
        free(again);
    }
}

/* Two ranks, many shards: the same bytes as of one. */
static void test_ranks(void **state)
{
    draw();
    for (size_t i = 1; i < MR_COUNT(formats); i++) {
        char *root = support_path("%s/ranks-%s", (char *)*state, formats[i].name);
        char *one = support_path("%s/%zu.one", (char *)*state, i), *two = support_path("%s/%zu.two", (char *)*state, i);
        formats[i].write(root);
        support_expect(0, "ingest", "--quiet", "--shard-size", "256KiB", root, one, (char *)NULL);
        support_result r = support_mpirun(2, (const char *const[]){support_millrace_path(), "ingest", "--quiet",
                                                                   "--shard-size", "256KiB", root, two, NULL});
        support_assert_status(&r, 0);
        assert_true(support_dataset_hash(one) == support_dataset_hash(two));
        support_result_free(&r);
        free(root);
        free(one);
        free(two);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {IN_TMPDIR(test_equal), IN_TMPDIR(test_ranks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
