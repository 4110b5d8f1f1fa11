/* test_replay.c - `millrace replay` and `millrace bench` as people run them.
 * Invariant tested: a batch's digest is that of its bytes in global order, whichever rank loads them. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "loader/bench/digest.h"
#include "loader/order/schedule.h"
#include "tests/support/shards/loader.h"

static json_t *parsed(support_result *r)
{
    support_assert_status(r, 0);
    json_t *doc = json_loadb(r->out, r->out_len, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(doc);
    support_result_free(r);
    return doc;
}

#define REPLAY(dir, ...) support_millrace("replay", dir, "--global-batch", "8", __VA_ARGS__, (char *)NULL)

/* Every batch's digest, one line each, by another way: the samples one by one. */
static char *expected(const char *dir, uint64_t epoch, const char *seed, mr_tail tail)
{
    mr_dataset *ds = open_dataset_at(dir);
    mr_order order;
    mr_schedule plan;
    mr_sample_view v = {0};
    mr_buf out = {0};
    assert_int_equal(
        mr_order_make(MR_SHUFFLE_FULL, mr_dataset_samples(ds, "train"), strtoull(seed, NULL, 10), 0, 0, &order, NULL),
        MR_OK);
    assert_int_equal(mr_schedule_make(&order, 8, 1, tail, &plan, NULL), MR_OK);
    for (uint64_t k = 0; k < plan.steps; k++) {
        mr_buf bytes = {0};
        uint8_t digest[16];
        char hex[33];
        for (uint64_t i = 0; i < mr_schedule_count(&plan, k, 0); i++) {
            uint64_t sample = mr_schedule_slot(&plan, epoch, k, 0, i).sample;
            assert_int_equal(mr_dataset_read(ds, "train", sample, &v, NULL), MR_OK);
            mr_buf_add(&bytes, v.image, v.image_len);
        }
        mr_hash128(bytes.data, bytes.len, digest);
        mr_hex(digest, 16, hex);
        mr_buf_printf(&out, "step %llu  %s\n", (unsigned long long)k, hex);
        mr_buf_free(&bytes);
    }
    mr_sample_view_free(&v);
    mr_dataset_free(ds);
    mr_buf_add(&out, "", 1);
    return (char *)out.data;
}

static void expect_output(support_result r, const char *want)
{
    support_assert_status(&r, 0);
    assert_string_equal(r.out, want);
    support_result_free(&r);
}

static void test_digests(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    make_pictures(dir, 43, 9, NULL);
    char *drop = expected(dir, 0, "0", MR_TAIL_DROP), *pad = expected(dir, 3, "77", MR_TAIL_PAD);
    char *partial = expected(dir, 3, "77", MR_TAIL_PARTIAL);
    static const char *const shapes[][2] = {{"1", "0"}, {"2", "3"}, {"8", "1"}};
    for (size_t i = 0; i < MR_COUNT(shapes); i++) {
        const char *ranks = shapes[i][0], *threads = shapes[i][1];
        expect_output(REPLAY(dir, "--ranks", ranks, "--threads", threads), drop);
        expect_output(
            REPLAY(dir, "--ranks", ranks, "--threads", threads, "--epoch", "3", "--seed", "77", "--tail", "pad"), pad);
        expect_output(
            REPLAY(dir, "--ranks", ranks, "--threads", threads, "--epoch", "3", "--seed", "77", "--tail", "partial"),
            partial);
    }
    /* A few of them alone: the second and third line. */
    char *second = strchr(drop, '\n') + 1, *fourth = strchr(strchr(second, '\n') + 1, '\n') + 1;
    char *two = support_path("%.*s", (int)(fourth - second), second);
    expect_output(REPLAY(dir, "--ranks", "4", "--batches", "1:3"), two);
    free(two);
    free(drop);
    free(pad);
    free(partial);
    support_tmpdir_remove(dir);
}

static const char *digest_at(const json_t *doc, size_t i)
{
    return json_string_value(json_object_get(json_array_get(json_object_get(doc, "batches"), i), "digest"));
}

/* Pixels too, and the list, do not know who loaded them. */
static void test_pixels_and_list(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    make_pictures(dir, 43, 9, NULL);
    static const char *const shapes[][2] = {{"1", "0"}, {"2", "3"}, {"8", "1"}};
    static const char *const augments[] = {"train", "eval", "center"};
    char *texts[3][3];
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 3; k++) {
            support_result r =
                REPLAY(dir, "--ranks", shapes[i][0], "--threads", shapes[i][1], "--size", "24", "--augment",
                       augments[k], "--list", "--json", "--tail", "partial", "--seed", "4", "--bicubic");
            texts[i][k] = support_path("%s", r.out);
            json_t *doc = parsed(&r);
            const json_t *batch = json_array_get(json_object_get(doc, "batches"), 5), *sample;
            assert_int_equal(json_array_size(json_object_get(doc, "batches")), 6);
            assert_int_equal(json_integer_value(json_object_get(batch, "step")), 5);
            assert_int_equal(json_array_size(json_object_get(batch, "samples")), 3);
            sample = json_array_get(json_object_get(batch, "samples"), 0);
            char *source = support_path("pictures/%lld", json_integer_value(json_object_get(sample, "sample")));
            assert_string_equal(json_string_value(json_object_get(sample, "source")), source);
            assert_true(json_is_boolean(json_object_get(sample, "flip")));
            assert_true(json_integer_value(json_object_get(sample, "width")) > 0);
            free(source);
            json_decref(doc);
        }
    for (size_t k = 0; k < 3; k++) {
        assert_string_equal(texts[0][k], texts[1][k]);
        assert_string_equal(texts[0][k], texts[2][k]);
        assert_string_not_equal(texts[0][k], texts[0][(k + 1) % 3]);
    }
    for (size_t i = 0; i < 9; i++)
        free(texts[i / 3][i % 3]);
    /* The digest is that of the float32 values. */
    mr_dataset *ds = open_dataset_at(dir);
    mr_loader_options o = {.split = "train",
                           .global_batch = 8,
                           .deliver = MR_DELIVER_F32_NCHW,
                           .transform = {.kind = MR_TRANSFORM_SQUARE, .size = 24}};
    mr_loader *l = open_loader(ds, &o);
    const mr_batch *b;
    uint8_t digest[16];
    char hex[33];
    assert_int_equal(mr_loader_next(l, &b, NULL), MR_OK);
    mr_hash128(b->data, b->data_bytes, digest);
    mr_hex(digest, 16, hex);
    support_result r = REPLAY(dir, "--size", "24", "--augment", "eval", "--batches", "0", "--json");
    json_t *doc = parsed(&r);
    assert_string_equal(digest_at(doc, 0), hex);
    json_decref(doc);
    mr_loader_free(l);
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

static void test_under_mpirun(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    make_pictures(dir, 43, 9, NULL);
    for (unsigned ranks = 2; ranks <= 4; ranks += 2) {
        support_result alone = REPLAY(dir, "--list", "--json", "--tail", "partial", "--epoch", "2");
        const char *argv[] = {support_millrace_path(),
                              "replay",
                              dir,
                              "--global-batch",
                              "8",
                              "--list",
                              "--json",
                              "--tail",
                              "partial",
                              "--epoch",
                              "2",
                              "--threads",
                              "1",
                              NULL};
        support_result many = support_mpirun(ranks, argv);
        support_assert_status(&many, 0);
        json_t *a = parsed(&alone), *b = parsed(&many);
        assert_true(json_equal(a, b));
        json_decref(a);
        json_decref(b);
    }
    support_tmpdir_remove(dir);
}

static void expect_words(support_result r, int status, const char *words)
{
    support_assert_status(&r, status);
    if (!strstr(r.err, words))
        fail_msg("\"%s\" does not mention \"%s\"", r.err, words);
    support_result_free(&r);
}

/* How many samples are listed as standing in for `damaged`: another of weight 1, or itself of weight 0. */
static size_t marked(const json_t *doc, json_int_t damaged, bool replaced)
{
    size_t count = 0, at, k;
    json_t *batch, *s, *batches = json_object_get(doc, "batches");
    json_array_foreach(batches, at, batch) json_array_foreach(json_object_get(batch, "samples"), k, s)
    {
        const json_t *mark = json_object_get(s, "damaged");
        if (!mark)
            continue;
        assert_int_equal(json_integer_value(mark), damaged);
        assert_true((json_integer_value(json_object_get(s, "sample")) == damaged) == !replaced);
        assert_true(json_number_value(json_object_get(s, "weight")) == (replaced ? 1 : 0));
        count++;
    }
    return count;
}

static void test_failures(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    make_pictures(dir, 43, 9, NULL);
    expect_words(REPLAY(dir, "--ranks", "3"), 2, "6 and 9");
    expect_words(REPLAY(dir, "--split", "trian"), 2, "train");
    expect_words(REPLAY(dir, "--batches", "4:9"), 2, "0 to 4");
    expect_words(REPLAY(dir, "--augment", "none"), 2, "train, eval or center");
    expect_words(REPLAY(dir, "--on-bad", "skip"), 2, "fail, replace or mask");
    expect_words(REPLAY(dir, "--orientation", "yes"), 2, "ignore or apply");
    expect_words(support_millrace("bench", dir, "--stage", "all", (char *)NULL), 2, "read, decode or input");
    expect_words(support_millrace("bench", dir, "--seconds", "0", (char *)NULL), 2, "seconds");
    expect_words(support_millrace("bench", dir, "--split", "val", (char *)NULL), 2, "it has train");
    expect_words(support_millrace("bench", (char *)NULL), 2, "DATASET is missing");
    hurt_image(dir, 11, 9);
    expect_words(REPLAY(dir, "--tail", "partial"), 1, "train-00001.mdb: sample 11 (pictures/11): its image differs");
    expect_words(support_millrace("bench", dir, "--seconds", "600", (char *)NULL), 1, "sample 11");
    for (unsigned i = 0; i < 2; i++) {
        support_result r = REPLAY(dir, "--tail", "partial", "--json", "--list", "--on-bad", i ? "replace" : "mask",
                                  "--ranks", i ? "2" : "1");
        json_t *doc = parsed(&r);
        assert_int_equal(json_array_size(json_object_get(doc, "batches")), 6);
        assert_int_equal(json_integer_value(json_object_get(doc, "damaged")), 1);
        assert_int_equal(marked(doc, 11, i), 1);
        json_decref(doc);
    }
    for (unsigned i = 0; i < 2; i++) {
        support_result r = REPLAY(dir, "--tail", "partial", "--list", "--on-bad", i ? "replace" : "mask");
        support_assert_status(&r, 0);
        assert_non_null(strstr(r.out, i ? "  (replaces 11, damaged)\n" : "damaged: masked\n"));
        assert_non_null(strstr(r.err, "train: 1 damaged sample skipped: 11 ("));
        support_result_free(&r);
    }
    support_tmpdir_remove(dir);
}

static void test_bench(void **state)
{
    (void)state;
    static const char *const keys[] = {"images_per_second",      "cpu_ms_per_image",    "limit_images_per_second",
                                       "limit_cpu_ms_per_image", "cpu_ratio",           "rate_ratio",
                                       "first_batch_ms",         "first_batch_limit_ms"};
    char *dir = support_tmpdir();
    make_pictures(dir, 150, 40, NULL);
    for (unsigned stage = 0; stage < 3; stage++) {
        const char *names[] = {"read", "decode", "input"};
        support_result r = support_millrace("bench", dir, "--stage", names[stage], "--threads", stage ? "2" : "0",
                                            "--seconds", "0.2", "--size", "32", "--json", (char *)NULL);
        json_t *doc = parsed(&r);
        for (size_t i = 0; i < MR_COUNT(keys); i++)
            assert_true(json_real_value(json_object_get(doc, keys[i])) > 0);
        assert_string_equal(json_string_value(json_object_get(doc, "stage")), names[stage]);
        assert_true(!json_object_get(doc, "resize_ms") == (stage < 2));
        assert_true(!json_object_get(doc, "decode_ms") == (stage < 1));
        assert_true(!json_object_get(doc, "memcpy_cpu_ms_per_image") == (stage > 0));
        const char *words = json_string_value(json_object_get(doc, "bottleneck"));
        assert_non_null(strstr(words, "The bottleneck is "));
        json_decref(doc);
    }
    support_result r = support_millrace("bench", dir, "--seconds", "0.1", "--threads", "1", (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, "plain full decode"));
    assert_non_null(strstr(r.out, "The bottleneck is "));
    support_result_free(&r);
    support_tmpdir_remove(dir);
}

/* A file that is mapped and cut off would end it by a signal. */
static void test_bench_of_a_shard_that_is_cut_off(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    make_pictures(dir, 43, 43, NULL);
    /* It would go on for an hour, so that it is at work whenever the cut comes. */
    static const char run[] = "\"$0\" bench \"$1\" --stage read --threads 1 --seconds 3600 & "
                              "until ls -l /proc/$!/fd | grep -q train-00000.mdb; do sleep 0.01; done; sleep 0.5; "
                              "grep train- /proc/$!/maps; truncate -s 4096 \"$1/train-00000.mdb\"; wait $!";
    const char *const argv[] = {"/bin/sh", "-c", run, support_millrace_path(), dir, NULL};
    support_result r = support_run(argv, NULL);
    assert_string_equal(r.out, "");
    expect_words(r, 1, "train-00000.mdb: ");
    support_tmpdir_remove(dir);
}

/* A digest saved and taken up again anywhere is the digest of it all. */
static void test_running_digest(void **state)
{
    (void)state;
    enum { LEN = 5000 };
    uint8_t bytes[LEN], want[16], got[16];
    mr_random r = support_random();
    mr_random_bytes(&r, bytes, LEN);
    mr_hash128(bytes, LEN, want);
    for (size_t cut = 0; cut <= LEN; cut += 1 + cut / 7) {
        mr_running_digest *a = mr_running_digest_new(), *b = mr_running_digest_new();
        mr_buf saved = {0};
        mr_running_digest_add(b, bytes, 77);
        mr_running_digest_add(a, bytes, cut);
        mr_running_digest_save(a, &saved);
        assert_int_equal(saved.len, mr_running_digest_size());
        assert_false(mr_running_digest_load(b, saved.data, saved.len - 1));
        assert_true(mr_running_digest_load(b, saved.data, saved.len));
        mr_running_digest_add(b, bytes + cut, LEN - cut);
        mr_running_digest_end(b, got);
        assert_memory_equal(want, got, 16);
        mr_buf_free(&saved);
        mr_running_digest_free(a);
        mr_running_digest_free(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_running_digest),
        cmocka_unit_test(test_digests),
        cmocka_unit_test(test_pixels_and_list),
        cmocka_unit_test(test_under_mpirun),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_bench),
        cmocka_unit_test(test_bench_of_a_shard_that_is_cut_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
