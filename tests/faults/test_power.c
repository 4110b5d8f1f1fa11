/* test_power.c - datasets and checkpoints after a power loss at any moment, by the model of support/power.h.
 * Invariants tested: what exit 0 or a log promised is there; a dataset is absent, old or new to the byte, and each
 * checkpoint is that of a run without a loss; the next run succeeds and sweeps; bytes are on disk before their name,
 * the name before exit 0.
 *
 * MILLRACE_IMAGES: how many images each test makes (scripts/crashes: 200). */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/faults/faults.h"
#include "tests/support/faults.h"
#include "tests/support/power.h"
#include "tests/support/training/steps.h"

static struct {
    char *base, *log, *run, *image;
    unsigned long images;
    mr_random chance;
} t;

static int set_up(void **state)
{
    (void)state;
    const char *images = getenv("MILLRACE_IMAGES");
    t.images = images ? strtoul(images, NULL, 10) : 12;
    t.chance = support_random();
    t.base = support_tmpdir();
    t.log = support_path("%s/log", t.base);
    t.run = support_path("%s/run", t.base);
    t.image = support_path("%s/image", t.base);
    mkdir(t.run, 0777);
    char *made = support_path(
        "set -e; m=%s; $m sample elder --layout imagenette --images 11 --seed 2 --size 32:40 --quiet; "
        "$m sample newer --layout imagenette --images 12 --size 32:40 --quiet; $m ingest newer data --quiet",
        support_millrace_path());
    support_shell(t.base, made);
    free(made);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(t.log);
    free(t.run);
    free(t.image);
    support_tmpdir_remove(t.base);
    return 0;
}

/* Logged, and acknowledged when it ends with 0. */
static void run_logged(unsigned ranks, const char *words)
{
    faulty f = {.directory = t.run, .log = t.log, .libraries = true, .ranks = ranks};
    support_result r = faulty_run(&f, words);
    support_assert_status(&r, 0);
    support_result_free(&r);
    power_acknowledge(t.log);
}

/* An owner's file that lost its bytes may be of another host's process: it would be watched for 15 s. */
static void run_in_image(const char *words, size_t moment)
{
    char *command = support_path("LD_PRELOAD=" MILLRACE_TEST_NAPS " %s %s", support_millrace_path(), words);
    const char *argv[] = {"sh", "-c", command, NULL};
    support_result r = support_run(argv, &(support_limits){.directory = t.image});
    if (r.status != 0)
        fail_msg("moment %zu: '%s' on what was left fails: %s", moment, words, r.err);
    support_result_free(&r);
    free(command);
}

static void expect_no_stray(size_t moment)
{
    char *list = support_list(t.image);
    if (faulty_stray(list))
        fail_msg("moment %zu: the next run leaves '%s': %s", moment, faulty_stray(list), list);
    free(list);
}

static void check_order(const power *p)
{
    size_t published;
    char *wrong = power_disorder(p, &published);
    if (wrong)
        fail_msg("%s", wrong);
    assert_true(published > 0);
    print_message("%zu changes of the disk, %zu of them publish a name, all in order\n", power_moments(p) - 1,
                  published);
}

static uint64_t hash_of(const char *base, const char *name)
{
    char *path = support_path("%s/%s", base, name);
    uint64_t hash = faulty_hash(path);
    free(path);
    return hash;
}

static void each_image(const power *p, void (*check)(const power *p, size_t moment))
{
    for (unsigned long i = 0; i < t.images; i++) {
        /* Half of them at the end of something, where most has been promised and least is sure. */
        size_t moment = 1 + mr_random_below(&t.chance, power_moments(p) - 1);
        if (i % 4 == 0)
            while (power_acknowledged(p, moment) == power_acknowledged(p, moment - 1) && moment + 1 < power_moments(p))
                moment++;
        support_shell(t.base, "rm -rf image");
        power_image(p, moment, &t.chance, t.image);
        check(p, moment);
    }
    print_message("%lu images, none lost, none mixed\n", t.images);
}

/* ---- datasets --------------------------------------------------------------------------------------------------- */

static uint64_t hashes[4]; /* after this many acknowledgements; [0] absent */

static void check_dataset(const power *p, size_t moment)
{
    unsigned done = power_acknowledged(p, moment);
    uint64_t hash = hash_of(t.image, "a/out");
    bool good = hash == hashes[done] || (done + 1 < 4 && hash == hashes[done + 1]);
    if (!good)
        fail_msg("moment %zu, %u acknowledged: the dataset is %s", moment, done, hash ? "neither old nor new" : "lost");
    run_in_image("ingest ../newer a/out --quiet --force --shard-size 20KiB", moment);
    assert_true(hash_of(t.image, "a/out") == hashes[2]);
    expect_no_stray(moment);
}

static void dataset_of(unsigned ranks)
{
    run_logged(ranks, "ingest ../elder a/out --quiet --jobs 2");
    hashes[1] = hash_of(t.run, "a/out");
    run_logged(ranks, "ingest ../newer a/out --quiet --jobs 2 --force --shard-size 20KiB");
    hashes[2] = hash_of(t.run, "a/out");
    power *p = power_load(t.log, t.run);
    hashes[3] = hashes[2];
    assert_int_equal(power_acknowledged(p, power_moments(p) - 1), 2);
    check_order(p);
    each_image(p, check_dataset);
    power_free(p);
}

static void test_ingest(void **state)
{
    (void)state;
    dataset_of(0);
}

/* The same log as of a program that never syncs: the model must have seen that. */
static void test_missing_syncs_are_seen(void **state)
{
    (void)state;
    run_logged(0, "ingest ../newer a/out --quiet --jobs 2");
    size_t len, kept = 0, published, lost = 0;
    uint8_t *log = support_read(t.log, &len);
    for (size_t at = 0; at < len;) {
        log_record r;
        memcpy(&r, log + at, sizeof r);
        if (r.kind != LOG_SYNC) {
            memmove(log + kept, log + at, sizeof r + r.len);
            kept += sizeof r + r.len;
        }
        at += sizeof r + r.len;
    }
    support_write(t.log, log, kept);
    power *p = power_load(t.log, t.run);
    char *wrong = power_disorder(p, &published);
    assert_non_null(wrong);
    for (int i = 0; i < 40; i++) {
        support_shell(t.base, "rm -rf image");
        power_image(p, power_moments(p) - 1, &t.chance, t.image);
        lost += hash_of(t.image, "a/out") != hash_of(t.run, "a/out");
    }
    assert_true(lost > 10);
    print_message("%s; %zu of 40 images lost or mixed\n", wrong, lost);
    power_free(p);
    free(wrong);
    free(log);
}

static void test_ingest_by_three_ranks(void **state)
{
    (void)state;
    dataset_of(3);
}

/* The index is lost by a logged `rm`: gone or there again, nothing between, and there once reindex has said so. */
static void check_reindex(const power *p, size_t moment)
{
    unsigned done = power_acknowledged(p, moment);
    support_shell(t.image, "rm -f out/*.idx.tmp"); /* an unfinished one is nobody's index */
    uint64_t hash = hash_of(t.image, "out");
    if (done >= 1 && hash != hashes[1] && (done == 3 || hash != hashes[2]))
        fail_msg("moment %zu, %u acknowledged: the dataset is not whole", moment, done);
    if (done >= 1)
        run_in_image("reindex out --quiet", moment);
    else
        run_in_image("ingest ../newer out --force --quiet", moment);
    assert_true(hash_of(t.image, "out") == hashes[1]);
    expect_no_stray(moment);
}

static void test_reindex(void **state)
{
    (void)state;
    run_logged(0, "ingest ../newer out --quiet");
    hashes[1] = hash_of(t.run, "out");
    char *slash = support_path("%s", support_millrace_path());
    *strrchr(slash, '/') = '\0';
    char *lose =
        support_path("MILLRACE_FAULT_LOG=%s LD_PRELOAD=%s/millrace_faults.so rm out/train-00000.idx", t.log, slash);
    support_shell(t.run, lose);
    power_acknowledge(t.log);
    hashes[2] = hash_of(t.run, "out");
    run_logged(0, "reindex out --quiet");
    power *p = power_load(t.log, t.run);
    check_order(p);
    each_image(p, check_reindex);
    power_free(p);
    free(lose);
    free(slash);
}

/* ---- exports ---------------------------------------------------------------------------------------------------- */

/* What is left has the times at which this test wrote it, and an export's list is the last of its files. */
static void set_time_of_list(void)
{
    char *list = support_path("%s/out/.millrace-export", t.image);
    struct timespec later[2] = {{4000000000, 0}, {4000000000, 0}};
    if (utimensat(AT_FDCWD, list, later, 0) != 0)
        assert_false(hash_of(t.image, "out"));
    free(list);
}

static void check_export(const power *p, size_t moment)
{
    uint64_t folder = hash_of(t.image, "out");
    uint64_t tar = hash_of(t.image, "out.tar");
    unsigned done = power_acknowledged(p, moment);
    if (folder ? folder != hash_of(t.run, "out") : done >= 1)
        fail_msg("moment %zu: the exported folder is not whole", moment);
    if (tar ? tar != hash_of(t.run, "out.tar") : done >= 2)
        fail_msg("moment %zu: the exported tar is not whole", moment);
    set_time_of_list();
    run_in_image("export ../data out --force --quiet", moment);
    assert_true(hash_of(t.image, "out") == hash_of(t.run, "out"));
}

static void test_exports(void **state)
{
    (void)state;
    run_logged(0, "export ../data out --quiet");
    run_logged(0, "export ../data out.tar --to tar --quiet");
    power *p = power_load(t.log, t.run);
    check_order(p);
    each_image(p, check_export);
    power_free(p);
}

/* ---- checkpoints ------------------------------------------------------------------------------------------------ */

#define TRAIN "train ../data --batch 8 --threads 1 --eval-every 1 --keep 2 --quiet --log b/log --output b/out"
#define VIT   " --model vit --image-size 24 --patch 8 --hidden 16 --layers 1 --heads 2 --mlp 32 --steps 5"

static unsigned long promises; /* images whose log tells of a checkpoint that no exit 0 did */

static uint64_t newest_checkpoint(size_t moment)
{
    char *out = support_path("%s/b/out", t.image), *whole = support_path("%s/whole/b/out", t.base), why[STEPS_WHY];
    uint64_t newest;
    if (!steps_good(out, whole, &newest, why))
        fail_msg("moment %zu: %s", moment, why);
    free(whole);
    free(out);
    return newest;
}

static void check_checkpoint(const power *p, size_t moment)
{
    uint64_t done = 2 * power_acknowledged(p, moment), newest = newest_checkpoint(moment);
    char *log = support_path("%s/b/log", t.image);
    uint64_t promised = steps_promised(log);
    if (newest < done || newest < promised)
        fail_msg("moment %zu: update %llu, but exit 0 promised %llu and the log %llu", moment,
                 (unsigned long long)newest, (unsigned long long)done, (unsigned long long)promised);
    promises += promised > done;
    run_in_image(newest ? TRAIN " --resume" : TRAIN VIT, moment);
    assert_int_equal(newest_checkpoint(moment), 5);
    expect_no_stray(moment);
    free(log);
}

static void test_checkpoints(void **state)
{
    (void)state;
    char *made = support_path("mkdir whole && cd whole && %s " TRAIN VIT " --keep 0", support_millrace_path());
    support_shell(t.base, made);
    run_logged(0, TRAIN VIT " --stop-after 2");
    run_logged(0, TRAIN " --resume --stop-after 2");
    power *p = power_load(t.log, t.run);
    check_order(p);
    each_image(p, check_checkpoint);
    print_message("%lu logs of them promised more than exit 0 had\n", promises);
    power_free(p);
    free(made);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_ingest),
        TEST(test_missing_syncs_are_seen),
        TEST(test_ingest_by_three_ranks),
        TEST(test_reindex),
        TEST(test_exports),
        TEST(test_checkpoints),
    };
    if (faulty_sanitized()) {
        print_message("skipped: LD_PRELOAD does not go together with sanitizers\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
