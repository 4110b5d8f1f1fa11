/* test_verify_refused.c - files that the system does not let be read: bad sectors, permissions, one call that fails.
 * Invariant tested: what could be read is judged all the same, what could not is hit to the record, and the exit code
 * is the system's. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shards/format/index.h"
#include "tests/support/faults.h"
#include "tests/support/shards/shard.h"
#include "shards/verify/verify.h"

enum { SHARDS = 3, BAD_MAX = 4 };

static const char *const names[SHARDS] = {"train-00000", "train-00001", "val-00000"};

/* ---- a disk with bad sectors ------------------------------------------------------------------------------------ */

static struct {
    ino_t file; /* 0: none */
    size_t count;
    uint64_t pages[BAD_MAX];
} bad;

/* For all of this program, in place of the C library's: as Linux does it, reading as far as it can first. */
ssize_t pread64(int fd, void *bytes, size_t n, off64_t at)
{
    struct stat st;
    for (size_t i = 0; bad.file && i < bad.count && fstat(fd, &st) == 0 && st.st_ino == bad.file; i++) {
        uint64_t from = bad.pages[i] * MR_LMDB_PAGE, to = from + MR_LMDB_PAGE;
        if ((uint64_t)at >= from && (uint64_t)at < to) {
            errno = EIO;
            return -1;
        }
        if ((uint64_t)at < from && (uint64_t)at + n > from)
            n = (size_t)(from - (uint64_t)at);
    }
    return syscall(SYS_pread64, fd, bytes, n, at);
}

static void spoil(const char *path, mr_random *random)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    bad.file = st.st_ino;
    bad.count = 1 + mr_random_below(random, BAD_MAX);
    for (size_t i = 0; i < bad.count; i++)
        bad.pages[i] = mr_random_below(random, ((uint64_t)st.st_size + MR_LMDB_PAGE - 1) / MR_LMDB_PAGE);
}

static bool in_bad_page(uint64_t offset, uint64_t len)
{
    bool in = false;
    for (size_t i = 0; i < bad.count; i++)
        in |= offset < (bad.pages[i] + 1) * MR_LMDB_PAGE && offset + len > bad.pages[i] * MR_LMDB_PAGE;
    return in;
}

/* ---- the report ------------------------------------------------------------------------------------------------- */

typedef struct scene {
    char *dir, *ds;
    mr_manifest *manifest;
    const mr_shard *shards[SHARDS];
    mr_row *rows[SHARDS];
} scene;

static int set_up(void **state)
{
    scene *s = calloc(1, sizeof *s);
    mr_error err;
    s->dir = support_tmpdir();
    s->ds = support_path("%s/ds", s->dir);
    assert_int_equal(mkdir(s->ds, 0777), 0);
    draw_dataset(s->ds);
    int fd = open(s->ds, O_RDONLY | O_DIRECTORY);
    assert_int_equal(mr_manifest_open(s->ds, &s->manifest, NULL, &err), MR_OK);
    for (int i = 0; i < SHARDS; i++) {
        s->shards[i] = &s->manifest->splits[i / 2].shards[i % 2];
        assert_int_equal(mr_index_read(fd, s->shards[i], &s->rows[i], &err), MR_OK);
    }
    close(fd);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    scene *s = *state;
    bad.file = 0;
    for (int i = 0; i < SHARDS; i++)
        free(s->rows[i]);
    mr_manifest_free(s->manifest);
    support_tmpdir_remove(s->dir);
    free(s->ds);
    free(s);
    return 0;
}

static char *file(const scene *s, int shard, const char *suffix)
{
    return support_path("%s/%s.%s", s->ds, names[shard], suffix);
}

static mr_verify_report *look(const scene *s, mr_verify_level level)
{
    const mr_verify_options o = {.level = level, .jobs = 1, .quiet = true};
    mr_verify_report *r;
    mr_error err;
    if (mr_verify(s->ds, &o, &r, &err) != MR_OK)
        fail_msg("%s", err.text);
    return r;
}

/* Only this shard has problems, the first of them this one, by the system's doing. */
static const mr_verify_shard *expect_refused(const mr_verify_report *r, int shard, mr_problem_kind kind)
{
    const mr_verify_shard *s = &r->shards[shard];
    assert_int_equal(r->shard_count, SHARDS);
    for (int i = 0; i < SHARDS; i++)
        if (i != shard && r->shards[i].problems.count)
            fail_msg("%s: %s", r->shards[i].name, r->shards[i].problems.items[0].detail);
    assert_true(s->problems.count > 0);
    assert_int_equal(s->problems.items[0].kind, kind);
    assert_true(mr_verify_refused(r) == &s->problems.items[0]);
    if (!strstr(s->problems.items[0].detail, "Input/output error"))
        fail_msg("%s", s->problems.items[0].detail);
    assert_false(mr_verify_ok(r) || mr_verify_whole(r));
    return s;
}

/* ---- tests ------------------------------------------------------------------------------------------------------ */

static void test_bad_sectors(void **state)
{
    const scene *s = *state;
    mr_random random = support_random();
    for (unsigned trial = 0; trial < 60; trial++) {
        int n = (int)mr_random_below(&random, SHARDS);
        char *path = file(s, n, "mdb");
        spoil(path, &random);
        mr_verify_report *r = look(s, (mr_verify_level)(MR_VERIFY_FULL + trial % 3));
        const mr_verify_shard *shard = expect_refused(r, n, MR_PROBLEM_UNREADABLE);
        uint64_t hits = 0;
        size_t at = 0;
        for (uint64_t i = 0; i < s->shards[n]->samples; i++) {
            const mr_row *row = &s->rows[n][i];
            bool meta = in_bad_page(row->meta_offset, row->meta_len);
            if (!meta && !in_bad_page(row->image_offset, row->image_len))
                continue;
            hits++;
            while (at < shard->problems.count && shard->problems.items[at].kind != MR_PROBLEM_RECORD)
                at++;
            if (at == shard->problems.count || shard->problems.items[at].sample != s->shards[n]->first + i)
                fail_msg("trial %u: sample %llu of %s cannot be read, and is not reported", trial,
                         (unsigned long long)i, names[n]);
            assert_true(meta == !shard->problems.items[at].source);
            at++;
        }
        assert_int_equal(shard->damaged, hits);
        assert_int_equal(shard->problems.count, hits + 1);
        mr_verify_report_free(r);
        bad.file = 0;
        free(path);
    }
}

/* Without its index a shard can still be whole; without its seek index it is. */
static void test_bad_sectors_beside(void **state)
{
    const scene *s = *state;
    mr_random random = support_random();
    support_expect(0, "seek", "-q", s->ds, (char *)NULL);
    for (unsigned trial = 0; trial < 8; trial++) {
        int n = (int)mr_random_below(&random, SHARDS);
        char *path = file(s, n, trial % 2 ? "idx" : "seek");
        spoil(path, &random);
        mr_verify_report *r = look(s, (mr_verify_level)(trial / 2));
        const mr_verify_shard *shard = expect_refused(r, n, trial % 2 ? MR_PROBLEM_UNREADABLE : MR_PROBLEM_SEEK);
        assert_int_equal(shard->damaged, 0);
        assert_int_equal(shard->problems.count, 1);
        assert_int_equal(shard->index_only, trial % 2 && r->level != MR_VERIFY_QUICK);
        mr_verify_report_free(r);
        bad.file = 0;
        free(path);
    }
}

/* Both files of a shard: nothing of it is known. */
static void test_no_index_and_bad_sectors(void **state)
{
    const scene *s = *state;
    mr_random random = support_random();
    char *idx = file(s, 1, "idx"), *mdb = file(s, 1, "mdb");
    assert_int_equal(unlink(idx), 0);
    spoil(mdb, &random);
    mr_verify_report *r = look(s, MR_VERIFY_DECODE);
    assert_int_equal(r->shards[1].damaged, s->shards[1]->samples);
    assert_int_equal(r->shards[1].problems.count, 2);
    assert_int_equal(r->shards[1].problems.items[0].kind, MR_PROBLEM_MISSING);
    assert_int_equal(r->shards[1].problems.items[1].kind, MR_PROBLEM_UNREADABLE);
    mr_verify_report_free(r);
    free(idx);
    free(mdb);
}

/* ---- the command ------------------------------------------------------------------------------------------------ */

static void expect_junit(const scene *s, const char *words)
{
    char *path = support_path("%s/verify.xml", s->dir), *text = (char *)support_read(path, NULL);
    if (!strstr(text, words))
        fail_msg("\"%s\" is not in %s", words, text);
    free(text);
    free(path);
}

static size_t refusals(const json_t *problems)
{
    size_t n = 0, i;
    const json_t *p;
    json_array_foreach(problems, i, p) n += json_is_true(json_object_get(p, "refused"));
    return n;
}

/* Any read, failing for good from then on or once: whatever is said, the damage of the last shard is told, or why not,
 * and no report of an earlier run is left. */
static void try_read(const scene *s, unsigned long n, bool lasting)
{
    char *fault = support_path("read:%lu%s:EIO", n, lasting ? "+" : ""), *xml = support_path("%s/verify.xml", s->dir);
    support_write_text(xml, "<testsuite failures=\"0\"/>");
    support_result r = faulty_run(&(faulty){.directory = s->dir, .fault = fault},
                                  "verify ds --json --jobs 1 --deep --junit verify.xml");
    json_t *doc = json_loadb(r.out, r.out_len, 0, NULL), *problems = json_object_get(doc, "problems");
    if (doc && refusals(problems)) {
        support_assert_status(&r, 3);
        assert_non_null(strstr(r.err, "Input/output error"));
        expect_junit(s, "<failure type=");
    } else {
        support_assert_status(&r, doc ? 1 : 3);
        expect_junit(s, doc ? "failures=\"1\"" : "errors=\"1\"");
    }
    if (doc) {
        assert_int_equal(json_integer_value(json_object_get(doc, "shards")), SHARDS);
        const json_t *last = json_array_get(problems, json_array_size(problems) - 1);
        assert_string_equal(json_string_value(json_object_get(last, "shard")), names[SHARDS - 1]);
    }
    json_decref(doc);
    support_result_free(&r);
    free(fault);
    free(xml);
}

static void test_any_read(void **state)
{
    const scene *s = *state;
    mr_random random = support_random();
    char *mdb = file(s, SHARDS - 1, "mdb");
    size_t len;
    uint8_t *bytes = support_read(mdb, &len);
    bytes[s->rows[SHARDS - 1][0].image_offset] ^= 1;
    support_write(mdb, bytes, len);
    support_result r = faulty_run(&(faulty){.directory = s->dir}, "verify ds --json --jobs 1 --deep");
    support_assert_status(&r, 1);
    unsigned long calls = faulty_calls("read");
    support_result_free(&r);
    for (unsigned long n = 1; n <= 12; n++) {
        try_read(s, n, n % 2);
        try_read(s, 1 + mr_random_below(&random, calls), mr_random_below(&random, 2));
    }
    free(bytes);
    free(mdb);
}

/* By the report's own name, and by a link to it. */
static void test_killed(void **state)
{
    const scene *s = *state;
    static const char *const commands[] = {"verify ds --junit verify.xml", "verify ds --junit link.xml"};
    char *xml = support_path("%s/verify.xml", s->dir), *link = support_path("%s/link.xml", s->dir);
    assert_int_equal(symlink("verify.xml", link), 0);
    for (int i = 0; i < 2; i++) {
        support_write_text(xml, "<testsuite failures=\"0\"/>");
        support_result r = faulty_run(&(faulty){.directory = s->dir, .fault = "read:4:kill"}, commands[i]);
        assert_int_equal(r.signal, SIGKILL);
        expect_junit(s, "<error message=\"verify did not finish\"");
        support_result_free(&r);
    }
    struct stat st;
    assert_true(lstat(link, &st) == 0 && S_ISLNK(st.st_mode));
    free(link);
    free(xml);
}

static void test_permissions(void **state)
{
    const scene *s = *state;
    char *mdb = file(s, 0, "mdb");
    if (geteuid() == 0) {
        print_message("root may read everything: permissions are not tried here\n");
        free(mdb);
        return;
    }
    chmod(mdb, 0);
    support_result r = support_millrace("verify", s->ds, (char *)NULL);
    support_assert_status(&r, 3);
    assert_non_null(strstr(r.err, "train-00000.mdb: cannot open: Permission denied"));
    assert_non_null(strstr(r.out, "train-00000: cannot be read completely, all "));
    assert_non_null(strstr(r.out, "1 of 3 shards"));
    assert_null(strstr(r.out, "restore the damaged"));
    support_result_free(&r);
    free(mdb);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_bad_sectors), TEST(test_bad_sectors_beside), TEST(test_no_index_and_bad_sectors), TEST(test_any_read),
        TEST(test_killed),      TEST(test_permissions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
