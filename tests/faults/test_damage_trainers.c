/* test_damage_trainers.c - shards that are truncated, overwritten, removed and replaced under a trainer of two ranks.
 * Invariant tested: both ranks end together and name a damaged sample, or, where allowed, finish having skipped
 * exactly the damaged ones; an open file stays readable when it is removed or replaced. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/damage.h"
#include "tests/support/shards/loader.h"
#include "tests/support/training/train.h"

/* ---- two ranks and the damage beside them ------------------------------------------------------------------------ */

typedef struct training {
    const char *shard, *another; /* what is damaged, and what may take its place */
    const char *eval_every, *max_bad, *on_bad;
    char *dir, epochs[16];
    support_result result;
    _Atomic bool ended;
    bool hit[DAMAGE_MAX];
} training;

static void need_mpirun(void)
{
    if (system("command -v mpirun >/dev/null 2>&1") == 0)
        return;
    print_message("mpirun is not installed: ranks are not tried\n");
    skip();
}

/* Three shards: 45 and 11 samples of train, 24 of val. */
static char *make_shards(void)
{
    char *dir = support_tmpdir();
    TRAIN_PATH(source, dir, "source");
    TRAIN_PATH(data, dir, "data");
    support_expect(0, "sample", source, "--layout", "imagenette", "--images", "80", "--size", "32:40", "--quiet",
                   (char *)NULL);
    support_expect(0, "ingest", source, data, "--quiet", "--shard-size", "64KiB", (char *)NULL);
    assert_int_equal(damage_samples(data, "train-00001"), 11);
    return dir;
}

static void *train(void *ctx)
{
    training *t = ctx;
    t->result = train_run(t->dir, 2, "--batch", "4", "--epochs", t->epochs, "--log", "log.jsonl", "--eval-every",
                          t->eval_every, "--quiet", "--max-bad", t->max_bad, "--on-bad", t->on_bad, (char *)NULL);
    t->ended = true;
    return NULL;
}

static void training_free(training *t)
{
    support_result_free(&t->result);
    support_tmpdir_remove(t->dir);
}

/* Two epochs are logged when the damage is done: all shards are open.  True if two more came, or a failure. */
static bool damaged_in_time(training *t, damage kind)
{
    enum { TWO_EPOCHS = 2000 };
    TRAIN_PATH(log, t->dir, "log.jsonl");
    TRAIN_PATH(data, t->dir, "data");
    pthread_t thread;
    t->ended = false;
    assert_int_equal(pthread_create(&thread, NULL, train, t), 0);
    support_watch("waiting for two epochs");
    while (!(support_exists(log) && support_size(log) > TWO_EPOCHS) && !t->ended)
        damage_nap();
    support_watch(NULL);
    damage_do(kind, data, t->shard, t->another, t->hit);
    uint64_t before = support_size(log);
    pthread_join(thread, NULL);
    assert_int_equal(t->result.signal, 0);
    assert_false(t->result.timed_out);
    return t->result.status != 0 || support_size(log) > before + TWO_EPOCHS;
}

/* A run that was faster than the damage is made longer. */
static void run_training(training *t, damage kind)
{
    for (unsigned epochs = 60;; epochs *= 4) {
        snprintf(t->epochs, sizeof t->epochs, "%u", epochs);
        t->dir = make_shards();
        if (damaged_in_time(t, kind))
            return;
        assert_true(epochs < 4000);
        training_free(t);
    }
}

/* The run ended with the name of a sample that is hit; `first` is the shard's first. */
static void assert_names_a_hit(const training *t, uint64_t first)
{
    char *words = support_path("%s.mdb: sample ", t->shard);
    const char *said = strstr(t->result.err, words);
    said = said ? said : strstr(t->result.out, words);
    support_assert_status(&t->result, 1);
    if (!said)
        fail_msg("no \"%s\" in %s%s", words, t->result.err, t->result.out);
    uint64_t n = strtoull(said + strlen(words), NULL, 10);
    assert_true(n >= first && n - first < DAMAGE_MAX && t->hit[n - first]);
    free(words);
}

/* The same run without damage has the same course. */
static void assert_course_untouched(const training *t)
{
    training whole = {.eval_every = "0", .max_bad = "0", .on_bad = "mask", .dir = make_shards()};
    TRAIN_PATH(log, t->dir, "log.jsonl");
    TRAIN_PATH(whole_log, whole.dir, "log.jsonl");
    memcpy(whole.epochs, t->epochs, sizeof whole.epochs);
    support_assert_status(&t->result, 0);
    train(&whole);
    support_assert_status(&whole.result, 0);
    assert_true(train_log_distance(log, whole_log, "loss") == 0);
    assert_true(train_log_distance(log, whole_log, "grad_norm") == 0);
    training_free(&whole);
}

static void test_trainers(void **state)
{
    (void)state;
    need_mpirun();
    for (damage kind = 0; kind < KINDS; kind++) {
        training t = {
            .shard = "train-00001", .another = "train-00000", .eval_every = "0", .max_bad = "0", .on_bad = "replace"};
        run_training(&t, kind);
        if (kind == REMOVED || kind == REPLACED)
            assert_course_untouched(&t);
        else
            assert_names_a_hit(&t, 45);
        training_free(&t);
    }
}

static void test_trainers_pass_over(void **state)
{
    (void)state;
    need_mpirun();
    static const struct {
        damage kind;
        const char *on_bad;
    } cases[] = {{CUT, "mask"}, {SCRIBBLED, "replace"}};
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        training t = {.shard = "train-00001",
                      .another = "train-00000",
                      .eval_every = "0",
                      .max_bad = "100000",
                      .on_bad = cases[i].on_bad};
        run_training(&t, cases[i].kind);
        support_assert_status(&t.result, 0);
        training_free(&t);
    }
}

/* What is learned from is whole, what is judged by is not. */
static void test_evaluations(void **state)
{
    (void)state;
    need_mpirun();
    training t = {
        .shard = "val-00000", .another = "train-00000", .eval_every = "3", .max_bad = "0", .on_bad = "replace"};
    run_training(&t, SCRIBBLED);
    assert_names_a_hit(&t, 0);
    training_free(&t);
}

/* ---- how many a trainer passes over ------------------------------------------------------------------------------ */

/* How many samples a rank of two passes over in the run's epochs, each counted once; all of them are hit. */
static uint64_t bad_met(const mr_dataset *ds, unsigned rank, const training *t, uint64_t first)
{
    /* A crop that does not touch what is hit is whole: as the trainer, so the same crops. */
    mr_loader_options o = {
        .split = "train",
        .global_batch = 8,
        .rank = rank,
        .world = 2,
        .seed = 42,
        .tail = MR_TAIL_PARTIAL,
        .on_bad = MR_ON_BAD_MASK,
        .epochs = strtoul(t->epochs, NULL, 10),
        .deliver = MR_DELIVER_F32_NCHW,
        .transform = {.kind = MR_TRANSFORM_TRAIN, .size = 24, .scale_min = 0.05f, .scale_max = 1},
    };
    mr_loader *loader = open_loader(ds, &o);
    const mr_batch *b;
    uint64_t met = 0;
    bool known[DAMAGE_MAX] = {false};
    for (; mr_loader_next(loader, &b, NULL) == MR_OK; mr_batch_release(loader, b)) {
        for (uint64_t i = 0; i < b->count; i++) {
            uint64_t n = b->samples[i].sample;
            if (b->samples[i].weight > 0)
                continue;
            assert_true(n >= first && n - first < DAMAGE_MAX && t->hit[n - first]);
            met += !known[n - first];
            known[n - first] = true;
        }
    }
    mr_loader_free(loader);
    return met;
}

/* With as many allowed as a rank meets the run is whole; with one less it ends, and names the one too many. */
static void test_trainers_count(void **state)
{
    (void)state;
    need_mpirun();
    training t = {
        .shard = "train-00001", .another = "train-00000", .eval_every = "0", .dir = make_shards(), .epochs = "8"};
    TRAIN_PATH(data, t.dir, "data");
    damage_do(OVERWRITTEN, data, t.shard, t.another, t.hit);
    mr_dataset *ds = open_dataset_at(data);
    uint64_t one = bad_met(ds, 0, &t, 45), other = bad_met(ds, 1, &t, 45), met = one > other ? one : other;
    mr_dataset_free(ds);
    assert_true(met >= 2);
    for (unsigned i = 0; i < 4; i++) {
        char allowed[16];
        snprintf(allowed, sizeof allowed, "%llu", (unsigned long long)met - i % 2);
        t.max_bad = allowed;
        t.on_bad = i < 2 ? "mask" : "replace";
        train(&t);
        if (i % 2)
            assert_names_a_hit(&t, 45);
        else
            support_assert_status(&t.result, 0);
        if (i % 2)
            assert_true(strstr(t.result.err, "bad samples allowed") || strstr(t.result.out, "bad samples allowed"));
        support_result_free(&t.result);
    }
    support_tmpdir_remove(t.dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trainers),
        cmocka_unit_test(test_trainers_pass_over),
        cmocka_unit_test(test_evaluations),
        cmocka_unit_test(test_trainers_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
