/* test_resource_limits.c - every command when disk space, memory, descriptors, permissions or path length run out.
 * Invariant tested: a command succeeds, or reports the cause at once and leaves nothing half-done. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/file.h"
#include "tests/support/support.h"

static char *root, *source, *ds;

/* One dataset for all: a train split in many shards, and a val split. */
static int set_up(void **state)
{
    (void)state;
    root = support_tmpdir();
    source = support_path("%s/source", root);
    ds = support_path("%s/ds", root);
    support_expect(0, "sample", source, "--layout", "imagenette", "--images", "120", "--seed", "4", "--quiet",
                   (char *)NULL);
    support_expect(0, "ingest", source, ds, "--shard-size", "4KiB", "--quiet", (char *)NULL);
    chmod(root, 0755);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(source);
    free(ds);
    support_tmpdir_remove(root);
    return 0;
}

/* Runs `sh -c SHELL millrace ARGS`; "$@" in SHELL is the command, $W a new folder, in which it runs. */
static support_result run_in(const char *shell, const char *w, const char *const *args, uint64_t memory)
{
    char *full = support_path("W='%s'; %s", w, shell);
    const char *argv[32] = {"sh", "-c", full, "sh", support_millrace_path()};
    for (size_t n = 5; *args && n < 31; n++)
        argv[n] = *args++;
    support_result r = support_run(argv, &(support_limits){.directory = w, .memory = memory});
    free(full);
    return r;
}

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static char *folder(const char *name)
{
    char *path = support_path("%s/%s", root, name);
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        fail_msg("%s: %s", path, strerror(errno));
    return path;
}

/* Whether this can be done here; `what` is tried by it. */
static bool can(const char *what, const char *shell)
{
    char *command = support_path("%s >/dev/null 2>&1", shell);
    bool ok = system(command) == 0;
    free(command);
    if (!ok)
        support_cannot(what, shell);
    return ok;
}

static void expect_empty(const char *dir, const char *but)
{
    char *left = support_list(dir);
    if (strcmp(left, but) != 0)
        fail_msg("left behind in %s:\n%s", dir, left);
    free(left);
}

#define TRAIN(...)                                                                                                     \
    ARGS("train", ds, "--model", "vit", "--image-size", "24", "--patch", "8", "--hidden", "16", "--layers", "1",       \
         "--heads", "2", "--mlp", "32", "--batch", "8", "--threads", "1", "--steps", "2", __VA_ARGS__)

/* ---- no room on the disk ---------------------------------------------------------------------------------------- */

/* Every command that writes, where a file system has some KiB left: the true cause, and no file of ours. */
static void test_full_disk(void **state)
{
    (void)state;
    static const char shell[] =
        "unshare -rm sh -c 'mount -t tmpfs -o size=8m,mode=777 none \"$0\" && cd \"$0\" && "
        "{ head -c 8360000 /dev/zero >fill; \"$@\"; r=$?; rm fill; find . -type f >&2; exit $r; }' \"$W\" \"$@\"";
    if (!can("a full disk", "unshare -rm mount -t tmpfs -o size=8m none /mnt"))
        skip();
    char *w = folder("full");
    const char *const *const commands[] = {
        ARGS("ingest", source, "dst"),
        ARGS("ingest", source, "dst", "--jobs", "3", "--shard-size", "64KiB"),
        ARGS("export", ds, "out"),
        ARGS("export", ds, "x.tar", "--to", "tar"),
        ARGS("sample", "s", "--layout", "coco", "--images", "300"),
        TRAIN("--output", "run", "--hidden", "256", "--mlp", "1024", "--layers", "4"),
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        support_result r = run_in(shell, w, commands[i], 0);
        support_assert_cheap(&r);
        if (r.status != 3 || !strcasestr(r.err, "no space left on "))
            fail_msg("%s: status %d: %s%s", commands[i][0], r.status, r.out, r.err);
        for (char *line = strtok(r.err, "\n"); line; line = strtok(NULL, "\n"))
            if (strncmp(line, "./", 2) == 0 && (strncmp(line, "./dst/", 6) == 0 || strncmp(line, "./out/", 6) == 0 ||
                                                strcmp(line, "./x.tar") == 0 || strstr(line, "spool")))
                fail_msg("%s: %s is there", commands[i][0], line);
        support_result_free(&r);
    }
    expect_empty(w, "");
    free(w);
}

/* Where there is no room for another report, that of a dataset that was whole does not stay: it makes room. */
static void test_full_disk_and_an_old_report(void **state)
{
    (void)state;
    static const char shell[] =
        "unshare -rm sh -c 'mount -t tmpfs -o size=1m,mode=777 none \"$0\" && cp -r \"$2\" \"$0\".ds && cd \"$0\" && "
        "ds=../${0##*/}.ds && \"$1\" verify $ds -q --junit j.xml && grep -c failures=.0 j.xml; "
        "head -c 2m /dev/zero >fill 2>&1; rm $ds/val-00000.idx; \"$1\" verify $ds -q --junit j.xml; r=$?; "
        "grep -o failures=.1. j.xml; exit $r' \"$W\" \"$@\"";
    if (!can("a full disk", "unshare -rm mount -t tmpfs -o size=8m none /mnt"))
        skip();
    char *w = folder("report");
    support_result r = run_in(shell, w, ARGS(ds), 0);
    support_assert_status(&r, 1);
    assert_memory_equal(r.out, "1\n", 2);
    assert_non_null(strstr(r.out, "failures=\"1\""));
    support_result_free(&r);
    free(w);
}

/* The same said by `ulimit -f`. */
static void test_file_size_limit(void **state)
{
    (void)state;
    char *w = folder("limit");
    const char *const *const commands[] = {
        ARGS("ingest", source, "dst"),
        ARGS("export", ds, "x.tar", "--to", "tar"),
        TRAIN("--output", "run", "--hidden", "256", "--mlp", "1024", "--layers", "4"),
    };
    for (size_t i = 0; i < 9; i++) {
        char *limited = support_path("ulimit -f %d; \"$@\"", (int[]){64, 8, 3}[i / 3]);
        support_expect_refusal(run_in(limited, w, commands[i % 3], 0), "File too large");
        free(limited);
        char *dst = support_path("%s/dst", w), *tar = support_path("%s/x.tar", w);
        assert_false(support_exists(dst) || support_exists(tar));
        free(dst);
        free(tar);
    }
    free(w);
}

/* ---- no rights --------------------------------------------------------------------------------------------------- */

static void expect_reading(const char *shell, const char *w)
{
    const char *const *const commands[] = {
        ARGS("verify", ds, "--deep", "-q"),
        ARGS("inspect", ds),
        ARGS("show", ds, "train", "0"),
        ARGS("replay", ds, "--global-batch", "8", "--batches", "0:2"),
        ARGS("plan", ds, "--global-batch", "8"),
        ARGS("bench", ds, "--stage", "read", "--seconds", "0.1"),
        TRAIN("--quiet"),
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        support_result r = run_in(shell, w, commands[i], 0);
        support_assert_status(&r, 0);
        support_result_free(&r);
    }
}

static void expect_no_writing(const char *shell, const char *w, const char *words)
{
    char *index = support_path("%s/train-00000.idx", ds), *away = support_path("%s/away", root);
    assert_int_equal(rename(index, away), 0);
    const char *const *const commands[] = {
        ARGS("reindex", ds),
        ARGS("ingest", source, "dst"),
        ARGS("ingest", source, ds, "--force"),
        ARGS("export", ds, "out"),
        ARGS("sample", "s", "--layout", "coco", "--images", "40"),
        TRAIN("--output", "run"),
        TRAIN("--log", "log.jsonl"),
        ARGS("verify", ds, "--junit", "j.xml"),
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (i == 3)
            assert_int_equal(rename(away, index), 0);
        support_expect_refusal(run_in(shell, w, commands[i], 0), words);
    }
    expect_empty(w, "");
    free(index);
    free(away);
}

static void test_read_only_mount(void **state)
{
    (void)state;
    static const char shell[] = "unshare -rm sh -c 'mount --bind \"$0\" \"$0\" && mount -o remount,ro,bind \"$0\" && "
                                "cd \"$W\" && exec \"$@\"' '%s' \"$@\"";
    if (!can("a read-only mount", "unshare -rm sh -c 'mount --bind /tmp /tmp && mount -o remount,ro,bind /tmp'"))
        skip();
    char *w = folder("ro"), *full = support_path(shell, root), *exported = support_path("export W; %s", full);
    expect_reading(exported, w);
    expect_no_writing(exported, w, "Read-only file system");
    free(exported);
    free(full);
    free(w);
}

/* Nobody may read the dataset and write nowhere. */
static void test_unwritable_folder(void **state)
{
    (void)state;
    char *w = folder("nobody"), *probe;
    const char *shell = "\"$@\"";
    if (geteuid() == 0)
        shell = "exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$@\"";
    probe = support_path("%s %s --version", geteuid() ? "" : "setpriv --reuid=65534 --regid=65534 --clear-groups",
                         support_millrace_path());
    if (!can("nobody's rights", probe))
        skip();
    chmod(w, 0555);
    chmod(ds, 0555);
    chmod(root, 0555);
    expect_reading(shell, w);
    chmod(root, 0755);
    char *index = support_path("%s/train-00000.idx", ds), *manifest = support_path("%s/manifest.json", ds);
    if (geteuid() == 0)
        expect_no_writing(shell, w, "Permission denied");
    chmod(index, 0); /* a file that must not be read, either */
    support_expect_refusal(run_in(shell, w, ARGS("verify", ds), 0), "Permission denied");
    support_expect_refusal(run_in(shell, w, ARGS("replay", ds, "--global-batch", "8"), 0), "Permission denied");
    chmod(index, 0644);
    chmod(manifest, 0);
    support_expect_refusal(run_in(shell, w, ARGS("inspect", ds), 0), "Permission denied");
    chmod(manifest, 0644);
    chmod(ds, 0755);
    chmod(w, 0755);
    free(manifest);
    free(index);
    free(probe);
    free(w);
}

/* As the user nobody, removes what is at the temporary name, or publishes, which must end like this. */
static void as_nobody(const char *path, bool forget, mr_status expected)
{
    mr_error err;
    int status;
    pid_t child = fork();
    if (child == 0) {
        bool changed = setgid(65534) == 0 && setuid(65534) == 0;
        if (changed && forget)
            mr_file_forget(AT_FDCWD, path);
        _exit(!changed || (!forget && mr_file_publish(AT_FDCWD, path, "nobody's", 8, &err) != expected));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* A file of another user that may only be read tells whether its writer lives; one that tells nothing stays. */
static void test_writers_of_two_users(void **state)
{
    (void)state;
    if (!can("writers of two users", "setpriv --reuid=65534 --regid=65534 --clear-groups true"))
        skip();
    char *w = folder("two"), *path = support_path("%s/file", w), *temp = support_path("%s.millrace.tmp", path);
    mr_output o;
    mr_error err;
    chmod(w, 0777);
    umask(022);
    assert_int_equal(mr_output_open(AT_FDCWD, path, &o, &err), MR_OK);
    as_nobody(path, true, MR_OK);
    assert_true(support_exists(temp));
    assert_int_equal(mr_output_close(&o, MR_OK, &err), MR_OK);
    support_write_text(temp, "half");
    as_nobody(path, false, MR_OK);
    assert_int_equal(support_size(path), 8);
    support_write_text(temp, "mine");
    chmod(temp, 0600);
    as_nobody(path, false, MR_SYSTEM);
    assert_int_equal(support_size(temp), 4);
    free(temp);
    free(path);
    free(w);
}

/* ---- few descriptors, little memory ------------------------------------------------------------------------------ */

/* The dataset has more shards than files may be open. */
static void test_few_descriptors(void **state)
{
    (void)state;
    char *w = folder("few"), *last = support_path("%s/train-00070.mdb", ds);
    assert_true(support_exists(last));
    expect_reading("ulimit -n 64; exec \"$@\"", w);
    const char *const *const commands[] = {
        ARGS("ingest", source, "dst", "--jobs", "8", "-q", "--shard-size", "4KiB"),
        ARGS("verify", "dst", "--jobs", "24", "-q"),
        ARGS("export", "dst", "out", "-q"),
        ARGS("replay", "dst", "--global-batch", "32", "--threads", "40", "--size", "16"),
        ARGS("replay", "dst", "--global-batch", "64", "--ranks", "64", "--threads", "0"),
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        support_result r = run_in("ulimit -n 64; exec \"$@\"", w, commands[i], 0);
        support_assert_cheap(&r);
        if (r.status)
            fail_msg("%s: %s", commands[i][0], r.err);
        support_result_free(&r);
    }
    support_expect_refusal(run_in("ulimit -n 6; exec \"$@\"", w, ARGS("ingest", source, "d", "--jobs", "8"), 0),
                           "Too many open files; raise `ulimit -n` or use fewer threads");
    free(last);
    free(w);
}

/* Any bound of memory: done, or said. */
static void test_little_memory(void **state)
{
    (void)state;
    if (support_sanitized()) /* whose own memory no limit leaves room for */
        skip();
    char *w = folder("memory");
    for (uint64_t memory = 24 << 20; memory <= (uint64_t)768 << 20; memory *= 2) {
        char number[32];
        snprintf(number, sizeof number, "s-%llu", (unsigned long long)memory);
        const char *const *const commands[] = {
            ARGS("ingest", source, "dst", "--force", "--quiet", "--jobs", "4"),
            ARGS("verify", ds, "--decode", "--jobs", "4", "-q"),
            ARGS("inspect", ds),
            ARGS("show", ds, "train", "0"),
            ARGS("export", ds, "out", "--force", "-q"),
            ARGS("replay", ds, "--global-batch", "32", "--threads", "4", "--size", "64", "--batches", "0:2"),
            ARGS("plan", ds, "--global-batch", "8", "--batches", "0:1"),
            TRAIN("--quiet"),
            ARGS("sample", number, "--layout", "coco", "--images", "10", "--quiet"),
        };
        for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
            support_result r = run_in("exec \"$@\"", w, commands[i], memory);
            bool loads = r.status != 127; /* the dynamic linker's */
            if (loads)
                support_assert_cheap(&r);
            if (loads && r.status && !(r.status == 3 || strstr(r.err, "emory")))
                fail_msg("%s, %llu MiB: status %d: %s", commands[i][0], (unsigned long long)(memory >> 20), r.status,
                         r.err);
            support_result_free(&r);
        }
    }
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_disk),         cmocka_unit_test(test_full_disk_and_an_old_report),
        cmocka_unit_test(test_file_size_limit),   cmocka_unit_test(test_read_only_mount),
        cmocka_unit_test(test_unwritable_folder), cmocka_unit_test(test_writers_of_two_users),
        cmocka_unit_test(test_few_descriptors),   cmocka_unit_test(test_little_memory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
