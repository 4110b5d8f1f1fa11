/* test_sample.c - `millrace sample`: equal arguments give equal bytes; wrong use is refused; pictures decode. */
#include "tests/support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include <jpeglib.h>
#include <spng.h>

#include "ingest/sample/sample.h"

/* Small pictures: what is tested does not depend on their size. `variant`: "" where the layout has one form. */
static void draw(const char *dir, const char *layout, const char *variant, const char *seed)
{
    char *option = support_path("--variant=%s", variant);
    support_expect(0, "sample", dir, "--layout", layout, "--images", "24", "--size", "40:64", "--seed", seed,
                   *variant ? option : NULL, (char *)NULL);
    free(option);
}

static void check_form(const char *layout, const char *variant)
{
    static const char *const seeds[] = {"5", "5", "6"};
    char *dir = support_tmpdir();
    uint64_t hashes[3];
    for (int i = 0; i < 3; i++) {
        char *name = support_path("%s/%d", dir, i);
        /* A zip knows local time: another zone must change nothing. */
        setenv("TZ", i == 1 ? "Asia/Tokyo" : "UTC", 1);
        draw(name, layout, variant, seeds[i]);
        hashes[i] = support_tree_hash(name);
        free(name);
    }
    unsetenv("TZ");
    if (hashes[0] != hashes[1] || hashes[0] == hashes[2])
        fail_msg("%s %s: equal seeds %s bytes, other seeds %s bytes", layout, variant,
                 hashes[0] == hashes[1] ? "equal" : "other", hashes[0] == hashes[2] ? "equal" : "other");
    support_tmpdir_remove(dir);
}

static void equal_arguments_give_equal_bytes(void **state)
{
    (void)state;
    size_t forms = 0;
    for (size_t i = 0; mr_sketch_layouts[i]; i++) {
        const mr_sketch_layout *l = mr_sketch_layouts[i];
        char *words = support_path("%s", l->variants), *rest = NULL;
        char *word = strtok_r(words, " ", &rest);
        do {
            check_form(l->name, word ? word : "");
            forms++;
        } while (word && (word = strtok_r(NULL, " ", &rest)));
        free(words);
    }
    assert_true(forms >= 7);
}

/* ---- wrong use ------------------------------------------------------------------------------------------------ */

static void refused(const char *what, const char *const *args)
{
    char *dir = support_tmpdir();
    const char *argv[16] = {support_millrace_path(), "sample"};
    for (size_t i = 0; args[i]; i++)
        argv[i + 2] = args[i];
    support_limits limits = {.directory = dir};
    support_result r = support_run(argv, &limits);
    support_assert_status(&r, 2);
    if (!strstr(r.err, what))
        fail_msg("the message lacks \"%s\":\n%s", what, r.err);
    assert_int_equal(r.out_len, 0);
    char *left = support_list(dir);
    assert_string_equal(left, "");
    free(left);
    support_result_free(&r);
    support_tmpdir_remove(dir);
}

#define REFUSED(what, ...) refused(what, (const char *const[]){__VA_ARGS__, NULL})

static void wrong_use_is_refused(void **state)
{
    (void)state;
    REFUSED("DIR is missing", "--layout", "coco");
    REFUSED("--layout is missing", "x");
    REFUSED("did you mean coco", "x", "--layout", "cocoo");
    REFUSED("use imagenette, roboflow, coco or newyorker", "x", "--layout", "zzzzzzzzzzzzzzzz");
    REFUSED("--images", "x", "--layout", "coco", "--images", "9");
    REFUSED("--images", "x", "--layout", "coco", "--images", "100001");
    REFUSED("--images", "x", "--layout", "coco", "--images", "many");
    REFUSED("--images", "x", "--layout", "coco", "--images=-20");
    REFUSED("--seed", "x", "--layout", "coco", "--seed", "1.5");
    REFUSED("--size", "x", "--layout", "coco", "--size", "8");
    REFUSED("--size", "x", "--layout", "coco", "--size", "64:5000");
    REFUSED("smaller side comes first", "x", "--layout", "coco", "--size", "80:64");
    REFUSED("--size", "x", "--layout", "coco", "--size", ":");
    REFUSED("only one form", "x", "--layout", "coco", "--variant", "folder");
    REFUSED("roboflow has folder multi-class", "x", "--layout", "roboflow", "--variant", "yolo");
    REFUSED("--variant: the value is empty", "x", "--layout", "roboflow", "--variant", "");
    REFUSED("unexpected argument", "x", "y", "--layout", "coco");
    REFUSED("--layout", "x", "--layuot", "coco");
}

static void a_folder_with_anything_in_it_is_left_alone(void **state)
{
    (void)state;
    char *dir = support_tmpdir(), *file = support_path("%s/mine.txt", dir), *empty = support_path("%s/empty", dir);
    support_write_text(file, "mine");
    support_result r = support_millrace("sample", dir, "--layout", "coco", (char *)NULL);
    support_assert_status(&r, 2);
    assert_non_null(strstr(r.err, "not empty"));
    support_result_free(&r);
    r = support_millrace("sample", file, "--layout", "coco", (char *)NULL);
    support_assert_status(&r, 2);
    assert_non_null(strstr(r.err, "not a folder"));
    support_result_free(&r);
    char *left = support_list(dir);
    assert_string_equal(left, "mine.txt\n");
    char *lost = support_path("%s/lost", dir);
    assert_int_equal(symlink("nowhere", lost), 0);
    r = support_millrace("sample", lost, "--layout", "coco", (char *)NULL);
    support_assert_status(&r, 2);
    assert_non_null(strstr(r.err, "lost: is a dangling link"));
    support_result_free(&r);
    char *slashes = support_path("%s//", lost);
    r = support_millrace("sample", slashes, "--layout", "coco", (char *)NULL);
    support_assert_status(&r, 2);
    support_result_free(&r);
    free(slashes);
    assert_int_equal(unlink(lost), 0); /* it stayed */
    free(lost);
    free(left);
    assert_int_equal(mkdir(empty, 0777), 0);
    draw(empty, "imagenette", "", "1");
    free(empty);
    free(file);
    support_tmpdir_remove(dir);
}

static void a_full_disk_is_exit_3_and_leaves_nothing(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    for (size_t i = 0; mr_sketch_layouts[i]; i++) {
        const char *argv[] = {support_millrace_path(), "sample", "x", "--layout", mr_sketch_layouts[i]->name, NULL};
        support_limits limits = {.directory = dir, .file_size = 2000};
        support_result r = support_run(argv, &limits);
        support_assert_status(&r, 3);
        assert_true(r.err_len > 0);
        support_result_free(&r);
        char *left = support_list(dir);
        assert_string_equal(left, "");
        free(left);
    }
    support_tmpdir_remove(dir);
}

static void the_summary_says_what_to_do_next(void **state)
{
    (void)state;
    char *dir = support_tmpdir(), *loud = support_path("%s/loud/", dir), *quiet = support_path("%s/quiet", dir);
    support_result r = support_millrace("sample", loud, "--layout", "imagenette", "--images", "10", (char *)NULL);
    support_assert_status(&r, 0);
    char *next = support_path("millrace ingest %s %s/loud-shards\n", loud, dir);
    assert_non_null(strstr(r.out, next));
    assert_non_null(strstr(r.out, "train 7, val 3"));
    support_result_free(&r);
    r = support_millrace("sample", quiet, "--layout", "imagenette", "--images", "10", "--quiet", (char *)NULL);
    support_assert_status(&r, 0);
    assert_int_equal(r.out_len + r.err_len, 0);
    support_result_free(&r);
    free(next);
    free(loud);
    free(quiet);
    support_tmpdir_remove(dir);
}

static void a_summary_that_cannot_be_written_is_exit_3(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    char *line = support_path("exec %s sample %s/x --layout coco --images 10 --size 40 > /dev/full",
                              support_millrace_path(), dir);
    const char *argv[] = {"sh", "-c", line, NULL};
    support_result r = support_run(argv, NULL);
    support_assert_status(&r, 3);
    assert_non_null(strstr(r.err, "standard output"));
    support_result_free(&r);
    free(line);
    support_tmpdir_remove(dir);
}

/* ---- pictures ------------------------------------------------------------------------------------------------- */

static void bad_jpeg(j_common_ptr info)
{
    char text[JMSG_LENGTH_MAX];
    info->err->format_message(info, text);
    fail_msg("JPEG: %s", text);
}

static void decode_jpeg(const mr_buf *file, mr_picture *out)
{
    struct jpeg_error_mgr errors;
    struct jpeg_decompress_struct jpeg = {.err = jpeg_std_error(&errors)};
    errors.error_exit = bad_jpeg;
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, file->data, file->len);
    assert_int_equal(jpeg_read_header(&jpeg, TRUE), JPEG_HEADER_OK);
    jpeg_start_decompress(&jpeg);
    *out = (mr_picture){jpeg.output_width, jpeg.output_height, (uint32_t)jpeg.output_components, NULL};
    out->pixels = calloc((size_t)out->width * out->height, out->channels);
    assert_non_null(out->pixels);
    while (jpeg.output_scanline < jpeg.output_height) {
        JSAMPROW row = out->pixels + (size_t)jpeg.output_scanline * out->width * out->channels;
        jpeg_read_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_decompress(&jpeg);
    assert_int_equal(errors.num_warnings, 0);
    jpeg_destroy_decompress(&jpeg);
}

static void decode_png(const mr_buf *file, mr_picture *out)
{
    struct spng_ihdr head;
    size_t size;
    spng_ctx *png = spng_ctx_new(0);
    assert_int_equal(spng_set_png_buffer(png, file->data, file->len), 0);
    assert_int_equal(spng_get_ihdr(png, &head), 0);
    assert_int_equal(spng_decoded_image_size(png, SPNG_FMT_PNG, &size), 0);
    *out = (mr_picture){head.width, head.height, head.color_type == SPNG_COLOR_TYPE_GRAYSCALE ? 1 : 3, malloc(size)};
    assert_int_equal(spng_decode_image(png, out->pixels, size, SPNG_FMT_PNG, 0), 0);
    spng_ctx_free(png);
}

/* PNG gives back every pixel; a JPEG of quality 95 stays near them on the whole. */
static void files_hold_the_picture(void **state)
{
    (void)state;
    for (int gray = 0; gray < 2; gray++) {
        mr_error err;
        mr_scene scene;
        mr_picture drawn, read;
        mr_buf png = {0}, jpeg = {0};
        mr_random r = support_random();
        mr_jpeg_style style = {.quality = 95, .full_chroma = true, .progressive = gray, .restart_rows = 1};
        mr_scene_begin(&scene, 90, 70, false, &r);
        assert_true(mr_scene_add(&scene, MR_SHAPE_star, .3, &r));
        scene.gray = gray;
        assert_int_equal(mr_scene_draw(&scene, &r, &drawn, &err), MR_OK);
        size_t len = (size_t)90 * 70 * drawn.channels;
        assert_int_equal(drawn.channels, gray ? 1 : 3);
        assert_int_equal(mr_picture_png(&drawn, &png, &err), MR_OK);
        decode_png(&png, &read);
        assert_int_equal(read.width, 90);
        assert_memory_equal(read.pixels, drawn.pixels, len);
        mr_picture_free(&read);
        assert_int_equal(mr_picture_jpeg(&drawn, &style, &jpeg, &err), MR_OK);
        decode_jpeg(&jpeg, &read);
        assert_int_equal(read.height, 70);
        assert_int_equal(read.channels, drawn.channels);
        double off = 0;
        for (size_t i = 0; i < len; i++)
            off += abs(read.pixels[i] - drawn.pixels[i]);
        assert_true(off / (double)len < 6);
        mr_picture_free(&read);
        mr_picture_free(&drawn);
        mr_buf_free(&png);
        mr_buf_free(&jpeg);
    }
}

/* Area by the polygon and area by counting covered pixel centres agree, inside the box, inside the picture. */
static void figures_measure_what_they_cover(void **state)
{
    (void)state;
    for (int shape = 0; shape < MR_SHAPE_COUNT; shape++) {
        mr_scene scene;
        mr_random r = support_random();
        mr_scene_begin(&scene, 240, 200, false, &r);
        assert_true(mr_scene_add(&scene, (mr_shape)shape, .4, &r));
        const mr_figure *f = &scene.figures[0];
        mr_box box = mr_figure_box(f);
        assert_true(box.x >= 0 && box.y >= 0 && box.x + box.width <= 240 && box.y + box.height <= 200);
        double covered = 0;
        for (int y = 0; y < 200; y++)
            for (int x = 0; x < 240; x++) {
                if (!mr_figure_covers(f, x + .5, y + .5))
                    continue;
                covered++;
                assert_true(x + 1 > box.x && y + 1 > box.y && x < box.x + box.width && y < box.y + box.height);
            }
        assert_true(covered > 1500);
        assert_true(fabs(covered - mr_figure_area(f)) < covered * .03);
        assert_true(fabs(box.width) <= 2 * f->radius * 1.01 && f->count <= MR_OUTLINE_MAX);
    }
}

static void numbers_are_short(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0"},      {12, "12"},   {1.1, "1.1"},   {3.25, "3.25"},  {12.3451, "12.35"},
                 {-.5, "-0.5"}, {7.001, "7"}, {0.05, "0.05"}, {-3.07, "-3.07"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mr_buf out = {0};
        mr_sketch_number(&out, cases[i].value);
        assert_string_equal(mr_buf_text(&out), cases[i].text);
        mr_buf_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_arguments_give_equal_bytes),
        cmocka_unit_test(wrong_use_is_refused),
        cmocka_unit_test(a_folder_with_anything_in_it_is_left_alone),
        cmocka_unit_test(a_full_disk_is_exit_3_and_leaves_nothing),
        cmocka_unit_test(the_summary_says_what_to_do_next),
        cmocka_unit_test(a_summary_that_cannot_be_written_is_exit_3),
        cmocka_unit_test(files_hold_the_picture),
        cmocka_unit_test(figures_measure_what_they_cover),
        cmocka_unit_test(numbers_are_short),
    };
    return cmocka_run_group_tests_name("sample", tests, NULL, NULL);
}
