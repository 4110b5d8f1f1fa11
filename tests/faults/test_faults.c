/* test_faults.c - the n-th call fails: of every class, in every command that writes or trusts.
 * Invariant tested: no signal, exit 3 and the true cause or exit 0 and the full result; the target absent, old or new,
 * never between; the next run succeeds and leaves no stray name; with sanitizers: nothing leaks.
 *
 * ctest takes a few n of each class by chance; MILLRACE_FAULTS=all (scripts/faults) takes all of them, but only every
 * MILLRACE_FAULTS_STRIDE-th allocation, and of any other call that a command makes more than 1000 times. */
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/sources/archive.h"
#include "tests/support/faults.h"
#include "tests/support/remote/server.h"
#include "tests/support/sources/hub.h"
#include "tests/support/training/steps.h"

typedef struct scene {
    const char *name;
    const char *prepare; /* shell, in the empty run folder */
    const char *command;
    const char *force;  /* what the rerun needs in addition if the target is there already; NULL: there is none then */
    const char *target; /* the file or folder that it writes, NULL: none */
    bool model;         /* the target holds checkpoints */
} scene;

#define CUT   " --quiet --jobs 2 --shard-size 20KiB"
#define VIT   " --model vit --image-size 24 --patch 8 --hidden 16 --layers 1 --heads 2 --mlp 32 --batch 8"
#define TRAIN " --threads 2 --eval-every 1 --quiet --output out"
#define PAIRS                                                                                                          \
    " --model bridgetower --tokenizer ../tok.json --image-size 32 --patch 16 --hidden 64 --layers 2"                   \
    " --heads 1 --mlp 64 --cross-layers 1 --embed 16 --max-text 16 --dropout 0 --batch 8"
#define WORDS " --text-column image_description --size 300 --quiet"

/* The pictures of `source` with boxes, in three forms. */
#define BOXES                                                                                                          \
    "set -e; mkdir -p yolo/train/images yolo/train/labels voc/train createml/train; n=0; c='['; "                      \
    "for f in source/*/*/*/*.JPEG; do n=$((n + 1)); cp $f yolo/train/images/$n.jpg; cp $f voc/train/$n.jpg; "          \
    "cp $f createml/train/$n.jpg; printf '0 0.5 0.5 0.5 0.5\\n1 0 0 1 0 1 1\\n' >yolo/train/labels/$n.txt; "           \
    "echo '<annotation><object><name>a</name><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>9</xmax><ymax>9</ymax>"         \
    "</bndbox></object></annotation>' >voc/train/$n.xml; printf '%s{\"image\":\"%s.jpg\",\"annotations\":[{\"label\":" \
    "\"a\",\"coordinates\":{\"x\":5,\"y\":5,\"width\":4,\"height\":4}}]}' \"$c\" $n "                                  \
    ">>createml/train/_annotations.createml.json; c=,; done; printf ']' >>createml/train/_annotations.createml.json; " \
    "printf 'train: train/images\\nval: val.txt\\nnames: [a, b]\\n' >yolo/data.yaml; echo train/images/1.jpg "         \
    ">yolo/val.txt"

/* The same as a tar of class tars, and a flat val with its table. */
#define IMAGENET                                                                                                       \
    "set -e; mkdir classes flat; n=0; printf 'ImageId,PredictionString\\n' >flat/LOC_val_solution.csv; "               \
    "for d in source/*/train/*; do w=$(basename $d); tar -cf classes/$w.tar -C $d .; "                                 \
    "echo $w a word >>flat/LOC_synset_mapping.txt; done; tar -cf imagenet.tar -C classes .; "                          \
    "for f in source/*/val/*/*; do n=$((n + 1)); cp $f flat/ILSVRC2012_val_0000000$n.JPEG; "                           \
    "echo ILSVRC2012_val_0000000$n,$(basename $(dirname $f)) 1 2 9 9 >>flat/LOC_val_solution.csv; done"

static const scene scenes[] = {
    {"ingest", NULL, "ingest ../source out" CUT, " --force", "out", false},
    {"ingest-archive", NULL, "ingest ../source.tar.gz out" CUT, " --force", "out", false},
    {"ingest-zip", NULL, "ingest ../source.zip a/b/out --quiet --jobs 1", " --force", "a/b/out", false},
    {"ingest-force", "cp -r ../older out", "ingest ../source out --force" CUT, "", "out", false},
    {"ingest-coco", NULL, "ingest ../coco out" CUT, " --force", "out", false},
    {"ingest-yolo", NULL, "ingest ../yolo out" CUT, " --force", "out", false},
    {"ingest-voc", NULL, "ingest ../voc out" CUT, " --force", "out", false},
    {"ingest-createml", NULL, "ingest ../createml out" CUT, " --force", "out", false},
    {"ingest-ilsvrc", NULL, "ingest ../imagenet.tar ../flat out" CUT, " --force", "out", false},
    {"inspect-objects", NULL, "inspect ../boxes --objects --json", "", NULL, false},
    {"ingest-newyorker", NULL, "ingest ../cartoons out" CUT, " --force", "out", false},
    {"ingest-hub", NULL, "ingest ../hub out" CUT, " --force", "out", false},
    {"dry-run", NULL, "ingest ../source.tar.gz out --dry-run", "", NULL, false},
    {"verify", NULL, "verify ../data --deep --decode --json", "", NULL, false},
    {"replay", NULL, "replay ../data --global-batch 4 --quiet --json", "", NULL, false},
    {"replay-pixels", NULL, "replay ../data --global-batch 4 --size 16 --threads 2", "", NULL, false},
    {"reindex", "cp -r ../data out && rm out/train-00000.idx", "reindex out --quiet", "", "out", false},
    {"seek", "cp -r ../data out && rm out/train-00000.seek", "seek out --jobs 1 --quiet", "", "out", false},
    {"export", NULL, "export ../data out --quiet", " --force", "out", false},
    {"export-tar", NULL, "export ../data out.tar --to tar --quiet", " --force", "out.tar", false},
    {"export-tars", NULL, "export ../data out --to tar --shard-size 20KB --quiet", " --force", "out", false},
    {"inspect", NULL, "inspect ../data --json", "", NULL, false},
    {"inspect-croissant", NULL, "inspect ../data --croissant", "", NULL, false},
    {"tokenizer", NULL, "tokenizer ../pairs --output out.json" WORDS, " --force", "out.json", false},
    {"train", NULL, "train ../data --steps 1" VIT TRAIN, "", "out", true},
    {"resume", "cp -r ../model out", "train ../data --resume --batch 8" TRAIN, "", "out", true},
    {"train-pairs", NULL, "train ../pairs --steps 1" PAIRS TRAIN, "", "out", true},
    {"eval", NULL, "eval ../data ../model --threads 2 --json", "", NULL, false},
    {"predict", NULL, "predict ../data ../model --threads 2", "", NULL, false},
    {"pull", "rm -rf ../cache", "pull s3://bucket/data out --quiet", NULL, "out", false},
    {"export-remote", "rm -rf ../cache", "export s3://bucket/data out --quiet", " --force", "out", false},
    {"replay-remote", "rm -rf ../cache", "replay s3://bucket/data --global-batch 4 --quiet --json", "", NULL, false},
    {"embeddings", NULL, "predict ../pairs ../words --threads 2 --embeddings out.npz", "", "out.npz", false},
};

typedef struct fault_kind {
    const char *class, *how, *cause; /* cause: one of these words, split by '|', is in the message */
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
    support_server server; /* of the folder, as the bucket "bucket"; port 0: there is none */
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
    char *millrace = support_path("%s", support_millrace_path()),
         *made =
             support_path("set -e; m=%s; $m sample source --layout imagenette --images 12 --size 32:40 --quiet; "
                          "$m sample elder --layout imagenette --images 11 --seed 2 --size 32:40 --quiet; "
                          "$m ingest source data --quiet --shard-size 20KiB; $m ingest elder older --quiet; "
                          "$m sample coco --layout coco --images 10 --size 32 --quiet; "
                          "$m sample cartoons --layout newyorker --simple --images 10 --size 32 --quiet; "
                          "$m ingest cartoons pairs --quiet; $m tokenizer pairs --output tok.json" WORDS "; "
                          "mkdir run; cd run; $m train ../data --steps 2 --stop-after 1" VIT TRAIN "; mv out ../model; "
                          "$m train ../pairs --steps 1" PAIRS TRAIN
                          "; mv out ../words; cd ..; rmdir run; tar -czf source.tar.gz source",
                          millrace);
    support_shell(t.base, made);
    support_shell(t.base, BOXES);
    support_shell(t.base, IMAGENET);
    char *boxes = support_path("%s ingest yolo boxes --quiet", support_millrace_path());
    support_shell(t.base, boxes);
    free(boxes);
    char *hub = support_path("%s/hub", t.base), *reader = support_path("%s/reader", t.base);
    support_hub_rows(hub, "data/train-00000-of-00001.parquet", 6, 2, 8);
    support_hub_reader(reader, "#!/bin/sh\nexec cat\n");
    char *zip = support_path("%s/source.zip", t.base), *source = support_path("%s/source", t.base);
    support_archive_tree(zip, "zip-deflate", source, false);
    support_server_bucket(t.base, &t.server);
    free(zip);
    free(source);
    free(hub);
    free(reader);
    free(made);
    free(millrace);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    support_server_stop(&t.server);
    support_tmpdir_remove(t.base);
    free(t.run);
    return 0;
}

/* ---- one try ---------------------------------------------------------------------------------------------------- */

typedef struct expected {
    char *list;             /* names in the run folder */
    char *out;              /* standard output, without times */
    uint64_t before, after; /* of the target: its hash, or the newest update; 0: absent */
} expected;

static void fresh(const scene *s)
{
    char *command = support_path("rm -rf run && mkdir run && cd run && %s", s->prepare ? s->prepare : ":");
    support_shell(t.base, command);
    free(command);
}

static uint64_t target_is(const scene *s, const char **wrong)
{
    static char why[STEPS_WHY];
    if (!s->target)
        return 0;
    char *path = support_path("%s/%s", t.run, s->target), *whole = support_path("%s/whole", t.base);
    uint64_t is = 0;
    if (!s->model)
        is = faulty_hash(path);
    else if (!steps_good(path, whole, &is, why))
        *wrong = why;
    free(whole);
    free(path);
    return is;
}

/* What was said, without the lines that tell how long it took, be that milliseconds or minutes; heap. */
static char *without_times(const char *text)
{
    char *copy = support_path("%s", text), *kept = support_path("%s", text), *rest = copy, *line;
    regex_t times;
    size_t len = 0;
    assert_int_equal(regcomp(&times, "\"seconds\"| [0-9.]+ (ms|s|min|h)\\>", REG_EXTENDED | REG_NOSUB), 0);
    while ((line = strsep(&rest, "\n")))
        if (regexec(&times, line, 0, NULL, 0) != 0)
            len += (size_t)sprintf(kept + len, "%s%s", line, rest ? "\n" : "");
    regfree(&times);
    free(copy);
    return kept;
}

static void complain(const scene *s, const char *fault, bool libraries, const support_result *r, const char *what)
{
    t.failures++;
    print_error("FAULT %s%s, %s: %s (exit %d, signal %d%s)\n%.1500s\n", libraries ? "preload " : "", fault, s->name,
                what, r->status, r->signal, r->timed_out ? ", hung" : "", r->err);
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

/* Every checkpoint that can be seen is whole, and that of its update; the one that was there before still is. */
static const char *target_is_wrong(const scene *s, const expected *e, bool done)
{
    const char *wrong = NULL;
    uint64_t is = target_is(s, &wrong);
    if (wrong)
        return wrong;
    if (done && is != e->after)
        return "exit 0, but the target is not what it should be";
    return is != e->before && is != e->after ? "the target is neither absent, old nor new" : NULL;
}

static bool says_other(const support_result *r, const expected *e)
{
    char *said = without_times(r->out);
    bool other = strcmp(said, e->out) != 0;
    free(said);
    return other;
}

/* libarchive 3.6 ends the program, or loses its way, when memory that itself asks for is out, and so does oneDNN 2.7
 * (its allocations are libstdc++'s, whose exceptions end a program in C): as if by a kill, and then a temporary name of
 * export may stay.  What is there must still be whole. */
static bool gave_up(const support_result *r)
{
    if (faulty_was_of("libdnnl.so") || faulty_was_of("libstdc++.so"))
        return r->signal != 0;
    return faulty_was_of("libarchive.so") && (r->signal || strstr(r->err, "libarchive: Out of memory"));
}

static const char *what_is_wrong(const scene *s, const fault_kind *k, const support_result *r, const expected *e)
{
    bool fired = faulty_fired();
    if (gave_up(r) && !r->timed_out)
        return target_is_wrong(s, e, false);
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
    if (r->status == 0 && says_other(r, e))
        return "exit 0, but other words than without the fault";
    return target_is_wrong(s, e, r->status == 0);
}

static void run_again(const scene *s, const char *fault, bool libraries, const expected *e, bool may_leave)
{
    const char *wrong = NULL;
    uint64_t is = target_is(s, &wrong);
    char *command = support_path("%s%s", s->command, is && s->force ? s->force : "");
    if ((is && !s->force) || (s->model && is == e->after && !s->prepare))
        command[0] = '\0'; /* a finished run; another goes to another place */
    support_result r = {0};
    if (*command)
        r = faulty_run(&(faulty){.directory = t.run}, command);
    char *list = support_list(t.run);
    if (r.status != 0)
        complain(s, fault, libraries, &r, "the run after it fails");
    else if (s->model ? faulty_stray(list) != NULL : !may_leave && strcmp(list, e->list) != 0)
        complain(s, fault, libraries, &(support_result){.err = list}, "the run after it leaves other names");
    else if ((wrong = target_is_wrong(s, e, true)))
        complain(s, fault, libraries, &r, wrong);
    support_result_free(&r);
    free(list);
    free(command);
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
    unsigned long step = strcmp(k->class, "memory") == 0 || calls > 1000 ? t.stride : 1;
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

/* What the command does without a fault, and how many calls of each kind. */
static expected look(const scene *s, bool libraries, unsigned long calls[])
{
    expected e = {0};
    const char *wrong = NULL;
    fresh(s);
    support_shell(t.base, "rm -rf whole && if [ -d run/out ]; then cp -r run/out whole; fi");
    e.before = target_is(s, &wrong);
    support_result r = faulty_run(&(faulty){.directory = t.run, .libraries = libraries}, s->command);
    support_assert_status(&r, 0);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        calls[i] = faulty_calls(kinds[i].class);
    if (s->model)
        support_shell(t.base, "rm -rf whole && cp -r run/out whole");
    e.list = support_list(t.run);
    e.after = target_is(s, &wrong);
    e.out = without_times(r.out);
    assert_true(!wrong && (e.after != 0) == (s->target != NULL));
    support_result_free(&r);
    return e;
}

static void try_scene(const scene *s)
{
    size_t tries = t.tries, harmless = t.harmless, failures = t.failures;
    for (int libraries = 0; libraries < (faulty_sanitized() ? 1 : 2); libraries++) {
        unsigned long calls[sizeof kinds / sizeof *kinds];
        expected e = look(s, libraries, calls);
        /* The libraries' calls are seen beside our own: only allocations are tried both ways. */
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            if (faulty_sanitized() || libraries || strcmp(kinds[i].class, "memory") == 0)
                try_kind(s, &kinds[i], calls[i], libraries, &e);
        free(e.list);
        free(e.out);
    }
    print_message("%-16s %6zu tried, %5zu harmless, %zu wrong\n", s->name, t.tries - tries, t.harmless - harmless,
                  t.failures - failures);
}

static void test_every_call_may_fail(void **state)
{
    (void)state;
    const char *only = getenv("MILLRACE_FAULTS_SCENE");
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++)
        if ((!only || !*only || strcmp(only, scenes[i].name) == 0) &&
            (t.server.port || !strstr(scenes[i].command, "s3://")))
            try_scene(&scenes[i]);
    print_message("%zu faults, %zu of them harmless, %zu ended by a library, %zu wrong\n", t.tries, t.harmless,
                  t.gave_up, t.failures);
    assert_int_equal(t.failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_call_may_fail)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
