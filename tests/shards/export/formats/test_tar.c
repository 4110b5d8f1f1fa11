/* test_tar.c - the entries of a WebDataset tar.
 * Invariant tested: equal datasets give equal bytes; a tar of one split names all classes and that split alone. */
#include <stdlib.h>
#include <string.h>

#include <archive.h>
#include <archive_entry.h>

#include "shards/export/export.h"
#include "tests/support/shards/dataset_maker.h"

static void make(const char *dir)
{
    picture p = make_png(5, 5, 2, 8, false);
    const made train[2] = {{"a.png", p, ",\"label\":0", false, 0}, {"b.png", p, NULL, true, 0}};
    const made val[1] = {{"c.png", p, ",\"label\":2", false, 0}};
    const made_split splits[2] = {{"train", train, 2, 2}, {"val", val, 1, 1}};
    dataset_make(dir, splits, 2);
    picture_free(&p);
}

/* Names of the entries, a line each; `facts` gets the text of the first. */
static char *entries(const char *path, char facts[200])
{
    struct archive *a = archive_read_new();
    struct archive_entry *e;
    char *list = support_path("%s", "");
    archive_read_support_format_tar(a);
    assert_int_equal(archive_read_open_filename(a, path, 65536), ARCHIVE_OK);
    while (archive_read_next_header(a, &e) == ARCHIVE_OK) {
        if (!*list) {
            la_ssize_t n = archive_read_data(a, facts, 199);
            assert_true(n > 0);
            facts[n] = '\0';
        }
        assert_int_equal(archive_entry_mtime(e), 0);
        char *longer = support_path("%s%s\n", list, archive_entry_pathname(e));
        free(list);
        list = longer;
    }
    archive_read_free(a);
    return list;
}

static mr_status export_to(const char *ds, const char *out, const char *split, mr_error *err)
{
    mr_export_result result = {0};
    return mr_export_tar(ds, out, &(mr_export_options){.split = split, .quiet = true}, &result, err);
}

static void entries_of_a_tar(void **state)
{
    char *ds = support_path("%s/ds", (char *)*state), *all = support_path("%s/all.tar", (char *)*state);
    char *again = support_path("%s/again.tar", (char *)*state), *one = support_path("%s/one.tar", (char *)*state);
    char facts[200];
    mr_error err;
    char *made_dir = support_path("%s/.keep", ds);
    support_write_text(made_dir, "");
    make(ds);
    assert_int_equal(export_to(ds, all, NULL, &err), MR_OK);
    assert_int_equal(export_to(ds, again, NULL, &err), MR_OK);
    support_assert_same_file(all, again);
    char *list = entries(all, facts);
    assert_string_equal(list, "__millrace__/dataset.json\n"
                              "train/00000000.png\ntrain/00000000.json\ntrain/00000000.cls\n"
                              "train/00000001.png\ntrain/00000001.json\n"
                              "val/00000000.png\nval/00000000.json\nval/00000000.cls\n");
    free(list);
    assert_int_equal(export_to(ds, one, "val", &err), MR_OK);
    list = entries(one, facts);
    assert_string_equal(list, "__millrace__/dataset.json\nval/00000000.png\nval/00000000.json\nval/00000000.cls\n");
    assert_string_equal(facts, "{\"splits\": [\"val\"], \"classes\": [\"ant\", \"bee\", \"cat\"]}\n");
    free(list);
    assert_int_equal(export_to(ds, again, NULL, &err), MR_MISUSE);
    assert_non_null(strstr(err.text, "--force"));
    assert_int_equal(export_to(ds, one, "test", &err), MR_MISUSE);
    assert_non_null(strstr(err.text, "it has train, val"));
    free(made_dir);
    free(again);
    free(all);
    free(one);
    free(ds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {IN_TMPDIR(entries_of_a_tar)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
