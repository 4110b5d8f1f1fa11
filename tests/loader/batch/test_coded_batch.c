/* test_coded_batch.c - coded delivery: slabs that the kernels of devices, as plain C, turn into the floats of
 * MR_DELIVER_F32_NCHW.
 * Invariant tested: the same floats, facts, metas and damage for every transform, tail, policy and number of threads,
 * whether a picture is described, decoded by the host, or flagged.
 * Covers batch/coded_batch.c, batch/work.c. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "shards/seek/seek.h"
#include "tests/support/shards/loader.h"
#include "tests/support/shards/seek.h"
#include "tests/support/support.h"

enum { SAMPLES = 60, PER_SHARD = 13 };

static const int broken[] = {7, 22, -1};

static int set_up(void **state)
{
    char *dir = support_tmpdir();
    make_pictures(dir, SAMPLES, PER_SHARD, broken);
    support_expect(0, "seek", "-q", "--every=1", dir, (char *)NULL);
    *state = dir;
    return 0;
}

static int tear_down(void **state)
{
    support_tmpdir_remove(*state);
    return 0;
}

static coded_ways expect_same(const char *dir, mr_loader_options o)
{
    mr_dataset *ds = open_dataset_at(dir);
    coded_ways ways = {.images = 0};
    for (unsigned threads = 0; threads < 4; threads += 3) {
        o.deliver = MR_DELIVER_F32_NCHW;
        seen_list want = run_ranks(ds, o, 2, threads, 0);
        o.deliver = MR_DELIVER_CODED;
        seen_list got = run_ranks(ds, o, 2, threads, 0);
        assert_int_equal(want.status, got.status);
        if (want.status != MR_END)
            assert_string_equal(want.error.text, got.error.text);
        assert_same_seen(&want, 0, &got);
        assert_int_equal(want.replaced, got.replaced);
        ways = got.ways;
        seen_free(&want);
        seen_free(&got);
    }
    mr_dataset_free(ds);
    return ways;
}

static void the_floats_of_every_transform(void **state)
{
    static const mr_transform_kind kinds[] = {MR_TRANSFORM_TRAIN, MR_TRANSFORM_SQUARE, MR_TRANSFORM_CENTER};
    for (size_t i = 0; i < MR_COUNT(kinds); i++)
        for (int tail = MR_TAIL_DROP; tail <= MR_TAIL_PARTIAL; tail++) {
            mr_loader_options o = usual_options(MR_DELIVER_CODED, (mr_tail)tail);
            o.transform.kind = kinds[i];
            o.transform.bicubic = i == 1;
            o.on_bad = MR_ON_BAD_REPLACE;
            const coded_ways ways = expect_same(*state, o);
            assert_true(ways.images > 30 && ways.tensors > 30);
            assert_int_equal(ways.zeros + ways.failed, 0);
        }
}

static void damaged_samples_as_the_options_say(void **state)
{
    mr_loader_options o = usual_options(MR_DELIVER_CODED, MR_TAIL_PAD);
    expect_same(*state, o); /* the first damaged one ends it */
    o.on_bad = MR_ON_BAD_MASK;
    const coded_ways ways = expect_same(*state, o);
    assert_int_equal(ways.zeros, 4);
    o.max_bad = 1;
    expect_same(*state, o);
    o.max_bad = 0;
    o.max_pixels = 900;
    expect_same(*state, o);
    o.on_bad = MR_ON_BAD_REPLACE;
    expect_same(*state, o);
}

static void libjpeg_leaves_nothing_to_a_device(void **state)
{
    mr_loader_options o = usual_options(MR_DELIVER_CODED, MR_TAIL_PAD);
    o.on_bad = MR_ON_BAD_MASK;
    o.transform.libjpeg = 1;
    const coded_ways ways = expect_same(*state, o);
    assert_int_equal(ways.images, 0);
}

/* Entries whose check is right but whose predictors or positions are not. */
static uint64_t bend_entries(const char *dir, unsigned shard)
{
    char *path = support_path("%s/train-%05u.seek", dir, shard), *idx = support_path("%s/train-%05u.idx", dir, shard);
    size_t len, entries;
    uint8_t *bytes = support_read(path, &len), *rows = support_read(idx, NULL);
    uint64_t bent = 0;
    for (uint64_t i = 0; i < PER_SHARD; i++) {
        mr_row row;
        uint8_t *own = seek_entries(bytes, i, &entries);
        mr_row_unpack(rows + MR_INDEX_HEADER + i * MR_INDEX_ROW, &row);
        if (entries < 8)
            continue;
        own[entries / 2] ^= 1;
        seek_seal_row(bytes, i, row.image_hash);
        bent++;
    }
    seek_seal(bytes, len);
    support_write(path, bytes, len);
    free(bytes);
    free(rows);
    free(path);
    free(idx);
    return bent;
}

static void flagged_pictures_are_made_by_the_host(void **state)
{
    char *dir = support_path("%s/bent", (const char *)*state);
    mr_loader_options o = usual_options(MR_DELIVER_CODED, MR_TAIL_PAD);
    assert_int_equal(mkdir(dir, 0777), 0);
    make_pictures(dir, SAMPLES, PER_SHARD, broken);
    support_expect(0, "seek", "-q", "--every=1", dir, (char *)NULL);
    assert_true(bend_entries(dir, 0) > 3 && bend_entries(dir, 1) > 3);
    o.on_bad = MR_ON_BAD_REPLACE;
    coded_ways ways = expect_same(dir, o);
    assert_true(ways.failed > 5 && ways.failed < ways.images);
    o.on_bad = MR_ON_BAD_MASK;
    expect_same(dir, o);
    free(dir);
}

static void a_picture_is_decoded_as_the_policy_says(void **state)
{
    mr_dataset *ds = open_dataset_at(*state);
    mr_loader_options o = usual_options(MR_DELIVER_CODED, MR_TAIL_PAD);
    float *out = calloc((size_t)3 * 24 * 24, sizeof *out);
    const mr_batch *b;
    mr_error err;
    o.on_bad = MR_ON_BAD_MASK;
    mr_loader *l = open_loader(ds, &o);
    assert_non_null(out);
    assert_int_equal(mr_loader_next(l, &b, &err), MR_OK);
    assert_int_equal(mr_batch_decode(l, b, b->count, out, &err), MR_MISUSE);
    assert_non_null(strstr(err.text, "slot 8 cannot be decoded"));
    for (uint64_t i = 0; i < b->count; i++)
        assert_int_equal(mr_batch_decode(l, b, i, out, &err), MR_OK);
    mr_batch *own;
    assert_int_equal(mr_batch_detach(l, b, &own, &err), MR_OK);
    assert_int_equal(mr_batch_decode(l, own, 0, out, &err), MR_MISUSE);
    assert_int_equal(((const mr_coded *)own->data)->slots, own->count);
    mr_batch_free(own);
    mr_loader_free(l);
    o.deliver = MR_DELIVER_U8_NHWC;
    l = open_loader(ds, &o);
    assert_int_equal(mr_loader_next(l, &b, &err), MR_OK);
    assert_int_equal(mr_batch_decode(l, b, 0, out, &err), MR_MISUSE);
    mr_loader_free(l);
    o.deliver = MR_DELIVER_CODED;
    o.transform.unrounded = 1;
    expect_no_loader(ds, &o, MR_MISUSE, "unrounded pixels cannot be delivered coded");
    free(out);
    mr_dataset_free(ds);
}

/* A flagged picture of a file that has changed since it was read is damaged, and noted like any other. */
static void damage_that_shows_only_then(void **state)
{
    static const mr_on_bad policies[] = {MR_ON_BAD_FAIL, MR_ON_BAD_MASK, MR_ON_BAD_REPLACE};
    for (size_t p = 0; p < MR_COUNT(policies); p++) {
        char *dir = support_path("%s/late-%zu", (const char *)*state, p);
        mr_loader_options o = usual_options(MR_DELIVER_CODED, MR_TAIL_PAD);
        float *out = calloc((size_t)3 * 24 * 24, sizeof *out);
        const mr_batch *b;
        mr_error err;
        assert_int_equal(mkdir(dir, 0777), 0);
        make_pictures(dir, SAMPLES, PER_SHARD, NULL);
        o.on_bad = policies[p];
        o.shuffle = MR_SHUFFLE_NONE;
        o.prefetch = 1;
        mr_dataset *ds = open_dataset_at(dir);
        mr_loader *l = open_loader(ds, &o);
        assert_int_equal(mr_loader_next(l, &b, &err), MR_OK);
        hurt_image(dir, 3, PER_SHARD);
        memset(out, 0x7f, sizeof *out);
        mr_status status = mr_batch_decode(l, b, 3, out, &err);
        mr_loader_stats stats = {.struct_size = sizeof stats};
        mr_loader_get_stats(l, &stats);
        if (policies[p] == MR_ON_BAD_FAIL) {
            assert_int_equal(status, MR_BAD_SAMPLE);
            assert_non_null(strstr(err.text, "differs from what was ingested"));
        } else {
            mr_bad_sample bad = {.struct_size = sizeof bad};
            assert_int_equal(status, MR_OK);
            assert_int_equal(b->replaced, 1);
            assert_int_equal(stats.replaced, 1);
            assert_int_equal(mr_batch_bad(b, 0, &bad, &err), MR_OK);
            assert_int_equal(bad.sample, 3);
            assert_int_equal(b->samples[3].sample, policies[p] == MR_ON_BAD_MASK ? 3 : 4);
            assert_true(policies[p] == MR_ON_BAD_MASK ? out[0] == 0 && !b->samples[3].meta
                                                      : b->samples[3].meta != NULL);
        }
        mr_loader_free(l);
        mr_dataset_free(ds);
        free(out);
        free(dir);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_floats_of_every_transform),
        cmocka_unit_test(damaged_samples_as_the_options_say),
        cmocka_unit_test(libjpeg_leaves_nothing_to_a_device),
        cmocka_unit_test(flagged_pictures_are_made_by_the_host),
        cmocka_unit_test(a_picture_is_decoded_as_the_policy_says),
        cmocka_unit_test(damage_that_shows_only_then),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
