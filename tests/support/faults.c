/* faults.c - millrace run with calls that fail. */
#include "tests/support/faults.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"

enum { MAX_WORDS = 90 };

bool faulty_sanitized(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;
#else
    return false;
#endif
}

/* The build's other programs are beside the one under test. */
static char *beside_millrace(const char *name)
{
    char *path = support_path("%s", support_millrace_path()), *slash = strrchr(path, '/');
    char *found = support_path("%.*s%s", slash ? (int)(slash + 1 - path) : 0, path, name);
    free(path);
    if (!support_exists(found))
        fail_msg("%s is not built; build millrace_faults and millrace_preload", found);
    return found;
}

static void expect_empty(const char *tmp, const faulty *f, const char *words)
{
    char *left = support_list(tmp);
    if (*left)
        fail_msg("%s with %s left in TMPDIR: %s", words, f->fault ? f->fault : "no fault", left);
    free(left);
}

static char *report_of_last_run; /* NULL: it counted nothing */

static void take_report(const char *path)
{
    free(report_of_last_run);
    report_of_last_run = support_exists(path) ? (char *)support_read(path, NULL) : NULL;
    unlink(path);
}

support_result faulty_run(const faulty *f, const char *words)
{
    const char *argv[MAX_WORDS + 20];
    size_t n = 0;
    char *tmp = support_path("%s.tmp", f->directory), *report = support_path("%s.report", f->directory);
    char *mpi = support_path("%s.mpi", f->directory), *delay = support_path("%.6f", f->delay);
    char *program = f->libraries ? support_path("%s", support_millrace_path()) : beside_millrace("millrace_faults");
    char *preload = f->libraries ? beside_millrace("millrace_faults.so") : NULL, *copy = support_path("%s", words);
    char *set[] = {
        support_path("TMPDIR=%s", tmp),
        support_path("MILLRACE_FAULT_REPORT=%s", report),
        support_path("MILLRACE_FAULT=%s", f->fault),
        support_path("MILLRACE_FAULT_LOG=%s", f->log),
        support_path("LD_PRELOAD=%s", preload),
    };
    const bool wanted[] = {true, true, f->fault != NULL, f->log != NULL, f->libraries};
    mkdir(tmp, 0700);
    mkdir(mpi, 0700);
    const char *const killer[] = {"timeout", "-s", "KILL", delay};
    for (size_t i = 0; i < 4 && f->delay > 0; i++)
        argv[n++] = killer[i];
    argv[n++] = "env"; /* the last before the program: only that is preloaded */
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        if (wanted[i])
            argv[n++] = set[i];
    /* A status of its own for what the sanitizers find, and their malloc may fail as others do. */
    argv[n++] = "ASAN_OPTIONS=exitcode=99:handle_sigill=1:allocator_may_return_null=1";
    argv[n++] = "UBSAN_OPTIONS=exitcode=99";
    argv[n++] = program;
    char *rest = copy;
    for (char *word; (word = strsep(&rest, " ")) && n < MAX_WORDS + 19;)
        if (*word)
            argv[n++] = word;
    argv[n] = NULL;
    /* OpenMPI leaves its own files where it is killed: away from those of the program. */
    setenv("OMPI_MCA_orte_tmpdir_base", mpi, 1);
    setenv("OMPI_MCA_btl_vader_backing_directory", mpi, 1);
    support_limits limits = {.directory = f->directory};
    support_result r = f->ranks ? support_mpirun_in(f->ranks, argv, &limits) : support_run(argv, &limits);
    expect_empty(tmp, f, words);
    take_report(report);
    rmdir(tmp);
    support_tmpdir_remove(mpi);
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        free(set[i]);
    free(tmp);
    free(report);
    free(delay);
    free(program);
    free(preload);
    free(copy);
    return r;
}

uint64_t faulty_hash(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return 0;
    if (S_ISDIR(st.st_mode)) {
        char *report = support_path("%s/report.json", path);
        unlink(report);
        free(report);
        return support_tree_hash(path);
    }
    size_t len;
    uint8_t *bytes = support_read(path, &len);
    uint64_t hash = mr_hash64(bytes, len);
    free(bytes);
    return hash;
}

unsigned long faulty_calls(const char *class)
{
    unsigned long most = 0;
    size_t len = strlen(class);
    for (const char *line = report_of_last_run; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, class, len) == 0 && line[len] == ' ') {
            unsigned long calls = strtoul(line + len, NULL, 10);
            most = calls > most ? calls : most;
        }
    }
    return most;
}

bool faulty_fired(void)
{
    return report_of_last_run && strstr(report_of_last_run, "fired");
}

bool faulty_was_of(const char *library)
{
    char *mark = support_path("fired %s", library);
    bool was = report_of_last_run && strstr(report_of_last_run, mark);
    free(mark);
    return was;
}

void support_shell(const char *directory, const char *command)
{
    const char *argv[] = {"sh", "-c", command, NULL};
    support_result r = support_run(argv, &(support_limits){.directory = directory});
    support_assert_status(&r, 0);
    support_result_free(&r);
}

const char *faulty_stray(const char *list)
{
    static const char *const marks[] = {".partial", ".tmp", ".old", ".gone-", "-export-", ".done", "spool", "-lock"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (strstr(list, marks[i]))
            return marks[i];
    return NULL;
}
