/* test_seek_loader.c - batches with seek indexes, with wrong ones, and without.
 * Invariant tested: not a bit of any batch depends on what is beside the shards; a good seek index is used, and what
 * is wrong with a bad one is counted and nothing else. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/batch/work.h"
#include "tests/support/shards/dataset_maker.h"
#include "tests/support/shards/loader.h"
#include "tests/support/shards/seek.h"

enum { SAMPLES = 120, PER_SHARD = 50, JPEGS = 61 }; /* JPEGS: of 72, less those that are progressive */

typedef struct used { /* what a pass over all samples, one by one, made of the seek indexes */
    mr_shard_files_counts files;
    mr_pixels_counts pixels;
} used;

static char *seek_path(const char *dir, unsigned shard)
{
    return support_path("%s/train-%05u.seek", dir, shard);
}

static void make(const char *dir)
{
    make_pictures(dir, SAMPLES, PER_SHARD, NULL);
    support_expect(0, "seek", "-q", "--every=2", dir, (char *)NULL);
}

static mr_loader_options options(mr_delivery deliver, bool train)
{
    mr_loader_options o = usual_options(deliver, MR_TAIL_PARTIAL);
    o.transform.kind = train ? MR_TRANSFORM_TRAIN : MR_TRANSFORM_SQUARE;
    o.transform.scale_min = 0.05f;
    o.transform.scale_max = 0.6f;
    return o;
}

static seen_list run(const char *dir, mr_delivery deliver, bool train, unsigned threads)
{
    mr_loader_options o = options(deliver, train);
    o.threads = threads;
    mr_dataset *ds = open_dataset_at(dir);
    seen_list s = run_loader(ds, &o, 0);
    assert_int_equal(s.status, MR_END);
    mr_dataset_free(ds);
    return s;
}

static used use(const char *dir, bool libjpeg)
{
    mr_loader_options o = options(MR_DELIVER_U8_NHWC, true);
    mr_dataset *ds = open_dataset_at(dir);
    mr_work w;
    mr_worker h;
    mr_error err;
    o.transform.libjpeg = libjpeg;
    if (mr_work_open(&w, ds, &o, &err) != MR_OK || mr_worker_init(&h, &w, &err) != MR_OK)
        fail_msg("%s", err.text);
    for (uint64_t i = 0; i < SAMPLES; i++) {
        mr_row row;
        const uint8_t *rgb;
        if (mr_work_row(&w, i, &row, &err) != MR_OK || mr_work_fetch(&w, &h, i, &row, &err) != MR_OK)
            fail_msg("%s", err.text);
        mr_view v = mr_work_view(&w, 0, i, &row);
        if (mr_work_decode(&w, &h, i, &row, &v, &rgb, &err) != MR_OK)
            fail_msg("%s", err.text);
    }
    used u = {mr_shard_files_count(w.files), mr_pixels_scratch_counts(h.pixels)};
    mr_worker_free(&h);
    mr_work_close(&w);
    mr_dataset_free(ds);
    return u;
}

/* Two epochs of pixels are the ones of `want`. */
static void expect_same(const seen_list *want, const char *dir)
{
    seen_list s = run(dir, MR_DELIVER_U8_NHWC, true, 2);
    assert_same_seen(want, 0, &s);
    seen_free(&s);
}

static void test_same_with_and_without(void **state)
{
    static const mr_delivery kinds[] = {MR_DELIVER_U8_NHWC, MR_DELIVER_F32_NCHW, MR_DELIVER_ENCODED};
    const char *dir = *state;
    make_pictures(dir, SAMPLES, PER_SHARD, NULL);
    for (size_t i = 0; i < 2 * MR_COUNT(kinds); i++) {
        seen_list want = run(dir, kinds[i / 2], i % 2, 0);
        for (unsigned every = 0; every < 20; every += 5) {
            char *option = support_path("--every=%u", every);
            support_expect(0, "seek", "-q", option, dir, (char *)NULL);
            seen_list got = run(dir, kinds[i / 2], i % 2, every % 4);
            assert_same_seen(&want, 0, &got);
            seen_free(&got);
            free(option);
        }
        support_expect(0, "seek", "-q", "--drop", dir, (char *)NULL);
        seen_free(&want);
    }
}

static void test_is_used(void **state)
{
    const char *dir = *state;
    make(dir);
    used u = use(dir, false);
    assert_int_equal(u.files.found, JPEGS);
    assert_int_equal(u.pixels.seek, JPEGS);
    assert_int_equal(u.pixels.own, JPEGS);
    assert_true(u.files.refused == 0 && u.files.foreign == 0);
    u = use(dir, true); /* who does not ask for it does not pay for it */
    assert_true(u.files.found == 0 && u.pixels.own == 0);
    support_expect(0, "seek", "-q", "--drop", dir, (char *)NULL);
    u = use(dir, false);
    assert_true(u.files.found == 0 && u.files.refused == 0 && u.files.foreign == 0 && u.pixels.seek == 0);
    assert_int_equal(u.pixels.own, JPEGS);
}

/* A sample without an image of its own has the entries of the one that stores it. */
static void test_shared_images(void **state)
{
    const char *dir = *state;
    picture p[2] = {make_jpeg((jpeg_kind){.width = 90, .height = 70, .components = 3}),
                    make_jpeg((jpeg_kind){.width = 50, .height = 80, .components = 3})};
    made samples[SAMPLES];
    for (size_t i = 0; i < SAMPLES; i++)
        samples[i] = (made){.source = "x.jpg",
                            .image = p[i % 2],
                            .shares = i % PER_SHARD > 1,
                            .image_of = i / PER_SHARD * PER_SHARD + i % 2};
    dataset_make(dir, &(made_split){.name = "train", .samples = samples, .count = SAMPLES, .per_shard = PER_SHARD}, 1);
    seen_list want = run(dir, MR_DELIVER_U8_NHWC, true, 0);
    support_expect(0, "seek", "-q", "--every=1", dir, (char *)NULL);
    expect_same(&want, dir);
    used u = use(dir, false);
    assert_true(u.files.found == SAMPLES && u.pixels.seek == SAMPLES && u.files.refused == 0);
    seen_free(&want);
    picture_free(&p[0]);
    picture_free(&p[1]);
}

/* Everything that may lie where a seek index is expected. */
static void test_wrong_files(void **state)
{
    const char *dir = *state;
    char *other = support_path("%s/other", dir), *first = seek_path(dir, 0), *second = seek_path(dir, 1);
    char *last = seek_path(dir, 2), *others = seek_path(other, 0);
    size_t len;
    make(dir);
    seen_list want = run(dir, MR_DELIVER_U8_NHWC, true, 0);
    uint8_t *bytes = support_read(first, &len);
    assert_int_equal(mkdir(other, 0755), 0);
    make_pictures(other, SAMPLES, PER_SHARD, (const int[]){2, -1});
    support_expect(0, "seek", "-q", other, (char *)NULL);
    for (int kind = 0; kind < 8; kind++) {
        unlink(first);
        switch (kind) {
        case 0:
            support_write(first, bytes, 0);
            break;
        case 1:
            support_write(first, bytes, MR_SEEK_HEADER - 1);
            break;
        case 2:
            support_write(first, bytes, MR_SEEK_HEADER + 8);
            break;
        case 3:
            assert_int_equal(mkdir(first, 0755), 0);
            break;
        case 4:
            assert_int_equal(mkfifo(first, 0644), 0);
            break;
        case 5:
            assert_int_equal(symlink("nowhere", first), 0);
            break;
        case 6:
            assert_int_equal(symlink(second, first), 0);
            break;
        case 7:
            assert_int_equal(chmod(second, 0), 0);
            break;
        }
        expect_same(&want, dir);
        used u = use(dir, false);
        assert_int_equal(u.files.foreign, kind < 5 || kind == 6);
        assert_true(u.files.found < JPEGS && u.pixels.own == JPEGS && u.files.refused == 0);
        rmdir(first);
    }
    unlink(first);
    assert_int_equal(rename(last, first), 0); /* another shard's */
    expect_same(&want, dir);
    assert_int_equal(rename(others, first), 0); /* another dataset's, with as many rows */
    expect_same(&want, dir);
    assert_int_equal(use(dir, false).files.foreign, 1);
    seen_free(&want);
    free(bytes);
    free(other);
    free(first);
    free(second);
    free(last);
    free(others);
}

/* Any byte of it changed, any part of it gone; with its hashes set right again, too, where readers do not ask for
 * them. */
static void test_damaged_bytes(void **state)
{
    const char *dir = *state;
    char *path = seek_path(dir, 1);
    size_t len;
    mr_random r = support_random();
    make(dir);
    seen_list want = run(dir, MR_DELIVER_U8_NHWC, true, 0);
    uint8_t *bytes = support_read(path, &len), *copy = malloc(len);
    uint64_t refused = 0;
    for (int trial = 0; trial < 40; trial++) {
        size_t keep = trial % 4 == 0 ? mr_random_below(&r, len) : len;
        memcpy(copy, bytes, len);
        for (int i = 0; trial % 4 && i < trial; i++)
            copy[trial % 4 == 1 ? MR_SEEK_HEADER + mr_random_below(&r, (PER_SHARD + 1) * MR_SEEK_OFFSET)
                                : mr_random_below(&r, len)] ^= (uint8_t)mr_random_between(&r, 1, 255);
        memcpy(copy, bytes, trial % 4 == 3 ? 0 : 40); /* mostly with a header that is let in */
        support_write(path, copy, keep);
        expect_same(&want, dir);
        used u = use(dir, false);
        assert_true(u.pixels.own == JPEGS && u.files.found <= JPEGS);
        refused += u.files.refused;
    }
    assert_true(refused > 100);
    seen_free(&want);
    free(bytes);
    free(copy);
    free(path);
}

/* Entries that say the wrong thing with every hash right, as only somebody who means it makes them: most are found
 * by the decoder; predictors that are all shifted alike cannot be, and verify --decode tells.  Nothing breaks in any
 * case. */
static void test_lies(void **state)
{
    const char *dir = *state;
    char *path = seek_path(dir, 0), *idx = support_path("%s/train-00000.idx", dir);
    size_t len, entries_len, same = 0, all = 0;
    mr_random r = support_random();
    make(dir);
    seen_list want = run(dir, MR_DELIVER_U8_NHWC, true, 0);
    uint8_t *bytes = support_read(path, &len), *rows = support_read(idx, NULL), *copy = malloc(len);
    for (int trial = 0; trial < 40; trial++) {
        memcpy(copy, bytes, len);
        for (uint64_t i = 0; i < PER_SHARD; i++) {
            mr_row row;
            uint8_t *entries = seek_entries(copy, i, &entries_len);
            mr_row_unpack(rows + MR_INDEX_HEADER + i * MR_INDEX_ROW, &row);
            if (!entries_len)
                continue;
            size_t at = mr_random_below(&r, entries_len);
            if (trial % 3 == 0)
                mr_random_bytes(&r, entries, entries_len);
            else
                entries[at] = trial % 3 == 1 ? entries[at] ^ (uint8_t)(1u << mr_random_below(&r, 7)) : 0xFF;
            seek_seal_row(copy, i, row.image_hash);
        }
        seek_seal(copy, len);
        support_write(path, copy, len);
        seen_list got = run(dir, MR_DELIVER_U8_NHWC, true, 2);
        assert_int_equal(got.count, want.count);
        for (size_t i = 0; i < got.count; i++, all++)
            same += got.items[i].bytes == want.items[i].bytes;
        seen_free(&got);
        used u = use(dir, false);
        assert_true(u.files.refused == 0 && u.files.found == JPEGS && u.pixels.own <= JPEGS);
    }
    print_message("pictures that are the same in spite of forged entries: %zu of %zu\n", same, all);
    assert_true(same > all * 9 / 10);
    support_expect(1, "verify", "-q", "--decode", dir, (char *)NULL);
    seen_free(&want);
    free(bytes);
    free(rows);
    free(copy);
    free(path);
    free(idx);
}

/* Few descriptors: shards take turns, with their seek indexes. */
static void test_few_descriptors(void **state)
{
    const char *dir = *state;
    struct rlimit limit, low;
    make_pictures(dir, SAMPLES, 6, NULL);
    seen_list want = run(dir, MR_DELIVER_U8_NHWC, true, 3);
    support_expect(0, "seek", "-q", dir, (char *)NULL);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    low = (struct rlimit){.rlim_cur = 24, .rlim_max = limit.rlim_max};
    for (rlim_t most = 14; most <= 48; most += 17) {
        low.rlim_cur = most;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
        seen_list got = run(dir, MR_DELIVER_U8_NHWC, true, 3);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        assert_same_seen(&want, 0, &got);
        seen_free(&got);
    }
    seen_free(&want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(test_same_with_and_without), IN_TMPDIR(test_is_used),       IN_TMPDIR(test_shared_images),
        IN_TMPDIR(test_wrong_files),           IN_TMPDIR(test_damaged_bytes), IN_TMPDIR(test_lies),
        IN_TMPDIR(test_few_descriptors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
