/* test_decode.c - where a run's pictures are decoded does not change what is learned.
 * Invariant tested: with --decode-on device the weights are those of --decode-on host on the same device, to the bit:
 * with one rank and two, on the CPU, and where the device flags pictures.
 * Covers images/images.c, feed/feed.c.  The program runs on MILLRACE_TEST_DEVICE, usually `isolated`. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/training/model.h"
#include "tests/support/shards/seek.h"
#include "tests/support/training/train.h"

static const char *device;

static int set_up(void **state)
{
    char *dir = support_tmpdir();
    train_make_pairs(dir); /* for the model of images and text */
    TRAIN_PATH(labels, dir, "labels");
    train_make_dataset(labels, 40);
    *state = dir;
    return 0;
}

static int tear_down(void **state)
{
    support_tmpdir_remove(*state);
    return 0;
}

static void expect_same(const char *dir, const char *a, const char *b, const char *file)
{
    char *one = support_path("%s/%s/%s", dir, a, file), *other = support_path("%s/%s/%s", dir, b, file);
    support_assert_same_file(one, other);
    free(one);
    free(other);
}

static json_int_t result(const char *dir, const char *run, const char *member)
{
    char *path = support_path("%s/%s/train_results.json", dir, run);
    json_t *doc = json_load_file(path, 0, NULL);
    json_int_t value =
        json_is_integer(json_object_get(doc, member)) ? json_integer_value(json_object_get(doc, member)) : -1;
    json_decref(doc);
    free(path);
    return value;
}

/* `place` is --decode-on of the second run, which decodes on the device; the first is on the host. */
static void expect_same_weights(const char *dir, unsigned ranks, const char *place)
{
    const char *const places[] = {"host", place};
    char *outputs[MR_COUNT(places)];
    for (size_t i = 0; i < MR_COUNT(places); i++) {
        outputs[i] = support_path("%s-%u", places[i], ranks);
        train_expect(0, dir, ranks, "--steps", "3", "--output", outputs[i], "--flip", "--orientation", "apply",
                     "--device", device, "--decode-on", places[i], "--loader-threads", "3", (char *)NULL);
        assert_true((result(dir, outputs[i], "decoded_on_device") > 0) == (i > 0));
    }
    expect_same(dir, outputs[0], outputs[1], "step-00000003/weights.npz");
    expect_same(dir, outputs[0], outputs[1], "step-00000003/optimizer.npz");
    assert_int_equal(result(dir, outputs[1], "flagged_by_device"), 0);
    free(outputs[0]);
    free(outputs[1]);
}

static void labels_on_one_rank(void **state)
{
    TRAIN_PATH(dir, *state, "labels");
    expect_same_weights(dir, 0, "device");
}

static void labels_on_two_ranks_by_default(void **state)
{
    TRAIN_PATH(dir, *state, "labels");
    expect_same_weights(dir, 2, "auto");
}

static void four_threads_decode_on_the_host_by_default(void **state)
{
    TRAIN_PATH(dir, *state, "labels");
    train_expect(0, dir, 0, "--steps", "2", "--output", "many", "--device", device, "--loader-threads", "4",
                 (char *)NULL);
    train_expect(0, dir, 0, "--steps", "2", "--output", "few", "--device", device, "--loader-threads", "3",
                 (char *)NULL);
    expect_same(dir, "many", "few", "step-00000002/weights.npz");
    assert_int_equal(result(dir, "many", "decoded_on_device"), -1);
    assert_true(result(dir, "few", "decoded_on_device") > 0);
}

/* On the CPU the host decodes, unless the device is asked for; then its kernels run as plain C. */
static void the_cpu_as_well(void **state)
{
    TRAIN_PATH(dir, *state, "labels");
    train_expect(0, dir, 0, "--steps", "2", "--output", "cpu-host", (char *)NULL);
    train_expect(0, dir, 0, "--steps", "2", "--output", "cpu-device", "--decode-on", "device", (char *)NULL);
    expect_same(dir, "cpu-host", "cpu-device", "step-00000002/weights.npz");
    assert_int_equal(result(dir, "cpu-host", "decoded_on_device"), -1);
    assert_true(result(dir, "cpu-device", "decoded_on_device") > 0);
}

static void unrounded_pictures_are_left_to_the_host(void **state)
{
    support_result r =
        train_pairs_run(*state, 0, "--steps", "1", "--device", device, "--decode-on", "device", (char *)NULL);
    support_assert_status(&r, 2);
    assert_non_null(strstr(r.err, "--decode-on device: this model's images are resized without rounding"));
    support_result_free(&r);
}

/* Entries with the right check whose numbers are not: the device flags the pictures, and the host decodes them. */
static void flagged_pictures(void **state)
{
    TRAIN_PATH(dir, *state, "labels");
    TRAIN_PATH(path, dir, "data/train-00000.seek");
    TRAIN_PATH(idx, dir, "data/train-00000.idx");
    size_t len, entries;
    uint8_t *bytes = support_read(path, &len), *rows = support_read(idx, NULL), *kept = malloc(len);
    memcpy(kept, bytes, len);
    for (uint64_t i = 0; i < 5; i++) {
        mr_row row;
        uint64_t n = seek_row_with_entries(bytes, 3 * i);
        uint8_t *own = seek_entries(bytes, n, &entries);
        mr_row_unpack(rows + MR_INDEX_HEADER + n * MR_INDEX_ROW, &row);
        own[entries - 1] ^= 1;
        seek_seal_row(bytes, n, row.image_hash);
    }
    seek_seal(bytes, len);
    support_write(path, bytes, len);
    static const char *const places[] = {"host", "device"};
    for (size_t i = 0; i < 2; i++) {
        char *output = support_path("bent-%s", places[i]);
        support_result r = train_run(dir, 0, "--steps", "5", "--output", output, "--device", device, "--decode-on",
                                     places[i], (char *)NULL);
        support_assert_status(&r, 0);
        assert_true((strstr(r.out, "of them after the device could not)") != NULL) == (i == 1));
        support_result_free(&r);
        free(output);
    }
    assert_true(result(dir, "bent-device", "flagged_by_device") > 0);
    expect_same(dir, "bent-host", "bent-device", "step-00000005/weights.npz");
    support_write(path, kept, len);
    free(bytes);
    free(rows);
    free(kept);
}

int main(void)
{
    const struct CMUnitTest here[] = {
        cmocka_unit_test(labels_on_one_rank),
        cmocka_unit_test(flagged_pictures),
        cmocka_unit_test(labels_on_two_ranks_by_default),
        cmocka_unit_test(four_threads_decode_on_the_host_by_default),
        cmocka_unit_test(the_cpu_as_well),
        cmocka_unit_test(unrounded_pictures_are_left_to_the_host),
    };
    const struct CMUnitTest elsewhere[] = {here[0], here[1]};
    device = getenv("MILLRACE_TEST_DEVICE");
    if (!device) {
        device = "isolated";
        return cmocka_run_group_tests(here, set_up, tear_down);
    }
    mr_device_close(support_device(1)); /* where there is none, the test ends here */
    return cmocka_run_group_tests(elsewhere, set_up, tear_down);
}
