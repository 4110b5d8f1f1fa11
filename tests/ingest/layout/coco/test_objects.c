/* test_objects.c - objects of COCO: ids that are strings.
 * Invariant tested: an object's id is the source's JSON. */
#include <stdlib.h>
#include <string.h>

#include "support/objects.h"

#define COCO &mr_layout_coco

static void put_image(const char *dir, char name)
{
    char path[] = "train/?.jpg";
    path[6] = name;
    support_put(dir, path, path);
}

static void ids_may_be_strings(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    support_put(dir, "annotations/instances_train.json",
                "{\"annotations\":[{\"id\":\"x1\",\"image_id\":\"img/a\",\"category_id\":\"c2\",\"bbox\":[0,0,5,5]},"
                "{\"id\":\"4\",\"image_id\":\"7\",\"category_id\":\"c1\",\"bbox\":[1,1,5,5]},"
                "{\"id\":9,\"image_id\":\"gone\",\"category_id\":\"c1\",\"bbox\":[1,1,5,5]}],"
                "\"images\":[{\"id\":\"img/a\",\"file_name\":\"a.jpg\"},{\"id\":7,\"file_name\":\"b.jpg\"}],"
                "\"categories\":[{\"id\":\"c1\",\"name\":\"one\"},{\"id\":\"c2\",\"name\":\"two\"}]}");
    support_put(dir, "annotations/captions_train.json",
                "{\"images\":[{\"id\":\"img/b\",\"file_name\":\"c.jpg\"},{\"id\":\"img/a\",\"file_name\":\"a.jpg\"}],"
                "\"annotations\":[{\"image_id\":\"img/a\",\"caption\":\"both\"}]}");
    for (const char *c = "abc"; *c; c++)
        put_image(dir, *c);
    support_plan p = support_plan_ok(COCO, dir, NULL);
    support_assert_samples(&p, "train train/a.jpg -1 0\ntrain train/b.jpg -1 0\ntrain train/c.jpg -1 4\n");
    assert_true(!p.plan.classes[0].has_id && !p.plan.classes[1].has_id);
    support_assert_objects(&p, 0, 9, 9, "[{\"label\":0,\"class\":\"two\",\"box\":[0,0,5,5],\"id\":\"x1\"}]");
    support_assert_objects(&p, 1, 9, 9, "[{\"label\":1,\"class\":\"one\",\"box\":[1,1,5,5],\"id\":\"4\"}]");
    assert_true(support_has_note(&p, MR_NOTE_INFO, "annotations/instances_train.json", "1 annotations of images"));
    support_plan_done(&p);
    support_tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_may_be_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
