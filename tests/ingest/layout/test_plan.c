/* test_plan.c - millrace plan prints the schedule, and reads no image.
 * Invariant tested: the command needs only manifest.json. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "loader/order/schedule.h"
#include "tests/support/support.h"
#include "tests/support/shards/shard.h"

typedef struct state {
    char *dir, *ds;
    uint64_t mean; /* bytes of a record of "train" */
} state;

/* 70 samples in "train", 12 in "val"; every file but the manifest is gone. */
static int set_up(void **out)
{
    static const char *const files[] = {"train-00000", "train-00001", "val-00000"};
    state *s = calloc(1, sizeof *s);
    mr_manifest *m;
    s->dir = support_tmpdir();
    s->ds = s->dir;
    draw_dataset(s->ds);
    assert_int_equal(mr_manifest_open(s->ds, &m, NULL, NULL), MR_OK);
    s->mean = m->splits[0].image_bytes / m->splits[0].images;
    assert_true(s->mean > 0);
    mr_manifest_free(m);
    for (size_t i = 0; i < 3; i++) {
        char *mdb = support_path("%s/%s.mdb", s->ds, files[i]), *idx = support_path("%s/%s.idx", s->ds, files[i]);
        assert_int_equal(unlink(mdb) | unlink(idx), 0);
        free(mdb);
        free(idx);
    }
    *out = s;
    return 0;
}

static int tear_down(void **out)
{
    state *s = *out;
    support_tmpdir_remove(s->dir);
    free(s);
    return 0;
}

/* Words of a command line, split at spaces; '@' stands for the dataset. */
static support_result run(const state *s, const char *words)
{
    char *copy = strdup(words), *next = NULL;
    const char *argv[32] = {support_millrace_path(), "plan"};
    size_t n = 2;
    for (char *word = strtok_r(copy, " ", &next); word && n < 31; word = strtok_r(NULL, " ", &next))
        argv[n++] = strcmp(word, "@") == 0 ? s->ds : word;
    support_result r = support_run(argv, NULL);
    free(copy);
    return r;
}

static json_t *run_json(const state *s, const char *words)
{
    support_result r = run(s, words);
    support_assert_status(&r, 0);
    json_t *doc = json_loadb(r.out, r.out_len, JSON_REJECT_DUPLICATES, NULL);
    if (!doc)
        fail_msg("no JSON: %s", r.out);
    support_result_free(&r);
    return doc;
}

static uint64_t number(const json_t *doc, const char *key)
{
    if (!json_is_integer(json_object_get(doc, key)))
        fail_msg("no number \"%s\"", key);
    return (uint64_t)json_integer_value(json_object_get(doc, key));
}

static const char *text(const json_t *doc, const char *key)
{
    const char *value = json_string_value(json_object_get(doc, key));
    if (!value)
        fail_msg("no text \"%s\"", key);
    return value;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

/* A step of the JSON against the schedule. */
static void check_batch(const json_t *batch, const mr_schedule *s, uint64_t epoch, uint64_t step)
{
    const json_t *ranks = json_object_get(batch, "ranks"), *weights = json_object_get(batch, "weights");
    bool padded = s->tail == MR_TAIL_PAD && step + 1 == s->steps && s->order.samples % s->global_batch;
    assert_int_equal(number(batch, "step"), step);
    assert_int_equal(json_array_size(ranks), s->world);
    assert_true(padded == (weights != NULL));
    for (unsigned rank = 0; rank < s->world; rank++) {
        const json_t *list = json_array_get(ranks, rank);
        assert_int_equal(json_array_size(list), mr_schedule_count(s, step, rank));
        for (size_t i = 0; i < json_array_size(list); i++) {
            mr_slot slot = mr_schedule_slot(s, epoch, step, rank, i);
            assert_int_equal(json_integer_value(json_array_get(list, i)), slot.sample);
            if (weights)
                assert_int_equal(json_integer_value(json_array_get(json_array_get(weights, rank), i)), slot.weight > 0);
        }
    }
}

static void json_is_the_schedule(void **out)
{
    const state *s = *out;
    static const struct {
        const char *words, *tail, *shuffle;
        uint64_t samples, seed, epoch, batch, window;
        unsigned world;
        uint64_t first, count, steps, dropped, padded, last;
    } cases[] = {
        {"@ --global-batch 16 --batches : --json", "drop", "full", 70, 0, 0, 16, 0, 1, 0, 4, 4, 6, 0, 16},
        {"@ --split train --global-batch 16 --ranks 4 --epoch 3 --seed 9 --tail pad --batches 3:5 --json", "pad",
         "full", 70, 9, 3, 16, 0, 4, 3, 2, 5, 0, 10, 6},
        {"@ --global-batch=16 --ranks=8 --tail=partial --batches=1: --json --no-shuffle", "partial", "none", 70, 0, 0,
         16, 0, 8, 1, 4, 5, 0, 0, 6},
        {"@ --global-batch 9 --ranks 3 --shuffle window:100k --batches :2 --json", "drop", "window", 70, 0, 0, 9,
         102400, 3, 0, 2, 7, 7, 0, 9},
        {"@ --split val --global-batch 64 --tail pad --batches 0 --json", "pad", "full", 12, 0, 0, 64, 0, 1, 0, 1, 1, 0,
         52, 12},
        {"@ --split val --global-batch 64 --batches : --json", "drop", "full", 12, 0, 0, 64, 0, 1, 0, 0, 0, 12, 0, 0},
        {"@ --split val --global-batch 4 --json", "drop", "full", 12, 0, 0, 4, 0, 1, 0, 0, 3, 0, 0, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *doc = run_json(s, cases[i].words);
        mr_order o;
        mr_schedule schedule;
        bool window = cases[i].window, none = strcmp(cases[i].shuffle, "none") == 0;
        mr_shuffle kind = window ? MR_SHUFFLE_WINDOW : none ? MR_SHUFFLE_NONE : MR_SHUFFLE_FULL;
        mr_tail tail = *cases[i].tail == 'd' ? MR_TAIL_DROP : cases[i].tail[2] == 'd' ? MR_TAIL_PAD : MR_TAIL_PARTIAL;
        assert_int_equal(mr_order_make(kind, cases[i].samples, cases[i].seed, cases[i].window, s->mean, &o, NULL), 0);
        assert_int_equal(mr_schedule_make(&o, cases[i].batch, cases[i].world, tail, &schedule, NULL), MR_OK);
        assert_int_equal(number(doc, "samples"), cases[i].samples);
        assert_int_equal(number(doc, "steps"), cases[i].steps);
        assert_int_equal(number(doc, "global_batch"), cases[i].batch);
        assert_int_equal(number(doc, "world"), cases[i].world);
        assert_int_equal(number(doc, "epoch"), cases[i].epoch);
        assert_int_equal(number(doc, "seed"), cases[i].seed);
        assert_int_equal(number(doc, "dropped"), cases[i].dropped);
        assert_int_equal(number(doc, "padded"), cases[i].padded);
        assert_int_equal(number(doc, "last_batch"), cases[i].last);
        assert_string_equal(text(doc, "tail"), cases[i].tail);
        assert_string_equal(text(doc, "shuffle"), cases[i].shuffle);
        if (window)
            assert_int_equal(number(doc, "window_samples"), o.window);
        const json_t *batches = json_object_get(doc, "batches");
        assert_true(json_is_array(batches));
        assert_int_equal(json_array_size(batches), cases[i].count);
        for (size_t k = 0; k < cases[i].count; k++)
            check_batch(json_array_get(batches, k), &schedule, cases[i].epoch, cases[i].first + k);
        json_decref(doc);
    }
}

static void memory_is_the_loaders_formula(void **out)
{
    const state *s = *out;
    static const struct {
        const char *words;
        uint64_t sample; /* bytes; 0: the mean record */
        uint64_t batches;
    } cases[] = {
        {"@ --global-batch 16 --ranks 2 --json", 0, 4},
        {"@ --global-batch 16 --ranks 2 --json --size 32", 32 * 32 * 12, 4},
        {"@ --global-batch 16 --ranks 2 --json --size 32 --deliver u8 --prefetch 6", 32 * 32 * 3, 8},
        {"@ --global-batch 16 --ranks 2 --json --deliver bf16 --threads 3", 224 * 224 * 6, 4},
        {"@ --global-batch 16 --ranks 2 --json --size 32 --deliver encoded", 0, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *doc = run_json(s, cases[i].words), *memory = json_object_get(doc, "memory");
        uint64_t batch = 8 * ((cases[i].sample ? cases[i].sample : s->mean) + sizeof(mr_sample_facts));
        assert_int_equal(number(memory, "batches"), cases[i].batches);
        assert_int_equal(number(memory, "batch_bytes"), batch);
        assert_int_equal(number(memory, "bytes"), batch * cases[i].batches);
        assert_true(json_is_true(json_object_get(memory, "estimate")) == (cases[i].sample == 0));
        json_decref(doc);
    }
}

/* ---- for people ------------------------------------------------------------------------------------------------- */

static void expect_out(const state *s, const char *words, const char *expected)
{
    support_result r = run(s, words);
    support_assert_status(&r, 0);
    assert_string_equal(r.out, expected);
    assert_string_equal(r.err, "");
    support_result_free(&r);
}

static void words_are_exact(void **out)
{
    const state *s = *out;
    char bytes[32], all[32], mean[32];
    char *expected = support_path(
        "%s train: 70 samples, 5 steps of 16 (4 ranks x 4)\n"
        "  order   epoch 0 of seed 0, not shuffled\n"
        "  tail    pad: the last batch has 6 samples and 10 repeated ones of weight 0\n"
        "  memory  at most %s per rank: 4 batches of %s (4 x 32 x 32 x 3 u8); plus for each of 2 threads one "
        "encoded file and one decoded image\n"
        "\n"
        "  step 3  rank 0  48 49 50 51\n"
        "  step 3  rank 1  52 53 54 55\n"
        "  step 3  rank 2  56 57 58 59\n"
        "  step 3  rank 3  60 61 62 63\n"
        "  step 4  rank 0  64 65 66 67\n"
        "  step 4  rank 1  68 69 0* 1*\n"
        "  step 4  rank 2  2* 3* 4* 5*\n"
        "  step 4  rank 3  6* 7* 8* 9*\n"
        "  * repeated, weight 0\n",
        s->ds, mr_text_bytes(16 * (3072 + sizeof(mr_sample_facts)), all),
        mr_text_bytes(4 * (3072 + sizeof(mr_sample_facts)), bytes));
    expect_out(s,
               "@ --global-batch 16 --ranks 4 --tail pad --no-shuffle --deliver u8 --size 32 --threads 2 "
               "--batches 3:5",
               expected);
    free(expected);
    expected = support_path("%s val: 12 samples, 2 steps of 8 (8 ranks x 1)\n"
                            "  order   epoch 4 of seed 7, not shuffled\n"
                            "  tail    partial: the last batch has 4 samples\n"
                            "  memory  at most %s per rank: 4 batches of %s (1 x 224 x 224 x 3 f32); plus one encoded "
                            "file and one decoded image\n"
                            "\n"
                            "  step 1  rank 0  8\n  step 1  rank 1  9\n  step 1  rank 2  10\n  step 1  rank 3  11\n"
                            "  step 1  rank 4  -\n  step 1  rank 5  -\n  step 1  rank 6  -\n  step 1  rank 7  -\n",
                            s->ds, mr_text_bytes(4 * (602112 + sizeof(mr_sample_facts)), all),
                            mr_text_bytes(602112 + sizeof(mr_sample_facts), bytes));
    expect_out(s,
               "@ --split val --global-batch 8 --ranks 8 --tail partial --no-shuffle --size 224 --epoch 4 --seed 7 "
               "--batches 1",
               expected);
    free(expected);
    expected =
        support_path("%s train: 70 samples, 1 step of 69 (1 rank x 69)\n"
                     "  order   epoch 0 of seed 0, shuffled\n"
                     "  tail    drop: 1 sample of this epoch left out\n"
                     "  memory  about %s per rank: 4 batches of %s (an estimate: records of %s, the mean); plus one "
                     "encoded file\n",
                     s->ds, mr_text_bytes(4 * 69 * (s->mean + sizeof(mr_sample_facts)), all),
                     mr_text_bytes(69 * (s->mean + sizeof(mr_sample_facts)), bytes), mr_text_bytes(s->mean, mean));
    expect_out(s, "@ --global-batch 69", expected);
    free(expected);
}

static void expect_in(const state *s, const char *words, const char *part)
{
    support_result r = run(s, words);
    support_assert_status(&r, 0);
    if (!strstr(r.out, part))
        fail_msg("%s\ndoes not say \"%s\"", r.out, part);
    support_result_free(&r);
}

static void tails_are_explained(void **out)
{
    const state *s = *out;
    expect_in(s, "@ --split val --global-batch 4", "none, the batches divide the samples evenly");
    expect_in(s, "@ --split val --global-batch 64", "no batch can be filled; --tail pad or partial keeps the samples");
    expect_in(s, "@ --split val --global-batch 11 --tail partial", "the last batch has 1 sample\n");
    expect_in(s, "@ --global-batch 4 --shuffle window:1MiB", "shuffled in windows of 1.05 MB: ");
    expect_in(s, "--help", "--global-batch");
}

/* ---- wrong use -------------------------------------------------------------------------------------------------- */

static void wrong_use_says_the_way_out(void **out)
{
    const state *s = *out;
    static const char *const cases[][2] = {
        {"@ --global-batch 16 --ranks 3", "the nearest that can are 15 and 18"},
        {"@ --global-batch 2 --ranks 3", "the nearest that can is 3"},
        {"@ --global-batch 16 --batches 4", "has the steps 0 to 3; 0:4 is all of them"},
        {"@ --global-batch 16 --batches 0:5", "has the steps 0 to 3"},
        {"@ --global-batch 16 --batches 4:", "has the steps 0 to 3"},
        {"@ --split val --global-batch 64 --batches 0", "the epoch has no steps"},
        {"@ --global-batch 16 --batches 2:2", "B is the first step not included"},
        {"@ --global-batch 16 --batches 3:2", "is empty"},
        {"@ --global-batch 16 --batches x", "use A:B"},
        {"@ --global-batch 16 --batches 1:2:3", "use A:B"},
        {"@ --global-batch 16 --batches -1:2", "use A:B"},
        {"@ --global-batch 16 --batches 18446744073709551615", "use A:B"},
        {"@ --global-batch 16 --batches=", "the value is empty"},
        {"@ --global-batch 16 --split test", "it has train, val"},
        {"@ --global-batch 16 --tail padd", "did you mean pad?"},
        {"@ --global-batch 16 --tail x", "use drop, pad or partial"},
        {"@ --global-batch 16 --deliver f16", "use encoded, u8, f32 or bf16"},
        {"@ --global-batch 16 --shuffle window:0", "window:1GiB"},
        {"@ --global-batch 16 --shuffle windows", "window:1GiB"},
        {"@ --global-batch 0", "--global-batch 0: expected a number from 1"},
        {"@ --global-batch 16 --ranks 0", "--ranks 0: expected a number from 1"},
        {"@ --global-batch 16 --seed -1", "--seed -1: expected"},
        {"@ --global-batch 4294967295 --size 16384", "use a smaller --global-batch"},
        {"@", "--global-batch is missing"},
        {"--global-batch 16", "DATASET is missing"},
        {"@ @ --global-batch 16", "unexpected argument"},
        {"@ --globl-batch 16", "did you mean --global-batch?"},
        {"/nonexistent --global-batch 16", "/nonexistent"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        support_result r = run(s, cases[i][0]);
        support_assert_status(&r, 2);
        assert_string_equal(r.out, "");
        if (!strstr(r.err, cases[i][1]))
            fail_msg("%s\nsays\n%snot \"%s\"", cases[i][0], r.err, cases[i][1]);
        support_result_free(&r);
    }
}

static void a_full_disk_is_reported(void **out)
{
    const state *s = *out;
    char *line =
        support_path("'%s' plan '%s' --global-batch 1 --batches : --json > /dev/full", support_millrace_path(), s->ds);
    support_result r = support_run((const char *[]){"sh", "-c", line, NULL}, NULL);
    support_assert_status(&r, 3);
    assert_non_null(strstr(r.err, "standard output: cannot write"));
    support_result_free(&r);
    free(line);
}

static void damage_is_bad_data(void **out)
{
    const state *s = *out;
    char *path = support_path("%s/manifest.json", s->ds);
    support_write_text(path, "{");
    support_expect(1, "plan", s->ds, "--global-batch", "16", (char *)NULL);
    free(path);
}

/* ---- mpirun ----------------------------------------------------------------------------------------------------- */

static size_t count(const char *in, const char *what)
{
    size_t n = 0;
    while ((in = strstr(in, what))) {
        in += strlen(what);
        n++;
    }
    return n;
}

static void mpirun_gives_the_ranks(void **out)
{
    const state *s = *out;
    const char *argv[] = {support_millrace_path(), "plan", s->ds, "--global-batch", "16", "--batches", "0", NULL};
    support_result r = support_mpirun(2, argv);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, "(2 ranks x 8)"));
    assert_int_equal(count(r.out, "step 0  rank 1"), 1);
    support_result_free(&r);
    argv[4] = "15";
    r = support_mpirun(2, argv);
    support_assert_status(&r, 2);
    assert_int_equal(count(r.err, "14 and 16") + count(r.out, "14 and 16"), 1);
    support_result_free(&r);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(json_is_the_schedule), TEST(memory_is_the_loaders_formula), TEST(words_are_exact),
        TEST(tails_are_explained),  TEST(wrong_use_says_the_way_out),    TEST(a_full_disk_is_reported),
        TEST(damage_is_bad_data),   TEST(mpirun_gives_the_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
