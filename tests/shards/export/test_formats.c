/* test_formats.c - drawn datasets as every format that ingest reads, and back.
 * Covers formats/imagenette.c, formats/folders.c, formats/coco.c, formats/coco_annotation.c, formats/coco_raw.c,
 * formats/yolo.c, formats/voc.c, export/outline.c, export/survey.c, export/pictures.c, formats/tar.c.
 * Invariant tested: pictures keep their bytes; labels, captions and objects that a format can hold come back equal;
 * what comes back is exported as the same bytes again. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/scope.h"
#include "base/text.h"
#include "shards/export/export.h"
#include "shards/export/facts.h"
#include "shards/format/objects.h"
#include "tests/support/shards/dataset_maker.h"

enum { SAMPLES = 24, ROUNDS = 1 };

/* What the objects of a dataset are made of. */
typedef enum kind { LABELS, BOXES, POLYGONS, ORIENTED, KEYPOINTS, KINDS } kind;

static const char *const splits[] = {"train", "val", "night.2"};

/* ---- drawing ----------------------------------------------------------------------------------------------------- */

static mr_milli below(mr_random *r, unsigned pixels)
{
    return (mr_milli)mr_random_below(r, (uint64_t)pixels * 1000 + 1);
}

static void draw_object(mr_random *r, kind k, unsigned width, unsigned height, mr_objects *o)
{
    mr_object *object = mr_objects_add(o, (int32_t)mr_random_below(r, 3));
    mr_milli x = below(r, width - 2), y = below(r, height - 2);
    mr_milli box[4] = {x, y,
                       1000 + below(r, width - 2) * ((mr_milli)width * 1000 - x - 1000) / ((mr_milli)width * 1000),
                       1000 + below(r, height - 2) * ((mr_milli)height * 1000 - y - 1000) / ((mr_milli)height * 1000)};
    object->has_box = true;
    memcpy(object->box, box, sizeof box);
    mr_milli right = x + box[2], bottom = y + box[3];
    if (k == POLYGONS) { /* seven points, whose box is the box */
        const mr_milli ring[14] = {x, y, right, y, right, bottom, x, bottom, x, y + 600, x, y + 400, x, y + 200};
        mr_objects_ring(o);
        for (size_t i = 0; i < MR_COUNT(ring); i += 2)
            mr_objects_point(o, ring[i], ring[i + 1]);
    } else if (k == ORIENTED) {
        object->oriented = true;
        memcpy(object->corners, (mr_milli[]){x + 500, y, right, y + 500, right - 500, bottom, x, bottom - 500},
               sizeof object->corners);
    }
    for (size_t i = 0; k == KEYPOINTS && i < 5; i++)
        mr_objects_keypoint(o, o->count - 1,
                            (mr_keypoint){x + below(r, 1), y + below(r, 1), (int)mr_random_below(r, 2) + 1});
}

static void draw_meta(mr_random *r, kind k, unsigned width, unsigned height, mr_buf *out)
{
    static char ant[] = "ant", bee[] = "bee", cat[] = "cat";
    const mr_class classes[3] = {{.name = ant}, {.name = bee}, {.name = cat}};
    mr_objects o = {.known = true};
    if (k == LABELS) {
        mr_buf_printf(out, ",\"label\":%d", (int)mr_random_below(r, 3));
        return;
    }
    for (uint64_t n = mr_random_below(r, 4) + (k == ORIENTED); n; n--)
        draw_object(r, k, width, height, &o);
    mr_objects_write(&o, classes, 3, out);
    mr_objects_free(&o);
}

/* Names that somebody might have, and names that somebody might make. */
static void draw_name(mr_random *r, mr_buf *out)
{
    static const char *const names[] = {"a.jpg",        "A.JPG",        "a.png",     "a-2.jpg",      "b c.jpeg",
                                        "sub/a.jpg",    "CON.jpg",      "nul",       "x.jpe",        ".hidden.jpg",
                                        "\xC3\xA9.jpg", "\xFF\xFE.jpg", "a\nb.jpg",  "q\"<>|?*.jpg", "dots...",
                                        "no_ending",    "a.jpg.jpg",    "tail .jpg", "../up.jpg",    "/etc/passwd"};
    const char *name = names[mr_random_below(r, MR_COUNT(names))];
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    mr_json_add_path(&text, name, strlen(name));
    mr_buf_add(out, text.data + 1, text.len - 2);
    mr_buf_text(out);
}

static void draw(mr_random *r, kind k, const char *dir)
{
    made samples[SAMPLES];
    made_split parts[3];
    mr_buf names[SAMPLES] = {{0}}, metas[SAMPLES] = {{0}};
    size_t at = 0;
    for (unsigned i = 0; i < SAMPLES; i++) {
        unsigned width = 8 + i, height = 8 + (unsigned)mr_random_below(r, 30);
        draw_name(r, &names[i]);
        draw_meta(r, k, width, height, &metas[i]);
        samples[i] =
            (made){mr_buf_text(&names[i]), make_png(width, height, 2, 8, false), mr_buf_text(&metas[i]), false, 0};
    }
    for (size_t i = 0; i < 3; i++) {
        size_t count = i == 2 ? SAMPLES - at : 1 + (size_t)mr_random_below(r, 10);
        parts[i] = (made_split){splits[i], samples + at, count, count};
        at += count;
    }
    mkdir(dir, 0777);
    dataset_make(dir, parts, 3);
    for (size_t i = 0; i < SAMPLES; i++) {
        picture_free(&samples[i].image);
        mr_buf_free(&names[i]);
        mr_buf_free(&metas[i]);
    }
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

typedef struct state {
    mr_dataset *before, *after;
    mr_sample_view view, other;
    mr_objects objects;
    bool labels, boxes; /* what the format holds */
} state;

static void open_dataset(const char *dir, mr_dataset **out)
{
    mr_error err;
    if (mr_dataset_open(dir, out, &err) != MR_OK)
        fail_msg("%s", err.text);
}

static void read_sample(const mr_dataset *ds, const char *split, uint64_t n, mr_sample_view *view)
{
    mr_error err;
    if (mr_dataset_read(ds, split, n, view, &err) != MR_OK)
        fail_msg("%s", err.text);
}

/* The sample of these bytes in `after`, in s->other. */
static void find(state *s, const char *split)
{
    uint64_t count = mr_dataset_samples(s->after, split);
    for (uint64_t n = 0; n < count; n++) {
        read_sample(s->after, split, n, &s->other);
        if (s->other.image_len == s->view.image_len && !memcmp(s->other.image, s->view.image, s->view.image_len))
            return;
    }
    fail_msg("a picture of %s is lost", split);
}

/* Without what the sources number as they like. */
static void write_objects(state *s, const mr_dataset *ds, const mr_sample_view *view, mr_buf *out)
{
    const mr_manifest *m = mr_dataset_manifest(ds);
    mr_error err;
    if (mr_objects_parse(view->meta, view->meta_len, &s->objects, &err) != MR_OK)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < s->objects.count; i++) {
        mr_object *o = &s->objects.items[i];
        mr_buf_printf(out, "%s:", m->classes[o->label].name);
        o->label = -1;
        o->id_len = 0;
        if (o->oriented) /* the box around them, as layouts of oriented boxes make it */
            o->has_box = false;
    }
    mr_objects_write(&s->objects, NULL, 0, out);
}

static const char *label_of(const mr_dataset *ds, const mr_sample_view *view)
{
    return view->label < 0 ? "none" : mr_dataset_class_name(ds, (size_t)view->label);
}

static void compare_samples(state *s, const char *format)
{
    for (size_t i = 0; i < MR_COUNT(splits); i++) {
        uint64_t count = mr_dataset_samples(s->before, splits[i]);
        assert_int_equal(mr_dataset_samples(s->after, splits[i]), count);
        for (uint64_t n = 0; n < count; n++) {
            MR_AUTO(mr_buf_free) mr_buf one = {0}, other = {0};
            read_sample(s->before, splits[i], n, &s->view);
            find(s, splits[i]);
            if (s->labels)
                assert_string_equal(label_of(s->after, &s->other), label_of(s->before, &s->view));
            if (!s->boxes)
                continue;
            write_objects(s, s->before, &s->view, &one);
            write_objects(s, s->after, &s->other, &other);
            if (strcmp(mr_buf_text(&one), mr_buf_text(&other)) != 0)
                fail_msg("%s: %s %d: %s\n%s", format, splits[i], (int)n, mr_buf_text(&one), mr_buf_text(&other));
        }
    }
}

static void export_as(const char *format, const char *ds, const char *out)
{
    mr_export_result result = {0};
    mr_error err;
    if (mr_export(ds, out, format, &(mr_export_options){.quiet = true, .shard_size = strcmp(format, "tar") ? 0 : 400},
                  &result, &err) != MR_OK)
        fail_msg("%s: %s", format, err.text);
    assert_int_equal(result.samples, SAMPLES);
}

/* The tars name their splits themselves. */
static void ingest(const char *format, const char *tree, const char *back)
{
    if (!strcmp(format, "tar"))
        support_expect(0, "ingest", "-q", "--layout", "webdataset", tree, back, (char *)NULL);
    else
        support_expect(0, "ingest", "-q", "--layout", format, "--max-rejects", "0", "--split-map", "night.2=night.2",
                       tree, back, (char *)NULL);
}

/* What ingest has sorted by path is exported, ingested and exported again: the same bytes. */
static void export_again(const char *format, const char *out, const char *back)
{
    char *second = support_path("%s/second", out), *third = support_path("%s/third", out);
    char *dataset = support_path("%s/dataset", out);
    if (strcmp(format, "tar") != 0) { /* which holds the metas, and so the sources' names */
        export_as(format, back, second);
        ingest(format, second, dataset);
        export_as(format, dataset, third);
        assert_int_equal(support_tree_hash(third), support_tree_hash(second));
    }
    free(second);
    free(third);
    free(dataset);
}

static void compare(const char *dir, kind k, const char *format)
{
    char *ds = support_path("%s/ds", dir), *out = support_path("%s/%s", dir, format);
    char *back = support_path("%s/back", out), *tree = support_path("%s/x", out);
    state s = {.labels = k == LABELS};
    s.boxes = k != LABELS && strcmp(format, "imagenette") != 0;
    mkdir(out, 0777);
    export_as(format, ds, tree);
    ingest(format, tree, back);
    open_dataset(ds, &s.before);
    open_dataset(back, &s.after);
    compare_samples(&s, format);
    export_again(format, out, back);
    mr_sample_view_free(&s.view);
    mr_sample_view_free(&s.other);
    mr_objects_free(&s.objects);
    mr_dataset_free(s.before);
    mr_dataset_free(s.after);
    free(ds);
    free(out);
    free(back);
    free(tree);
}

static void drawn_datasets_come_back(void **dir)
{
    mr_random random = support_random();
    for (int round = 0; round < ROUNDS; round++)
        for (int k = 0; k < KINDS; k++) {
            char *inner = support_path("%s/%d-%d", (char *)*dir, round, k), *ds = support_path("%s/ds", inner);
            mkdir(inner, 0777);
            draw(&random, (kind)k, ds);
            if (k == LABELS)
                compare(inner, LABELS, "imagenette");
            if (k != ORIENTED)
                compare(inner, (kind)k, "coco");
            if (k != LABELS)
                compare(inner, (kind)k, "yolo");
            if (k == BOXES || k == POLYGONS)
                compare(inner, (kind)k, "voc");
            compare(inner, (kind)k, "tar");
            free(inner);
            free(ds);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {IN_TMPDIR(drawn_datasets_come_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
