/* test_made.c - what --force removes.
 * Invariant tested: only what an export made goes; anything else in the folder, or a file that was changed, is named
 * and nothing happens. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/shards/dataset_maker.h"

typedef struct state {
    char *dir, *ds, *out;
    picture picture;
} state;

static int set_up(void **out)
{
    state *s = calloc(1, sizeof *s);
    s->dir = support_tmpdir();
    s->ds = support_path("%s/ds", s->dir);
    s->out = support_path("%s/out", s->dir);
    s->picture = make_png(4, 4, 2, 8, false);
    const made samples[2] = {{"ant/a.png", s->picture, ",\"label\":0", false, 0},
                             {"bee/b.png", s->picture, ",\"label\":1", true, 0}};
    const made_split split = {"train", samples, 2, 2};
    mkdir(s->ds, 0777);
    dataset_make(s->ds, &split, 1);
    *out = s;
    return 0;
}

static int tear_down(void **out)
{
    state *s = *out;
    support_tmpdir_remove(s->dir);
    picture_free(&s->picture);
    free(s->ds);
    free(s->out);
    free(s);
    return 0;
}

static const char *const formats[] = {"folder", "imagenette", "imagefolder", "coco", "yolo", "voc"};

static void export(const state *s, const char *format, bool force)
{
    support_expect(0, "export", s->ds, s->out, "--to", format, "-q", force ? "--force" : (char *)NULL, (char *)NULL);
}

/* --force is refused, the message has `words`, and nothing changes. */
static void expect_refusal(const state *s, const char *format, const char *words)
{
    uint64_t before = support_tree_hash(s->out);
    support_result r = support_millrace("export", s->ds, s->out, "--to", format, "--force", (char *)NULL);
    support_assert_status(&r, 2);
    if (!strstr(r.err, words))
        fail_msg("%s: '%s' is not in: %s", format, words, r.err);
    support_result_free(&r);
    assert_true(support_tree_hash(s->out) == before);
}

/* An export of any format is replaced by one of any other, any number of times. */
static void test_an_export_is_replaced(void **out)
{
    const state *s = *out;
    export(s, "yolo", false);
    for (size_t i = 0; i < MR_COUNT(formats); i++) {
        export(s, formats[i], true);
        export(s, formats[i], true);
    }
}

static void test_other_files_stay(void **out)
{
    const state *s = *out;
    char *deep = support_path("%s/deep/er/notes.txt", s->out), *notes = support_path("%s/notes.txt", s->out);
    char *link = support_path("%s/link", s->out);
    for (size_t i = 0; i < MR_COUNT(formats); i++) {
        export(s, formats[i], i > 0);
        support_write_text(deep, "mine");
        expect_refusal(s, formats[i], "'deep/er/notes.txt'");
        support_write_text(notes, "mine");
        expect_refusal(s, formats[i], "'deep/er/notes.txt' and 'notes.txt'");
        unlink(deep);
        unlink(notes);
        assert_int_equal(symlink("/nowhere", link), 0);
        support_result r = support_millrace("export", s->ds, s->out, "--to", formats[i], "--force", (char *)NULL);
        support_assert_status(&r, 2);
        assert_non_null(strstr(r.err, "'link'"));
        support_result_free(&r);
        assert_int_equal(unlink(link), 0);
    }
    export(s, "coco", true); /* empty folders are nothing to lose */
    free(deep);
    free(notes);
    free(link);
}

static void test_a_changed_file_stays(void **out)
{
    const state *s = *out;
    char *yaml = support_path("%s/data.yaml", s->out);
    export(s, "yolo", false);
    size_t len;
    uint8_t *bytes = support_read(yaml, &len);
    support_write_text(yaml, "names: [another]\n");
    expect_refusal(s, "yolo", "'data.yaml'");
    /* The size is the same: it is recognized by its time. */
    bytes[0] ^= 1;
    support_write(yaml, bytes, len);
    struct timespec later[2] = {{4000000000, 0}, {4000000000, 0}};
    assert_int_equal(utimensat(AT_FDCWD, yaml, later, 0), 0);
    expect_refusal(s, "yolo", "'data.yaml'");
    unlink(yaml); /* a file that is missing is nothing to lose */
    export(s, "yolo", true);
    free(bytes);
    free(yaml);
}

/* Without a list, or with one that cannot be read, no file is known to be an export's. */
static void test_a_folder_of_notes(void **out)
{
    const state *s = *out;
    static const char *const lists[] = {"", "millrace export 2\n", "millrace export 1\n0123", "millrace export 1\n",
                                        "millrace export 1\n0123456789abcdef\n"};
    char *list = support_path("%s/.millrace-export", s->out);
    for (int i = 1; i <= 5; i++) {
        support_write_textf("mine", "%s/%d.txt", s->out, 6 - i);
    }
    expect_refusal(s, "folder", "holds '1.txt', '2.txt', '3.txt' and 2 more");
    for (size_t i = 0; i < MR_COUNT(lists); i++) {
        support_write_text(list, lists[i]);
        expect_refusal(s, "folder", "'1.txt', '2.txt', '3.txt' and 2 more");
    }
    free(list);
}

/* A tar is replaced only by a tar, and only where an export wrote it. */
static void test_a_tar(void **out)
{
    const state *s = *out;
    char *tar = support_path("%s/x.tar", s->dir);
    support_expect(0, "export", s->ds, tar, "--to", "tar", "-q", (char *)NULL);
    support_expect(0, "export", s->ds, tar, "--to", "tar", "-q", "--force", (char *)NULL);
    support_write_text(tar, "notes");
    support_expect(2, "export", s->ds, tar, "--to", "tar", "-q", "--force", (char *)NULL);
    size_t len;
    uint8_t *bytes = support_read(tar, &len);
    assert_true(len == 5 && memcmp(bytes, "notes", 5) == 0);
    free(bytes);
    support_write_text(tar, ""); /* as mktemp makes one */
    support_expect(0, "export", s->ds, tar, "--to", "tar", "-q", "--force", (char *)NULL);
    free(tar);
}

/* The list does not count as data: what was ingested again has the digest of a copy without it. */
static void test_ingest_passes_over_the_list(void **out)
{
    const state *s = *out;
    char *list = support_path("%s/.millrace-export", s->out), *again = support_path("%s/again", s->dir);
    export(s, "imagenette", false);
    support_result with = support_millrace("ingest", s->out, again, "--dry-run", (char *)NULL);
    support_assert_status(&with, 0);
    assert_null(strstr(with.out, "millrace-export"));
    assert_int_equal(unlink(list), 0);
    support_result without = support_millrace("ingest", s->out, again, "--dry-run", (char *)NULL);
    support_assert_status(&without, 0);
    assert_null(strstr(with.out, "left out"));
    support_result_free(&with);
    support_result_free(&without);
    free(list);
    free(again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_export_is_replaced, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_other_files_stay, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_changed_file_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_folder_of_notes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_tar, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ingest_passes_over_the_list, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
