/* test_index_trust.c - indexes that are not those of the manifest, before and while they are read.
 * Invariant tested: no label, size, place or flag of such an index reaches anybody, by any reader; what is told names
 * the file and what to run, and to run it helps. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "loader/batch/shard_files.h"
#include "shards/dataset/index_trust.h"
#include "shards/format/index.h"
#include "tests/support/shards/dataset_maker.h"
#include "tests/support/shards/loader.h"

enum { SAMPLES = 30, PER_SHARD = 10, SECOND = 12 };

static const char words[] =
    "train-00001.idx: does not match the digest in the manifest; `millrace reindex` rebuilds it";

/* The same pictures under the same names; only the labels, of one digit each, tell two such datasets apart. */
static void make_twin(const char *dir, unsigned shift)
{
    made samples[SAMPLES];
    static const char *const classes[3] = {"ant", "bee", "cat"};
    assert_int_equal(mr_dir_make(dir, NULL), MR_OK);
    for (unsigned i = 0; i < SAMPLES; i++) {
        unsigned label = (i + shift) % 3;
        samples[i] = (made){.source = support_path("%02u.jpg", i),
                            .image = make_jpeg((jpeg_kind){.width = 20 + i, .height = 24, .components = 3}),
                            .more = support_path(",\"label\":%u,\"class\":\"%s\"", label, classes[label])};
    }
    const made_split split = {.name = "train", .samples = samples, .count = SAMPLES, .per_shard = PER_SHARD};
    dataset_make(dir, &split, 1);
    for (unsigned i = 0; i < SAMPLES; i++) {
        free((char *)(uintptr_t)samples[i].source);
        free((char *)(uintptr_t)samples[i].more);
        picture_free(&samples[i].image);
    }
}

static void copy_file(const char *from, const char *to, const char *name)
{
    size_t len;
    char *source = support_path("%s/%s", from, name), *target = support_path("%s/%s", to, name);
    uint8_t *bytes = support_read(source, &len);
    support_write(target, bytes, len);
    free(bytes);
    free(source);
    free(target);
}

static void expect_library_refuses(const char *dir)
{
    mr_dataset *ds = open_dataset_at(dir);
    mr_sample_view v = {0};
    int32_t labels[SAMPLES];
    mr_error err;
    assert_int_equal(mr_dataset_labels(ds, "train", labels, &err), MR_BAD_DATA);
    assert_string_equal(err.text, words);
    assert_int_equal(mr_dataset_read(ds, "train", SECOND, &v, &err), MR_BAD_DATA);
    assert_string_equal(err.text, words);
    assert_int_equal(mr_dataset_read_meta(ds, "train", SECOND, &v, &err), MR_BAD_DATA);
    assert_int_equal(mr_dataset_read(ds, "train", 0, &v, &err), MR_OK); /* of a shard that is whole */
    mr_loader_options o = usual_options(MR_DELIVER_ENCODED, MR_TAIL_PAD);
    seen_list s = run_loader(ds, &o, 0);
    assert_int_equal(s.status, MR_BAD_DATA);
    assert_non_null(strstr(s.error.text, words));
    seen_free(&s);
    mr_sample_view_free(&v);
    mr_dataset_free(ds);
}

static void expect_commands_refuse(const char *dir, const char *scratch)
{
    char *out = support_path("%s/out", scratch), *page = support_path("%s/page.html", scratch);
    const char *const commands[][6] = {
        {"export", dir, out},
        {"show", dir, "train", "12"},
        {"inspect", "--classes", dir},
        {"inspect", "--near-duplicates", dir},
        {"report", dir, "-o", page},
        {"replay", dir, "--global-batch", "8"},
        {"bench", dir, "--seconds", "1"},
        {"seek", dir, "--force"},
    };
    for (size_t i = 0; i < MR_COUNT(commands); i++) {
        support_result r = support_millrace_under(commands[i], NULL);
        if (r.status != 1 || !strstr(r.err, words))
            fail_msg("%s: status %d, \"%s\"", commands[i][0], r.status, r.err);
        support_result_free(&r);
    }
    assert_false(support_exists(out) || support_exists(page));
    free(out);
    free(page);
}

/* Every field of a row: one bit of it is another. */
static void every_field_counts(void **state)
{
    static const unsigned fields[] = {0, 8, 16, 24, 32, 36, 40, 44, 48, 52, 53, 54, 55, 56, 60};
    char *dir = support_path("%s/ds", (char *)*state);
    make_twin(dir, 0);
    for (size_t i = 0; i < MR_COUNT(fields); i++) {
        uint64_t at = MR_INDEX_HEADER + (SECOND - PER_SHARD) * MR_INDEX_ROW + fields[i];
        hurt_byte(dir, "train-00001.idx", at, 1);
        expect_library_refuses(dir);
        if (fields[i] == 48)
            expect_commands_refuse(dir, *state);
        hurt_byte(dir, "train-00001.idx", at, 255);
    }
    free(dir);
}

/* An index of a dataset that has the same shape, alone and with its shard; and the one from before an ingest. */
static void another_datasets_index_is_refused(void **state)
{
    char *dir = support_path("%s/ds", (char *)*state), *twin = support_path("%s/twin", (char *)*state);
    make_twin(dir, 0);
    make_twin(twin, 1);
    copy_file(twin, dir, "train-00001.idx");
    expect_library_refuses(dir);
    expect_commands_refuse(dir, *state);
    support_expect(0, "reindex", "--quiet", dir, (char *)NULL);
    support_expect(0, "verify", "--quiet", dir, (char *)NULL);

    copy_file(twin, dir, "train-00001.idx");
    copy_file(twin, dir, "train-00001.mdb");
    expect_library_refuses(dir);
    expect_commands_refuse(dir, *state);
    support_result r = support_millrace("reindex", dir, (char *)NULL); /* what the message says says what is left */
    support_assert_status(&r, 1);
    assert_non_null(strstr(r.err,
                           "train-00001.mdb: its digest does not match the manifest; copy the shard again from where "
                           "the dataset came from, or ingest again"));
    support_result_free(&r);
    free(dir);
    free(twin);
}

/* With the shard alone of another dataset, every record differs from its hash. */
static void another_datasets_shard_is_refused(void **state)
{
    char *dir = support_path("%s/ds", (char *)*state), *twin = support_path("%s/twin", (char *)*state);
    mr_sample_view v = {0};
    mr_error err;
    make_twin(dir, 0);
    make_twin(twin, 1);
    copy_file(twin, dir, "train-00001.mdb");
    mr_dataset *ds = open_dataset_at(dir);
    for (uint64_t n = PER_SHARD; n < 2 * PER_SHARD; n++)
        assert_int_equal(mr_dataset_read(ds, "train", n, &v, &err), MR_BAD_SAMPLE);
    mr_sample_view_free(&v);
    mr_dataset_free(ds);
    free(dir);
    free(twin);
}

/* What was right when it was first read may be replaced or overwritten later. */
static void a_change_is_seen(void **state)
{
    char *dir = support_path("%s/ds", (char *)*state), *twin = support_path("%s/twin", (char *)*state);
    mr_sample_view v = {0};
    mr_error err;
    make_twin(dir, 0);
    make_twin(twin, 1);
    mr_dataset *ds = open_dataset_at(dir);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(mr_dataset_read(ds, "train", SECOND, &v, &err), MR_OK);
        assert_int_equal(v.label, SECOND % 3);
        copy_file(twin, dir, "train-00001.idx");
        assert_int_equal(mr_dataset_read(ds, "train", SECOND, &v, &err), MR_BAD_DATA);
        hurt_byte(dir, "train-00000.idx", MR_INDEX_HEADER + 48, 1);
        assert_int_equal(mr_dataset_read(ds, "train", 0, &v, &err), MR_BAD_DATA);
        support_expect(0, "reindex", "--quiet", dir, (char *)NULL);
    }
    mr_sample_view_free(&v);
    mr_dataset_free(ds);
    free(dir);
    free(twin);
}

/* The loader keeps an index open; its rows are kept once many of them were read, and compared again then. */
static void overwritten_while_it_is_open(void **state)
{
    enum { MANY = 200 };
    char *dir = support_path("%s/ds", (char *)*state);
    mr_shard_files *files = NULL;
    const mr_open_shard *open;
    mr_row row;
    mr_error err;
    mr_status status = MR_OK;
    assert_int_equal(mr_dir_make(dir, NULL), MR_OK);
    make_pictures(dir, MANY, MANY, NULL);
    mr_dataset *ds = open_dataset_at(dir);
    assert_int_equal(mr_shard_files_new(ds, mr_dataset_manifest(ds)->splits, 0, &files, &err), MR_OK);
    assert_int_equal(mr_shard_files_borrow(files, 0, &open, &err), MR_OK);
    assert_int_equal(mr_shard_files_row(files, open, 0, &row, &err), MR_OK);
    hurt_byte(dir, "train-00000.idx", MR_INDEX_HEADER + (MANY - 1) * MR_INDEX_ROW + 48, 1);
    for (uint64_t n = 1; n < MANY && status == MR_OK; n++)
        status = mr_shard_files_row(files, open, n, &row, &err);
    assert_int_equal(status, MR_BAD_DATA);
    assert_non_null(strstr(err.text, "train-00000.idx: was overwritten while it was being read; `millrace reindex`"));
    assert_int_equal(mr_shard_files_row(files, open, MANY - 1, &row, &err), MR_BAD_DATA);
    mr_shard_files_return(files, open);
    mr_shard_files_free(files);
    mr_dataset_free(ds);
    free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(every_field_counts),
        IN_TMPDIR(another_datasets_index_is_refused),
        IN_TMPDIR(another_datasets_shard_is_refused),
        IN_TMPDIR(a_change_is_seen),
        IN_TMPDIR(overwritten_while_it_is_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
