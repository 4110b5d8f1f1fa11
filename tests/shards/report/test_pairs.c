/* test_pairs.c - the section of a report that shows pictures which look alike.
 * Invariant tested: equal files and copies are pairs of drawings, leaks apart from duplicates; the section is limited,
 * says what it left out, and equal datasets give equal bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/cli/term.h"
#include "shards/report/pairs.h"
#include "tests/support/images/alike.h"
#include "tests/support/support.h"

enum { PHOTOS = 12 };

/* SPLIT/CLASS/NUMBER.jpg: a copy of photograph `seed`. */
static void put(const char *dir, const char *split, uint64_t seed, unsigned number, alike_edit edit)
{
    char *path = support_path("%s/src/%s/c%u/%u.jpg", dir, split, number % 2, number);
    alike_write(seed, edit, ALIKE_JPEG, path);
    free(path);
}

static char *ingested(const char *dir)
{
    char *src = support_path("%s/src", dir), *ds = support_path("%s/ds", dir);
    support_expect(0, "ingest", src, ds, "-q", (char *)NULL);
    free(src);
    return ds;
}

/* The section of a report; `pixels`: as many are claimed. */
static char *section_of(const char *ds, uint64_t pixels)
{
    MR_AUTO(mr_dataset_release) mr_dataset *dataset = NULL;
    MR_AUTO(mr_report_facts_free) mr_report_facts facts = {0};
    mr_buf out = {0};
    mr_error err;
    if (mr_dataset_open(ds, &dataset, &err) != MR_OK || mr_report_facts_read(ds, dataset, 0, &facts, &err) != MR_OK)
        fail_msg("%s", err.text);
    assert_true(facts.decoding > 0);
    facts.decoding += pixels;
    if (mr_pairs_add(ds, &facts, 0, MR_PROGRESS_QUIET, &out, &err) != MR_OK)
        fail_msg("%s", err.text);
    mr_buf_text(&out);
    assert_true(out.len <= MR_PAIRS_BYTES + (64 << 10));
    return (char *)out.data;
}

static void copies_are_shown_in_pairs(void **state)
{
    const char *dir = *state;
    for (unsigned i = 0; i < 4; i++)
        put(dir, "train", 100 + i, i, (alike_edit){0});
    put(dir, "val", 100, 10, (alike_edit){0});              /* the same bytes */
    put(dir, "val", 101, 11, (alike_edit){.mirror = true}); /* a leak */
    put(dir, "train", 102, 12, (alike_edit){.gain = 1.2});  /* a duplicate */
    put(dir, "val", 999, 13, (alike_edit){0});              /* a picture of its own */
    char *ds = ingested(dir), *found = section_of(ds, 0), *again = section_of(ds, 0);
    assert_string_equal(found, again);
    assert_non_null(strstr(found, "<section id=\"alike\""));
    assert_non_null(strstr(found, "<h3>The same file in two splits: 1</h3>"));
    assert_non_null(strstr(found, "<h3>Near-duplicates in two splits: 1</h3>"));
    assert_non_null(strstr(found, "<h3>Near-duplicates in one split: 1</h3>"));
    assert_int_equal(support_occurrences(found, "class=\"pair\""), 3);
    assert_int_equal(support_occurrences(found, "<figure"), 6);
    assert_int_equal(support_occurrences(found, "val/c1/13.jpg"), 0);
    assert_null(strstr(found, "The first"));
    free(again);
    free(found);

    found = section_of(ds, MR_PAIRS_PIXELS); /* too large to decode: equal files only, and a word about it */
    assert_non_null(strstr(found, "The same file in two splits: 1"));
    assert_int_equal(support_occurrences(found, "<figure"), 2);
    assert_non_null(strstr(found, "Only identical files were looked for"));
    free(found);
    free(ds);
}

static void the_section_is_limited(void **state)
{
    const char *dir = *state;
    for (unsigned i = 0; i < PHOTOS; i++) {
        put(dir, "train", 100 + i, i, (alike_edit){0});
        put(dir, "val", 100 + i, 100 + i, (alike_edit){.gain = 1.2});
    }
    char *ds = ingested(dir), *found = section_of(ds, 0);
    assert_non_null(strstr(found, "Near-duplicates in two splits: 12"));
    assert_int_equal(support_occurrences(found, "class=\"pair\""), MR_PAIRS_SHOWN);
    assert_non_null(strstr(found, "The first 8; "));
    free(found);
    free(ds);
}

static void a_page_says_that_nothing_looks_alike(void **state)
{
    const char *dir = *state;
    put(dir, "train", 100, 0, (alike_edit){0});
    put(dir, "train", 101, 1, (alike_edit){0});
    char *ds = ingested(dir), *page = support_path("%s/page.html", dir);
    support_expect(0, "report", ds, "-o", page, "-q", (char *)NULL);
    char *text = (char *)support_read(page, NULL);
    assert_non_null(strstr(text, "<a href=\"#alike\">Near-duplicate images</a>"));
    assert_non_null(strstr(text, "<p>No two images look alike.</p>"));
    free(text);
    free(page);
    free(ds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(copies_are_shown_in_pairs),
        IN_TMPDIR(the_section_is_limited),
        IN_TMPDIR(a_page_says_that_nothing_looks_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
