/* test_dataset_many.c - a dataset of this many shards that opening it looks at none: all but the first are made up.
 * Invariant tested: a shard's files are checked when it is first read, as opening would have.
 * Covers dataset/dataset.c. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shards/manifest/format.h"
#include "tests/support/shards/shard.h"

enum { MADE_UP = 10001 };

static void write_file(const char *dir, const char *name, mr_buf *bytes)
{
    char *path = support_path("%s/%s", dir, name);
    assert_false(bytes->failed);
    support_write(path, bytes->data, bytes->len);
    mr_buf_free(bytes);
    free(path);
}

/* DIR: the drawn dataset, whose last split goes on with shards that have no files. */
static void draw_many(const char *dir)
{
    mr_manifest *m = NULL;
    mr_error err;
    mr_buf text = {0};
    draw_dataset(dir);
    assert_int_equal(mr_manifest_open(dir, &m, NULL, &err), MR_OK);
    mr_split *split = &m->splits[m->split_count - 1];
    assert_int_equal(split->shard_count, 1);
    split->shards = realloc(split->shards, (1 + MADE_UP) * sizeof *split->shards);
    assert_non_null(split->shards);
    for (size_t i = 1; i <= MADE_UP; i++) {
        mr_shard *s = &split->shards[i];
        *s = split->shards[0];
        snprintf(s->name, sizeof s->name, "%s-%05zu", split->name, i);
        s->first = split->samples;
        split->samples += s->samples;
        split->images += s->images;
        split->image_bytes += s->image_bytes;
    }
    split->shard_count = 1 + MADE_UP;
    assert_int_equal(mr_manifest_write(m, &text, &err), MR_OK);
    write_file(dir, MR_MANIFEST, &text);
    mr_manifest_free(m);
}

static void expect_bad(const mr_dataset *ds, uint64_t n, const char *words)
{
    mr_sample_view v = {0};
    mr_error err;
    assert_int_equal(mr_dataset_read(ds, "val", n, &v, &err), MR_BAD_DATA);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" does not mention \"%s\"", err.text, words);
    mr_sample_view_free(&v);
}

static void hurt_byte_at(const char *path, uint64_t at)
{
    size_t len;
    uint8_t *bytes = support_read(path, &len);
    assert_true(at < len);
    bytes[at] ^= 1;
    support_write(path, bytes, len);
    free(bytes);
}

static void test_shards_are_checked_when_they_are_read(void **state)
{
    char *idx = support_path("%s/val-00000.idx", (char *)*state),
         *mdb = support_path("%s/val-00000.mdb", (char *)*state);
    mr_dataset *ds = NULL;
    mr_sample_view v = {0};
    mr_error err;
    draw_many(*state);
    if (mr_dataset_open(*state, &ds, &err) != MR_OK)
        fail_msg("%s", err.text);
    assert_int_equal(mr_dataset_samples(ds, "val"), 12 * (1 + MADE_UP));
    assert_int_equal(mr_dataset_read(ds, "val", 11, &v, &err), MR_OK);
    expect_bad(ds, 12, "val-00001.idx: is missing");
    expect_bad(ds, 12 * (1 + MADE_UP) - 1, "val-10001.idx: is missing");
    hurt_byte_at(idx, 16);
    expect_bad(ds, 0, "val-00000.idx: is the index of another shard");
    hurt_byte_at(idx, 16);
    assert_int_equal(mr_dataset_read(ds, "val", 0, &v, &err), MR_OK);
    assert_int_equal(truncate(mdb, 4096), 0);
    expect_bad(ds, 0, "val-00000.mdb: 4096 bytes instead of");
    mr_sample_view_free(&v);
    mr_dataset_free(ds);
    free(idx);
    free(mdb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {IN_TMPDIR(test_shards_are_checked_when_they_are_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
