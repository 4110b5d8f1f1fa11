/* test_crashes.c - SIGKILL at any moment of what writes: at the n-th call, and by the clock.
 * Invariant tested: what is there is absent, old or new to the byte, and no checkpoint is lost that a log promised; the
 * next run ends with the same bytes and sweeps what was left; nothing stays in TMPDIR or in /dev/shm.
 *
 * MILLRACE_KILLS: how many moments of each scene (scripts/crashes: 200). */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/faults.h"
#include "tests/support/remote/server.h"
#include "tests/support/training/steps.h"

typedef enum product { WHOLE, PARTS, MODEL } product;

typedef struct scene {
    const char *name, *prepare, *command, *again; /* "s3://": from the server of this test */
    const char *target;                           /* the file or folder that it writes */
    unsigned ranks;
    product kind; /* of the target; PARTS: each file of it is lost or whole; MODEL: checkpoints */
} scene;

#define CUT     " --quiet --jobs 2 --shard-size 20KiB"
#define FORCE   "ingest ../source out --force" CUT
#define ARCHIVE "ingest ../source.tar.gz out" CUT
#define EXPORT  "export ../data out --quiet"
#define TAR     "export ../data out.tar --to tar --quiet"
#define IMAGE   "show ../data train 0 --image out.jpg"
#define WORDS   "tokenizer ../pairs --text-column image_description --size 300 --quiet --output "
#define PULL    "pull s3://bucket/whole out --quiet"
#define AFAR    "export s3://bucket/whole out --quiet"
#define EMBED   "predict ../pairs ../words --threads 1 --embeddings out.npz"
#define TRAIN   "train ../data --batch 8 --threads 1 --eval-every 1 --keep 2 --quiet --log log --output out"
#define VIT     " --model vit --image-size 24 --patch 8 --hidden 16 --layers 1 --heads 2 --mlp 32 --steps 4"
#define PAIRS                                                                                                          \
    "train ../pairs --model bridgetower --tokenizer ../tok.json --image-size 32 --patch 16 --hidden 64 "               \
    "--layers 2 --heads 1 --mlp 64 --cross-layers 1 --embed 16 --max-text 16 --batch 8 --steps 1 --quiet --output out"

static const scene scenes[] = {
    {"ingest", ":", "ingest ../source out" CUT, FORCE, "out", 0, WHOLE},
    {"ingest-archive", ":", ARCHIVE, ARCHIVE " --force", "out", 0, WHOLE},
    {"ingest-force", "cp -r ../older out", FORCE, FORCE, "out", 0, WHOLE},
    {"ingest-3-ranks", ":", "ingest ../source out" CUT, FORCE, "out", 3, WHOLE},
    {"force-3-ranks", "cp -r ../older out", FORCE, FORCE, "out", 3, WHOLE},
    {"dry-run", ":", "ingest ../source.tar.gz out --dry-run", "", NULL, 0, WHOLE},
    {"reindex", "cp -r ../whole out && rm out/*.idx", "reindex out", "reindex out", "out", 0, PARTS},
    {"seek", "cp -r ../whole out && rm out/*.seek", "seek out", "seek out", "out", 0, PARTS},
    {"export", ":", EXPORT, EXPORT " --force", "out", 0, WHOLE},
    {"export-tar", ":", TAR, TAR " --force", "out.tar", 0, WHOLE},
    {"show", ":", IMAGE, IMAGE " --force", "out.jpg", 0, WHOLE},
    {"tokenizer", ":", WORDS "out.json", WORDS "out.json --force", "out.json", 0, WHOLE},
    {"embeddings", ":", EMBED, EMBED, "out.npz", 0, WHOLE},
    {"pull", "rm -rf ../cache", PULL, "verify out --quiet", "out", 0, WHOLE},
    {"export-remote", "rm -rf ../cache", AFAR, AFAR " --force", "out", 0, WHOLE},
    {"checkpoint", ":", TRAIN VIT, NULL, "out", 0, MODEL},
    {"checkpoint-next", "cp -r ../model out", TRAIN " --resume", NULL, "out", 0, MODEL},
    {"train-2-ranks", ":", TRAIN VIT, NULL, "out", 2, MODEL},
};

static struct {
    char *base, *run, *whole;
    unsigned long kills, killed, promised;
    mr_random chance;
} t;

/* ---- shared memory ---------------------------------------------------------------------------------------------- */

/* "/NAME/NAME/" of the files of ours in /dev/shm, where other programs come and go, too; OpenMPI has its own elsewhere
 * (support/faults.h). */
static char *shared_memory(void)
{
    char *names = support_path("/");
    DIR *dir = opendir("/dev/shm");
    for (struct dirent *e; dir && (e = readdir(dir));) {
        struct stat st;
        if (!strstr(e->d_name, "millrace") || fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(st.st_mode) || st.st_uid != geteuid())
            continue;
        char *more = support_path("%s%s/", names, e->d_name);
        free(names);
        names = more;
    }
    if (dir)
        closedir(dir);
    return names;
}

/* Whether some process has it open or mapped: then it is not what a killed one left. */
static bool is_held(const char *name)
{
    char *command = support_path("grep -qsF '/dev/shm/%s' /proc/[0-9]*/maps || "
                                 "ls -l /proc/[0-9]*/fd 2>/dev/null | grep -qF '/dev/shm/%s'",
                                 name, name);
    bool held = system(command) == 0;
    free(command);
    return held;
}

/* Windows of shared memory have no name, so that nothing can be left of them. */
static void expect_no_more_shared_memory(const char *before, const char *when)
{
    char *names = shared_memory(), *rest = names, *name;
    while ((name = strsep(&rest, "/"))) {
        char *entry = support_path("/%s/", name), *path = support_path("/dev/shm/%s", name);
        if (*name && !strstr(before, entry) && !is_held(name) && support_exists(path))
            fail_msg("%s: %s was left", when, path);
        free(entry);
        free(path);
    }
    free(names);
}

/* ---- scenes ----------------------------------------------------------------------------------------------------- */

static int set_up(void **state)
{
    (void)state;
    const char *kills = getenv("MILLRACE_KILLS");
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    t.kills = kills ? strtoul(kills, NULL, 10) : 3;
    t.chance = support_random();
    t.base = support_tmpdir();
    t.run = support_path("%s/run", t.base);
    t.whole = support_path("%s/steps", t.base);
    char *made = support_path(
        "set -e; m=%s; $m sample source --layout imagenette --images 12 --size 32:40 --quiet; "
        "$m sample elder --layout imagenette --images 11 --seed 2 --size 32:40 --quiet; tar -czf source.tar.gz source; "
        "$m ingest source whole" CUT "; $m ingest source data --quiet; $m ingest elder older --quiet; "
        "$m sample cartoons --layout newyorker --simple --images 10 --size 32 --quiet; "
        "$m ingest cartoons pairs --quiet; mkdir run; cd run; $m " WORDS "../tok.json; "
        "$m " TRAIN VIT " --stop-after 1; mv out ../model; $m " PAIRS "; mv out ../words",
        support_millrace_path());
    support_shell(t.base, made);
    free(made);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(t.run);
    free(t.whole);
    support_tmpdir_remove(t.base);
    return 0;
}

static void fresh(const scene *s)
{
    char *command = support_path("rm -rf run run.tmp && mkdir run && cd run && %s", s->prepare);
    support_shell(t.base, command);
    free(command);
}

/* The hash of the target, or its newest update, after a look at every checkpoint; 0: absent. */
static uint64_t target_is(const scene *s, const char *when)
{
    char why[STEPS_WHY], *path = support_path("%s/%s", t.run, s->target ? s->target : "nothing");
    uint64_t is = 0;
    if (s->kind != MODEL)
        is = faulty_hash(path);
    else if (!steps_good(path, t.whole, &is, why))
        fail_msg("%s %s: %s", s->name, when, why);
    free(path);
    return is;
}

static bool lost_or_whole(void)
{
    char *list = support_list(t.run), *rest = list, *name;
    bool good = true;
    while (good && (name = strsep(&rest, "\n")))
        if (*name && !strstr(name, ".tmp") && !strstr(name, "report.json")) {
            char *mine = support_path("%s/%s", t.run, name);
            char *theirs = support_path("%s/whole%s", t.base, strchr(name, '/'));
            good = faulty_hash(mine) == faulty_hash(theirs);
            free(mine);
            free(theirs);
        }
    free(list);
    return good;
}

static void check_what_is_there(const scene *s, uint64_t before, uint64_t after, const char *when)
{
    uint64_t is = target_is(s, when);
    char *log = support_path("%s/log", t.run);
    uint64_t promised = s->kind == MODEL ? steps_promised(log) : 0;
    if (s->kind == MODEL ? is < before || is < promised : s->kind == WHOLE && is != before && is != after)
        fail_msg("%s %s: the target is neither absent, old nor new, or a promised checkpoint is lost", s->name, when);
    if (s->kind == PARTS && !lost_or_whole())
        fail_msg("%s %s: a file is neither lost nor whole", s->name, when);
    t.promised += promised > 0;
    free(log);
}

static void run_again(const scene *s, uint64_t after, const char *when)
{
    bool model = s->kind == MODEL, there = target_is(s, when) != 0;
    const char *words = model ? there ? TRAIN " --resume" : TRAIN VIT : there ? s->again : s->command;
    support_result r = faulty_run(&(faulty){.directory = t.run, .ranks = model ? s->ranks : 0}, words);
    if (r.status != 0)
        fail_msg("%s %s: the next run fails: %s", s->name, when, r.err);
    support_result_free(&r);
    char *list = support_list(t.run);
    if (faulty_stray(list))
        fail_msg("%s %s: the next run leaves '%s': %s", s->name, when, faulty_stray(list), list);
    free(list);
    if (target_is(s, when) != after)
        fail_msg("%s %s: the next run does not end as it should", s->name, when);
}

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static bool is_remote(const scene *s)
{
    return strstr(s->command, "s3://");
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
    bool killed = r.signal == SIGKILL || r.status == 128 + SIGKILL;
    if (!killed && r.status != 0)
        fail_msg("%s %s: exit %d, signal %d: %s", s->name, when, r.status, r.signal, r.err);
    t.killed += killed;
    support_result_free(&r);
    /* Children of what was killed are ours: a zombie's number still is one. */
    while (!is_remote(s) && waitpid(-1, NULL, 0) > 0)
        ;
}

/* All checkpoints of a run that nothing interrupts, by as many ranks: other ranks, other bits. */
static void run_whole(const scene *s)
{
    support_shell(t.base, "rm -rf steps");
    fresh(s);
    support_result r =
        faulty_run(&(faulty){.directory = t.run, .ranks = s->ranks}, TRAIN VIT " --keep 0 --output ../steps");
    support_assert_status(&r, 0);
    support_result_free(&r);
}

static void try_scene(const scene *s)
{
    char when[64];
    if (s->kind == MODEL)
        run_whole(s);
    fresh(s);
    uint64_t before = target_is(s, "before");
    double start = now();
    support_result r =
        faulty_run(&(faulty){.directory = t.run, .libraries = !faulty_sanitized(), .ranks = s->ranks}, s->command);
    double seconds = now() - start;
    support_assert_status(&r, 0);
    support_result_free(&r);
    uint64_t after = target_is(s, "without a kill");
    const unsigned long calls[] = {faulty_calls("disk"), faulty_calls("open"), faulty_calls("close")};
    unsigned long killed = t.killed, promised = t.promised;
    for (unsigned long i = 0; i < t.kills; i++) {
        fresh(s);
        char *memory = shared_memory();
        kill_once(s, i, calls, seconds, when);
        expect_no_more_shared_memory(memory, when);
        free(memory);
        check_what_is_there(s, before, after, when);
        run_again(s, after, when);
    }
    print_message("%-16s %lu moments, %lu of them before the end: absent, old or new, and well again\n", s->name,
                  t.kills, t.killed - killed);
    if (5 * (t.killed - killed) < t.kills)
        fail_msg("%s: too few were killed before they ended", s->name);
    if (s->kind == MODEL && t.kills >= 50 && t.promised == promised)
        fail_msg("%s: no log promised a checkpoint", s->name);
}

/* The server runs for its scenes alone: others wait for every child of this process. */
static void try_remote_scene(const scene *s)
{
    support_server server;
    support_server_bucket(t.base, &server);
    if (server.port)
        try_scene(s);
    support_server_stop(&server);
}

static void test_kills(void **state)
{
    (void)state;
    const char *only = getenv("MILLRACE_KILLS_SCENE");
    bool ranks = system("command -v mpirun >/dev/null 2>&1") == 0 && !faulty_sanitized();
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++)
        if ((!only || strcmp(only, scenes[i].name) == 0) && (ranks || !scenes[i].ranks))
            (is_remote(&scenes[i]) ? try_remote_scene : try_scene)(&scenes[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kills)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
