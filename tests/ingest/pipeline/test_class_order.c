/* test_class_order.c - files beside class folders that number the classes.
 * Invariant tested: another order is named with a class and both of its numbers, and nothing else is. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/images/image.h"

static void put_image(const char *dir, const char *name, unsigned height)
{
    picture p = make_jpeg((jpeg_kind){.width = 20, .height = height, .components = 3});
    char *path = support_path("%s/src/train/%s/1.jpg", dir, name);
    support_write(path, p.bytes, p.len);
    picture_free(&p);
    free(path);
}

/* What the file with this text makes of three classes; NULL: no remark. */
static void expect(const char *dir, const char *name, const char *text, const char *remark)
{
    char *path = support_path("%s/src/%s", dir, name), *source = support_path("%s/src", dir);
    support_write_text(path, text);
    support_result r = support_millrace("ingest", source, "--dry-run", (char *)NULL);
    support_assert_status(&r, 0);
    const char *found = strstr(r.out, "numbers the classes in another order");
    if (remark ? !found || !strstr(r.out, remark) : found != NULL)
        fail_msg("%s: %s: %s", name, text, r.out);
    support_result_free(&r);
    support_write_text(path, "");
    free(path);
    free(source);
}

static void orders(void **state)
{
    const char *dir = *state;
    put_image(dir, "ant", 9);
    put_image(dir, "bee", 10);
    put_image(dir, "cat fish", 11);
    expect(dir, "classes.txt", "cat fish\r\nant\r\nbee\r\n",
           "classes.txt: numbers the classes in another order: cat fish is 0 there and 2 here");
    expect(dir, "classes.txt", "bee\nant\ncat fish\n", "bee is 0 there and 1 here");
    expect(dir, "classes.txt", "ant\nbee\ncat fish\n", NULL);
    expect(dir, "meta/class_to_idx.json", "{\"cat fish\": 0, \"bee\": 1, \"ant\": 2}",
           "meta/class_to_idx.json: numbers");
    expect(dir, "class_to_idx.json", "{\"cat fish\": 3, \"bee\": 2, \"ant\": 1}", NULL); /* from 1 */
    expect(dir, "id2label.json", "{\"0\": \"bee\", \"1\": \"ant\", \"2\": \"cat fish\"}", "bee is 0 there and 1 here");
    expect(dir, "label_names.json", "[\"cat fish\", \"ant\", \"bee\"]", "cat fish is 0 there and 2 here");
}

/* Other lists than one of all classes, each once. */
static void other_files(void **state)
{
    const char *dir = *state;
    put_image(dir, "ant", 9);
    put_image(dir, "bee", 10);
    expect(dir, "classes.txt", "bee\n", NULL);
    expect(dir, "classes.txt", "bee\nant\nbee\n", NULL);
    expect(dir, "classes.txt", "bee\nant\nwasp\n", NULL);
    expect(dir, "labels.json", "{\"bee\": \"ant\"}", NULL);
    expect(dir, "labels.json", "{\"bee\": 0, \"ant\": -1}", NULL);
    expect(dir, "labels.json", "{\"bee\": 0, \"ant\": [", NULL);
    expect(dir, "labels.json", "[[[\"bee\"]], null]", NULL);
    expect(dir, "readme.txt", "bee\nant\n", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {IN_TMPDIR(orders), IN_TMPDIR(other_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
