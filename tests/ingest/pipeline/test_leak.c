/* test_leak.c - what is a leak between splits: equal bytes, or one name, one label and pictures that look alike.
 * Invariant: each test draws its own Roboflow export; what is said is compared to the letter. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "support/alike.h"

static char *dir, *source;

static int set_up(void **state)
{
    (void)state;
    dir = support_tmpdir();
    source = support_path("%s/export", dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(source);
    support_tmpdir_remove(dir);
    return 0;
}

static void put(const char *name, uint64_t seed, alike_edit edit, enum alike_codec codec)
{
    char *path = support_path("%s/%s", source, name);
    alike_write(seed, edit, codec, path);
    free(path);
}

static void put_bytes(const char *name, picture file)
{
    char *path = support_path("%s/%s", source, name);
    support_write(path, file.bytes, file.len);
    picture_free(&file);
    free(path);
}

/* Each kind's lines as "FILE: REASON\n", then what --fail-on-leak and --fail-on-leak=alike end with. */
static void expect(const char *leaks, const char *same_names, int equal, int alike)
{
    static const char *const kinds[] = {"leaks", "same_names"};
    const char *const wanted[] = {leaks, same_names};
    support_result r = support_millrace("ingest", source, "--dry-run", "--json", (char *)NULL);
    support_assert_status(&r, 0);
    json_t *doc = json_loads(r.out, 0, NULL);
    for (size_t k = 0; k < MR_COUNT(kinds); k++) {
        mr_buf lines = {0};
        json_t *list = json_object_get(doc, kinds[k]);
        for (size_t i = 0; i < json_array_size(list); i++)
            mr_buf_printf(&lines, "%s: %s\n", json_string_value(json_object_get(json_array_get(list, i), "file")),
                          json_string_value(json_object_get(json_array_get(list, i), "reason")));
        assert_string_equal(mr_buf_text(&lines), wanted[k]);
        assert_int_equal(json_integer_value(json_object_get(json_object_get(doc, "counts"), kinds[k])),
                         json_array_size(list));
        mr_buf_free(&lines);
    }
    json_decref(doc);
    support_result_free(&r);
    support_expect(equal, "ingest", source, "--dry-run", "--quiet", "--fail-on-leak", (char *)NULL);
    support_expect(alike, "ingest", source, "--dry-run", "--quiet", "--fail-on-leak=alike", (char *)NULL);
}

#define COPY "copies of one picture (they look alike), in train and val: also "

/* ---- two files ------------------------------------------------------------------------------------------------- */

static void test_equal_bytes_are_proof(void **state)
{
    (void)state;
    put("train/daisy/a_jpg.rf.01.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    put("valid/daisy/a_jpg.rf.02.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    put("valid/rose/other.jpg", 2, (alike_edit){0}, ALIKE_JPEG);
    put("test/daisy/b_jpg.rf.03.jpg", 2, (alike_edit){0}, ALIKE_JPEG);
    expect(
        "test/daisy/b_jpg.rf.03.jpg: equal bytes (with different labels), in val and test: also valid/rose/other.jpg\n"
        "valid/daisy/a_jpg.rf.02.jpg: equal bytes, in train and val: also train/daisy/a_jpg.rf.01.jpg\n",
        "", 1, 1);
}

static void test_one_name_and_pictures_that_look_alike(void **state)
{
    (void)state;
    static const alike_edit edits[] = {
        {.mirror = true}, {.gain = 0.7}, {.degrees = 7, .cut = 2}, {.quarters = 1}, {.zoom = 0.1},
    };
    mr_buf leaks = {0};
    for (unsigned i = 0; i < MR_COUNT(edits); i++) {
        char *original = support_path("train/daisy/p%u_jpg.rf.0.jpg", i);
        char *copy = support_path("valid/daisy/p%u_jpg.rf.1.jpg", i);
        put(original, 10 + i, (alike_edit){0}, i % 2 ? ALIKE_JPEG : ALIKE_PNG);
        put(copy, 10 + i, edits[i], i % 3 ? ALIKE_JPEG : ALIKE_WEBP);
        mr_buf_printf(&leaks, "%s: " COPY "%s\n", copy, original);
        free(original);
        free(copy);
    }
    expect(mr_buf_text(&leaks), "", 0, 1);
    mr_buf_free(&leaks);
}

static void test_one_name_and_other_pictures(void **state)
{
    (void)state;
    put("train/daisy/a_jpg.rf.01.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    put("valid/daisy/a_jpg.rf.02.jpg", 2, (alike_edit){0}, ALIKE_JPEG);
    expect("",
           "valid/daisy/a_jpg.rf.02.jpg: same name, but different pictures, in train and val: also "
           "train/daisy/a_jpg.rf.01.jpg\n",
           0, 0);
}

static void test_one_name_and_another_label(void **state)
{
    (void)state;
    put("train/daisy/a_jpg.rf.01.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    put("valid/rose/a_jpg.rf.02.jpg", 1, (alike_edit){.mirror = true}, ALIKE_JPEG);
    put("train/daisy/b_jpg.rf.01.jpg", 2, (alike_edit){0}, ALIKE_JPEG);
    put("valid/rose/b_jpg.rf.not-hex!.jpg", 3, (alike_edit){0}, ALIKE_JPEG);
    expect(
        "",
        "valid/rose/a_jpg.rf.02.jpg: same name, and the pictures look alike, but different labels, in train and val: "
        "also train/daisy/a_jpg.rf.01.jpg\n"
        "valid/rose/b_jpg.rf.not-hex!.jpg: same name, but different labels and pictures, in train and val: also "
        "train/daisy/b_jpg.rf.01.jpg\n",
        0, 0);
}

static void test_pictures_that_tell_nothing(void **state)
{
    (void)state;
    mr_picture photo = alike_photo(1, 240, 180), red = alike_tone(200, 20, 20), dark = alike_tone(190, 20, 20);
    picture whole = alike_file(&photo, ALIKE_JPEG), broken = picture_copy(whole.bytes, whole.len);
    memset(broken.bytes + broken.len / 2, 0x55, broken.len / 2 - 2); /* the header and the end are in order */
    put_bytes("train/daisy/a_jpg.rf.01.jpg", whole);
    put_bytes("valid/daisy/a_jpg.rf.02.jpg", broken);
    put_bytes("train/daisy/b_jpg.rf.01.jpg", alike_file(&red, ALIKE_PNG));
    put_bytes("valid/daisy/b_jpg.rf.02.jpg", alike_file(&dark, ALIKE_JPEG));
    expect("",
           "valid/daisy/a_jpg.rf.02.jpg: same name, but one picture cannot be decoded, in train and val: also "
           "train/daisy/a_jpg.rf.01.jpg\n"
           "valid/daisy/b_jpg.rf.02.jpg: same name, but one picture has a single tone, in train and val: also "
           "train/daisy/b_jpg.rf.01.jpg\n",
           0, 0);
    mr_picture_free(&photo);
    mr_picture_free(&red);
    mr_picture_free(&dark);
}

static void test_copies_within_a_split_are_none(void **state)
{
    (void)state;
    put("train/daisy/a_jpg.rf.01.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    put("train/daisy/a_jpg.rf.02.jpg", 1, (alike_edit){.mirror = true}, ALIKE_JPEG);
    put("train/daisy/b_jpg.rf.01.jpg", 1, (alike_edit){.gain = 0.8}, ALIKE_JPEG);
    put("valid/daisy/c_jpg.rf.01.jpg", 2, (alike_edit){0}, ALIKE_JPEG);
    put("valid/daisy/d_jpg.rf.01.jpg", 1, (alike_edit){.gain = 0.9}, ALIKE_JPEG); /* no suspect: another name */
    expect("", "", 0, 0);
    support_result r = support_millrace("ingest", source, "--dry-run", (char *)NULL);
    assert_non_null(strstr(r.out, "no image rejected, no leak between splits"));
    support_result_free(&r);
}

/* ---- groups ---------------------------------------------------------------------------------------------------- */

/* Two originals of one name: one line for each that leaks, and none for what differs between them. */
static void test_two_originals_of_one_name(void **state)
{
    (void)state;
    put("train/daisy/a_jpg.rf.01.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    put("train/daisy/a_jpg.rf.02.jpg", 2, (alike_edit){0}, ALIKE_JPEG);
    put("train/daisy/a_jpg.rf.03.jpg", 1, (alike_edit){.gain = 0.8}, ALIKE_JPEG);
    put("valid/daisy/a_jpg.rf.04.jpg", 2, (alike_edit){.mirror = true}, ALIKE_JPEG);
    put("valid/daisy/a_jpg.rf.05.jpg", 1, (alike_edit){.degrees = 5}, ALIKE_JPEG);
    put("test/daisy/a_jpg.rf.06.jpg", 3, (alike_edit){0}, ALIKE_JPEG);
    expect("valid/daisy/a_jpg.rf.04.jpg: " COPY "train/daisy/a_jpg.rf.02.jpg\n"
           "valid/daisy/a_jpg.rf.05.jpg: " COPY "train/daisy/a_jpg.rf.01.jpg\n",
           "", 0, 1);
}

/* Equal bytes are said once; a copy beside them is another leak. */
static void test_equal_bytes_in_a_group(void **state)
{
    (void)state;
    put("train/daisy/a_jpg.rf.01.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    put("valid/daisy/a_jpg.rf.02.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    put("train/daisy/b_jpg.rf.01.jpg", 2, (alike_edit){0}, ALIKE_JPEG);
    put("train/daisy/b_jpg.rf.02.jpg", 2, (alike_edit){.mirror = true}, ALIKE_JPEG);
    put("valid/daisy/b_jpg.rf.03.jpg", 2, (alike_edit){0}, ALIKE_JPEG);
    expect("valid/daisy/a_jpg.rf.02.jpg: equal bytes, in train and val: also train/daisy/a_jpg.rf.01.jpg\n"
           "valid/daisy/b_jpg.rf.03.jpg: " COPY "train/daisy/b_jpg.rf.02.jpg\n"
           "valid/daisy/b_jpg.rf.03.jpg: equal bytes, in train and val: also train/daisy/b_jpg.rf.01.jpg\n",
           "", 1, 1);
}

/* A leak with the same label is not hidden by a copy that has another. */
static void test_labels_in_a_group(void **state)
{
    (void)state;
    put("train/rose/a_jpg.rf.01.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    put("train/tulip/a_jpg.rf.02.jpg", 1, (alike_edit){.mirror = true}, ALIKE_JPEG);
    put("valid/rose/a_jpg.rf.03.jpg", 1, (alike_edit){.gain = 0.8}, ALIKE_JPEG);
    put("valid/daisy/b_jpg.rf.01.jpg", 2, (alike_edit){0}, ALIKE_JPEG);
    expect("valid/rose/a_jpg.rf.03.jpg: " COPY "train/rose/a_jpg.rf.01.jpg\n", "", 0, 1);
}

/* A name that hundreds of files share: a bound on what is compared, every split has its share, and it is said. */
static void test_too_many_of_one_name(void **state)
{
    (void)state;
    enum { FILES = 300 };
    mr_picture photo = alike_photo(1, 64, 48), again = alike_copy(&photo, (alike_edit){.gain = 0.8});
    for (unsigned i = 0; i < FILES; i++) {
        char *name = support_path("train/daisy/image.rf.%04u.jpg", i);
        mr_picture shade = alike_copy(&photo, (alike_edit){.offset = i % 40, .noise = 1 + i / 40});
        put_bytes(name, alike_file(&shade, ALIKE_JPEG));
        mr_picture_free(&shade);
        free(name);
    }
    put_bytes("valid/daisy/image.rf.9999.jpg", alike_file(&again, ALIKE_JPEG));
    expect("valid/daisy/image.rf.9999.jpg: " COPY "train/daisy/image.rf.0000.jpg\n",
           "valid/daisy/image.rf.9999.jpg: same name (301 files have it, too many to compare them all), in train and "
           "val: also "
           "train/daisy/image.rf.0000.jpg\n",
           0, 1);
    mr_picture_free(&photo);
    mr_picture_free(&again);
}

/* More pictures under one name than are told apart. */
static void test_too_many_pictures_of_one_name(void **state)
{
    (void)state;
    enum { PICTURES = 18 };
    for (unsigned i = 0; i < PICTURES; i++) {
        char *name = support_path("train/daisy/image.rf.%04u.jpg", i);
        put(name, 200 + i, (alike_edit){0}, ALIKE_JPEG);
        free(name);
    }
    put("valid/daisy/image.rf.8888.jpg", 200 + PICTURES, (alike_edit){0}, ALIKE_JPEG);
    expect(
        "",
        "valid/daisy/image.rf.8888.jpg: same name (19 files have it, too many to compare them all), in train and val: "
        "also train/daisy/image.rf.0000.jpg\n",
        0, 0);
}

/* ---- labels of other exports ----------------------------------------------------------------------------------- */

static void put_text(const char *name, const char *text)
{
    char *path = support_path("%s/%s", source, name);
    support_write_text(path, text);
    free(path);
}

/* Sets of labels are equal whatever the order of the columns. */
static void test_several_labels(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b", "c"};
    for (unsigned i = 0; i < 3; i++) {
        char *one = support_path("train/%s_jpg.rf.1.jpg", names[i]),
             *two = support_path("valid/%s_jpg.rf.2.jpg", names[i]);
        put(one, 1 + i, (alike_edit){0}, ALIKE_JPEG);
        put(two, 1 + i, (alike_edit){.mirror = true}, ALIKE_JPEG);
        free(one);
        free(two);
    }
    put_text("train/_classes.csv", "filename, red, blue, round\na_jpg.rf.1.jpg, 1, 0, 1\nb_jpg.rf.1.jpg, 1, 1, 0\n"
                                   "c_jpg.rf.1.jpg, 1, 0, 0\n");
    put_text("valid/_classes.csv", "filename, round, red, blue\na_jpg.rf.2.jpg, 1, 1, 0\nb_jpg.rf.2.jpg, 1, 1, 0\n"
                                   "c_jpg.rf.2.jpg, 0, 1, 1\n");
    expect("valid/a_jpg.rf.2.jpg: " COPY "train/a_jpg.rf.1.jpg\n",
           "valid/b_jpg.rf.2.jpg: same name, and the pictures look alike, but different labels, in train and val: also "
           "train/b_jpg.rf.1.jpg\n"
           "valid/c_jpg.rf.2.jpg: same name, and the pictures look alike, but different labels, in train and val: also "
           "train/c_jpg.rf.1.jpg\n",
           0, 1);
}

/* Boxes move with the pixels, so they are not labels. */
static void test_coco_exports(void **state)
{
    (void)state;
    put("train/a_jpg.rf.1.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    put("valid/a_jpg.rf.2.jpg", 1, (alike_edit){.mirror = true}, ALIKE_JPEG);
    static const char json[] = "{\"images\":[{\"id\":0,\"file_name\":\"a_jpg.rf.%d.jpg\",\"width\":200,\"height\":150}]"
                               ",\"categories\":[{\"id\":0,"
                               "\"name\":\"pen\"}],\"annotations\":[{\"id\":0,\"image_id\":0,\"category_id\":0,"
                               "\"bbox\":[%d,20,30,40],\"area\":1200,"
                               "\"iscrowd\":0}]}";
    for (int i = 1; i <= 2; i++) {
        char *text = support_path(json, i, i == 1 ? 10 : 160);
        put_text(i == 1 ? "train/_annotations.coco.json" : "valid/_annotations.coco.json", text);
        free(text);
    }
    expect("valid/a_jpg.rf.2.jpg: " COPY "train/a_jpg.rf.1.jpg\n", "", 0, 1);
}

/* No label contradicts none. */
static void test_files_without_a_label(void **state)
{
    (void)state;
    put("train/daisy/a_jpg.rf.1.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    put("valid/daisy/b_jpg.rf.1.jpg", 2, (alike_edit){0}, ALIKE_JPEG);
    put("valid/a_jpg.rf.2.jpg", 1, (alike_edit){.mirror = true}, ALIKE_JPEG);
    support_result r =
        support_millrace("ingest", source, "--dry-run", "--keep-unlisted", "--fail-on-leak=alike", (char *)NULL);
    support_assert_status(&r, 1);
    assert_non_null(strstr(r.err, "valid/a_jpg.rf.2.jpg: " COPY "train/daisy/a_jpg.rf.1.jpg\n"));
    assert_non_null(
        strstr(r.err, "millrace: 1 leak between splits, and --fail-on-leak=alike is given; nothing was written\n"));
    support_result_free(&r);
}

/* ---- how it runs ------------------------------------------------------------------------------------------------ */

static void draw_many(void)
{
    for (unsigned i = 0; i < 12; i++)
        for (unsigned k = 0; k < 4; k++) {
            char *name =
                support_path("%s/%s/p%u_jpg.rf.%u.jpg", k == 3 ? "valid" : "train", i % 3 ? "rose" : "daisy", i, k);
            put(name, 50 + i + (i % 4 == 3 && k == 3 ? 100 : 0), (alike_edit){.mirror = k & 1, .degrees = 3 * k},
                ALIKE_JPEG);
            free(name);
        }
}

static char *report_of(const char *target)
{
    char *path = support_path("%s/report.json", target);
    char *text = (char *)support_read(path, NULL);
    free(path);
    return text;
}

/* The report and every byte of the dataset are those of one thread. */
static void test_jobs_and_ranks_agree(void **state)
{
    (void)state;
    draw_many();
    char *one = support_path("%s/one", dir), *four = support_path("%s/four", dir),
         *ranks = support_path("%s/ranks", dir);
    support_expect(0, "ingest", source, one, "--jobs=1", "--quiet", (char *)NULL);
    support_expect(0, "ingest", source, four, "--jobs=4", "--quiet", (char *)NULL);
    char *report = report_of(one), *other = report_of(four);
    assert_string_equal(report, other);
    assert_int_equal(support_occurrences(report, "copies of one picture"), 9);
    assert_int_equal(support_occurrences(report, "same name, but different pictures"), 3);
    free(other);
    const char *argv[] = {support_millrace_path(), "ingest", source, ranks, "--quiet", NULL};
    support_result r = support_mpirun(3, argv);
    support_assert_status(&r, 0);
    support_result_free(&r);
    other = report_of(ranks);
    assert_string_equal(report, other);
    assert_true(support_dataset_hash(one) == support_dataset_hash(ranks));
    free(other);
    free(report);
    free(one);
    free(four);
    free(ranks);
}

static void test_ranks_end_together(void **state)
{
    (void)state;
    draw_many();
    char *target = support_path("%s/never", dir);
    const char *argv[] = {support_millrace_path(), "ingest", source, target, "--quiet", "--fail-on-leak=alike", NULL};
    support_result r = support_mpirun(2, argv);
    support_assert_status(&r, 1);
    assert_false(support_exists(target));
    support_result_free(&r);
    free(target);
}

static void test_words(void **state)
{
    (void)state;
    put("train/daisy/a_jpg.rf.01.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    put("valid/daisy/a_jpg.rf.02.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    SAYS(dir, 2, "",
         "millrace ingest: --fail-on-leak all: use none, equal or alike\n"
         "Try 'millrace ingest --help'.\n",
         "ingest", "export", "--dry-run", "--fail-on-leak=all");
    SAYS(dir, 2, "", NULL, "ingest", "export", "--dry-run", "--fail-on-leak=");
    SAYS(dir, 1, "",
         "leaks between splits: 1\n"
         "  valid/daisy/a_jpg.rf.02.jpg: equal bytes, in train and val: also train/daisy/a_jpg.rf.01.jpg\n"
         "millrace: 1 leak between splits by equal bytes, and --fail-on-leak is given; nothing was written\n",
         "ingest", "export", "--dry-run", "--fail-on-leak");
}

static void test_real_exports(void **state)
{
    (void)state;
    char *folder = support_data("roboflow/multiclass_panneau");
    if (!folder)
        skip();
    free(source);
    source = folder;
    expect("test/znak1222-_jpg.rf.34ba6c372fd8441de303c151fd9acbba.jpg: copies of one picture (they look "
           "alike), in val and test: also valid/znak1222-_jpg.rf.ca42f6d51e348b510a2741d8cd6de6d2.jpg\n",
           "test/images_png.rf.4367fdc755d197b54d2d5ceea29ddfbe.jpg: same name, but different labels and pictures, in "
           "val and test: also valid/images_png.rf.6d57e82f9ebe32a74b5430d347420375.jpg\n",
           0, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_equal_bytes_are_proof),
        TEST(test_one_name_and_pictures_that_look_alike),
        TEST(test_one_name_and_other_pictures),
        TEST(test_one_name_and_another_label),
        TEST(test_pictures_that_tell_nothing),
        TEST(test_copies_within_a_split_are_none),
        TEST(test_two_originals_of_one_name),
        TEST(test_equal_bytes_in_a_group),
        TEST(test_labels_in_a_group),
        TEST(test_too_many_of_one_name),
        TEST(test_too_many_pictures_of_one_name),
        TEST(test_several_labels),
        TEST(test_coco_exports),
        TEST(test_files_without_a_label),
        TEST(test_jobs_and_ranks_agree),
        TEST(test_ranks_end_together),
        TEST(test_words),
        TEST(test_real_exports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
