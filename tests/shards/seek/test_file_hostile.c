/* test_file_hostile.c - seek files of unknown origin, byte by byte.
 * Invariant tested: no byte can change unseen; whatever the offsets say, nothing outside of the file is looked at, and
 * nothing is taken for entries that is longer than its image. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shards/format/index.h"
#include "tests/support/shards/loader.h"
#include "tests/support/shards/seek.h"

enum { SAMPLES = 30 };

typedef struct state {
    char *dir, *path;
    mr_manifest *manifest;
    const mr_shard *shard;
    mr_row *rows;
    uint8_t *bytes; /* a good seek file, in a block of its length */
    size_t len;
} state;

static int set_up(void **out)
{
    state *s = calloc(1, sizeof *s);
    mr_error err;
    s->dir = support_tmpdir();
    s->path = support_path("%s/train-00000.seek", s->dir);
    make_pictures(s->dir, SAMPLES, SAMPLES, NULL);
    support_expect(0, "seek", "-q", "--every=4", s->dir, (char *)NULL);
    if (mr_manifest_open(s->dir, &s->manifest, NULL, &err) != MR_OK)
        fail_msg("%s", err.text);
    s->shard = &s->manifest->splits[0].shards[0];
    int dirfd = open(s->dir, O_RDONLY | O_DIRECTORY);
    if (mr_index_read(dirfd, s->shard, &s->rows, &err) != MR_OK)
        fail_msg("%s", err.text);
    close(dirfd);
    s->bytes = support_read(s->path, &s->len);
    *out = s;
    return 0;
}

static int tear_down(void **out)
{
    state *s = *out;
    mr_manifest_free(s->manifest);
    support_tmpdir_remove(s->dir);
    free(s->path);
    free(s->rows);
    free(s->bytes);
    free(s);
    return 0;
}

/* Checks a copy of exactly this length, as verify and `millrace seek` do. */
static mr_status check(const state *s, const uint8_t *bytes, size_t len, mr_error *err)
{
    mr_seek_header header;
    uint8_t *copy = malloc(len ? len : 1);
    memcpy(copy, bytes, len);
    *err = (mr_error){.status = MR_OK};
    mr_status status = mr_seek_check(copy, len, s->shard, s->rows, &header, err);
    mr_status without = mr_seek_check(copy, len, s->shard, NULL, &header, NULL);
    assert_true(status == MR_OK || status == MR_BAD_DATA);
    assert_true(without == MR_OK || status == MR_BAD_DATA); /* who knows less finds no more */
    free(copy);
    return status;
}

static void expect_bad(const state *s, const uint8_t *bytes, size_t len, const char *words)
{
    mr_error err;
    mr_status status = check(s, bytes, len, &err);
    if (status != MR_BAD_DATA || !strstr(err.text, words) || !strstr(err.text, "train-00000.seek: ") ||
        !strstr(err.text, "`millrace seek`"))
        fail_msg("status %d, \"%s\" does not mention \"%s\"", status, err.text, words);
}

static void test_every_byte_and_every_length(void **out)
{
    state *s = *out;
    mr_error err;
    assert_int_equal(check(s, s->bytes, s->len, &err), MR_OK);
    for (size_t i = 0; i < s->len; i++) {
        for (unsigned bit = i % 3; bit < 8; bit += 3) {
            s->bytes[i] ^= (uint8_t)(1u << bit);
            assert_int_equal(check(s, s->bytes, s->len, &err), MR_BAD_DATA);
            s->bytes[i] ^= (uint8_t)(1u << bit);
        }
        assert_int_equal(check(s, s->bytes, i, &err), MR_BAD_DATA);
    }
    uint8_t *longer = calloc(1, s->len + 100);
    memcpy(longer, s->bytes, s->len);
    assert_int_equal(check(s, longer, s->len + 1, &err), MR_BAD_DATA);
    assert_int_equal(check(s, longer, s->len + 100, &err), MR_BAD_DATA);
    free(longer);
}

static void test_header(void **out)
{
    state *s = *out;
    static const struct {
        size_t at;
        uint64_t value;
        const char *words;
    } cases[] = {
        {0, 0, "is not a seek index"},
        {8, 2, "version 2"},
        {12, 65536, "an entry every 65536 MCUs"},
        {16, 1, "of another shard"},
        {24, 0, "of another shard"},
        {24, UINT64_MAX, "of another shard"},
        {24, SAMPLES + 1, "of another shard"},
        {32, 4096, "of another shard"},
        {40, 0, "of another shard"},
        {56, 0, "its table differs from its hash"},
    };
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        uint8_t *copy = malloc(s->len);
        memcpy(copy, s->bytes, s->len);
        if (cases[i].at == 8 || cases[i].at == 12)
            mr_put32le(copy + cases[i].at, (uint32_t)cases[i].value);
        else
            mr_put64le(copy + cases[i].at, cases[i].value);
        mr_hash128(copy, s->len - MR_SEEK_TAIL, copy + s->len - MR_SEEK_TAIL);
        expect_bad(s, copy, s->len, cases[i].words);
        free(copy);
    }
}

static void expect_bad_table(const state *s, uint8_t *bytes, const char *words)
{
    seek_seal(bytes, s->len);
    expect_bad(s, bytes, s->len, words);
    memcpy(bytes, s->bytes, s->len);
}

static uint8_t *offset_of(uint8_t *bytes, uint64_t row)
{
    return bytes + MR_SEEK_HEADER + row * MR_SEEK_OFFSET;
}

/* With every hash right: only the offsets themselves are wrong. */
static void test_table(void **out)
{
    state *s = *out;
    static const uint64_t wild[] = {0, 1, 63, 64, UINT64_MAX, UINT64_MAX - 7, (uint64_t)1 << 63, (uint64_t)1 << 32};
    uint8_t *copy = malloc(s->len);
    uint64_t row = seek_row_with_entries(s->bytes, 4), begin = mr_get64le(offset_of(s->bytes, row));
    memcpy(copy, s->bytes, s->len);
    for (size_t i = 0; i < MR_COUNT(wild); i++) {
        mr_put64le(offset_of(copy, row), wild[i]);
        expect_bad_table(s, copy, "its entries are out of bounds");
        mr_put64le(offset_of(copy, 0), wild[i]);
        expect_bad_table(s, copy, "its table does not span the file");
        mr_put64le(offset_of(copy, SAMPLES), wild[i]);
        expect_bad_table(s, copy, "its table does not span the file");
    }
    mr_put64le(offset_of(copy, SAMPLES), s->len);
    expect_bad_table(s, copy, "its table does not span the file");
    /* All rows before it empty, and all of the file one row's. */
    for (uint64_t i = 1; i <= row; i++)
        mr_put64le(offset_of(copy, i), mr_get64le(offset_of(copy, 0)));
    for (uint64_t i = row + 1; i < SAMPLES; i++)
        mr_put64le(offset_of(copy, i), mr_get64le(offset_of(copy, SAMPLES)));
    expect_bad_table(s, copy, "sample");
    mr_put64le(offset_of(copy, row + 1), begin + MR_SEEK_CHECK); /* a check without entries */
    expect_bad_table(s, copy, "its entries are out of bounds");
    for (uint64_t i = 0; i < SAMPLES; i++) /* a PNG */
        if (s->rows[i].codec == MR_CODEC_PNG && i + 1 < SAMPLES && s->rows[i + 1].codec != MR_CODEC_PNG && i > row) {
            size_t len;
            uint64_t next = seek_row_with_entries(s->bytes, i);
            seek_entries(s->bytes, next, &len);
            for (uint64_t k = i + 1; k <= next; k++)
                mr_put64le(offset_of(copy, k), mr_get64le(offset_of(s->bytes, next + 1)));
            expect_bad_table(s, copy, "but stores no JPEG");
            break;
        }
    free(copy);
}

/* Spans that a reader takes one by one, without having seen the table. */
static void test_spans(void **out)
{
    state *s = *out;
    mr_random r = support_random();
    uint64_t before = MR_SEEK_HEADER + (SAMPLES + 1) * MR_SEEK_OFFSET, taken = 0;
    for (int trial = 0; trial < 200000; trial++) {
        uint8_t pair[16];
        mr_seek_span span;
        uint64_t size = before + MR_SEEK_TAIL + mr_random_below(&r, 300), image_len = mr_random_below(&r, 400);
        uint64_t from = mr_random_below(&r, 8) ? mr_random_below(&r, size + 20) : mr_random_u64(&r);
        uint64_t to = mr_random_below(&r, 8) ? from + mr_random_below(&r, 200) : mr_random_u64(&r);
        mr_put64le(pair, from);
        mr_put64le(pair + 8, to);
        if (!mr_seek_span_at(pair, size, SAMPLES, image_len, &span))
            continue;
        taken++;
        assert_true(span.offset >= before && span.len > 0 && span.len <= image_len);
        assert_true(span.offset + MR_SEEK_CHECK + span.len <= size - MR_SEEK_TAIL);
    }
    assert_true(taken > 1000);
    (void)s;
}

/* The commands on the same files: none of them ends but by itself, verify tells, seek rebuilds. */
static void test_commands(void **out)
{
    state *s = *out;
    mr_random r = support_random();
    uint8_t *copy = malloc(s->len);
    for (int trial = 0; trial < 6; trial++) {
        memcpy(copy, s->bytes, s->len);
        for (int i = 0; i < 5; i++)
            mr_put64le(offset_of(copy, mr_random_below(&r, SAMPLES)),
                       trial % 2 ? mr_random_u64(&r) : mr_random_below(&r, 2 * s->len));
        seek_seal(copy, s->len);
        support_write(s->path, copy, s->len);
        support_result v = support_millrace("verify", trial < 3 ? "--quick" : "--decode", s->dir, (char *)NULL);
        support_assert_cheap(&v);
        support_assert_status(&v, 1);
        support_result_free(&v);
        support_expect(0, "inspect", s->dir, (char *)NULL);
        support_expect(0, "replay", s->dir, "--global-batch=8", "--batches=0:2", "--size=32", (char *)NULL);
        support_expect(0, "seek", "-q", "--every=4", s->dir, (char *)NULL);
        support_expect(0, "verify", "-q", s->dir, (char *)NULL);
    }
    /* As large as a file can be, and nothing in it. */
    int fd = open(s->path, O_WRONLY);
    assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0);
    close(fd);
    support_result v = support_millrace("verify", s->dir, (char *)NULL);
    support_assert_cheap(&v);
    support_assert_status(&v, 1);
    support_result_free(&v);
    v = support_millrace("seek", "--every=4", s->dir, (char *)NULL);
    support_assert_cheap(&v);
    support_assert_status(&v, 0);
    support_result_free(&v);
    uint8_t *now = support_read(s->path, NULL);
    assert_int_equal(support_size(s->path), s->len);
    assert_memory_equal(now, s->bytes, s->len);
    free(now);
    free(copy);
}

/* A name that nothing can be opened by: as if there were no seek index, until seek puts one there. */
static void test_no_file(void **out)
{
    const state *s = *out;
    unlink(s->path);
    support_result none = support_millrace("inspect", "--json", s->dir, (char *)NULL);
    support_assert_status(&none, 0);
    for (int kind = 0; kind < 3; kind++) {
        int failed = kind == 0   ? symlink(s->path, s->path)
                     : kind == 1 ? symlink("manifest.json/x", s->path)
                                 : mknod(s->path, S_IFSOCK | 0666, 0);
        assert_int_equal(failed, 0);
        SAYS(NULL, 0, none.out, "", "inspect", "--json", s->dir);
        support_expect(0, "replay", s->dir, "--global-batch=8", "--batches=0:2", "--size=32", (char *)NULL);
        support_expect(0, "seek", "-q", "--every=4", s->dir, (char *)NULL);
        support_expect(0, "verify", "-q", s->dir, (char *)NULL);
        unlink(s->path);
    }
    support_result_free(&none);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_every_byte_and_every_length),
        TEST(test_header),
        TEST(test_table),
        TEST(test_spans),
        TEST(test_commands),
        TEST(test_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
