/* test_texts.c - kept label files: found by their entries, within a bound. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ingest/layout/texts.h"
#include "tests/support/support.h"

static void test_kept_in_any_order(void **state)
{
    (void)state;
    mr_texts texts = {0};
    char text[16];
    size_t len;
    for (uint32_t i = 0; i < 1000; i++) {
        uint32_t entry = i * 619 % 1000;
        mr_texts_keep(&texts, entry, text, (size_t)snprintf(text, sizeof text, "%u", entry));
    }
    mr_texts_keep(&texts, 5000, "", 0);
    mr_texts_sort(&texts);
    for (uint32_t i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "%u", i);
        const void *found = mr_texts_find(&texts, i, &len);
        assert_int_equal(len, strlen(text));
        assert_memory_equal(found, text, len);
    }
    assert_non_null(mr_texts_find(&texts, 5000, &len));
    assert_int_equal(len, 0);
    assert_null(mr_texts_find(&texts, 1000, &len));
    mr_texts_free(&texts);
    assert_null(mr_texts_find(&texts, 1, &len));
}

/* What does not fit is read from the source. */
static void test_bound(void **state)
{
    (void)state;
    mr_texts texts = {0};
    mr_buf out = {0};
    mr_notes notes = {0};
    mr_source *source = NULL;
    mr_error err;
    size_t len;
    char *dir = support_tmpdir(), *path = support_path("%s/a.txt", dir), *big = calloc(1, MR_TEXTS_MAX);
    support_write_text(path, "from disk");
    assert_non_null(big);
    mr_texts_keep(&texts, 1, big, MR_TEXTS_MAX - 1);
    mr_texts_keep(&texts, 0, "ab", 2);
    mr_texts_keep(&texts, 2, "c", 1);
    mr_texts_keep(&texts, 3, "d", 1);
    mr_texts_sort(&texts);
    assert_int_equal(texts.bytes.len, MR_TEXTS_MAX);
    assert_null(mr_texts_find(&texts, 0, &len));
    assert_non_null(mr_texts_find(&texts, 2, &len));
    assert_int_equal(mr_source_open(&dir, 1, -1, &(mr_source_options){.quiet = true}, &notes, &source, &err), MR_OK);
    assert_int_equal(mr_texts_read(&texts, source, 0, &out, &err), MR_OK);
    assert_string_equal(mr_buf_text(&out), "from disk");
    assert_int_equal(mr_texts_read(&texts, source, 2, &out, &err), MR_OK);
    assert_string_equal(mr_buf_text(&out), "c");
    mr_source_free(source);
    mr_notes_free(&notes);
    mr_buf_free(&out);
    mr_texts_free(&texts);
    free(big);
    free(path);
    support_tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kept_in_any_order), cmocka_unit_test(test_bound)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
