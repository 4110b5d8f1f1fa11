/* test_verify_links.c - datasets whose files, or that themselves, are symbolic links.  Covers verify/shard.c.
 * Invariant tested: verify follows a link where readers follow it and nowhere else, so that its verdict is about the
 * bytes that they are given. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/shards/loader.h"
#include "tests/support/shards/shard.h"

static const char *const files[] = {"train-00000.mdb", "train-00000.idx", "manifest.json"};

/* Verify with these words, and readers the same. */
static void expect_verdict(const char *ds, int status, const char *words)
{
    char *out = support_path("%s/../out", ds);
    support_result r = support_millrace("verify", ds, (char *)NULL);
    if (r.status != status || !strstr(r.out, words))
        fail_msg("verify: status %d: %s%s", r.status, r.out, r.err);
    support_result_free(&r);
    support_expect(status, "export", "--force", "--quiet", "--split", "train", ds, out, (char *)NULL);
    free(out);
}

static void files_may_be_links(void **state)
{
    char *ds = support_path("%s/ds", (char *)*state);
    assert_int_equal(mkdir(ds, 0777), 0);
    draw_dataset(ds);
    for (size_t i = 0; i < MR_COUNT(files); i++) {
        char *path = support_path("%s/%s", ds, files[i]), *kept = support_path("%s/kept-%zu", (char *)*state, i);
        char *away = support_path("%s.away", kept);
        uint64_t at = i == 0 ? 5100 : 100;
        assert_int_equal(rename(path, kept), 0);
        assert_int_equal(symlink(kept, path), 0);
        expect_verdict(ds, 0, "ds: intact");
        if (i < 2) {
            hurt_byte(ds, files[i], at, 1);
            support_expect(1, "verify", ds, (char *)NULL);
            hurt_byte(ds, files[i], at, 255);
            assert_int_equal(rename(kept, away), 0);
            expect_verdict(ds, 1, "the file that it links to is missing");
            assert_int_equal(symlink(path, kept), 0);
            support_result r = support_millrace("verify", ds, (char *)NULL);
            support_assert_status(&r, 1);
            assert_non_null(strstr(r.out, "is a dangling link, not a file"));
            support_result_free(&r);
            assert_int_equal(rename(away, kept), 0);
        }
        expect_verdict(ds, 0, "ds: intact");
        free(path);
        free(kept);
        free(away);
    }
    free(ds);
}

static void an_index_behind_a_link_is_rebuilt(void **state)
{
    char *ds = support_path("%s/ds", (char *)*state);
    assert_int_equal(mkdir(ds, 0777), 0);
    draw_dataset(ds);
    for (size_t i = 0; i < 2; i++) {
        char *path = support_path("%s/%s", ds, files[i]), *kept = support_path("%s/kept-%zu", (char *)*state, i);
        assert_int_equal(rename(path, kept), 0);
        assert_int_equal(symlink(kept, path), 0);
        free(path);
        free(kept);
    }
    support_expect(0, "reindex", ds, (char *)NULL);
    hurt_byte(ds, files[1], 112, 1);
    expect_verdict(ds, 1, "reindex");
    support_expect(0, "reindex", ds, (char *)NULL);
    expect_verdict(ds, 0, "ds: intact");
    free(ds);
}

static void the_dataset_may_be_a_link(void **state)
{
    char *ds = support_path("%s/ds", (char *)*state);
    char *link = support_path("%s/link", (char *)*state);
    assert_int_equal(mkdir(ds, 0777), 0);
    draw_dataset(ds);
    assert_int_equal(symlink("ds", link), 0);
    expect_verdict(link, 0, "link: intact");
    hurt_byte(ds, files[0], 5100, 1);
    support_expect(1, "verify", link, (char *)NULL);
    free(link);
    free(ds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(files_may_be_links),
        IN_TMPDIR(an_index_behind_a_link_is_rebuilt),
        IN_TMPDIR(the_dataset_may_be_a_link),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
