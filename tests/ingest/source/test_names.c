/* test_names.c - names that differ as two systems may write them.  Covers pipeline/near_names.c.
 * Invariant tested: a name is alike in both directions, and never like itself. */
#include <stdlib.h>
#include <string.h>

#include "ingest/source/names.h"
#include "tests/support/images/image.h"

#define ACUTE "\xCC\x81" /* U+0301 */

static void test_alike(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool alike;
    } cases[] = {
        {"a.jpg", "a.jpg", false},
        {"a.jpg", "A.JPG", true},
        {"a.jpg", "b.jpg", false},
        {"caf\xC3\xA9.jpg", "cafe" ACUTE ".jpg", true},
        {"Caf\xC3\xA9.JPG", "cafe" ACUTE ".jpg", true},
        {"\xE1\xBA\xBF", "e\xCC\x82" ACUTE, true},
        {"cafe" ACUTE, "cafe" ACUTE, false},
        {"cafe.jpg", "cafe" ACUTE ".jpg", false},
        {"cafd.jpg", "cafe" ACUTE ".jpg", false},
        {"\xE7\x8C\xAB"
         "1.jpg",
         "\xE7\x8A\xAC"
         "1.jpg",
         false},
        {"x" ACUTE ".jpg", "x.jpg" ACUTE, false},
        {"e.jpg", "ex" ACUTE ".jpg", false},
        {"", "a", false},
    };
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        size_t a = strlen(cases[i].a), b = strlen(cases[i].b);
        if (mr_name_alike(cases[i].a, a, cases[i].b, b) != cases[i].alike ||
            mr_name_alike(cases[i].b, b, cases[i].a, a) != cases[i].alike)
            fail_msg("case %zu", i);
    }
}

static void put_image(const char *dir, const char *name)
{
    picture p = make_jpeg((jpeg_kind){.width = 20, .height = (unsigned)strlen(name), .components = 3});
    char *path = support_path("%s/%s", dir, name);
    support_write(path, p.bytes, p.len);
    picture_free(&p);
    free(path);
}

/* In any layout, of an image that no layout takes. */
static void test_the_remark(void **state)
{
    const char *dir = *state;
    put_image(dir, "src/1.jpg");
    put_image(dir, "src/cafe" ACUTE ".jpg");
    char *labels = support_path("%s/src/labels.csv", dir), *source = support_path("%s/src", dir);
    support_write_text(labels, "file,label\n1.jpg,a\ncaf\xC3\xA9.jpg,b\n");
    support_result r = support_millrace("ingest", source, "--dry-run", (char *)NULL);
    support_assert_status(&r, 1);
    static const char expected[] =
        "cafe" ACUTE ".jpg: differs from caf\xC3\xA9.jpg, which is missing, only in the case";
    if (!strstr(r.err, expected) && !strstr(r.out, expected))
        fail_msg("%s%s", r.out, r.err);
    support_result_free(&r);
    free(source);
    free(labels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_alike), IN_TMPDIR(test_the_remark)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
