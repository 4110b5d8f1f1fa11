/* test_sample_files.c - the drawn trees are what they claim to be: names, tables and annotations match the pictures.
 * Covers encode/encode.c. */
#include "tests/support/support.h"

#include <stdlib.h>
#include <string.h>

#include <archive.h>
#include <archive_entry.h>
#include <jansson.h>

typedef struct lines {
    char *text;
    char **items;
    size_t count;
} lines;

/* Cuts at `end`; what stands after the last one counts if it is not empty. */
static lines split(char *text, const char *end)
{
    lines l = {text, calloc(strlen(text) + 1, sizeof(char *)), 0};
    assert_non_null(l.items);
    for (char *at = text; *at;) {
        char *stop = strstr(at, end);
        l.items[l.count++] = at;
        if (!stop)
            break;
        *stop = '\0';
        at = stop + strlen(end);
    }
    return l;
}

static void lines_free(lines *l)
{
    free(l->text);
    free(l->items);
}

static lines tree(const char *dir)
{
    return split(support_list(dir), "\n");
}

static json_t *load(const char *dir, const char *name, const char *split_name, const char *end)
{
    json_error_t e;
    char *path = support_path("%s/%s%s%s", dir, name, split_name, end);
    json_t *doc = json_load_file(path, JSON_REJECT_DUPLICATES, &e);
    if (!doc)
        fail_msg("%s:%d: %s", path, e.line, e.text);
    free(path);
    return doc;
}

static double number(const json_t *list, size_t i)
{
    assert_true(json_is_number(json_array_get(list, i)));
    return json_number_value(json_array_get(list, i));
}

static const char *string(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    if (!text)
        fail_msg("no text under \"%s\"", key);
    return text;
}

static json_int_t integer(const json_t *object, const char *key)
{
    assert_true(json_is_integer(json_object_get(object, key)));
    return json_integer_value(json_object_get(object, key));
}

static bool is_jpeg(const uint8_t *bytes, size_t len)
{
    return len > 100 && !memcmp(bytes, "\xff\xd8\xff", 3) && !memcmp(bytes + len - 2, "\xff\xd9", 2);
}

static bool is_png(const uint8_t *bytes, size_t len)
{
    return len > 100 && !memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) && !memcmp(bytes + len - 8, "IEND", 4);
}

/* ---- imagenette ----------------------------------------------------------------------------------------------- */

static void imagenette_csv_names_every_picture(void **state)
{
    (void)state;
    char *dir = support_tmpdir(), *root = support_path("%s/d/imagenette2-160", dir), *out = support_path("%s/d", dir);
    char *csv = support_path("%s/noisy_imagenette.csv", root);
    support_expect(0, "sample", out, "--layout", "imagenette", "--images", "100", (char *)NULL);
    lines files = tree(root), rows = split((char *)support_read(csv, NULL), "\r\n");
    size_t pngs = 0, odd_names = 0, noisy = 0, disordered = 0;
    assert_string_equal(rows.items[0], "path,noisy_labels_0,noisy_labels_1,noisy_labels_5,noisy_labels_25,"
                                       "noisy_labels_50,is_valid");
    assert_int_equal(rows.count, 101);
    assert_int_equal(files.count, 101);
    for (size_t i = 1; i < rows.count; i++) {
        lines cells = split(support_path("%s", rows.items[i]), ",");
        assert_int_equal(cells.count, 7);
        bool val = !strncmp(cells.items[0], "val/", 4);
        const char *folder = strchr(cells.items[0], '/') + 1;
        assert_true(val || !strncmp(cells.items[0], "train/", 6));
        assert_memory_equal(folder, cells.items[1], 9);
        assert_int_equal(folder[9], '/');
        assert_string_equal(cells.items[6], val ? "True" : "False");
        noisy += strcmp(cells.items[1], cells.items[5]) != 0;
        odd_names += !strncmp(folder + 10, "ILSVRC2012_val_", 15);
        disordered += i > 1 && strcmp(rows.items[i - 1], rows.items[i]) > 0;
        size_t len;
        char *path = support_path("%s/%s", root, cells.items[0]);
        uint8_t *bytes = support_read(path, &len);
        pngs += is_png(bytes, len);
        assert_true(is_jpeg(bytes, len) || is_png(bytes, len));
        free(bytes);
        free(path);
        lines_free(&cells);
    }
    assert_true(pngs >= 2 && odd_names >= 3 && noisy >= 10 && disordered >= 20);
    lines_free(&files);
    lines_free(&rows);
    free(csv);
    free(root);
    free(out);
    support_tmpdir_remove(dir);
}

/* ---- roboflow ------------------------------------------------------------------------------------------------- */

/* Length of the part of a path's name before ".rf."; the hash after it is 32 hex digits. */
static size_t stem(const char *path, const char **name)
{
    *name = strrchr(path, '/') + 1;
    const char *mark = strstr(*name, ".rf.");
    assert_non_null(mark);
    assert_int_equal(strspn(mark + 4, "0123456789abcdef"), 32);
    assert_true(!strcmp(mark + 36, ".jpg") || !strcmp(mark + 36, ".png"));
    return (size_t)(mark - *name);
}

static void roboflow_copies_stay_in_train(void **state)
{
    (void)state;
    char *dir = support_tmpdir(), *out = support_path("%s/d", dir);
    char *readme = support_path("%s/README.dataset.txt", out);
    support_expect(0, "sample", out, "--layout", "roboflow", "--images", "60", "--size", "40", (char *)NULL);
    lines files = tree(out);
    size_t pairs = 0, images = 0;
    for (size_t i = 0; i < files.count; i++) {
        if (!strstr(files.items[i], ".rf."))
            continue;
        images++;
        for (size_t k = 0; k < i; k++) {
            const char *a, *b;
            if (!strstr(files.items[k], ".rf."))
                continue;
            size_t n = stem(files.items[i], &a), m = stem(files.items[k], &b);
            if (n != m || memcmp(a, b, n) != 0)
                continue;
            pairs++;
            assert_memory_equal(files.items[i], "train/", 6);
            assert_memory_equal(files.items[k], "train/", 6);
        }
    }
    assert_int_equal(images, 60);
    assert_int_equal(pairs, 14 * 3); /* 42 of train: 14 groups of three */
    char *text = (char *)support_read(readme, NULL);
    assert_non_null(strstr(text, "\nLicense: CC0 1.0\n"));
    free(text);
    lines_free(&files);
    free(readme);
    free(out);
    support_tmpdir_remove(dir);
}

static void roboflow_tables_agree_with_the_files(void **state)
{
    (void)state;
    static const char *const splits[] = {"train", "valid", "test"};
    char *dir = support_tmpdir(), *multi = support_path("%s/m", dir), *coco = support_path("%s/c", dir);
    support_expect(0, "sample", multi, "--layout", "roboflow", "--variant", "multi-class", "--size", "40",
                   (char *)NULL);
    support_expect(0, "sample", coco, "--layout", "roboflow", "--variant", "coco", "--size", "40", (char *)NULL);
    size_t rows = 0, several = 0, none = 0, unlabeled = 0;
    for (int s = 0; s < 3; s++) {
        char *csv = support_path("%s/%s/_classes.csv", multi, splits[s]);
        size_t len;
        char *text = (char *)support_read(csv, &len);
        assert_int_not_equal(text[len - 1], '\n');
        lines table = split(text, "\n");
        json_t *doc = load(coco, splits[s], "/_annotations.coco", ".json"), *images = json_object_get(doc, "images");
        assert_non_null(strstr(table.items[0], "filename, Unlabeled, arrow, "));
        assert_int_equal(json_array_size(images), table.count - 1);
        for (size_t i = 1; i < table.count; i++, rows++) {
            lines cells = split(support_path("%s", table.items[i]), ", ");
            char *path = support_path("%s/%s/%s", multi, splits[s], cells.items[0]);
            assert_true(support_exists(path));
            assert_int_equal(cells.count, 12);
            size_t set = 0;
            for (size_t k = 2; k < 12; k++)
                set += *cells.items[k] == '1';
            several += set > 1;
            none += set == 0;
            unlabeled += *cells.items[1] == '1';
            assert_true(*cells.items[1] == '0' || set == 0);
            free(path);
            lines_free(&cells);
        }
        size_t i;
        json_t *box;
        json_array_foreach(json_object_get(doc, "annotations"), i, box)
        {
            assert_int_equal(integer(box, "id"), i);
            assert_in_range(integer(box, "category_id"), 1, 10);
            json_t *image = json_array_get(images, (size_t)integer(box, "image_id"));
            json_t *at = json_object_get(box, "bbox");
            assert_non_null(image);
            assert_true(number(at, 0) >= 0 && number(at, 0) + number(at, 2) <= (double)integer(image, "width"));
            assert_true(number(at, 1) >= 0 && number(at, 1) + number(at, 3) <= (double)integer(image, "height"));
        }
        json_decref(doc);
        lines_free(&table);
        free(csv);
    }
    assert_true(rows == 120 && several > 10 && none > unlabeled && unlabeled > 0);
    free(multi);
    free(coco);
    support_tmpdir_remove(dir);
}

/* ---- coco ----------------------------------------------------------------------------------------------------- */

static const json_t *image_of(const json_t *doc, json_int_t id)
{
    size_t i;
    json_t *image;
    json_array_foreach(json_object_get(doc, "images"), i, image)
    {
        if (integer(image, "id") == id)
            return image;
    }
    fail_msg("an annotation of image %lld, which is not there", (long long)id);
    return NULL;
}

/* Runs of 0 and 1 in turn, down the columns: they fill the picture, and every 1 is a pixel inside the box. */
static void check_crowd(const json_t *annotation, const json_t *image)
{
    const json_t *rle = json_object_get(annotation, "segmentation"), *counts = json_object_get(rle, "counts");
    const json_t *box = json_object_get(annotation, "bbox");
    json_int_t width = integer(image, "width"), height = integer(image, "height"), at = 0, covered = 0;
    for (size_t i = 0; i < json_array_size(counts); i++)
        for (json_int_t run = (json_int_t)number(counts, i); run; run--, at++) {
            double x = (double)(at / height) + .5 - number(box, 0), y = (double)(at % height) + .5 - number(box, 1);
            assert_true(i % 2 == 0 || (x > -.01 && y > -.01 && x < number(box, 2) + .01 && y < number(box, 3) + .01));
            covered += i % 2;
        }
    assert_int_equal(at, width * height);
    assert_true((double)covered == json_number_value(json_object_get(annotation, "area")) && covered > 0);
    assert_true(number(json_object_get(rle, "size"), 0) == (double)height);
}

static void check_polygon(const json_t *annotation)
{
    const json_t *points = json_array_get(json_object_get(annotation, "segmentation"), 0);
    const json_t *box = json_object_get(annotation, "bbox");
    assert_true(json_array_size(points) >= 6 && json_array_size(points) % 2 == 0);
    for (size_t i = 0; i < json_array_size(points); i++) {
        double low = number(box, i % 2), size = number(box, 2 + i % 2);
        assert_true(number(points, i) >= low - .02 && number(points, i) <= low + size + .02);
    }
}

static void coco_annotations_fit_their_images(void **state)
{
    (void)state;
    char *dir = support_tmpdir(), *out = support_path("%s/d", dir);
    support_expect(0, "sample", out, "--layout", "coco", "--images", "60", "--size", "60:90", (char *)NULL);
    static const char *const splits[] = {"train", "val"};
    for (int s = 0; s < 2; s++) {
        json_t *doc = load(out, "annotations/instances_", splits[s], "2017.json"), *a, *image;
        json_t *people = load(out, "annotations/person_keypoints_", splits[s], "2017.json");
        json_t *words = load(out, "annotations/captions_", splits[s], "2017.json");
        size_t i, crowds = 0, persons = 0, images = json_array_size(json_object_get(doc, "images"));
        json_int_t last = 0;
        bool gap = false;
        json_array_foreach(json_object_get(doc, "categories"), i, a)
        {
            assert_true(integer(a, "id") > last);
            gap |= integer(a, "id") > last + 1;
            last = integer(a, "id");
        }
        assert_true(gap);
        json_array_foreach(json_object_get(doc, "images"), i, image)
        {
            char *path = support_path("%s/%s2017/%s", out, splits[s], string(image, "file_name"));
            size_t len;
            uint8_t *bytes = support_read(path, &len);
            assert_true(is_jpeg(bytes, len));
            free(bytes);
            free(path);
        }
        json_array_foreach(json_object_get(doc, "annotations"), i, a)
        {
            const json_t *of = image_of(doc, integer(a, "image_id"));
            persons += integer(a, "category_id") == 1;
            crowds += integer(a, "iscrowd") == 1;
            if (integer(a, "iscrowd"))
                check_crowd(a, of);
            else
                check_polygon(a);
        }
        assert_int_equal(crowds, 1);
        assert_true(persons > 0);
        assert_int_equal(json_array_size(json_object_get(people, "annotations")), persons);
        json_array_foreach(json_object_get(people, "annotations"), i, a)
            assert_int_equal(json_array_size(json_object_get(a, "keypoints")), 51);
        size_t captions = json_array_size(json_object_get(words, "annotations"));
        assert_int_equal(captions % 5, 0);
        assert_true(captions / 5 < images); /* some pictures are empty */
        json_decref(doc);
        json_decref(people);
        json_decref(words);
    }
    free(out);
    support_tmpdir_remove(dir);
}

/* ---- newyorker ------------------------------------------------------------------------------------------------ */

/* The named entry of a zip; "" asks only for the number of entries. */
static char *unzip(const char *dir, const char *zip, const char *name, size_t *entries)
{
    char *path = support_path("%s/%s", dir, zip), *text = NULL;
    struct archive *a = archive_read_new();
    struct archive_entry *e;
    archive_read_support_format_zip(a);
    if (archive_read_open_filename(a, path, 65536) != ARCHIVE_OK)
        fail_msg("%s: %s", path, archive_error_string(a));
    for (*entries = 0; archive_read_next_header(a, &e) == ARCHIVE_OK; ++*entries) {
        if (strcmp(archive_entry_pathname(e), name) != 0)
            continue;
        size_t len = (size_t)archive_entry_size(e);
        text = calloc(len + 1, 1);
        assert_non_null(text);
        assert_int_equal(archive_read_data(a, text, len), len);
    }
    archive_read_free(a);
    free(path);
    return text;
}

static void newyorker_rows_name_their_cartoon(void **state)
{
    (void)state;
    char *dir = support_tmpdir(), *out = support_path("%s/d", dir);
    support_expect(0, "sample", out, "--layout", "newyorker", "--images", "40", "--size", "48", (char *)NULL);
    static const struct {
        const char *name;
        size_t rows;
    } splits[] = {{"matching/train.jsonl", 28 * 6}, {"matching/val.jsonl", 8}, {"matching/test.jsonl", 4}};
    size_t entries;
    for (int s = 0; s < 3; s++) {
        lines rows = split(unzip(out, "matching.zip", splits[s].name, &entries), "\n");
        assert_int_equal(entries, 3);
        assert_int_equal(rows.count, splits[s].rows);
        for (size_t i = 0; i < rows.count; i++) {
            json_t *row = json_loads(rows.items[i], JSON_REJECT_DUPLICATES, NULL);
            assert_non_null(row);
            assert_int_equal(json_object_size(row), 11);
            const char *label = string(row, "label"), *told = string(row, "image_description");
            const json_t *choices = json_object_get(row, "caption_choices");
            assert_true(strlen(label) == 1 && *label >= 'A' && *label <= 'E' && json_array_size(choices) == 5);
            assert_int_equal(strlen(string(row, "instance_id")), 32);
            /* The first entity is the subject: told, and named by the right caption alone. */
            char *subject = support_path(
                "%s", strrchr(json_string_value(json_array_get(json_object_get(row, "entities"), 0)), '/') + 1);
            *subject = (char)(*subject - 'A' + 'a');
            assert_non_null(strstr(told, subject));
            for (size_t k = 0; k < 5; k++)
                assert_int_equal(strstr(json_string_value(json_array_get(choices, k)), subject) != NULL,
                                 k == (size_t)(*label - 'A'));
            free(subject);
            json_decref(row);
        }
        lines_free(&rows);
    }
    char *a = unzip(out, "all_contest_images.zip", "all_contest_images/103.jpeg", &entries);
    char *b = unzip(out, "all_contest_images.zip", "all_contest_images/104.jpeg", &entries);
    assert_int_equal(entries, 40);
    assert_non_null(a);
    assert_non_null(b);
    assert_memory_equal(a, b, 500);
    assert_memory_equal(a, "\xff\xd8\xff", 3);
    free(a);
    free(b);
    free(out);
    support_tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(imagenette_csv_names_every_picture),   cmocka_unit_test(roboflow_copies_stay_in_train),
        cmocka_unit_test(roboflow_tables_agree_with_the_files), cmocka_unit_test(coco_annotations_fit_their_images),
        cmocka_unit_test(newyorker_rows_name_their_cartoon),
    };
    return cmocka_run_group_tests_name("sample files", tests, NULL, NULL);
}
