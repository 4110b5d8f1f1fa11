/* test_dataset_facts.c - digest, splits, classes and labels of an open dataset.
 * Invariant tested: they are those of the manifest and of each sample. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/json.h"
#include "tests/support/shards/loader.h"

static void facts_are_the_manifests(void **state)
{
    char *source = support_path("%s/source", (char *)*state), *path = support_path("%s/dataset", (char *)*state);
    support_expect(0, "sample", source, "--layout", "roboflow", "--images", "60", "-q", (char *)NULL);
    support_expect(0, "ingest", source, path, "-q", "--shard-size", "64KiB", (char *)NULL);
    mr_dataset *ds = open_dataset_at(path);
    support_result r = support_millrace("inspect", path, "--json", (char *)NULL);
    char *digest = support_path("\"digest\": \"%s\"", mr_dataset_sha256(ds));
    assert_non_null(strstr(r.out, digest));
    assert_string_equal(mr_dataset_layout(ds), "roboflow");
    assert_int_equal(mr_dataset_split_count(ds), 3);
    assert_null(mr_dataset_split_name(ds, 3));
    assert_true(mr_dataset_class_count(ds) > 1);
    assert_null(mr_dataset_class_name(ds, mr_dataset_class_count(ds)));
    for (size_t i = 0; i < mr_dataset_split_count(ds); i++) {
        const char *split = mr_dataset_split_name(ds, i);
        uint64_t count = mr_dataset_samples(ds, split);
        int32_t *labels = calloc(count, sizeof *labels);
        uint32_t *stored = calloc(count, 2 * sizeof *stored), *turned = calloc(count, 2 * sizeof *turned);
        assert_int_equal(mr_dataset_sizes(ds, split, 0, stored, NULL), MR_OK);
        assert_int_equal(mr_dataset_sizes(ds, split, 1, turned, NULL), MR_OK);
        mr_sample_view v = {0};
        assert_int_equal(mr_dataset_labels(ds, split, labels, NULL), MR_OK);
        for (uint64_t n = 0; n < count; n++) {
            assert_int_equal(mr_dataset_read_meta(ds, split, n, &v, NULL), MR_OK);
            assert_int_equal(labels[n], v.label);
            assert_true(stored[2 * n] == v.width && stored[2 * n + 1] == v.height);
            assert_int_equal(turned[2 * n], v.orientation > 4 ? v.height : v.width);
            assert_int_equal(turned[2 * n + 1], v.orientation > 4 ? v.width : v.height);
            char *class = support_path("\"class\":\"%s\"", mr_dataset_class_name(ds, (size_t)v.label));
            assert_non_null(memmem(v.meta, v.meta_len, class, strlen(class)));
            free(class);
        }
        mr_sample_view_free(&v);
        free(labels);
        free(stored);
        free(turned);
    }
    mr_dataset_free(ds);
    support_result_free(&r);
    free(digest);
    free(source);
    free(path);
}

static void damaged_labels_are_refused(void **state)
{
    const char *dir = *state;
    int32_t labels[30];
    mr_error err;
    make_pictures(dir, 30, 9, NULL);
    mr_dataset *ds = open_dataset_at(dir);
    assert_int_equal(mr_dataset_labels(ds, "test", labels, &err), MR_MISUSE);
    assert_non_null(strstr(err.text, "test"));
    assert_int_equal(mr_dataset_labels(ds, "train", labels, &err), MR_OK);
    uint32_t sizes[60];
    assert_int_equal(mr_dataset_sizes(ds, "test", 0, sizes, &err), MR_MISUSE);
    assert_int_equal(mr_dataset_sizes(ds, "train", 0, sizes, &err), MR_OK);
    hurt_byte(dir, "train-00002.idx", 64 + 2 * 64 + 48, 1); /* another label, which could as well be right */
    assert_int_equal(mr_dataset_labels(ds, "train", labels, &err), MR_BAD_DATA);
    assert_int_equal(mr_dataset_sizes(ds, "train", 1, sizes, NULL), MR_BAD_DATA);
    assert_non_null(strstr(err.text, "train-00002.idx: does not match the digest in the manifest; `millrace reindex`"));
    mr_dataset_free(ds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(facts_are_the_manifests),
        IN_TMPDIR(damaged_labels_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
