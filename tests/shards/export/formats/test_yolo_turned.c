/* test_yolo_turned.c - YOLO trees of pictures that EXIF turns, through a dataset and back.
 * Covers formats/yolo.c, format/objects_turn.c and layout/yolo/yolo.c.
 * Invariant tested: a line means a place in the picture as shown, so that it comes back as it was, for every
 * orientation and each kind of label; COCO and VOC get places in the picture as stored. */
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/scope.h"
#include "tests/support/images/image.h"

enum { WIDTH = 64, HEIGHT = 48 }; /* fractions in 64ths and 48ths are whole pixels */

static const struct {
    const char *task, *yaml, *text;
} tasks[] = {
    {"detect", "", "0 0.125 0.25 0.25 0.375\n1 0.6875 0.5 0.125 0.75\n"},
    {"segment", "", "0 0.125 0.25 0.5 0.25 0.75 0.5 0.5 0.75 0.25 0.5\n1 0.5 0.25 0.75 0.25 0.75 0.5\n"},
    {"obb", "", "0 0.25 0.125 0.5 0.25 0.375 0.5 0.125 0.375\n"},
    {"pose", "kpt_shape: [3, 3]\n", "0 0.5 0.5 0.5 0.75 0.25 0.125 2 0.75 0.875 1 0 0 0\n"},
};

static void put_picture(const char *root, unsigned orientation)
{
    picture exif = make_exif(true, 3, 1, orientation);
    picture p = make_jpeg((jpeg_kind){.width = WIDTH, .height = HEIGHT, .components = 3, .exif = &exif});
    support_writef(p.bytes, p.len, "%s/train/images/p%u.jpg", root, orientation);
    picture_free(&exif);
    picture_free(&p);
}

static void lines_come_back(void **state)
{
    for (size_t i = 0; i < MR_COUNT(tasks); i++) {
        char *root = support_path("%s/%s", (char *)*state, tasks[i].task), *ds = support_path("%s.mr", root);
        char *back = support_path("%s.back", root), *again = support_path("%s.again", root);
        char *yaml = support_path("train: train/images\nnames: [cat, dog]\n%s", tasks[i].yaml);
        support_put(root, "data.yaml", yaml);
        for (unsigned orientation = 1; orientation <= 8; orientation++) {
            char *name = support_path("train/labels/p%u.txt", orientation);
            put_picture(root, orientation);
            support_put(root, name, tasks[i].text);
            free(name);
        }
        support_expect(0, "ingest", "--quiet", root, ds, (char *)NULL);
        support_result r = support_millrace("export", ds, back, "--to", "yolo", "--json", (char *)NULL);
        support_assert_status(&r, 0);
        assert_null(strstr(r.out, "\"turned\""));
        assert_null(strstr(r.out, "\"outside\""));
        for (unsigned orientation = 1; orientation <= 8; orientation++) {
            char *path = support_path("%s/train/labels/p%u.txt", back, orientation);
            char *text = (char *)support_read(path, NULL);
            if (strcmp(text, tasks[i].text) != 0)
                fail_msg("%s, orientation %u: %s", tasks[i].task, orientation, text);
            free(path);
            free(text);
        }
        support_expect(0, "ingest", "--quiet", back, again, (char *)NULL);
        support_result_free(&r);
        free(root);
        free(ds);
        free(back);
        free(again);
        free(yaml);
    }
}

static char *objects_of(const char *ds, unsigned sample)
{
    char number[12];
    snprintf(number, sizeof number, "%u", sample);
    support_result r = support_millrace("show", "--json", ds, "train", number, (char *)NULL);
    support_assert_status(&r, 0);
    const char *at = strstr(r.out, "\"box\":");
    assert_non_null(at);
    char *box = strndup(at, strcspn(at, "]"));
    support_result_free(&r);
    return box;
}

/* Other formats state places in the picture as stored, and its size as stored: they come back from there, too. */
static void other_formats_agree(void **state)
{
    static const char *const formats[] = {"coco", "voc", "imagefolder"};
    char *root = support_path("%s/all", (char *)*state), *ds = support_path("%s.mr", root);
    support_put(root, "data.yaml", "train: train/images\nnames: [cat]\n");
    for (unsigned orientation = 1; orientation <= 8; orientation++) {
        char *name = support_path("train/labels/p%u.txt", orientation);
        put_picture(root, orientation);
        support_put(root, name, "0 0.125 0.25 0.25 0.375\n");
        free(name);
    }
    support_expect(0, "ingest", "--quiet", root, ds, (char *)NULL);
    for (size_t i = 0; i < MR_COUNT(formats); i++) {
        char *out = support_path("%s.%s", root, formats[i]), *back = support_path("%s.mr", out);
        support_expect(0, "export", "--quiet", ds, out, "--to", formats[i], (char *)NULL);
        support_expect(0, "ingest", "--quiet", out, back, (char *)NULL);
        for (unsigned sample = 0; sample < 8; sample++) {
            char *first = objects_of(ds, sample), *second = objects_of(back, sample);
            if (strcmp(first, second) != 0)
                fail_msg("%s, orientation %u: %s instead of %s", formats[i], sample + 1, second, first);
            free(first);
            free(second);
        }
        free(out);
        free(back);
    }
    free(root);
    free(ds);
}

static char *export_to(const char *ds, const char *format, const char *file)
{
    char *out = support_path("%s.%s", ds, format), *path = support_path("%s/%s", out, file);
    support_expect(0, "export", "--quiet", ds, out, "--to", format, (char *)NULL);
    char *text = (char *)support_read(path, NULL);
    free(out);
    free(path);
    return text;
}

/* Orientation 6: the upper left corner that is seen is the lower left one of the file. */
static void stored_places(void **state)
{
    char *root = support_path("%s/six", (char *)*state), *ds = support_path("%s.mr", root);
    support_put(root, "data.yaml", "train: train/images\nnames: [cat]\n");
    put_picture(root, 6);
    support_put(root, "train/labels/p6.txt", "0 0.125 0.125 0.25 0.25\n");
    support_expect(0, "ingest", "--quiet", root, ds, (char *)NULL);
    support_result r = support_millrace("show", "--json", ds, "train", "0", (char *)NULL);
    assert_non_null(strstr(r.out, "\"box\":[0,36,16,12]"));
    char *coco = export_to(ds, "coco", "annotations/instances_train.json");
    assert_non_null(strstr(coco, "\"width\":64,\"height\":48"));
    assert_non_null(strstr(coco, "\"bbox\":[0,36,16,12]"));
    char *voc = export_to(ds, "voc", "Annotations/p6.xml");
    assert_non_null(strstr(voc, "<width>64</width>"));
    assert_non_null(strstr(voc, "<xmin>1</xmin>"));
    assert_non_null(strstr(voc, "<ymin>37</ymin>"));
    support_result_free(&r);
    free(coco);
    free(voc);
    free(root);
    free(ds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {IN_TMPDIR(lines_come_back), IN_TMPDIR(other_formats_agree),
                                       IN_TMPDIR(stored_places)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
