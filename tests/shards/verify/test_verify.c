/* test_verify.c - fifty seeded damages of each kind: all are found, on the right shard, and what is reported as hit is
 * exactly what differs from the original.
 * Invariant tested: verify never takes damage for health, nor health for damage. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "shards/format/index.h"
#include "tests/support/shards/shard.h"
#include "shards/verify/verify.h"

enum { TRIALS = 50 };

static const char *const names[3] = {"train-00000", "train-00001", "val-00000"};

/* The untouched dataset, and the originals of what a trial damages. */
typedef struct bench {
    char *dir;
    mr_manifest *manifest;
    const mr_shard *shards[3];
    uint8_t *mdb[3], *idx[3], *text;
    size_t mdb_len[3], idx_len[3], text_len;
} bench;

static int set_up(void **state)
{
    bench *b = calloc(1, sizeof *b);
    mr_error err;
    b->dir = support_tmpdir();
    draw_dataset(b->dir);
    if (mr_manifest_open(b->dir, &b->manifest, NULL, &err) != MR_OK)
        fail_msg("%s", err.text);
    for (int i = 0; i < 3; i++) {
        char *mdb = support_path("%s/%s.mdb", b->dir, names[i]), *idx = support_path("%s/%s.idx", b->dir, names[i]);
        b->mdb[i] = support_read(mdb, &b->mdb_len[i]);
        b->idx[i] = support_read(idx, &b->idx_len[i]);
        b->shards[i] = &b->manifest->splits[i / 2].shards[i % 2];
        free(mdb);
        free(idx);
    }
    char *path = support_path("%s/manifest.json", b->dir);
    b->text = support_read(path, &b->text_len);
    free(path);
    *state = b;
    return 0;
}

static int tear_down(void **state)
{
    bench *b = *state;
    for (int i = 0; i < 3; i++) {
        free(b->mdb[i]);
        free(b->idx[i]);
    }
    free(b->text);
    mr_manifest_free(b->manifest);
    support_tmpdir_remove(b->dir);
    free(b);
    return 0;
}

static void put(const bench *b, const char *name, const char *suffix, const uint8_t *bytes, size_t len)
{
    support_writef(bytes, len, "%s/%s%s", b->dir, name, suffix);
}

static void take_away(const bench *b, const char *name, const char *suffix)
{
    char *path = support_path("%s/%s%s", b->dir, name, suffix);
    assert_int_equal(unlink(path), 0);
    free(path);
}

static mr_verify_report *look(const bench *b, mr_verify_level level, bool no_sha256)
{
    const mr_verify_options o = {.level = level, .no_sha256 = no_sha256, .jobs = 2, .quiet = true};
    mr_verify_report *r;
    mr_error err;
    if (mr_verify(b->dir, &o, &r, &err) != MR_OK)
        fail_msg("%s", err.text);
    return r;
}

static size_t count(const mr_problems *list, mr_problem_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < list->count; i++)
        n += list->items[i].kind == kind;
    return n;
}

/* All problems belong to the shards that were damaged; each of these has one of this kind. */
static void expect_only(const mr_verify_report *r, const bool damaged[3], mr_problem_kind kind, unsigned trial)
{
    assert_int_equal(r->shard_count, 3);
    assert_int_equal(r->problems.count, 0);
    for (int i = 0; i < 3; i++) {
        const mr_verify_shard *s = &r->shards[i];
        assert_string_equal(s->name, names[i]);
        if (!damaged[i] && s->problems.count)
            fail_msg("trial %u: %s is whole, yet: %s", trial, s->name, s->problems.items[0].detail);
        if (damaged[i] && !count(&s->problems, kind))
            fail_msg("trial %u: no problem \"%s\" of %s (%zu others)", trial, mr_problem_words[kind], s->name,
                     s->problems.count);
        for (size_t k = 0; k < s->problems.count; k++)
            assert_string_equal(s->problems.items[k].shard, names[i]);
    }
}

/* ---- what must be reported as hit: the records whose bytes differ ---------------------------------------------- */

static bool differs(const uint8_t *a, const uint8_t *b, size_t b_len, uint64_t offset, uint32_t len)
{
    return offset + len > b_len || memcmp(a + offset, b + offset, len) != 0;
}

static void expect_hits(const bench *b, const mr_verify_report *r, int n, const uint8_t *now, size_t len,
                        unsigned trial)
{
    const mr_shard *shard = b->shards[n];
    const mr_verify_shard *s = &r->shards[n];
    mr_row *rows;
    mr_error err;
    uint64_t expected = 0;
    size_t at = 0;
    assert_int_equal(mr_index_parse(b->idx[n], b->idx_len[n], shard, &rows, &err), MR_OK);
    for (uint64_t i = 0; i < shard->samples; i++) {
        bool image = differs(b->mdb[n], now, len, rows[i].image_offset, rows[i].image_len);
        bool meta = differs(b->mdb[n], now, len, rows[i].meta_offset, rows[i].meta_len);
        if (!image && !meta)
            continue;
        expected++;
        while (at < s->problems.count && s->problems.items[at].kind != MR_PROBLEM_RECORD)
            at++;
        if (at == s->problems.count || s->problems.items[at].sample != shard->first + i)
            fail_msg("trial %u: %s: sample %llu is hit and not reported", trial, s->name,
                     (unsigned long long)(shard->first + i));
        char *source = support_path("a/%llu.png", (unsigned long long)(shard->first + i));
        if (meta)
            assert_null(s->problems.items[at].source);
        else
            assert_string_equal(s->problems.items[at].source, source);
        free(source);
        at++;
    }
    assert_int_equal(s->damaged, expected);
    assert_int_equal(count(&s->problems, MR_PROBLEM_RECORD), expected);
    free(rows);
}

/* ---- damage to one .mdb ---------------------------------------------------------------------------------------- */

typedef enum damage { FLIP, ZERO_PAGE, TRUNCATE, EXTEND } damage;

/* A damaged copy of the shard on the heap. */
static uint8_t *damage_copy(const bench *b, int n, damage how, mr_random *random, size_t *len)
{
    size_t old = b->mdb_len[n], page = mr_random_below(random, old / MR_LMDB_PAGE) * MR_LMDB_PAGE;
    static const uint8_t zeros[MR_LMDB_PAGE];
    *len = how == TRUNCATE ? mr_random_below(random, old)
           : how == EXTEND ? old + 1 + mr_random_below(random, 9999)
                           : old;
    uint8_t *now = calloc(*len + 1, 1);
    memcpy(now, b->mdb[n], *len < old ? *len : old);
    if (how == FLIP)
        now[mr_random_below(random, old)] ^= (uint8_t)(1u << mr_random_below(random, 8));
    while (how == ZERO_PAGE && memcmp(b->mdb[n] + page, zeros, sizeof zeros) == 0)
        page = (page + MR_LMDB_PAGE) % old;
    if (how == ZERO_PAGE)
        memset(now + page, 0, MR_LMDB_PAGE);
    if (how == EXTEND)
        mr_random_bytes(random, now + old, *len - old);
    return now;
}

static void try_damage(const bench *b, damage how)
{
    mr_random random = support_random();
    for (unsigned trial = 0; trial < TRIALS; trial++) {
        int n = (int)mr_random_below(&random, 3);
        bool damaged[3] = {n == 0, n == 1, n == 2}, sized = how == TRUNCATE || how == EXTEND;
        size_t len;
        uint8_t *now = damage_copy(b, n, how, &random, &len);
        put(b, names[n], ".mdb", now, len);
        mr_verify_report *r = look(b, trial % 2 ? MR_VERIFY_DEEP : MR_VERIFY_FULL, trial % 3 == 0);
        assert_false(mr_verify_ok(r));
        mr_problem_kind kind = sized                  ? MR_PROBLEM_SIZE
                               : r->shards[n].damaged ? MR_PROBLEM_DIGEST
                                                      : MR_PROBLEM_STRUCTURE;
        expect_only(r, damaged, kind, trial);
        if (r->level == MR_VERIFY_FULL)
            expect_hits(b, r, n, now, len, trial);
        mr_verify_report_free(r);
        if (sized) {
            r = look(b, MR_VERIFY_QUICK, false);
            expect_only(r, damaged, MR_PROBLEM_SIZE, trial);
            mr_verify_report_free(r);
        }
        put(b, names[n], ".mdb", b->mdb[n], b->mdb_len[n]);
        free(now);
    }
}

static void test_flip(void **state)
{
    try_damage(*state, FLIP);
}

static void test_zero_page(void **state)
{
    try_damage(*state, ZERO_PAGE);
}

static void test_truncate(void **state)
{
    try_damage(*state, TRUNCATE);
}

static void test_extend(void **state)
{
    try_damage(*state, EXTEND);
}

static void test_delete(void **state)
{
    const bench *b = *state;
    mr_random random = support_random();
    for (unsigned trial = 0; trial < TRIALS; trial++) {
        int n = (int)mr_random_below(&random, 3);
        bool damaged[3] = {n == 0, n == 1, n == 2};
        take_away(b, names[n], ".mdb");
        mr_verify_report *r = look(b, (mr_verify_level)(trial % 4), false);
        expect_only(r, damaged, MR_PROBLEM_MISSING, trial);
        assert_int_equal(r->shards[n].damaged, b->shards[n]->samples);
        mr_verify_report_free(r);
        put(b, names[n], ".mdb", b->mdb[n], b->mdb_len[n]);
    }
}

static void test_swap(void **state)
{
    const bench *b = *state;
    mr_random random = support_random();
    for (unsigned trial = 0; trial < TRIALS; trial++) {
        int x = (int)mr_random_below(&random, 3), y = (x + 1 + (int)mr_random_below(&random, 2)) % 3;
        bool idx = trial % 2, damaged[3] = {x == 0 || y == 0, x == 1 || y == 1, x == 2 || y == 2};
        put(b, names[x], idx ? ".idx" : ".mdb", idx ? b->idx[y] : b->mdb[y], idx ? b->idx_len[y] : b->mdb_len[y]);
        put(b, names[y], idx ? ".idx" : ".mdb", idx ? b->idx[x] : b->mdb[x], idx ? b->idx_len[x] : b->mdb_len[x]);
        mr_verify_report *r = look(b, MR_VERIFY_FULL, false);
        expect_only(r, damaged, MR_PROBLEM_DIGEST, trial);
        const mr_problems *p = &r->shards[x].problems;
        assert_non_null(strstr(p->items[p->count - 1].detail, names[y]));
        mr_verify_report_free(r);
        for (int i = 0; i < 3; i++) {
            put(b, names[i], ".mdb", b->mdb[i], b->mdb_len[i]);
            put(b, names[i], ".idx", b->idx[i], b->idx_len[i]);
        }
    }
}

/* ---- damage to the manifest and the index ---------------------------------------------------------------------- */

static void test_edit_manifest(void **state)
{
    const bench *b = *state;
    mr_random random = support_random();
    for (unsigned trial = 0; trial < 4 * TRIALS; trial++) {
        size_t at = mr_random_below(&random, b->text_len), len = b->text_len;
        uint8_t *now = malloc(len + 1), was;
        memcpy(now, b->text, len);
        was = now[at];
        if (trial % 4 == 0) { /* a byte taken out, and one put in */
            memmove(now + at, now + at + 1, --len - at);
        } else if (trial % 4 == 1) {
            memmove(now + at + 1, now + at, len++ - at);
            now[at] = "0a \n,\""[mr_random_below(&random, 6)];
        } else if (trial % 4 == 2) { /* a letter's case: a hex digit means the same and is an edit all the same */
            now[at] ^= 0x20;
        } else {
            now[at] ^= (uint8_t)(1 + mr_random_below(&random, 255));
        }
        put(b, "manifest", ".json", now, len);
        mr_verify_report *r = look(b, MR_VERIFY_QUICK, false);
        if (!count(&r->problems, MR_PROBLEM_MANIFEST))
            fail_msg("trial %u: an edit at byte %zu of the manifest (%02x) is not seen", trial, at, was);
        mr_verify_report_free(r);
        free(now);
    }
    put(b, "manifest", ".json", b->text, b->text_len);
}

static void test_delete_manifest(void **state)
{
    const bench *b = *state;
    for (unsigned trial = 0; trial < TRIALS; trial++) {
        take_away(b, "manifest", ".json");
        mr_verify_report *r = look(b, (mr_verify_level)(trial % 4), false);
        assert_int_equal(r->problems.count, 1);
        assert_int_equal(r->problems.items[0].kind, MR_PROBLEM_MANIFEST);
        assert_non_null(strstr(r->problems.items[0].detail, "missing"));
        mr_verify_report_free(r);
        put(b, "manifest", ".json", b->text, b->text_len);
    }
}

static void test_edit_index(void **state)
{
    const bench *b = *state;
    mr_random random = support_random();
    for (unsigned trial = 0; trial < TRIALS; trial++) {
        int n = (int)mr_random_below(&random, 3);
        bool damaged[3] = {n == 0, n == 1, n == 2};
        size_t len = b->idx_len[n];
        uint8_t *now = malloc(len + 1);
        memcpy(now, b->idx[n], len);
        if (trial % 5 == 0)
            len = mr_random_below(&random, len);
        else if (trial % 5 == 1)
            now[len++] = 0;
        else
            now[mr_random_below(&random, len)] ^= (uint8_t)(1 + mr_random_below(&random, 255));
        put(b, names[n], ".idx", now, len);
        mr_verify_report *r = look(b, trial % 2 ? MR_VERIFY_FULL : MR_VERIFY_DEEP, false);
        expect_only(r, damaged, trial % 5 < 2 ? MR_PROBLEM_SIZE : MR_PROBLEM_DIGEST, trial);
        assert_true(r->shards[n].index_only);
        assert_int_equal(r->shards[n].damaged, 0);
        mr_verify_report_free(r);
        put(b, names[n], ".idx", b->idx[n], b->idx_len[n]);
        free(now);
    }
}

static void test_delete_index(void **state)
{
    const bench *b = *state;
    for (unsigned trial = 0; trial < TRIALS; trial++) {
        int n = (int)(trial % 3);
        bool damaged[3] = {n == 0, n == 1, n == 2};
        take_away(b, names[n], ".idx");
        mr_verify_report *r = look(b, (mr_verify_level)(trial % 4), false);
        expect_only(r, damaged, MR_PROBLEM_MISSING, trial);
        assert_int_equal(r->shards[n].index_only, r->level != MR_VERIFY_QUICK);
        assert_int_equal(r->shards[n].damaged, 0);
        mr_verify_report_free(r);
        put(b, names[n], ".idx", b->idx[n], b->idx_len[n]);
    }
}

/* With both files of a shard damaged, records still prove themselves as long as the rows make sense. */
static void test_both_damaged(void **state)
{
    const bench *b = *state;
    uint8_t *idx = malloc(b->idx_len[0]), *mdb = malloc(b->mdb_len[0]);
    const bool damaged[3] = {true, false, false};
    mr_row *rows;
    mr_error err;
    assert_int_equal(mr_index_parse(b->idx[0], b->idx_len[0], b->shards[0], &rows, &err), MR_OK);
    memcpy(idx, b->idx[0], b->idx_len[0]);
    memcpy(mdb, b->mdb[0], b->mdb_len[0]);
    idx[MR_INDEX_HEADER + 41] ^= 1; /* a width, 256 more */
    mdb[rows[7].meta_offset + 3] ^= 1;
    put(b, names[0], ".idx", idx, b->idx_len[0]);
    put(b, names[0], ".mdb", mdb, b->mdb_len[0]);
    mr_verify_report *r = look(b, MR_VERIFY_FULL, false);
    expect_only(r, damaged, MR_PROBLEM_DIGEST, 0);
    expect_hits(b, r, 0, mdb, b->mdb_len[0], 0);
    assert_false(r->shards[0].index_only);
    mr_verify_report_free(r);
    idx[0] ^= 1; /* no index at all any more */
    put(b, names[0], ".idx", idx, b->idx_len[0]);
    r = look(b, MR_VERIFY_FULL, false);
    assert_int_equal(r->shards[0].damaged, b->shards[0]->samples);
    mr_verify_report_free(r);
    put(b, names[0], ".idx", b->idx[0], b->idx_len[0]);
    put(b, names[0], ".mdb", b->mdb[0], b->mdb_len[0]);
    free(rows);
    free(idx);
    free(mdb);
}

static void test_untouched(void **state)
{
    const bench *b = *state;
    for (int level = MR_VERIFY_QUICK; level <= MR_VERIFY_DECODE; level++) {
        for (int no_sha256 = 0; no_sha256 < 2; no_sha256++) {
            mr_verify_report *r = look(b, (mr_verify_level)level, no_sha256);
            if (!mr_verify_ok(r))
                fail_msg("%s: %zu problems where there are none", mr_verify_level_words[level],
                         mr_verify_problem_count(r));
            assert_int_equal(r->samples, 82);
            assert_int_equal(r->warnings.count, 0);
            mr_verify_report_free(r);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flip),
        cmocka_unit_test(test_zero_page),
        cmocka_unit_test(test_truncate),
        cmocka_unit_test(test_extend),
        cmocka_unit_test(test_delete),
        cmocka_unit_test(test_swap),
        cmocka_unit_test(test_edit_manifest),
        cmocka_unit_test(test_delete_manifest),
        cmocka_unit_test(test_edit_index),
        cmocka_unit_test(test_delete_index),
        cmocka_unit_test(test_both_damaged),
        cmocka_unit_test(test_untouched), /* last: every test before has put things back */
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
