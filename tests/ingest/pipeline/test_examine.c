/* test_examine.c - which images are rejected, and what that costs.
 * Invariant tested: every image that cannot be decoded or is too large is listed with its reason, and --max-rejects
 * compares their number with all images of the source. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "tests/support/support.h"

static char *dir, *source;

static int set_up(void **state)
{
    (void)state;
    dir = support_tmpdir();
    source = support_path("%s/source", dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(source);
    support_tmpdir_remove(dir);
    return 0;
}

static void draw_photos(void)
{
    support_expect(0, "sample", source, "--layout", "imagenette", "--images", "120", "--seed", "3", "--quiet",
                   (char *)NULL);
}

static json_t *ingest_json(int status, const char *option, const char *value)
{
    char *target = support_path("%s/json", dir);
    support_result r = support_millrace("ingest", source, target, "--json", option, value, (char *)NULL);
    support_assert_status(&r, status);
    json_t *doc = json_loads(r.out, 0, NULL);
    assert_non_null(doc);
    support_result_free(&r);
    free(target);
    return doc;
}

static size_t listed(const json_t *doc, const char *key)
{
    return json_array_size(json_object_get(doc, key));
}

static void test_rejects_and_leaks(void **state)
{
    (void)state;
    support_expect(0, "sample", source, "--layout", "roboflow", "--images", "40", "--seed", "7", "--quiet",
                   (char *)NULL);
    char *path, *list = support_list(source), *image = NULL;
    for (char *name = strtok(list, "\n"); name && !image; name = strtok(NULL, "\n"))
        if (strstr(name, "train/") && strstr(name, ".jpg"))
            image = support_path("%s/%s", source, name);
    assert_non_null(image);
    size_t len;
    uint8_t *bytes = support_read(image, &len);
    char *slash = strrchr(image, '/'), *class_dir = strndup(image, (size_t)(slash - image));
    const char *class_name = strrchr(class_dir, '/') + 1;

    support_write(path = support_path("%s/cut.jpg", class_dir), bytes, len / 2);
    free(path);
    support_write_text(path = support_path("%s/words.jpg", class_dir), "no image");
    free(path);
    support_write_text(path = support_path("%s/empty.png", class_dir), "");
    free(path);
    support_write(path = support_path("%s/valid/%s/copy.jpg", source, class_name), bytes, len);
    free(path);

    json_t *doc = ingest_json(1, "--max-rejects", "2");
    assert_int_equal(listed(doc, "rejects"), 3);
    assert_true(json_is_false(json_object_get(doc, "ok")));
    json_decref(doc);
    path = support_path("%s/json", dir);
    assert_false(support_exists(path));
    free(path);
    doc = ingest_json(1, "--fail-on-leak", "--max-rejects=3");
    assert_int_equal(listed(doc, "leaks"), 1);
    json_decref(doc);
    doc = ingest_json(0, "--max-rejects", "3");
    assert_int_equal(listed(doc, "rejects"), 3);
    assert_int_equal(listed(doc, "leaks"), 1);
    assert_true(json_is_true(json_object_get(doc, "ok")));
    json_decref(doc);
    free(bytes);
    free(image);
    free(class_dir);
    free(list);
}

/* 1 of 100 is 1 %, wherever the one was turned away. */
static void test_rejects_are_a_share_of_all(void **state)
{
    (void)state;
    draw_photos();
    char *target = support_path("%s/out", dir), *big = calloc(1, 4 << 20);
    char *path = support_path("%s/imagenette2-160/train/n01440764/big.JPEG", source);
    support_write(path, big, 4 << 20);
    support_expect(1, "ingest", source, target, "--max-file", "2MiB", "--max-rejects", "0.82%", (char *)NULL);
    support_expect(0, "ingest", source, target, "--max-file", "2MiB", "--max-rejects", "0.83%", "--quiet",
                   (char *)NULL);
    free(path);
    free(big);
    free(target);
}

/* A few KB of archive that say "700 MB of zeros" four times: refused by name, in little memory. */
static void test_large_nothings_cost_little(void **state)
{
    (void)state;
    draw_photos();
    char *target = support_path("%s/out", dir);
    for (int i = 0; i < 4; i++) {
        char *path = support_path("%s/imagenette2-160/train/n01440764/zero%d.JPEG", source, i);
        support_write_text(path, "");
        assert_int_equal(truncate(path, 700 << 20), 0);
        free(path);
    }
    const char *argv[] = {support_millrace_path(), "ingest", source, target, "--jobs", "4", "--max-rejects", "4", NULL};
    support_result r = support_run(argv, &(support_limits){.memory = (uint64_t)1 << 30});
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, "rejected: 4"));
    assert_non_null(strstr(r.out, "train/n01440764/zero3.JPEG"));
    support_result_free(&r);
    free(target);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_rejects_and_leaks),
        TEST(test_rejects_are_a_share_of_all),
        TEST(test_large_nothings_cost_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
