/* test_contradictions.c - datasets with correct digests that contradict themselves: labels beyond the classes, wrong
 * counts, classes of the same name; and the cost of 100,000 damaged shards.
 * Invariant tested: none of them passes, and the message helps. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/shards/dataset_maker.h"
#include "tests/support/cost.h"
#include "shards/verify/parts.h"

typedef struct state {
    char *dir, *ds;
} state;

static int set_up(void **out)
{
    state *s = calloc(1, sizeof *s);
    s->dir = support_tmpdir();
    s->ds = support_path("%s/ds", s->dir);
    mkdir(s->ds, 0777);
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

/* Three samples of the classes ant, bee and cat, the second with these further members in its meta. */
static void make(const state *s, const char *more)
{
    made samples[3];
    for (unsigned i = 0; i < 3; i++)
        samples[i] = (made){"a.jpg", make_jpeg((jpeg_kind){.width = 64 + i, .height = 64, .components = 3}),
                            i == 1 ? more : ",\"label\":0,\"class\":\"ant\"", false, 0};
    const made_split split = {"train", samples, 3, 3};
    dataset_make(s->ds, &split, 1);
    for (unsigned i = 0; i < 3; i++)
        picture_free(&samples[i].image);
}

/* The only problem at this level is of this kind, about this sample, and says so; MR_PROBLEM_KIND_COUNT: none. */
static void expect(const state *s, mr_verify_level level, mr_problem_kind kind, uint64_t sample, const char *words)
{
    const mr_verify_options o = {.level = level, .quiet = true};
    mr_verify_report *r;
    mr_error err;
    if (mr_verify(s->ds, &o, &r, &err) != MR_OK)
        fail_msg("%s", err.text);
    const mr_problems *p = &r->shards[0].problems;
    assert_int_equal(r->problems.count, 0);
    assert_int_equal(p->count, kind != MR_PROBLEM_KIND_COUNT);
    if (p->count && (p->items[0].kind != kind || p->items[0].sample != sample || !strstr(p->items[0].detail, words)))
        fail_msg("%s, sample %lld: %s", mr_problem_words[p->items[0].kind], (long long)p->items[0].sample,
                 p->items[0].detail);
    mr_verify_report_free(r);
}

static void expect_words(const state *s, int status, const char *command, const char *option, const char *words)
{
    support_result r = support_millrace(command, option, s->ds, (char *)NULL);
    support_assert_status(&r, status);
    if (!strstr(r.out, words) && !strstr(r.err, words))
        fail_msg("\"%s\" is not in:\n%s%s", words, r.out, r.err);
    support_result_free(&r);
}

static mr_manifest *read_manifest(const char *ds)
{
    mr_manifest *m;
    mr_error err;
    if (mr_manifest_open(ds, &m, NULL, &err) != MR_OK)
        fail_msg("%s", err.text);
    return m;
}

/* With a seal that fits; frees it. */
static void write_manifest(const char *ds, mr_manifest *m)
{
    char *path = support_path("%s/manifest.json", ds);
    mr_buf text = {0};
    mr_error err;
    if (mr_manifest_write(m, &text, &err) != MR_OK)
        fail_msg("%s", err.text);
    support_write(path, text.data, text.len);
    mr_buf_free(&text);
    mr_manifest_free(m);
    free(path);
}

/* ---- labels ------------------------------------------------------------------------------------------------------ */

static void test_labels_beyond_the_classes(void **out)
{
    const state *s = *out;
    make(s, ",\"label\":2,\"class\":\"cat\"");
    for (int level = MR_VERIFY_QUICK; level <= MR_VERIFY_DECODE; level++)
        expect(s, (mr_verify_level)level, MR_PROBLEM_KIND_COUNT, 0, "");
    make(s, ",\"label\":3");
    for (int level = MR_VERIFY_QUICK; level <= MR_VERIFY_FULL; level++)
        expect(s, (mr_verify_level)level, MR_PROBLEM_MANIFEST, 1,
               "has 3 classes, but its label in train-00000.idx is 3 (1 ");
    expect_words(s, 1, "verify", "--no-sha256", "but its 3 samples are intact");
    expect_words(s, 0, "inspect", "--classes", "(beyond the classes)");
    support_result r = support_millrace("inspect", "--classes", "--json", s->ds, (char *)NULL);
    json_t *doc = json_loads(r.out, 0, NULL);
    const json_t *counts = json_object_get(json_object_get(doc, "class_counts"), "train");
    assert_int_equal(json_integer_value(json_object_get(counts, "no_such_class")), 1);
    assert_int_equal(json_integer_value(json_object_get(counts, "no_label")), 0);
    json_decref(doc);
    support_result_free(&r);
}

static void test_metas_beyond_the_classes(void **out)
{
    const state *s = *out;
    static const struct {
        const char *more, *words;
    } cases[] = {
        {",\"labels\":[0,2]", NULL},
        {",\"labels\":[0,3,1]", "a label outside the manifest's classes"},
        {",\"labels\":[2147483647]", "a label outside the manifest's classes"},
        {",\"label\":1,\"class\":\"ant\"", "a class that is not the manifest's"},
        {",\"label\":1,\"class\":\"\"", "a class that is not the manifest's"},
        {",\"class\":\"ant\"", "a class that is not the manifest's"},
        {",\"label\":1", NULL},
    };
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        make(s, cases[i].more);
        expect(s, MR_VERIFY_FULL, MR_PROBLEM_KIND_COUNT, 0, "");
        expect(s, MR_VERIFY_DEEP, cases[i].words ? MR_PROBLEM_META : MR_PROBLEM_KIND_COUNT, 1, cases[i].words);
    }
}

/* ---- counts ----------------------------------------------------------------------------------------------------- */

static void state_counts(const state *s, uint64_t images, uint64_t bytes)
{
    mr_manifest *m = read_manifest(s->ds);
    m->splits[0].images = m->splits[0].shards[0].images = images;
    m->splits[0].image_bytes = m->splits[0].shards[0].image_bytes = bytes;
    write_manifest(s->ds, m);
}

static void test_false_counts(void **out)
{
    const state *s = *out;
    make(s, NULL);
    expect_words(s, 0, "seek", "--quiet", "");
    expect(s, MR_VERIFY_DECODE, MR_PROBLEM_KIND_COUNT, 0, "");
    mr_manifest *m = read_manifest(s->ds);
    uint64_t bytes = m->splits[0].image_bytes;
    mr_manifest_free(m);
    const uint64_t cases[][2] = {{1, 7}, {2, bytes}, {3, bytes - 1}, {3, bytes + 1}};
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        state_counts(s, cases[i][0], cases[i][1]);
        for (int level = MR_VERIFY_QUICK; level <= MR_VERIFY_DECODE; level++)
            expect(s, (mr_verify_level)level, MR_PROBLEM_MANIFEST, MR_NO_SAMPLE, "restore the original manifest");
        /* No advice that leads nowhere: the seek index is whole, and so is the .mdb. */
        support_result r = support_millrace("verify", s->ds, (char *)NULL);
        assert_null(strstr(r.out, "next:"));
        support_result_free(&r);
        expect_words(s, 1, "seek", "--quiet", "restore the original manifest");
    }
    state_counts(s, 3, bytes);
    expect_words(s, 0, "seek", "--quiet", "");
    expect(s, MR_VERIFY_DECODE, MR_PROBLEM_KIND_COUNT, 0, "");
}

/* ---- classes ---------------------------------------------------------------------------------------------------- */

static void expect_classes(const char *words, const mr_class *classes, size_t count)
{
    mr_error err;
    mr_status status = mr_classes_check(classes, count, "here", &err);
    assert_int_equal(status, words ? MR_BAD_DATA : MR_OK);
    if (words && !strstr(err.text, words))
        fail_msg("%s", err.text);
}

static void test_classes_of_the_same_name(void **out)
{
    char ant[] = "ant", bee[] = "bee", none[] = "";
    const mr_class plain[] = {{ant, false, 0}, {bee, false, 0}},
                   twins[] = {{bee, false, 0}, {ant, false, 0}, {bee, false, 0}},
                   ids[] = {{ant, true, 7}, {none, true, 8}, {ant, true, 9}, {none, true, 1}},
                   same_id[] = {{ant, true, 9}, {bee, true, 8}, {ant, true, 9}},
                   mixed[] = {{ant, true, 9}, {ant, false, 0}}, empty[] = {{ant, false, 0}, {none, false, 0}};
    const state *s = *out;
    expect_classes(NULL, plain, 2);
    expect_classes(NULL, plain, 0);
    expect_classes(NULL, ids, 4);
    expect_classes("classes 0 and 2 are both named \"bee\"", twins, 3);
    expect_classes("classes 0 and 2 are both named \"ant\"", same_id, 3);
    expect_classes("classes 0 and 1 are both named \"ant\"", mixed, 2);
    expect_classes("class 1 has no name", empty, 2);
    /* A manifest of theirs: every command refuses it, and none is written. */
    make(s, NULL);
    char *path = support_path("%s/manifest.json", s->ds), *text = (char *)support_read(path, NULL), *at;
    at = strstr(text, "\"bee\"");
    assert_non_null(at);
    memcpy(at, "\"ant\"", 5);
    support_write_text(path, text);
    expect_words(s, 1, "verify", "--quick", "are both named \"ant\"");
    expect_words(s, 1, "inspect", "--json", "are both named \"ant\"");
    free(text);
    free(path);
}

/* The first classes of the manifest get this one name, as COCO's categories may have: their ids tell them apart. */
static void name_all(const char *ds, const char *name, size_t count)
{
    mr_manifest *m = read_manifest(ds);
    assert_true(count <= m->class_count);
    for (size_t i = 0; i < count; i++) {
        free(m->classes[i].name);
        m->classes[i] = (mr_class){.name = strdup(name), .has_id = true, .id = (int64_t)(100 - i)};
    }
    write_manifest(ds, m);
}

static support_result judge(const char *command, const char *ds, const char *run, const char *option)
{
    return support_millrace(command, ds, run, "--split", "train", "--threads", "1", option, (char *)NULL);
}

/* Equal classes in equal order are the model's own, whatever their names; otherwise a name must say which is meant. */
static void test_eval_with_classes_of_one_name(void **out)
{
    const state *s = *out;
    char *source = support_path("%s/source", s->dir), *twins = support_path("%s/twins", s->dir);
    char *run[2] = {support_path("%s/run", s->dir), support_path("%s/run-twins", s->dir)};
    const char *ds[2] = {s->ds, twins};
    support_result told[2];
    support_expect(0, "sample", source, "--layout", "imagenette", "--images", "40", "--size", "32", "--quiet",
                   (char *)NULL);
    assert_int_equal(rmdir(s->ds), 0);
    for (int i = 0; i < 2; i++) {
        support_expect(0, "ingest", source, ds[i], "--quiet", (char *)NULL);
        if (i)
            name_all(twins, "same", 10);
        support_expect(0, "train", ds[i], "--model", "vit", "--image-size", "32", "--patch", "16", "--hidden", "16",
                       "--layers", "1", "--heads", "2", "--mlp", "16", "--batch", "4", "--steps", "8", "--lr", "0.01",
                       "--threads", "1", "--output", run[i], "--quiet", (char *)NULL);
        told[i] = judge("eval", ds[i], run[i], "--json");
        support_assert_status(&told[i], 0);
    }
    json_t *a = json_loads(told[0].out, 0, NULL), *b = json_loads(told[1].out, 0, NULL);
    assert_non_null(json_object_get(a, "accuracy"));
    assert_true(json_equal(json_object_get(a, "accuracy"), json_object_get(b, "accuracy")));
    assert_true(json_equal(json_object_get(a, "loss"), json_object_get(b, "loss")));
    json_decref(a);
    json_decref(b);
    support_expect_refusal(judge("eval", s->ds, run[1], "--quiet"), "has a class \"");
    name_all(s->ds, "same", 9);
    support_expect_refusal(judge("eval", s->ds, run[1], "--quiet"), "several classes of its model are named \"same\"");
    support_result r = judge("predict", s->ds, run[1], "--no-labels");
    support_assert_status(&r, 0);
    support_result_free(&r);
    for (int i = 0; i < 2; i++) {
        support_result_free(&told[i]);
        free(run[i]);
    }
    free(twins);
    free(source);
}

/* ---- many shards ------------------------------------------------------------------------------------------------ */

/* Asked of each shard, as when all are damaged: whose name, size and bytes are these? */
static double cost_of_shards(size_t count, void *ctx)
{
    (void)ctx;
    mr_shard *all = mr_alloc(count, sizeof *all);
    const mr_shard **list = mr_alloc(count, sizeof *list);
    mr_verify_find find;
    mr_error err;
    mr_random random = support_random();
    assert_true(all && list);
    for (size_t i = 0; i < count; i++) {
        snprintf(all[i].name, sizeof all[i].name, "train-%05zu", i);
        all[i].idx.bytes = 128;
        all[i].mdb.bytes = (1 + i) * 4096;
        mr_random_bytes(&random, all[i].idx.xxh3_128, 16);
        mr_random_bytes(&random, all[i].mdb.sha256, 32);
        list[i] = &all[i];
    }
    all[7].idx = all[8].idx;
    memset(all[7].idx.sha256, 1, 32); /* equal by XXH3-128 alone */
    double start = support_cpu();
    assert_int_equal(mr_verify_find_begin(list, count, &find, &err), MR_OK);
    mr_verify_options o = {.level = MR_VERIFY_FULL};
    for (size_t i = 0; i < count; i++) {
        const mr_verify_job job = {.find = &find, .options = &o, .shard = &all[i]},
                            next = {.find = &find, .options = &o, .shard = &all[(i + 1) % count]};
        mr_digest none = all[i].mdb;
        none.sha256[31] ^= 1;
        assert_true(mr_verify_find_name(&find, all[i].name, strlen(all[i].name)));
        assert_false(mr_verify_find_name(&find, all[i].name, strlen(all[i].name) - 1));
        assert_null(mr_verify_find_other(&job, false, all[i].mdb.bytes, &all[i].mdb));
        assert_ptr_equal(mr_verify_find_other(&next, false, all[i].mdb.bytes, &all[i].mdb), &all[i]);
        assert_null(mr_verify_find_other(&next, false, all[i].mdb.bytes, &none));
        assert_null(mr_verify_find_other(&job, false, 4095, NULL));
        const mr_shard *other = mr_verify_find_other(&job, true, 128, NULL);
        assert_true(other && other != &all[i]);
    }
    const mr_verify_job job = {.find = &find, .options = &o, .shard = &all[8]};
    assert_null(mr_verify_find_other(&job, true, 128, &all[8].idx));
    o.no_sha256 = true;
    assert_ptr_equal(mr_verify_find_other(&job, true, 128, &all[8].idx), &all[7]);
    double cpu = support_cpu() - start;
    mr_verify_find_end(&find);
    free(list);
    free(all);
    return cpu;
}

static void test_many_shards(void **out)
{
    (void)out;
    support_assert_linear("shards", cost_of_shards, NULL, 20000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_labels_beyond_the_classes), TEST(test_metas_beyond_the_classes),      TEST(test_false_counts),
        TEST(test_classes_of_the_same_name),  TEST(test_eval_with_classes_of_one_name), TEST(test_many_shards)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
