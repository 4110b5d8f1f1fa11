/* test_report.c - `millrace report`: a page about a dataset.
 * Covers shards/report/page.c, shards/report/facts.c, shards/report/classes.c, shards/report/wall.c,
 * shards/report/figure.c, shards/report/thumb.c, shards/report/html.c, shards/report/words.c. Invariant tested: no text
 * of a dataset becomes markup; the page's numbers are the dataset's; equal datasets, equal bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "shards/report/html.h"
#include "shards/report/thumb.h"
#include "shards/report/words.h"
#include "tests/support/images/image.h"
#include "tests/support/support.h"

static void run_in(const char *dir, int status, const char *const *args)
{
    support_limits in = {.directory = dir};
    support_result r = support_millrace_under(args, &in);
    support_assert_status(&r, status);
    support_result_free(&r);
}

#define RUN(dir, status, ...) run_in(dir, status, (const char *const[]){__VA_ARGS__, NULL})

static char *read_in(const char *dir, const char *name, size_t *len)
{
    char *path = support_path("%s/%s", dir, name), *text = (char *)support_read(path, len);
    free(path);
    return text;
}

static void test_words(void **state)
{
    (void)state;
    static const char text[] = "The dog, the DOG and a d\xc3\xb6g; it's 42";
    mr_words w = {0};
    uint64_t total;
    assert_int_equal(mr_words_add(&w, text, strlen(text), &total, NULL), MR_OK);
    assert_int_equal(total, 10);
    mr_words_sort(&w);
    assert_int_equal(w.count, 4); /* and, dog, d\xc3\xb6g, the */
    assert_int_equal(w.items[0].count, 2);
    assert_memory_equal(w.text.data + w.items[0].at, "dog", 3);
    assert_memory_equal(w.text.data + w.items[1].at, "the", 3);
    mr_words_free(&w);
}

static void test_text_stays_text(void **state)
{
    (void)state;
    mr_buf out = {0};
    mr_html_text(&out, "<b a='1' c=\"2\">&\x01\xff", 18);
    assert_string_equal(mr_buf_text(&out), "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;\\x01\\xFF");
    mr_buf_free(&out);
}

/* The standard table, as libjpeg scales it. */
static void test_quality(void **state)
{
    (void)state;
    static const uint8_t first[64] = {16, 11, 10, 16, 24,  40,  51,  61,  12, 12, 14, 19, 26,  58,  60,  55,
                                      14, 13, 16, 24, 40,  57,  69,  56,  14, 17, 22, 29, 51,  87,  80,  62,
                                      18, 22, 37, 56, 68,  109, 103, 77,  24, 35, 55, 64, 81,  104, 113, 92,
                                      49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99};
    for (int quality = 5; quality <= 98; quality++) {
        int16_t quant[64];
        int scale = quality < 50 ? 5000 / quality : 200 - 2 * quality;
        for (size_t i = 0; i < 64; i++) {
            int entry = (first[i] * scale + 50) / 100;
            quant[i] = (int16_t)(entry < 1 ? 1 : entry > 255 ? 255 : entry);
        }
        int found = (int)mr_jpeg_quality(quant);
        if (quality >= 25) /* below, entries are limited to 255 */
            assert_in_range(found, quality - 1, quality + 1);
    }
}

static void replace_all(const char *dir, const char *name, const char *from, const char *to)
{
    size_t len;
    char *text = read_in(dir, name, &len), *at = text, *path = support_path("%s/%s", dir, name), *next;
    mr_buf out = {0};
    for (; (next = strstr(at, from)); at = next + strlen(from)) {
        mr_buf_add(&out, at, (size_t)(next - at));
        mr_buf_add_text(&out, to);
    }
    mr_buf_add_text(&out, at);
    support_write(path, out.data, out.len);
    mr_buf_free(&out);
    free(text);
    free(path);
}

/* Classes, captions, licence and file names that would be markup. */
static void test_hostile_texts(void **state)
{
    static const char *const files[] = {"instances_train2017",        "instances_val2017",
                                        "captions_train2017",         "captions_val2017",
                                        "person_keypoints_train2017", "person_keypoints_val2017"};
    RUN(*state, 0, "sample", "src", "--layout", "coco", "--images", "20", "-q");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *name = support_path("src/annotations/%s.json", files[i]);
        replace_all(*state, name, "\"name\": \"", "\"name\": \"</style></script><script>alert(1)</script>");
        replace_all(*state, name, "\"caption\": \"", "\"caption\": \"<img src=x onerror=alert(2)>' \\\" & ");
        free(name);
    }
    RUN(*state, 0, "ingest", "src", "<i>d&s", "-q");
    RUN(*state, 0, "report", "<i>d&s", "-o", "page.html", "-q");
    char *page = read_in(*state, "page.html", NULL);
    assert_int_equal(support_occurrences(page, "<script"), 1);
    assert_int_equal(support_occurrences(page, "<img"), 0);
    assert_int_equal(support_occurrences(page, "<i>"), 0);
    assert_true(support_occurrences(page, "&lt;script&gt;alert(1)&lt;/script&gt;") > 2);
    assert_true(support_occurrences(page, "&lt;img src=x onerror=alert(2)&gt;&#39; &quot; &amp; ") > 2);
    assert_int_equal(support_occurrences(page, "http"), 0); /* no network */
    assert_true(support_occurrences(page, "<polygon") + support_occurrences(page, "<rect class=\"o") > 10);
    assert_true(support_occurrences(page, "<text class=\"k") > 5); /* their names */
    free(page);
}

static void test_numbers(void **state)
{
    size_t len[2];
    RUN(*state, 0, "sample", "src", "--layout", "imagenette", "--images", "120", "-q");
    RUN(*state, 0, "ingest", "src", "ds", "-q");
    RUN(*state, 0, "report", "ds", "-q");
    RUN(*state, 0, "report", "ds/", "-o", "again.html", "-q");
    char *page = read_in(*state, "report.html", &len[0]), *again = read_in(*state, "again.html", &len[1]);
    assert_int_equal(len[0], len[1]);
    assert_memory_equal(page, again, len[0]);
    assert_true(len[0] < 5 << 20);
    assert_non_null(strstr(page, "An image dataset of 120 samples"));
    assert_non_null(strstr(page, "train</th><td class=\"n\">84</td>"));
    assert_non_null(strstr(page, "129 to 256</th><td class=\"n\">120</td>"));
    assert_int_equal(support_occurrences(page, "<figure"), 60); /* six of each of ten classes */
    free(page);
    free(again);
    RUN(*state, 0, "report", "ds", "-o", "other.html", "-q", "--seed", "3");
    again = read_in(*state, "other.html", NULL);
    page = read_in(*state, "report.html", NULL);
    assert_string_not_equal(page, again);
    free(page);
    free(again);
}

static void test_places(void **state)
{
    RUN(*state, 0, "sample", "src", "--layout", "imagenette", "--images", "12", "-q");
    RUN(*state, 0, "ingest", "src", "ds", "-q");
    RUN(*state, 2, "report", "src", "-q");
    RUN(*state, 2, "report", "ds", "-o", "ds/page.html");
    RUN(*state, 2, "report", "ds", "-o", "nowhere/page.html");
    support_put(*state, "ds/train-00000.idx", "x");
    RUN(*state, 1, "report", "ds", "-o", "page.html");
    char *page = support_path("%s/page.html", (char *)*state);
    assert_false(support_exists(page));
    free(page);
}

/* A picture of 200 million pixels in 25 kB: 600 MB of memory, if it were decoded. */
static void test_large_pictures(void **state)
{
    picture large = make_png(20000, 10000, 0, 1, false), small = make_png(30, 20, 2, 8, false);
    char *first = support_path("%s/src/train/a/large.png", (char *)*state);
    char *second = support_path("%s/src/train/a/small.png", (char *)*state);
    support_write(first, large.bytes, large.len);
    support_write(second, small.bytes, small.len);
    RUN(*state, 0, "ingest", "src", "ds", "-q", "--check", "header", "--max-pixels", "300000000");
    const char *const words[] = {"report", "ds", "-o", "page.html", "-q", NULL};
    support_limits in = {.directory = *state};
    support_result r = support_millrace_under(words, &in);
    support_assert_status(&r, 0);
    assert_true(r.peak_memory < (uint64_t)300 << 20);
    support_result_free(&r);
    char *page = read_in(*state, "page.html", NULL);
    assert_int_equal(support_occurrences(page, "<figure"), 1);
    assert_non_null(strstr(page, "; 1 cannot be decoded, or are larger than --max-pixels"));
    free(page);
    RUN(*state, 0, "report", "ds", "-o", "page.html", "-q", "--max-pixels", "599");
    page = read_in(*state, "page.html", NULL);
    assert_int_equal(support_occurrences(page, "<figure"), 0);
    free(page);
    RUN(*state, 2, "inspect", "ds", "--max-pixels", "599");
    RUN(*state, 0, "inspect", "ds", "--max-pixels", "599", "--near-duplicates");
    picture_free(&large);
    picture_free(&small);
    free(first);
    free(second);
}

/* An index that promises more pixels than the picture has: damage, found before memory is allocated for them. */
static void test_forged_size(void **state)
{
    (void)state;
    picture p = make_png(30, 20, 2, 8, false);
    MR_AUTO(mr_thumbs_free) mr_thumbs thumbs = {0};
    mr_buf out = {0};
    mr_error err;
    mr_sample_view view = {.image = p.bytes,
                           .image_len = p.len,
                           .width = 30,
                           .height = 20,
                           .codec = MR_CODEC_PNG,
                           .orientation = 1,
                           .components = 3,
                           .bits = 8};
    assert_int_equal(mr_thumb_add(&thumbs, &view, &out, &err), MR_OK);
    view.height = UINT32_MAX;
    assert_int_equal(mr_thumb_add(&thumbs, &view, &out, &err), MR_BAD_SAMPLE);
    assert_non_null(strstr(err.text, "30 x 20 pixels is 30 x 4294967295 in the index"));
    view.height = 20;
    thumbs.max_pixels = 599;
    assert_int_equal(mr_thumb_add(&thumbs, &view, &out, &err), MR_BAD_SAMPLE);
    assert_non_null(strstr(err.text, "--max-pixels"));
    mr_buf_free(&out);
    picture_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),   cmocka_unit_test(test_text_stays_text),
        cmocka_unit_test(test_quality), IN_TMPDIR(test_hostile_texts),
        IN_TMPDIR(test_numbers),        IN_TMPDIR(test_places),
        IN_TMPDIR(test_large_pictures), cmocka_unit_test(test_forged_size),
    };
    return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
