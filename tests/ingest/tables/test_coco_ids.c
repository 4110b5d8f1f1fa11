/* test_coco_ids.c - ids that are strings: equal ones have equal numbers, and never that of an integer. */
#include <stdio.h>
#include <string.h>

#include "tests/support/support.h"
#include "ingest/tables/coco_ids.h"

static int64_t add(mr_coco_ids *ids, const char *text)
{
    int64_t id = 0;
    assert_true(mr_coco_id_add(ids, text, strlen(text), &id));
    return id;
}

static void integers_in_quotes_are_integers(void **state)
{
    (void)state;
    mr_coco_ids ids = {0};
    assert_int_equal(add(&ids, "139"), 139);
    assert_int_equal(add(&ids, "-7"), -7);
    assert_int_equal(add(&ids, "0"), 0);
    assert_int_equal(ids.count, 0);
    static const char *const others[] = {"0139", "-0", "-", "1.0", "1e3", " 1", "9223372036854775808", "a"};
    for (size_t i = 0; i < MR_COUNT(others); i++) {
        int64_t id = add(&ids, others[i]);
        assert_true(mr_coco_id_is_text(id) && id < MR_COCO_ID_LEAST && id != MR_COCO_NO_ID);
        assert_int_equal(ids.count, i + 1);
        assert_true(id == mr_coco_id_find(&ids, others[i], strlen(others[i])) && id == add(&ids, others[i]));
    }
    assert_true(mr_coco_id_find(&ids, "b", 1) == MR_COCO_NO_ID);
    mr_coco_ids_free(&ids);
}

static void numbers_rise_with_the_first_mention(void **state)
{
    (void)state;
    mr_coco_ids ids = {0};
    char text[32];
    int64_t before = MR_COCO_NO_ID;
    for (int i = 0; i < 5000; i++) {
        snprintf(text, sizeof text, "%d.jpg", 4999 - i);
        int64_t id = add(&ids, text);
        assert_true(id > before);
        before = id;
    }
    assert_true(before < MR_COCO_ID_LEAST);
    mr_coco_ids_free(&ids);
}

static void they_are_shown_as_people_wrote_them(void **state)
{
    (void)state;
    mr_coco_ids ids = {0};
    char out[120], text[300];
    assert_string_equal(mr_coco_id_show(&ids, -5, out), "-5");
    assert_string_equal(mr_coco_id_show(&ids, add(&ids, "a\nb"), out), "\"a\\x0Ab\"");
    memset(text, 'x', sizeof text);
    text[299] = '\0';
    mr_coco_id_show(&ids, add(&ids, text), out);
    assert_true(strlen(out) == 85 && strstr(out, "xxx...\""));
    memset(text, 1, 200);
    assert_true(strlen(mr_coco_id_show(&ids, add(&ids, text), out)) < 120);
    mr_coco_ids_free(&ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_in_quotes_are_integers),
        cmocka_unit_test(numbers_rise_with_the_first_mention),
        cmocka_unit_test(they_are_shown_as_people_wrote_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
