/* test_faults.c - the n-th call fails: of every class, in every command that writes or trusts.
 * Invariant tested: no signal, exit 3 and the true cause or exit 0 and the full result; the target absent, old or new,
 * never between; the next run succeeds and leaves no stray name; with sanitizers: nothing leaks.
 *
 * ctest takes a few n of each class by chance; MILLRACE_FAULTS=all (scripts/faults) takes all of them, but only every
 * MILLRACE_FAULTS_STRIDE-th allocation. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint.h"
#include "support_archive.h"
#include "support_faults.h"

typedef enum product { NOTHING, DATASET, TREE, MODEL } product;

typedef struct scene {
    const char *name;
    const char *prepare;            /* shell, in the empty run folder */
    const char *command;
    const char *force;              /* what the rerun needs in addition if the target is there already */
    product kind;                   /* of "out" */
    bool says;                      /* standard output is always the same */
} scene;

#define CUT " --quiet --jobs 2 --shard-size 20KiB"
#define VIT " --model vit --image-size 24 --patch 8 --hidden 16 --layers 1 --heads 2 --mlp 32 --batch 8"
#define TRAIN " --threads 2 --eval-every 1 --quiet --output out"

static const scene scenes[] = {
    {"ingest", NULL, "ingest ../source out" CUT, " --force", DATASET, false},
    {"ingest-archive", NULL, "ingest ../source.tar.gz out" CUT, " --force", DATASET, false},
    {"ingest-zip", NULL, "ingest ../source.zip a/b/out --quiet --jobs 1", " --force", NOTHING, false},
    {"ingest-force", "cp -r ../older out", "ingest ../source out --force" CUT, "", DATASET, false},
    {"verify", NULL, "verify ../data --deep --decode --json", "", NOTHING, false},
    {"replay", NULL, "replay ../data --global-batch 4 --quiet --json", "", NOTHING, false},
    {"reindex", "cp -r ../data out && rm out/train-00000.idx", "reindex out", "", DATASET, false},
    {"seek", "cp -r ../data out && rm out/train-00000.seek", "seek out --threads 1", "", DATASET, false},
    {"export", NULL, "export ../data out --quiet", " --force", TREE, false},
    {"export-tar", NULL, "export ../data out.tar --to tar --quiet", " --force", NOTHING, false},
    {"inspect", NULL, "inspect ../data --json", "", NOTHING, true},
    {"train", NULL, "train ../data --steps 1" VIT TRAIN, "", MODEL, false},
    {"resume", "cp -r ../model out", "train ../data --resume --batch 8" TRAIN, "", MODEL, false},
    {"eval", NULL, "eval ../data ../model --threads 2 --json", "", NOTHING, false},
    {"predict", NULL, "predict ../data ../model --threads 2", "", NOTHING, true},
};

typedef struct fault_kind {
    const char *class, *how, *cause;        /* cause: one of these words, split by '|', is in the message */
    bool lasting;
} fault_kind;

static const fault_kind kinds[] = {
    {"memory", "ENOMEM", "memory|allocate|shared object", false},
    {"map", "ENOMEM", "memory", false},
    {"open", "EMFILE", "Too many open files|too many files open", false},
    {"read", "EIO", "Input/output error|failing disk", false},
    {"write", "ENOSPC", "No space left|no space left", false},
    {"write", "ENOSPC", "No space left|no space left", true},
    {"write", "short", "disk full|No space left", false},
    {"size", "ENOSPC", "No space left|no space left", false},
    {"sync", "EIO", "Input/output error", false},
    {"rename", "EIO", "Input/output error", false},
    {"make", "ENOSPC", "No space left", false},
    {"remove", "EIO", "Input/output error", false},
    {"close", "EIO", "Input/output error", false},
    {"thread", "EAGAIN", "Resource temporarily unavailable", false},
};

static struct {
    char *base, *run;
    bool all;
    unsigned long stride;
    mr_random chance;
    size_t tries, harmless, gave_up, failures;
} t;

static int set_up(void **state)
{
    (void)state;
    const char *want = getenv("MILLRACE_FAULTS"), *stride = getenv("MILLRACE_FAULTS_STRIDE");
    t.all = want && strcmp(want, "all") == 0;
    t.stride = stride ? strtoul(stride, NULL, 10) : 1;
    t.stride = t.stride ? t.stride : 1;
    t.chance = support_random();
    t.base = support_tmpdir();
    t.run = support_path("%s/run", t.base);
    char *millrace = support_path("%s", support_millrace_path()), *made = support_path(
        "set -e; m=%s; $m sample source --layout imagenette --images 12 --size 32:40 --quiet; "
        "$m sample elder --layout imagenette --images 11 --seed 2 --size 32:40 --quiet; "
        "$m ingest source data --quiet --shard-size 20KiB; $m ingest elder older --quiet; "
        "mkdir run; cd run; $m train ../data --steps 2 --stop-after 1" VIT TRAIN
        "; mv out ../model; cd ..; rmdir run; tar -czf source.tar.gz source",
        millrace);
    support_shell(t.base, made);
    char *zip = support_path("%s/source.zip", t.base), *source = support_path("%s/source", t.base);
    support_archive_tree(zip, "zip-deflate", source, false);
    free(zip);
    free(source);
    free(made);
    free(millrace);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    support_tmpdir_remove(t.base);
    free(t.run);
    return 0;
}

/* ---- one try ---------------------------------------------------------------------------------------------------- */

typedef struct expected {
    char *list;                     /* names in the run folder */
    char *out;                      /* standard output */
    uint64_t before, after;         /* of the target; before 0: absent */
} expected;

static void fresh(const scene *s)
{
    char *command = support_path("rm -rf run && mkdir run && cd run && %s", s->prepare ? s->prepare : ":");
    support_shell(t.base, command);
    free(command);
}

/* 0: absent. */
static uint64_t target_hash(const scene *s)
{
    char *out = support_path("%s/out", t.run), *report = support_path("%s/report.json", out);
    uint64_t hash = 0;
    if (support_exists(out))        /* the report goes when it is asked the first time */
        hash = s->kind != DATASET && s->kind != TREE ? 1
               : support_exists(report)              ? support_dataset_hash(out)
                                                     : support_tree_hash(out);
    free(report);
    free(out);
    return hash;
}

static void complain(const scene *s, const char *fault, bool libraries, const support_result *r, const char *what)
{
    t.failures++;
    print_error("FAULT %s%s, %s: %s (exit %d, signal %d%s)\n%.1500s\n", libraries ? "preload " : "", fault, s->name,
                what, r->status, r->signal, r->timed_out ? ", out of time" : "", r->err);
}

static bool names_cause(const char *text, const char *causes)
{
    char *copy = support_path("%s", causes), *rest = copy, *word;
    bool named = false;
    while ((word = strsep(&rest, "|")))
        named = named || strstr(text, word);
    free(copy);
    return named;
}

static const char *target_is_mixed(const scene *s, const expected *e)
{
    uint64_t hash = target_hash(s);
    return hash != e->before && hash != e->after ? "the target is neither absent, old nor new" : NULL;
}

/* Every checkpoint that can be seen reads back whole; the one that was there before still is. */
static const char *model_wrong(const scene *s, bool done)
{
    static char why[2048];
    char *out = support_path("%s/out", t.run), *found = NULL;
    mr_checkpoint c = {0};
    mr_error err;
    mr_status status = mr_checkpoint_read(out, false, true, &c, &found, &err);
    uint64_t least = done ? s->prepare ? 2 : 1 : s->prepare ? 1 : 0;
    bool none = status == MR_MISUSE || !support_exists(out);
    snprintf(why, sizeof why, "checkpoint: %s", status == MR_OK ? "an older one than was promised" : err.text);
    bool wrong = none ? least > 0 : status != MR_OK || c.update < least;
    mr_checkpoint_release(&c);
    free(found);
    free(out);
    return wrong ? why : NULL;
}

/* libarchive 3.6 ends the program, or loses its way, when memory that itself asks for is out: as if by a kill, and then
 * a temporary name of export may stay.  What is there must still be whole. */
static bool gave_up(const support_result *r)
{
    return faulty_was_of(t.run, "libarchive.so") && (r->signal || strstr(r->err, "libarchive: Out of memory"));
}

static const char *what_is_wrong(const scene *s, const fault_kind *k, const support_result *r, const expected *e)
{
    bool fired = faulty_fired(t.run);
    if (gave_up(r) && !r->timed_out)
        return s->kind == MODEL ? model_wrong(s, false) : target_is_mixed(s, e);
    if (r->timed_out || r->signal)
        return "ended by a signal or never";
    if (r->status != 0 && r->status != 3)
        return "the exit code blames the data or the user";
    if (r->status != 0 && !fired)
        return "failed without a fault";
    if (r->status != 0 && !strstr(r->err, "millrace: "))
        return "no message";
    if (r->status != 0 && !names_cause(r->err, k->cause))
        return "the message does not name the cause";
    if (r->status == 0 && s->says && strcmp(r->out, e->out) != 0)
        return "exit 0, but other words than without the fault";
    if (s->kind == MODEL)
        return model_wrong(s, r->status == 0);
    if (r->status == 0 && target_hash(s) != e->after)
        return "exit 0, but the target is not what it should be";
    return target_is_mixed(s, e);
}

static void run_again(const scene *s, const char *fault, bool libraries, const expected *e, bool may_leave)
{
    uint64_t hash = target_hash(s);
    char *nested = support_path("%s/a/b/out", t.run), *tar = support_path("%s/out.tar", t.run);
    bool there = hash || support_exists(nested) || support_exists(tar);
    char *command = support_path("%s%s", s->command, there ? s->force : "");
    if (s->kind == MODEL && hash && !s->prepare && !model_wrong(s, true))
        command[0] = '\0';          /* a finished run; another one goes to another place */
    support_result r = {0};
    if (*command)
        r = faulty_run(&(faulty){.directory = t.run}, command);
    char *list = support_list(t.run);
    if (r.status != 0)
        complain(s, fault, libraries, &r, "the run after it fails");
    else if (s->kind == MODEL ? faulty_stray(list) != NULL : !may_leave && strcmp(list, e->list) != 0)
        complain(s, fault, libraries, &(support_result){.err = list}, "the run after it leaves other names");
    else if (s->kind != MODEL && target_hash(s) != e->after)
        complain(s, fault, libraries, &r, "the run after it leaves other bytes");
    support_result_free(&r);
    free(list);
    free(command);
    free(nested);
    free(tar);
}

static void try(const scene *s, const fault_kind *k, unsigned long n, bool libraries, const expected *e)
{
    char *fault = support_path("%s:%lu%s:%s", k->class, n, k->lasting ? "+" : "", k->how);
    fresh(s);
    support_result r = faulty_run(&(faulty){.directory = t.run, .fault = fault, .libraries = libraries}, s->command);
    const char *wrong = what_is_wrong(s, k, &r, e);
    t.tries++;
    t.harmless += r.status == 0;
    bool may_leave = gave_up(&r);
    t.gave_up += may_leave;
    if (wrong)
        complain(s, fault, libraries, &r, wrong);
    run_again(s, fault, libraries, e, may_leave);
    support_result_free(&r);
    free(fault);
}

/* ---- all of them ------------------------------------------------------------------------------------------------ */

static void try_kind(const scene *s, const fault_kind *k, unsigned long calls, bool libraries, const expected *e)
{
    unsigned long step = strcmp(k->class, "memory") == 0 ? t.stride : 1;
    if (!t.all) {
        /* Half of the kinds where a run takes four times as long. */
        if (faulty_sanitized() && mr_random_below(&t.chance, 2))
            return;
        if (calls && (!libraries || strcmp(k->class, "memory") != 0))
            try(s, k, 1 + mr_random_below(&t.chance, calls), libraries, e);
        return;
    }
    for (unsigned long n = 1 + mr_random_below(&t.chance, step); n <= calls; n += step)
        try(s, k, n, libraries, e);
}

static void try_scene(const scene *s)
{
    expected e = {0};
    size_t tries = t.tries, harmless = t.harmless, failures = t.failures;
    for (int libraries = 0; libraries < (faulty_sanitized() ? 1 : 2); libraries++) {
        unsigned long calls[sizeof kinds / sizeof *kinds];
        fresh(s);
        e.before = target_hash(s);
        support_result r = faulty_run(&(faulty){.directory = t.run, .libraries = libraries}, s->command);
        support_assert_status(&r, 0);
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            calls[i] = faulty_calls(t.run, kinds[i].class);
        free(e.list);
        free(e.out);
        e.list = support_list(t.run);
        e.after = target_hash(s);
        e.out = r.out;
        r.out = NULL;
        support_result_free(&r);
        /* The libraries' calls are seen beside our own: only allocations are tried both ways. */
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            if (faulty_sanitized() || libraries || strcmp(kinds[i].class, "memory") == 0)
                try_kind(s, &kinds[i], calls[i], libraries, &e);
    }
    print_message("%-16s %6zu tried, %5zu harmless, %zu wrong\n", s->name, t.tries - tries, t.harmless - harmless,
                  t.failures - failures);
    free(e.list);
    free(e.out);
}

static void test_every_call_may_fail(void **state)
{
    (void)state;
    const char *only = getenv("MILLRACE_FAULTS_SCENE");
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++)
        if (!only || !*only || strcmp(only, scenes[i].name) == 0)
            try_scene(&scenes[i]);
    print_message("%zu faults, %zu of them harmless, %zu ended by libarchive, %zu wrong\n", t.tries, t.harmless,
                  t.gave_up, t.failures);
    assert_int_equal(t.failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_call_may_fail)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
