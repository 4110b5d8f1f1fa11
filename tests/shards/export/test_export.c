/* test_export.c - what export writes, and what it refuses to write.
 * Covers formats/folder.c, export/target.c, export/temp.c.
 * Invariant tested: files come back byte for byte under their own names, and nothing is ever written outside of OUT. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>

#include "tests/support/shards/dataset_maker.h"
#include "shards/export/export.h"

typedef struct state {
    char *dir, *ds, *out;
    picture p[4];
} state;

static int set_up(void **out)
{
    state *s = calloc(1, sizeof *s);
    s->dir = support_tmpdir();
    s->ds = support_path("%s/ds", s->dir);
    s->out = support_path("%s/out", s->dir);
    mkdir(s->ds, 0777);
    for (int i = 0; i < 4; i++)
        s->p[i] = i == 3 ? make_jpeg((jpeg_kind){.width = 20, .height = 10, .components = 3})
                         : make_png(4 + (unsigned)i, 4, 2, 8, false);
    *out = s;
    return 0;
}

static int tear_down(void **out)
{
    state *s = *out;
    support_tmpdir_remove(s->dir);
    for (int i = 0; i < 4; i++)
        picture_free(&s->p[i]);
    free(s->ds);
    free(s->out);
    free(s);
    return 0;
}

static void make(const state *s)
{
    const made train[3] = {{"train/ant/a.png", s->p[0], ",\"label\":0", false, 0},
                           {"train/bee/\\\\xFF\\\\x0A\\\\\\\\.JPEG", s->p[3], ",\"label\":1", false, 0},
                           {"train/bee/again.png", s->p[0], ",\"label\":1", true, 0}};
    /* The first picture again, in another split, and one name for two samples, as in rows that repeat an image. */
    const made val[3] = {{"train/ant/a.png", s->p[0], NULL, false, 0},
                         {"top.png", s->p[1], ",\"labels\":[1,2]", false, 0},
                         {"top.png", s->p[1], ",\"label\":2", true, 1}};
    const made_split splits[2] = {{"train", train, 3, 3}, {"val", val, 3, 3}};
    dataset_make(s->ds, splits, 2);
}

/* A dataset of samples with these two paths; the second has the first one's picture if `same`. */
static void make_two(const state *s, const char *a, const char *b, bool same)
{
    const made samples[2] = {{a, s->p[0], NULL, false, 0}, {b, s->p[same ? 0 : 1], NULL, same, 0}};
    const made_split split = {"train", samples, 2, 2};
    dataset_make(s->ds, &split, 1);
}

static void expect_file(const state *s, const char *path, picture p)
{
    char *full = support_path("%s/%s", s->out, path);
    size_t len;
    uint8_t *bytes = support_read(full, &len);
    assert_int_equal(len, p.len);
    assert_memory_equal(bytes, p.bytes, len);
    free(bytes);
    free(full);
}

static void test_folder(void **out)
{
    const state *s = *out;
    make(s);
    mr_export_result r = {0};
    mr_error err;
    if (mr_export(s->ds, s->out, "folder", &(mr_export_options){.quiet = true}, &r, &err) != MR_OK)
        fail_msg("%s", err.text);
    assert_int_equal(r.samples, 6);
    assert_int_equal(r.files, 4);
    expect_file(s, "train/ant/a.png", s->p[0]);
    expect_file(s, "train/bee/again.png", s->p[0]);
    expect_file(s, "train/bee/\xFF\n\\.JPEG", s->p[3]);
    expect_file(s, "top.png", s->p[1]);
    char *names = support_list(s->out), *beside = support_path("ls -A %s | wc -l", s->dir);
    assert_int_equal(r.bytes, 2 * s->p[0].len + s->p[1].len + s->p[3].len);
    FILE *pipe = popen(beside, "r");
    int entries = 0;
    assert_int_equal(fscanf(pipe, "%d", &entries), 1);
    pclose(pipe);
    assert_int_equal(entries, 2); /* ds and out: nothing temporary is left */
    free(names);
    free(beside);
}

static void test_one_split(void **out)
{
    const state *s = *out;
    make(s);
    support_expect(0, "export", s->ds, s->out, "--split", "val", "--quiet", (char *)NULL);
    char *names = support_list(s->out);
    assert_string_equal(names, "top.png\ntrain/ant/a.png\n");
    free(names);
    support_expect(2, "export", s->ds, s->dir, "--split", "test", (char *)NULL);
}

static void test_out_in_use(void **out)
{
    const state *s = *out;
    make(s);
    char *mine = support_path("%s/mine.txt", s->out), *old = support_path("%s/old/deep/x", s->out);
    support_write_text(mine, "mine");
    support_write_text(old, "x");
    support_expect(2, "export", s->ds, s->out, (char *)NULL);
    assert_true(support_exists(mine));
    support_expect(2, "export", s->ds, s->ds, "--force", (char *)NULL);
    support_expect(2, "export", s->ds, s->dir, "--force", (char *)NULL); /* holds the dataset */
    support_expect(0, "verify", "-q", s->ds, (char *)NULL);
    support_expect(2, "export", s->ds, s->out, "--force", "-q", (char *)NULL); /* no export made those */
    assert_true(support_exists(mine) && support_exists(old));
    char *empty = support_path("%s/empty", s->dir);
    mkdir(empty, 0777);
    support_expect(0, "export", s->ds, empty, "-q", (char *)NULL);
    support_expect(2, "export", s->ds, mine, s->out, (char *)NULL);
    free(empty);
    free(mine);
    free(old);
}

static void test_hostile_paths(void **out)
{
    const state *s = *out;
    static const char *const bad[] = {
        "../x.png", "/tmp/x.png",    "a/../../x.png",        "a/./x.png",  "a//x.png", "..", "a/", "",
        "a/..",     "a\\\\x00b.png", "\\\\x2E\\\\x2E/x.png", "a\\\\q.png", "./x.png"};
    for (size_t i = 0; i < MR_COUNT(bad); i++) {
        make_two(s, "ok.png", bad[i], true);
        mr_export_result r = {0};
        mr_error err;
        if (mr_export(s->ds, s->out, "folder", &(mr_export_options){.quiet = true}, &r, &err) != MR_BAD_DATA)
            fail_msg("%s: was written", bad[i]);
        assert_false(support_exists(s->out));
        char *names = support_list(s->dir);
        assert_null(strstr(names, "x.png"));
        free(names);
    }
}

static void test_conflicts(void **out)
{
    const state *s = *out;
    make_two(s, "a.png", "a.png", true);
    support_expect(0, "export", s->ds, s->out, "-q", (char *)NULL);
    make_two(s, "a.png", "a.png", false); /* one name, two pictures */
    support_expect(1, "export", s->ds, s->out, "--force", (char *)NULL);
    make_two(s, "a.png", "a.png/b.png", false); /* a file that is a folder */
    support_expect(1, "export", s->ds, s->out, "--force", (char *)NULL);
    char *names = support_list(s->out);
    assert_string_equal(names, "a.png\n"); /* the first export stays */
    free(names);
}

static void test_damage(void **out)
{
    const state *s = *out;
    make(s);
    char *path = support_path("%s/train-00000.mdb", s->ds);
    size_t len;
    uint8_t *bytes = support_read(path, &len), *at = memmem(bytes, len, s->p[3].bytes, s->p[3].len);
    assert_non_null(at);
    at[s->p[3].len / 2] ^= 1;
    support_write(path, bytes, len);
    support_expect(1, "export", s->ds, s->out, (char *)NULL);
    assert_false(support_exists(s->out));
    char *tar = support_path("%s/x.tar", s->dir);
    support_expect(1, "export", s->ds, tar, "--to", "tar", (char *)NULL);
    assert_false(support_exists(tar));
    free(tar);
    free(bytes);
    free(path);
}

/* "path size\n" an entry; mtime and owner are asserted on the way. */
static char *read_tar(const void *bytes, size_t len, const char *want, picture p)
{
    struct archive *a = archive_read_new();
    struct archive_entry *e;
    char *text = support_path("%s", "");
    archive_read_support_format_tar(a);
    assert_int_equal(archive_read_open_memory(a, bytes, len), ARCHIVE_OK);
    while (archive_read_next_header(a, &e) == ARCHIVE_OK) {
        assert_int_equal(archive_entry_mtime(e), 0);
        assert_int_equal(archive_entry_uid(e), 0);
        char *more = support_path("%s%s %lld\n", text, archive_entry_pathname(e), (long long)archive_entry_size(e));
        free(text);
        text = more;
        if (strcmp(archive_entry_pathname(e), want) != 0)
            continue;
        uint8_t *got = malloc(p.len + 1);
        assert_int_equal(archive_read_data(a, got, p.len + 1), p.len);
        assert_memory_equal(got, p.bytes, p.len);
        free(got);
    }
    archive_read_free(a);
    return text;
}

#define FACTS "{\"splits\": [\"train\", \"val\"], \"classes\": [\"ant\", \"bee\", \"cat\"]}\n"

static void test_tar(void **out)
{
    const state *s = *out;
    make(s);
    char *tar = support_path("%s/x.tar", s->dir);
    support_expect(0, "export", s->ds, tar, "--to", "tar", "-q", (char *)NULL);
    size_t len;
    uint8_t *bytes = support_read(tar, &len);
    char *text = read_tar(bytes, len, "train/00000001.jpg", s->p[3]);
    char *expected = support_path(
        "__millrace__/dataset.json %zu\ntrain/00000000.png %zu\ntrain/00000000.json 38\ntrain/00000000.cls 1\n"
        "train/00000001.jpg %zu\ntrain/00000001.json 52\ntrain/00000001.cls 1\n"
        "train/00000002.png %zu\ntrain/00000002.json 55\ntrain/00000002.cls 1\n"
        "val/00000000.png %zu\nval/00000000.json 28\n"
        "val/00000001.png %zu\nval/00000001.json 35\n"
        "val/00000002.png %zu\nval/00000002.json 43\nval/00000002.cls 1\n",
        strlen(FACTS), s->p[0].len, s->p[3].len, s->p[0].len, s->p[0].len, s->p[1].len, s->p[1].len);
    assert_string_equal(text, expected);
    support_result r = support_millrace("export", s->ds, "-", "--to", "tar", (char *)NULL);
    support_assert_status(&r, 0);
    assert_int_equal(r.out_len, len);
    assert_memory_equal(r.out, bytes, len);
    support_result_free(&r);
    support_expect(2, "export", s->ds, tar, "--to", "tar", (char *)NULL);
    support_expect(0, "export", s->ds, tar, "--to", "tar", "--force", (char *)NULL);
    support_expect(2, "export", s->ds, s->dir, "--to", "tar", "--force", (char *)NULL);
    support_expect(2, "export", s->ds, "-", (char *)NULL);
    support_expect(2, "export", s->ds, s->out, "--to", "zip", (char *)NULL);
    free(text);
    free(expected);
    free(bytes);
    free(tar);
}

/* The word of the tool stands for numbered tars in a folder, but where OUT can only be a file. */
static void test_webdataset(void **out)
{
    const state *s = *out;
    static const char *const files[] = {"train-000000.tar", "val-000000.tar", "croissant.json"};
    make(s);
    char *tar = support_path("%s/x.tar", s->dir), *shards = support_path("%s/shards", s->dir);
    support_expect(0, "export", s->ds, shards, "--to", "webdataset", "-q", (char *)NULL);
    for (size_t i = 0; i < MR_COUNT(files); i++) {
        char *file = support_path("%s/%s", shards, files[i]);
        assert_true(support_exists(file));
        free(file);
    }
    support_expect(0, "export", s->ds, tar, "--to", "webdataset", "-q", (char *)NULL);
    support_result one = support_millrace("export", s->ds, "-", "--to", "webdataset", (char *)NULL);
    support_assert_status(&one, 0);
    size_t len;
    uint8_t *bytes = support_read(tar, &len);
    assert_int_equal(one.out_len, len);
    assert_memory_equal(one.out, bytes, len);
    support_result_free(&one);
    free(bytes);
    free(tar);
    free(shards);
}

/* A full disk and the like: an error, and nothing left behind. */
static void test_write_fails(void **out)
{
    const state *s = *out;
    make(s);
    const char *const folder[] = {support_millrace_path(), "export", s->ds, s->out, NULL};
    char *tar = support_path("%s/x.tar", s->dir);
    const char *const archive[] = {support_millrace_path(), "export", "--to", "tar", s->ds, tar, NULL};
    const support_limits limits = {.file_size = 40};
    support_result r = support_run(folder, &limits);
    support_assert_status(&r, 3);
    support_result_free(&r);
    r = support_run(archive, &limits);
    support_assert_status(&r, 3);
    support_result_free(&r);
    char *names = support_list(s->dir);
    assert_null(strstr(names, "export-"));
    assert_false(support_exists(s->out));
    assert_false(support_exists(tar));
    free(names);
    free(tar);
}

/* What exports that were killed left goes with the next one to the same place; what is written still, or is somebody's
 * own, stays. */
static void test_left_behind(void **out)
{
    const state *s = *out;
    make(s);
    static const char *const names[] = {".millrace-export-1", ".millrace-export-2",  ".millrace-export-",
                                        ".export-3",          ".millrace-export-4x", "s.millrace-export-5"};
    static const bool stays[MR_COUNT(names)] = {false, true, true, true, true, true};
    char *tar = support_path("%s/x.tar", s->dir), *folder_of[MR_COUNT(names)], *left;
    for (size_t i = 0; i < MR_COUNT(names); i++) {
        folder_of[i] = support_path("%s%s", s->out, names[i]);
        support_put(folder_of[i], "deep/x", "x");
    }
    int busy = open(folder_of[1], O_RDONLY | O_DIRECTORY);
    assert_true(busy >= 0 && flock(busy, LOCK_EX | LOCK_NB) == 0);
    support_expect(0, "export", s->ds, s->out, "-q", (char *)NULL);
    for (size_t i = 0; i < MR_COUNT(names); i++)
        assert_int_equal(support_exists(folder_of[i]), stays[i]);
    close(busy);
    support_expect(0, "export", s->ds, s->out, "--force", "-q", (char *)NULL);
    assert_false(support_exists(folder_of[1]));

    left = support_path("%s.millrace-export-77", tar);
    support_write_text(left, "x");
    support_expect(0, "export", "--to", "tar", s->ds, tar, "-q", (char *)NULL);
    assert_false(support_exists(left));
    for (size_t i = 0; i < MR_COUNT(names); i++)
        free(folder_of[i]);
    free(left);
    free(tar);
}

/* Another export's sweep, between the making of a temporary and its locking: it has the lock, and has removed nothing
 * yet.  (flock() of the library, called here in its place.) */
static bool swept;
static int sweeper = -1;

int flock(int fd, int operation)
{
    if (swept && operation == (LOCK_EX | LOCK_NB)) {
        char *of = support_path("/proc/self/fd/%d", fd);
        sweeper = open(of, O_RDONLY | O_CLOEXEC);
        swept = false;
        assert_int_equal(flock(sweeper, LOCK_EX), 0);
        free(of);
    }
    return (int)syscall(SYS_flock, fd, operation);
}

static void test_swept_at_once(void **out)
{
    const state *s = *out;
    for (int folder = 0; folder < 2; folder++) {
        mr_export_temp temp;
        mr_error err;
        swept = true;
        assert_int_equal(mr_export_temp_open(s->out, folder, &temp, &err), MR_SYSTEM);
        assert_true(sweeper >= 0);
        assert_non_null(strstr(err.text, "another export to the same place"));
        assert_int_equal(mr_export_temp_close(&temp, NULL), MR_OK);
        close(sweeper);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_folder),      TEST(test_one_split),   TEST(test_out_in_use),    TEST(test_hostile_paths),
        TEST(test_conflicts),   TEST(test_damage),      TEST(test_tar),           TEST(test_webdataset),
        TEST(test_write_fails), TEST(test_left_behind), TEST(test_swept_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
