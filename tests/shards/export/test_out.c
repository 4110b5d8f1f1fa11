/* test_out.c - exports that end early: OUT is complete, or not there.
 * Invariant tested: whatever fails, one sentence says so, with the documented exit code, and nothing is left beside
 * OUT. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shards/export/export.h"
#include "shards/export/out.h"
#include "tests/support/shards/dataset_maker.h"

static const char *const formats[] = {"imagenette", "imagefolder", "coco", "yolo", "voc", "parquet"};

static void make(const char *dir)
{
    picture p = make_png(40, 40, 2, 8, false), q = make_png(41, 40, 2, 8, false);
    const made train[2] = {{"a.png", p, ",\"label\":0,\"objects\":[{\"label\":1,\"box\":[1,1,4,4]}]", false, 0},
                           {"b.png", q, ",\"label\":1,\"captions\":[\"one\"],\"objects\":[]", false, 0}};
    const made_split split = {"train", train, 2, 2};
    mkdir(dir, 0777);
    dataset_make(dir, &split, 1);
    picture_free(&p);
    picture_free(&q);
}

/* A writer of Parquet files that needs no Python: the rows themselves are the file. */
static void use_writer(const char *dir, const char *script)
{
    char *path = support_path("%s/writer", dir), *text = support_path("#!/bin/sh\n%s\n", script);
    support_write_text(path, text);
    chmod(path, 0777);
    setenv("MILLRACE_PARQUET_WRITER", path, 1);
    free(path);
    free(text);
}

static void expect_nothing_beside(const char *dir)
{
    char *names = support_list(dir);
    assert_null(strstr(names, "millrace-export"));
    assert_null(strstr(names, "out/"));
    free(names);
}

static void a_full_disk_leaves_nothing(void **state)
{
    char *dir = *state, *ds = support_path("%s/ds", dir), *out = support_path("%s/out", dir);
    make(ds);
    use_writer(dir, "cat > \"$1\"");
    for (size_t i = 0; i < MR_COUNT(formats); i++) {
        const char *const argv[] = {support_millrace_path(), "export", ds, out, "--to", formats[i], NULL};
        support_result r = support_run(argv, &(support_limits){.file_size = 30});
        support_assert_status(&r, 3);
        assert_int_equal(support_occurrences(r.err, "\n"), 1);
        support_result_free(&r);
        assert_false(support_exists(out));
        expect_nothing_beside(dir);
    }
    free(ds);
    free(out);
}

static void what_is_there_stays(void **state)
{
    char *dir = *state, *ds = support_path("%s/ds", dir), *out = support_path("%s/out", dir);
    char *mine = support_path("%s/mine", out);
    make(ds);
    use_writer(dir, "cat > \"$1\"");
    support_write_text(mine, "mine");
    for (size_t i = 0; i < MR_COUNT(formats); i++) {
        support_expect(2, "export", ds, out, "--to", formats[i], (char *)NULL);
        assert_true(support_exists(mine));
    }
    support_expect(2, "export", ds, out, "--to", "coco", "--force", (char *)NULL);
    assert_true(support_exists(mine));
    free(mine);
    free(ds);
    free(out);
}

static void a_folder_without_permission_is_named(void **state)
{
    char *dir = *state, *ds = support_path("%s/ds", dir), *closed = support_path("%s/closed", dir);
    char *out = support_path("%s/out", closed);
    make(ds);
    mkdir(closed, 0555);
    if (access(closed, W_OK) == 0)
        support_cannot("a folder that cannot be written to", "this user may write anywhere");
    else
        SAYS(NULL, 3, "", NULL, "export", ds, out, "--to", "yolo");
    char *nowhere = support_path("%s/no/out", dir);
    SAYS(NULL, 2, "", NULL, "export", ds, nowhere, "--to", "yolo");
    free(nowhere);
    free(out);
    free(closed);
    free(ds);
}

static void options_of_other_formats_are_refused(void **state)
{
    char *dir = *state, *ds = support_path("%s/ds", dir), *out = support_path("%s/out", dir);
    make(ds);
    SAYS(NULL, 2, "", "millrace: --task: is an option of --to yolo\n", "export", ds, out, "--to", "coco", "--task",
         "obb");
    SAYS(NULL, 2, "", "millrace: --task: is an option of --to yolo\n", "export", ds, out, "--to", "tar", "--task",
         "obb");
    SAYS(NULL, 2, "", "millrace: --shard-size: voc writes one file per image\n", "export", ds, out, "--to", "voc",
         "--shard-size", "1MB");
    SAYS(NULL, 2, "", "millrace: --link: parquet does not link images\n", "export", ds, out, "--to", "parquet",
         "--link", dir);
    SAYS(NULL, 2, "", "millrace: --task pose: no object has keypoints\n", "export", ds, out, "--to", "yolo", "--task",
         "pose");
    expect_nothing_beside(dir);
    free(ds);
    free(out);
}

/* ---- the Parquet writer ---------------------------------------------------------------------------------- */

static void rows_go_to_the_writer(void **state)
{
    char *dir = *state, *ds = support_path("%s/ds", dir), *out = support_path("%s/out", dir);
    make(ds);
    use_writer(dir, "cat > \"$1\"");
    support_expect(0, "export", ds, out, "--to", "parquet", "--shard-size", "100", (char *)NULL);
    char *names = support_list(out), *path = support_path("%s/data/train-00000-of-00002.parquet", out);
    assert_string_equal(names, "README.md\ncroissant.json\ndata/train-00000-of-00002.parquet\n"
                               "data/train-00001-of-00002.parquet\n");
    size_t len;
    char *rows = (char *)support_read(path, &len);
    picture p = make_png(40, 40, 2, 8, false);
    char *head =
        support_path("{\"names\":[\"ant\",\"bee\",\"cat\"],\"members\":[\"label\",\"captions\",\"objects\"],"
                     "\"objects\":[\"bbox\",\"categories\",\"crowd\"]}\n{\"path\":\"a.png\",\"bytes\":%zu,"
                     "\"label\":0,\"captions\":[],\"objects\":{\"bbox\":[[1.0,1.0,4.0,4.0]],\"categories\":[1],"
                     "\"crowd\":[false]}}\n",
                     p.len);
    assert_int_equal(len, strlen(head) + p.len + strlen("{\"rows\":1}\n"));
    assert_memory_equal(rows, head, strlen(head));
    assert_memory_equal(rows + strlen(head), p.bytes, p.len);
    assert_string_equal(rows + strlen(head) + p.len, "{\"rows\":1}\n");
    picture_free(&p);
    free(head);
    free(rows);
    free(path);
    free(names);
    free(out);
    free(ds);
}

static void a_writer_that_fails_is_heard(void **state)
{
    static const struct {
        const char *script;
        int status;
        const char *words;
    } rows[] = {
        {"echo no space for this >&2; exit 3", 3, "data/train-00000.parquet: no space for this\n"},
        {"cat > /dev/null; echo bad rows >&2; exit 1", 1, "data/train-00000.parquet: bad rows\n"},
        {"cat > /dev/null", 3,
         "data/train-00000.parquet: the Parquet writer produced no file: No such file or directory\n"},
        {"kill -9 $$", 3, "data/train-00000.parquet: was killed by signal 9 (Killed)\n"},
    };
    char *dir = *state, *ds = support_path("%s/ds", dir), *out = support_path("%s/out", dir);
    make(ds);
    for (size_t i = 0; i < MR_COUNT(rows); i++) {
        char *err = support_path("millrace: %s", rows[i].words);
        use_writer(dir, rows[i].script);
        SAYS(NULL, rows[i].status, "", err, "export", ds, out, "--to", "parquet");
        expect_nothing_beside(dir);
        free(err);
    }
    free(ds);
    free(out);
}

/* ---- --link ------------------------------------------------------------------------------------------------------ */

static void pictures_that_are_still_there_are_linked(void **state)
{
    char *dir = *state, *ds = support_path("%s/ds", dir), *out = support_path("%s/out", dir);
    char *source = support_path("%s/source", dir), *a = support_path("%s/a.png", source);
    char *b = support_path("%s/b.png", source), *linked = support_path("%s/train/ant/a.png", out);
    char *written = support_path("%s/train/bee/b.png", out);
    picture p = make_png(40, 40, 2, 8, false);
    struct stat one, other;
    make(ds);
    support_write(a, p.bytes, p.len);
    support_write_text(b, "not the picture");
    support_expect(0, "export", ds, out, "--to", "imagenette", "--link", source, (char *)NULL);
    assert_int_equal(stat(a, &one), 0);
    assert_int_equal(stat(linked, &other), 0);
    assert_int_equal(one.st_ino, other.st_ino);
    assert_int_equal(stat(written, &other), 0);
    assert_int_equal(other.st_nlink, 1);
    assert_int_not_equal(support_size(written), support_size(b));
    picture_free(&p);
    free(written);
    free(linked);
    free(a);
    free(b);
    free(source);
    free(out);
    free(ds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(a_full_disk_leaves_nothing),
        IN_TMPDIR(what_is_there_stays),
        IN_TMPDIR(a_folder_without_permission_is_named),
        IN_TMPDIR(options_of_other_formats_are_refused),
        IN_TMPDIR(rows_go_to_the_writer),
        IN_TMPDIR(a_writer_that_fails_is_heard),
        IN_TMPDIR(pictures_that_are_still_there_are_linked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
