/* test_crashes.c - SIGKILL at any moment of what writes: at the n-th call, and by the clock.
 * Invariant tested: what is there is absent, old or new to the byte; the next run succeeds and sweeps what was left;
 * nothing stays in TMPDIR or in /dev/shm.
 *
 * MILLRACE_KILLS: how many moments of each scene (scripts/crashes: 200). */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "checkpoint.h"
#include "support_faults.h"

typedef struct scene {
    const char *name, *prepare, *command, *again;
    unsigned ranks;
    bool model;                     /* "out" holds checkpoints, else a dataset */
} scene;

#define CUT " --quiet --jobs 2 --shard-size 20KiB"
#define FORCE "ingest ../source out --force" CUT
#define TRAIN "train ../data --batch 8 --threads 1 --eval-every 1 --keep 2 --quiet --output out"
#define VIT " --model vit --image-size 24 --patch 8 --hidden 16 --layers 1 --heads 2 --mlp 32 --steps 4"

static const scene scenes[] = {
    {"ingest", ":", "ingest ../source out" CUT, FORCE, 0, false},
    {"ingest-archive", ":", "ingest ../source.tar.gz out" CUT, "ingest ../source.tar.gz out --force" CUT, 0, false},
    {"ingest-force", "cp -r ../older out", FORCE, FORCE, 0, false},
    {"ingest-3-ranks", ":", "ingest ../source out" CUT, FORCE, 3, false},
    {"force-3-ranks", "cp -r ../older out", FORCE, FORCE, 3, false},
    {"reindex", "cp -r ../whole out && rm out/*.idx", "reindex out", "reindex out", 0, false},
    {"checkpoint", ":", TRAIN VIT, NULL, 0, true},
    {"checkpoint-next", "cp -r ../model out", TRAIN " --resume", TRAIN " --resume", 0, true},
};

static struct {
    char *base, *run;
    unsigned long kills, killed;
    mr_random chance;
} t;

/* Windows of shared memory have no name, so that nothing can be left of them. */
static void expect_no_shared_memory(void)
{
    DIR *dir = opendir("/dev/shm");
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (strstr(e->d_name, "millrace"))
            fail_msg("/dev/shm/%s was left", e->d_name);
    if (dir)
        closedir(dir);
}

static int set_up(void **state)
{
    (void)state;
    const char *kills = getenv("MILLRACE_KILLS");
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    t.kills = kills ? strtoul(kills, NULL, 10) : 3;
    t.chance = support_random();
    t.base = support_tmpdir();
    t.run = support_path("%s/run", t.base);
    char *made = support_path(
        "set -e; m=%s; $m sample source --layout imagenette --images 12 --size 32:40 --quiet; "
        "$m sample elder --layout imagenette --images 11 --seed 2 --size 32:40 --quiet; tar -czf source.tar.gz source; "
        "$m ingest source whole" CUT "; $m ingest source data --quiet; $m ingest elder older --quiet; "
        "mkdir run; cd run; $m " TRAIN VIT " --stop-after 1; mv out ../model", support_millrace_path());
    support_shell(t.base, made);
    free(made);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(t.run);
    support_tmpdir_remove(t.base);
    return 0;
}

static void fresh(const scene *s)
{
    char *command = support_path("rm -rf run run.tmp && mkdir run && cd run && %s", s->prepare);
    support_shell(t.base, command);
    free(command);
}

/* Of every file but the report, which names the kind of source; 0: absent. */
static uint64_t hash_of(const char *name)
{
    char *dir = support_path("%s/%s", t.base, name), *report = support_path("%s/report.json", dir);
    unlink(report);
    uint64_t hash = support_exists(dir) ? support_tree_hash(dir) : 0;
    free(report);
    free(dir);
    return hash;
}

/* reindex: each index is lost or whole. */
static bool lost_or_whole(void)
{
    char *list = support_list(t.run), *rest = list, *name;
    bool good = true;
    while (good && (name = strsep(&rest, "\n")))
        if (*name && !strstr(name, ".tmp") && !strstr(name, "report.json")) {
            char *mine = support_path("%s/%s", t.run, name);
            char *theirs = support_path("%s/whole%s", t.base, strchr(name, '/'));
            size_t a, b;
            uint8_t *x = support_read(mine, &a), *y = support_read(theirs, &b);
            good = a == b && memcmp(x, y, a) == 0;
            free(x);
            free(y);
            free(mine);
            free(theirs);
        }
    free(list);
    return good;
}

/* The newest checkpoint's update; 0: none is there.  What is there is whole. */
static uint64_t newest_update(const char *when)
{
    char *out = support_path("%s/out", t.run);
    mr_checkpoint c = {0};
    mr_error err = {0};
    mr_status status = support_exists(out) ? mr_checkpoint_read(out, false, true, &c, NULL, &err) : MR_MISUSE;
    uint64_t update = status == MR_OK ? c.update : 0;
    if (status != MR_OK && status != MR_MISUSE)
        fail_msg("%s: %s", when, err.text);
    mr_checkpoint_release(&c);
    free(out);
    return update;
}

static void check_what_is_there(const scene *s, uint64_t before, uint64_t after, const char *when)
{
    bool index = strcmp(s->name, "reindex") == 0;
    if (s->model) {
        if (newest_update(when) < (strcmp(s->prepare, ":") == 0 ? 0 : 1))
            fail_msg("%s %s: the older checkpoint is lost", s->name, when);
        return;
    }
    uint64_t hash = index ? 0 : hash_of("run/out");
    if (index ? !lost_or_whole() : hash != before && hash != after)
        fail_msg("%s %s: what is there is neither absent, old nor new", s->name, when);
}

static void run_again(const scene *s, uint64_t after, const char *when)
{
    bool there = hash_of("run/out") != 0;
    const char *words = s->model ? newest_update(when) ? TRAIN " --resume" : TRAIN VIT : there ? s->again : s->command;
    support_result r = faulty_run(&(faulty){.directory = t.run}, words);
    if (r.status != 0)
        fail_msg("%s %s: the next run fails: %s", s->name, when, r.err);
    support_result_free(&r);
    char *list = support_list(t.run);
    if (faulty_stray(list))
        fail_msg("%s %s: the next run leaves '%s': %s", s->name, when, faulty_stray(list), list);
    free(list);
    if (s->model ? newest_update(when) != 4 : hash_of("run/out") != after)
        fail_msg("%s %s: the next run does not end as it should", s->name, when);
}

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

/* Half of the moments are calls, of all classes; the others are times. */
static void kill_once(const scene *s, unsigned long i, const unsigned long calls[3], double seconds, char when[64])
{
    static const char *const classes[] = {"disk", "open", "close"};
    size_t class = i % 4 < 2 ? 0 : i % 4 - 1;
    faulty f = {.directory = t.run, .libraries = !faulty_sanitized(), .ranks = s->ranks};
    if (i % 2 && class == 0) {
        f.delay = mr_random_real(&t.chance, 0, seconds);
        snprintf(when, 64, "killed after %.4f s", f.delay);
    } else {
        snprintf(when, 64, "%s:%lu:kill", classes[class], 1 + (unsigned long)mr_random_below(&t.chance, calls[class]));
        f.fault = when;
    }
    support_result r = faulty_run(&f, s->command);
    t.killed += r.status != 0;
    support_result_free(&r);
    while (waitpid(-1, NULL, 0) > 0)        /* children of what was killed are ours: a zombie's number still is one */
        ;
}

static void try_scene(const scene *s)
{
    char when[64];
    fresh(s);
    uint64_t before = hash_of("run/out");
    double start = now();
    support_result r = faulty_run(&(faulty){.directory = t.run, .libraries = !faulty_sanitized(), .ranks = s->ranks},
                                  s->command);
    double seconds = now() - start;
    support_assert_status(&r, 0);
    support_result_free(&r);
    uint64_t after = hash_of("run/out");
    const unsigned long calls[] = {faulty_calls(t.run, "disk"), faulty_calls(t.run, "open"),
                                   faulty_calls(t.run, "close")};
    unsigned long killed = t.killed;
    for (unsigned long i = 0; i < t.kills; i++) {
        fresh(s);
        kill_once(s, i, calls, seconds, when);
        expect_no_shared_memory();
        check_what_is_there(s, before, after, when);
        run_again(s, after, when);
    }
    print_message("%-16s %lu moments, %lu of them before the end: absent, old or new, and well again\n", s->name,
                  t.kills, t.killed - killed);
}

static void test_kills(void **state)
{
    (void)state;
    const char *only = getenv("MILLRACE_KILLS_SCENE");
    bool ranks = system("command -v mpirun >/dev/null 2>&1") == 0 && !faulty_sanitized();
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++)
        if ((!only || strcmp(only, scenes[i].name) == 0) && (ranks || !scenes[i].ranks))
            try_scene(&scenes[i]);
    assert_true(t.killed > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kills)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
