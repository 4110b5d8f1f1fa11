/* test_label_census.c - texts of labels: numbers in numeric order, what stands for no label, which lists are not
 * classes. Invariant tested: neither the order of the labels nor a cell among them changes the number of another
 * label's class. */
#include <stdlib.h>
#include <string.h>

#include "ingest/layout/common/label_census.h"
#include "tests/support/support.h"

/* "class class ... | label label ... | remark", of labels between commas. */
static void gives(const char *labels, const char *expected)
{
    mr_label_census c = {0};
    mr_label_gaps gaps = {0};
    mr_notes notes = {0};
    mr_plan plan = {.notes = &notes};
    mr_error err;
    mr_buf out = {0};
    for (const char *at = labels;; at += strcspn(at, ",") + 1) {
        assert_int_equal(mr_label_census_add(&c, at, strcspn(at, ","), &gaps, &err), MR_OK);
        if (!at[strcspn(at, ",")])
            break;
    }
    mr_label_census_settle(&c, 9999);
    assert_int_equal(mr_label_census_classes(&c, "x", &plan, &err), MR_OK);
    for (size_t i = 0; i < plan.class_count; i++)
        mr_buf_printf(&out, "%s ", plan.classes[i].name);
    mr_buf_add_text(&out, "|");
    for (const char *at = labels;; at += strcspn(at, ",") + 1) {
        mr_buf_printf(&out, " %d", (int)mr_label_census_find(&c, &plan, at, strcspn(at, ",")));
        if (!at[strcspn(at, ",")])
            break;
    }
    mr_label_census_note(&c, &gaps, "f", "rows", &notes);
    for (size_t i = 0; i < notes.count; i++) {
        const char *detail = notes.items[i].detail, *end = strpbrk(detail, ");");
        mr_buf_printf(&out, " | %.*s", (int)(end + (*end == ')') - detail), detail);
    }
    assert_string_equal(mr_buf_text(&out), expected);
    mr_buf_free(&out);
    mr_label_census_free(&c);
    mr_notes_free(&notes);
    mr_plan_free(NULL, &plan);
}

static void test_numbers(void **state)
{
    (void)state;
    gives("2,0", "0 1 2 | 2 0");
    gives("3.0,10.00,9", "0 1 2 3 4 5 6 7 8 9 10 | 3 10 9");
    gives("20001,5", "5 20001 | 1 0");
    gives("0.5,10,9,0.50", "0.5 9 10 | 0 2 1 0 | labels that are numbers with a fraction: 2 of 4");
    gives("-2,-1,1", "-2 -1 1 | 0 1 2");
    gives("-0.0,1", "0 1 | 0 1");
    gives("10,9,cat,ant", "9 10 ant cat | 1 0 3 2");
    gives("10,09,1e3", "10 09 1e3 | 0 1 2"); /* leading zeros and exponents are names */
    gives("1234567890123456789012,1", "1 1234567890123456789012 | 1 0");
}

static void test_no_label(void **state)
{
    (void)state;
    gives("1,-1,0,-1.0", "0 1 | 1 -1 0 -1 | rows without a label: 2 (-1: 2)");
    gives("1,-1,1", "-1 1 | 1 0 1"); /* two classes */
    gives("10,NaN,,9,None,null,N/A,<NA>,nan", "0 1 2 3 4 5 6 7 8 9 10 | 10 -1 -1 9 -1 -1 -1 -1 -1 | "
                                              "rows without a label: 7 (empty: 1, NaN, None and the like: 6)");
    gives("cat,-1,,dog", "cat dog | 0 -1 -1 1 | rows without a label: 2 (empty: 1, -1: 1)");
    gives("-1,nan", "| -1 -1 | rows without a label: 2 (-1: 1, NaN, None and the like: 1)");
}

static void unique(const char *form, size_t count, size_t distinct, bool expected, bool sentences)
{
    mr_label_census c = {0};
    mr_label_gaps gaps = {0};
    mr_error err;
    for (size_t i = 0; i < count; i++) {
        char *text = support_path(form, (int)(i % distinct));
        assert_int_equal(mr_label_census_add(&c, text, strlen(text), &gaps, &err), MR_OK);
        free(text);
    }
    mr_label_census_settle(&c, 9999);
    assert_int_equal(mr_label_census_unique(&c), expected);
    assert_int_equal(mr_label_census_sentences(&c), sentences);
    mr_label_census_free(&c);
}

static void test_what_is_no_list_of_classes(void **state)
{
    (void)state;
    unique("word%d", 4, 4, false, false);
    unique("word%d", 6, 6, true, false);
    unique("word%d", 6, 5, false, false);
    unique("word%d", 100, 95, true, false);
    unique("word%d", 100, 50, false, false);
    unique("%d", 100, 100, false, false);   /* class numbers */
    unique("0.%d1", 100, 100, true, false); /* measurements */
    unique("a dog runs past %d", 3, 3, true, true);
    unique("great grey owl%d", 4, 4, false, true);
    unique("a dog runs past %d", 30, 3, false, true);
    unique("word%d", 70000, 70000, true, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers), cmocka_unit_test(test_no_label),
                                       cmocka_unit_test(test_what_is_no_list_of_classes)};
    return cmocka_run_group_tests_name("label census", tests, NULL, NULL);
}
