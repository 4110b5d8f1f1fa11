/* test_verify_kinds.c - every kind of problem by a case made for it, and the forms it is reported in.
 * Invariant tested: levels differ in what they can see, never in what they call whole. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "tests/support/shards/dataset_maker.h"
#include "shards/format/index.h"
#include "shards/verify/verify.h"

typedef struct state {
    char *dir, *ds;
} state;

static int set_up(void **out)
{
    state *s = calloc(1, sizeof *s);
    s->dir = support_tmpdir();
    s->ds = support_path("%s/ds", s->dir);
    *out = s;
    return 0;
}

static int tear_down(void **out)
{
    state *s = *out;
    support_tmpdir_remove(s->dir);
    free(s->ds);
    free(s);
    return 0;
}

/* A PNG made as long as asked by a chunk that readers skip. */
static picture long_png(unsigned width, size_t filler, mr_random *random)
{
    picture plain = make_png(width, 5, 2, 8, false);
    uint8_t *bytes = calloc(filler + 1, 1);
    mr_random_bytes(random, bytes, filler);
    picture out = png_with(plain, "IDAT", "prVt", bytes, filler);
    free(bytes);
    picture_free(&plain);
    return out;
}

/* Four samples in one shard, the third shares the image of the first; and two in another split. */
static void make(const state *s)
{
    mr_random random = support_random();
    picture p[5];
    for (int i = 0; i < 5; i++)
        p[i] = long_png(5 + (unsigned)i, 9000, &random);
    const made train[4] = {{"a/<1> & \\\"2\\\".png", p[0], ",\"label\":1", false, 0},
                           {"a/1.png", p[1], ",\"label\":2", false, 0},
                           {"a/2.png", p[0], ",\"label\":0", true, 0},
                           {"a/3.png", p[2], ",\"unannotated\":true", false, 0}};
    const made val[2] = {{"b/0.png", p[3], ",\"labels\":[0,2]", false, 0}, {"b/1.png", p[4], NULL, false, 0}};
    const made_split splits[2] = {{"train", train, 4, 4}, {"val", val, 2, 1}};
    mkdir(s->ds, 0777);
    dataset_make(s->ds, splits, 2);
    for (int i = 0; i < 5; i++)
        picture_free(&p[i]);
}

static mr_verify_report *look(const state *s, mr_verify_level level)
{
    const mr_verify_options o = {.level = level, .quiet = true};
    mr_verify_report *r;
    mr_error err;
    if (mr_verify(s->ds, &o, &r, &err) != MR_OK)
        fail_msg("%s", err.text);
    return r;
}

static void expect_whole(const state *s, mr_verify_level level)
{
    mr_verify_report *r = look(s, level);
    for (size_t i = 0; i < r->shard_count; i++)
        if (r->shards[i].problems.count)
            fail_msg("%s", r->shards[i].problems.items[0].detail);
    assert_true(mr_verify_ok(r));
    mr_verify_report_free(r);
}

/* The first problem of the first shard is of this kind, about this sample; returns how many the shard has. */
static size_t expect_problem(const state *s, mr_verify_level level, mr_problem_kind kind, uint64_t sample)
{
    mr_verify_report *r = look(s, level);
    const mr_problems *p = &r->shards[0].problems;
    size_t n = p->count;
    assert_true(n > 0);
    if (p->items[0].kind != kind || p->items[0].sample != sample)
        fail_msg("%s, sample %lld: %s", mr_problem_words[p->items[0].kind], (long long)p->items[0].sample,
                 p->items[0].detail);
    for (size_t i = 1; i < r->shard_count; i++)
        assert_int_equal(r->shards[i].problems.count, 0);
    mr_verify_report_free(r);
    return n;
}

static char *file(const state *s, const char *name)
{
    return support_path("%s/%s", s->ds, name);
}

/* XORs bytes of a file. */
static void change(const state *s, const char *name, size_t at, uint8_t by)
{
    char *path = file(s, name);
    size_t len;
    uint8_t *bytes = support_read(path, &len);
    assert_true(at < len);
    bytes[at] ^= by;
    support_write(path, bytes, len);
    free(bytes);
    free(path);
}

static mr_row *read_rows(const state *s)
{
    mr_manifest *m;
    mr_row *rows = NULL;
    mr_error err;
    int fd = open(s->ds, O_RDONLY | O_DIRECTORY);
    if (mr_manifest_open(s->ds, &m, NULL, &err) != MR_OK ||
        mr_index_read(fd, m->splits[0].shards, &rows, &err) != MR_OK)
        fail_msg("%s", err.text);
    close(fd);
    mr_manifest_free(m);
    return rows;
}

/* The rows of train-00000 as given here are what "was ingested". */
static void write_rows(const state *s, const mr_row *rows, uint64_t samples)
{
    char *idx = file(s, "train-00000.idx"), *mdb = file(s, "train-00000.mdb");
    mr_buf out = {0};
    mr_index_pack(rows, 0, samples, support_size(mdb), &out);
    support_write(idx, out.data, out.len);
    mr_buf_free(&out);
    free(idx);
    free(mdb);
    dataset_reseal(s->ds);
}

/* ---- records over the borders of chunks ------------------------------------------------------------------------ */

static void test_large_records(void **out)
{
    const state *s = *out;
    enum { N = 9 };
    static const size_t lens[N] = {250000, 262144, 600000, 100, 900000, 262100, 1, 524288, 300000};
    mr_random random = support_random();
    made samples[N];
    for (int i = 0; i < N; i++)
        samples[i] = (made){"x/y.png", long_png(9, lens[i], &random), NULL, false, 0};
    const made_split split = {"train", samples, N, N};
    mkdir(s->ds, 0777);
    dataset_make(s->ds, &split, 1);
    expect_whole(s, MR_VERIFY_DECODE);
    mr_row *rows = read_rows(s);
    for (int trial = 0; trial < 3 * N; trial++) {
        int n = trial % N;
        size_t at = rows[n].image_offset + (trial < N       ? 0
                                            : trial < 2 * N ? rows[n].image_len - 1
                                                            : mr_random_below(&random, rows[n].image_len));
        change(s, "train-00000.mdb", at, 4);
        mr_verify_report *r = look(s, MR_VERIFY_FULL);
        assert_int_equal(r->shards[0].damaged, 1);
        assert_int_equal(r->shards[0].problems.count, 2);
        assert_int_equal(r->shards[0].problems.items[1].sample, n);
        mr_verify_report_free(r);
        change(s, "train-00000.mdb", at, 4);
    }
    free(rows);
    for (int i = 0; i < N; i++)
        picture_free(&samples[i].image);
}

/* ---- one case a kind ------------------------------------------------------------------------------------------- */

static void test_not_a_file(void **out)
{
    const state *s = *out;
    make(s);
    char *path = file(s, "train-00000.mdb"), *kept = support_path("%s/kept", s->dir);
    assert_int_equal(rename(path, kept), 0);
    for (int how = 0; how < 3; how++) {
        if (how == 0)
            assert_int_equal(mkfifo(path, 0666), 0);
        else if (how == 1)
            assert_int_equal(symlink("train-00000.mdb", path), 0); /* to itself */
        else
            assert_int_equal(mkdir(path, 0777), 0);
        for (int level = MR_VERIFY_QUICK; level <= MR_VERIFY_FULL; level++)
            assert_int_equal(expect_problem(s, (mr_verify_level)level, MR_PROBLEM_NOT_A_FILE, MR_NO_SAMPLE), 1);
        assert_int_equal(remove(path), 0);
    }
    assert_int_equal(rename(kept, path), 0);
    expect_whole(s, MR_VERIFY_FULL);
    free(path);
    free(kept);
}

static void test_extra(void **out)
{
    const state *s = *out;
    make(s);
    char *note = file(s, "notes.txt"), *report = file(s, "report.json"), *stray = file(s, "train-00001.idx");
    support_write_text(note, "mine");
    support_write_text(report, "{}");
    mr_verify_report *r = look(s, MR_VERIFY_QUICK);
    assert_true(mr_verify_ok(r));
    assert_int_equal(r->warnings.count, 1);
    assert_non_null(strstr(r->warnings.items[0].detail, "notes.txt"));
    mr_verify_report_free(r);
    support_write_text(stray, "x");
    r = look(s, MR_VERIFY_QUICK);
    assert_false(mr_verify_ok(r));
    assert_int_equal(r->problems.count, 1);
    assert_int_equal(r->problems.items[0].kind, MR_PROBLEM_EXTRA);
    mr_verify_report_free(r);
    free(note);
    free(report);
    free(stray);
}

static void test_expect(void **out)
{
    const state *s = *out;
    make(s);
    mr_verify_report *r = look(s, MR_VERIFY_QUICK);
    char hex[65];
    mr_error err;
    mr_hex(r->digest, 32, hex);
    mr_verify_report_free(r);
    mr_verify_options o = {.level = MR_VERIFY_QUICK, .quiet = true, .expect = hex};
    assert_int_equal(mr_verify(s->ds, &o, &r, &err), MR_OK);
    assert_true(mr_verify_ok(r));
    mr_verify_report_free(r);
    hex[9] = hex[9] == '0' ? '1' : '0';
    assert_int_equal(mr_verify(s->ds, &o, &r, &err), MR_OK);
    assert_int_equal(r->problems.items[0].kind, MR_PROBLEM_EXPECT);
    mr_verify_report_free(r);
    o.expect = "abc";
    assert_int_equal(mr_verify(s->ds, &o, &r, &err), MR_MISUSE);
    o.expect = NULL;
    assert_int_equal(mr_verify(s->dir, &o, &r, &err), MR_MISUSE); /* a folder, but no dataset */
    assert_int_equal(mr_verify("/no/such/folder", &o, &r, &err), MR_MISUSE);
}

/* The digests fit, so nobody changed the file since: shard and index never belonged together. */
static void test_record(void **out)
{
    const state *s = *out;
    make(s);
    mr_row *rows = read_rows(s);
    change(s, "train-00000.mdb", rows[0].image_offset + rows[0].image_len / 2, 1);
    dataset_reseal(s->ds);
    expect_whole(s, MR_VERIFY_QUICK);
    assert_int_equal(expect_problem(s, MR_VERIFY_FULL, MR_PROBLEM_RECORD, 0), 2); /* and sample 2, which shares it */
    free(rows);
}

static void test_index_overlap(void **out)
{
    const state *s = *out;
    make(s);
    mr_row *rows = read_rows(s);
    rows[3].image_offset = rows[1].image_offset + 1;
    write_rows(s, rows, 4);
    expect_problem(s, MR_VERIFY_FULL, MR_PROBLEM_INDEX, 3);
    free(rows);
}

static void test_meta(void **out)
{
    const state *s = *out;
    make(s);
    mr_row *rows = read_rows(s);
    rows[1].label = 0;
    write_rows(s, rows, 4);
    expect_whole(s, MR_VERIFY_FULL);
    assert_int_equal(expect_problem(s, MR_VERIFY_DEEP, MR_PROBLEM_META, 1), 1);
    rows[1].label = 2;
    rows[3].flags &= ~(uint32_t)MR_FLAG_UNANNOTATED;
    write_rows(s, rows, 4);
    assert_int_equal(expect_problem(s, MR_VERIFY_DEEP, MR_PROBLEM_META, 3), 1);
    free(rows);
}

static void test_image(void **out)
{
    const state *s = *out;
    make(s);
    mr_row *rows = read_rows(s);
    rows[3].width++;
    write_rows(s, rows, 4);
    expect_whole(s, MR_VERIFY_FULL);
    assert_int_equal(expect_problem(s, MR_VERIFY_DEEP, MR_PROBLEM_IMAGE, 3), 1);
    rows[3].width--;
    rows[2].orientation = 7; /* the sharer only */
    write_rows(s, rows, 4);
    assert_int_equal(expect_problem(s, MR_VERIFY_DEEP, MR_PROBLEM_IMAGE, 2), 1);
    free(rows);
}

/* LMDB would find other samples than the index does. */
static void test_page_walk(void **out)
{
    const state *s = *out;
    static const uint8_t key[MR_LMDB_KEY] = {0, 0, 0, 0, 0, 0, 0, 3};
    make(s);
    mr_row *rows = read_rows(s);
    char *path = file(s, "train-00000.mdb");
    size_t len, changed = 0;
    uint8_t *bytes = support_read(path, &len), *at = bytes;
    while ((at = memmem(at, len - (size_t)(at - bytes), key, sizeof key))) {
        uint8_t *next = at + 8;
        if ((size_t)(at - bytes) % MR_LMDB_PAGE > 16 && next[1] != 0) { /* after the header of a page */
            at[7] = 9;
            changed++;
        }
        at = next;
    }
    assert_true(changed > 0);
    support_write(path, bytes, len);
    dataset_reseal(s->ds);
    expect_whole(s, MR_VERIFY_FULL);
    expect_problem(s, MR_VERIFY_DEEP, MR_PROBLEM_PAGE_WALK, MR_NO_SAMPLE);
    free(bytes);
    free(path);
    free(rows);
}

/* A picture with a sound structure and unsound pixels. */
static void test_decode(void **out)
{
    const state *s = *out;
    picture p = make_png(40, 40, 2, 8, false);
    p.bytes[png_chunk(p, "IDAT") + 8 + 20] ^= 0xFF;
    png_mend(p);
    const made sample = {"p.png", p, NULL, false, 0};
    const made_split split = {"train", &sample, 1, 1};
    mkdir(s->ds, 0777);
    dataset_make(s->ds, &split, 1);
    picture_free(&p);
    expect_whole(s, MR_VERIFY_DEEP);
    assert_int_equal(expect_problem(s, MR_VERIFY_DECODE, MR_PROBLEM_DECODE, 0), 1);
}

/* Shards and indexes that lie, with digests to match: nothing to find for a digest, much to trip over for a reader. */
static void test_hostile(void **out)
{
    const state *s = *out;
    make(s);
    mr_random random = support_random();
    char *paths[2] = {file(s, "train-00000.mdb"), file(s, "train-00000.idx")};
    size_t lens[2];
    uint8_t *good[2] = {support_read(paths[0], &lens[0]), support_read(paths[1], &lens[1])};
    for (int trial = 0; trial < 300; trial++) {
        int which = trial % 2;
        uint8_t *bad = malloc(lens[which]);
        memcpy(bad, good[which], lens[which]);
        for (uint64_t n = 1 + mr_random_below(&random, 4); n; n--) {
            size_t page =
                lens[which] <= MR_LMDB_PAGE ? 0 : mr_random_below(&random, lens[0] / MR_LMDB_PAGE) * MR_LMDB_PAGE;
            size_t at = page + mr_random_below(&random, lens[which] - page < 200 ? lens[which] - page : 200);
            bad[at] = (uint8_t)(mr_random_below(&random, 3) ? mr_random_below(&random, 256) : 255);
        }
        support_write(paths[which], bad, lens[which]);
        dataset_reseal(s->ds);
        mr_verify_report *r = look(s, MR_VERIFY_DECODE);
        assert_int_equal(r->problems.count, 0);
        assert_true(r->shards[0].damaged <= r->shards[0].samples);
        for (size_t i = 1; i < r->shard_count; i++)
            assert_int_equal(r->shards[i].problems.count, 0);
        mr_verify_report_free(r);
        support_write(paths[which], good[which], lens[which]);
        free(bad);
    }
    dataset_reseal(s->ds);
    expect_whole(s, MR_VERIFY_DECODE);
    for (int i = 0; i < 2; i++) {
        free(good[i]);
        free(paths[i]);
    }
}

/* ---- the command ----------------------------------------------------------------------------------------------- */

static void test_json(void **out)
{
    const state *s = *out;
    make(s);
    mr_row *rows = read_rows(s);
    change(s, "train-00000.mdb", rows[0].image_offset, 1);
    free(rows);
    support_result r = support_millrace("verify", "--json", s->ds, (char *)NULL);
    support_assert_status(&r, 1);
    json_t *doc = json_loadb(r.out, r.out_len, JSON_REJECT_DUPLICATES, NULL),
           *problems = json_object_get(doc, "problems");
    assert_true(json_is_false(json_object_get(doc, "ok")));
    assert_int_equal(json_integer_value(json_object_get(doc, "shards")), 3);
    assert_int_equal(json_integer_value(json_object_get(doc, "records")), 6);
    assert_true(json_integer_value(json_object_get(doc, "bytes")) > 50000);
    assert_int_equal(json_array_size(problems), 3);
    static const char *const kinds[3] = {"digest", "record", "record"};
    static const char *const sources[3] = {NULL, "a/<1> & \"2\".png", "a/2.png"};
    for (size_t i = 0; i < 3; i++) {
        const json_t *p = json_array_get(problems, i);
        assert_string_equal(json_string_value(json_object_get(p, "kind")), kinds[i]);
        assert_string_equal(json_string_value(json_object_get(p, "shard")), "train-00000");
        assert_true(json_is_string(json_object_get(p, "detail")));
        if (i == 0) {
            assert_true(json_is_null(json_object_get(p, "sample")));
            assert_true(json_is_null(json_object_get(p, "source")));
        } else {
            assert_int_equal(json_integer_value(json_object_get(p, "sample")), i == 1 ? 0 : 2);
            assert_string_equal(json_string_value(json_object_get(p, "source")), sources[i]);
        }
    }
    json_decref(doc);
    support_result_free(&r);
}

static void test_junit(void **out)
{
    const state *s = *out;
    make(s);
    char *junit = support_path("%s/out.xml", s->dir);
    support_expect(0, "verify", "--junit", junit, s->ds, (char *)NULL);
    char *text = (char *)support_read(junit, NULL);
    assert_int_equal(support_occurrences(text, "<testcase "), 3);
    assert_int_equal(support_occurrences(text, "<failure"), 0);
    free(text);
    mr_row *rows = read_rows(s);
    change(s, "train-00000.mdb", rows[0].image_offset, 1);
    free(rows);
    support_expect(1, "verify", "--junit", junit, s->ds, (char *)NULL);
    text = (char *)support_read(junit, NULL);
    assert_int_equal(support_occurrences(text, "<testcase "), 3);
    assert_int_equal(support_occurrences(text, "<failure "), 1);
    assert_non_null(strstr(text, "tests=\"3\" failures=\"1\""));
    assert_non_null(strstr(text, "record sample 0 (a/&lt;1&gt; &amp; &quot;2&quot;.png): its image differs"));
    free(text);
    free(junit);
}

static void test_words(void **out)
{
    const state *s = *out;
    make(s);
    support_result r = support_millrace("verify", "--quiet", s->ds, (char *)NULL);
    support_assert_status(&r, 0);
    assert_int_equal(r.out_len + r.err_len, 0);
    support_result_free(&r);
    r = support_millrace("verify", "--decode", s->ds, (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, ": intact\n"));
    support_result_free(&r);
    change(s, "val-00001.mdb", 70, 1);
    r = support_millrace("verify", s->ds, (char *)NULL);
    support_assert_status(&r, 1);
    assert_non_null(strstr(r.out, "val-00001: damaged"));
    assert_null(strstr(r.out, "val-00000"));
    support_result_free(&r);
    support_expect(2, "verify", (char *)NULL);
    support_expect(2, "verify", s->dir, (char *)NULL);
    support_expect(2, "verify", "--expect", "12", s->ds, (char *)NULL);
    support_expect(2, "verify", "--quick", "--deep", s->ds, (char *)NULL);
    support_expect(2, "verify", "--jobs", "0", s->ds, (char *)NULL);
    r = support_millrace("verify", "--dep", s->ds, (char *)NULL);
    support_assert_status(&r, 2);
    assert_non_null(strstr(r.err, "--deep"));
    support_result_free(&r);
}

static void test_ranks(void **out)
{
    const state *s = *out;
    make(s);
    mr_row *rows = read_rows(s);
    change(s, "train-00000.mdb", rows[3].image_offset, 1);
    free(rows);
    change(s, "val-00001.idx", 100, 1);
    const char *const alone[] = {support_millrace_path(), "verify", "--json", s->ds, NULL};
    support_result b = support_mpirun(3, alone), a = support_run(alone, NULL);
    support_assert_status(&a, 1);
    support_assert_status(&b, 1);
    json_t *x = json_loadb(a.out, a.out_len, 0, NULL), *y = json_loadb(b.out, b.out_len, JSON_DISABLE_EOF_CHECK, NULL);
    assert_non_null(x);
    assert_non_null(y);
    assert_int_equal(json_array_size(json_object_get(x, "problems")), 3);
    assert_true(json_equal(json_object_get(x, "problems"), json_object_get(y, "problems")));
    assert_true(json_equal(json_object_get(x, "damaged"), json_object_get(y, "damaged")));
    json_decref(x);
    json_decref(y);
    support_result_free(&a);
    support_result_free(&b);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_large_records), TEST(test_not_a_file), TEST(test_extra), TEST(test_expect),    TEST(test_record),
        TEST(test_index_overlap), TEST(test_meta),       TEST(test_image), TEST(test_page_walk), TEST(test_decode),
        TEST(test_hostile),       TEST(test_json),       TEST(test_junit), TEST(test_words),     TEST(test_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
