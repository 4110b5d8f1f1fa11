/* support.h - what every test needs: a private folder, files, commands run under limits, the real samples.
 * Invariant: a helper that cannot do its work fails the running test with a message; callers check nothing. */
#ifndef MR_SUPPORT_H
#define MR_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/random.h"
#include "tests/support/hang.h"

/* ---- folders and files ---------------------------------------------------------------------------------------- */

/* A new empty folder under $TMPDIR or /tmp; ends with support_tmpdir_remove(), which removes its tree and frees it.
 * MILLRACE_KEEP_TMP=1 keeps the folders, for a look after a failure. */
char *support_tmpdir(void);
void support_tmpdir_remove(char *dir);
/* The same as cmocka's set-up and tear-down: *state is the folder. */
int support_tmpdir_set_up(void **state);
int support_tmpdir_tear_down(void **state);
#define IN_TMPDIR(test) cmocka_unit_test_setup_teardown(test, support_tmpdir_set_up, support_tmpdir_tear_down)

/* "%s/%s" and the like on the heap. */
char *support_path(const char *format, ...) __attribute__((format(printf, 1, 2)));
size_t support_occurrences(const char *text, const char *word);

void support_write(const char *path, const void *bytes, size_t len); /* makes missing parents */
void support_write_text(const char *path, const char *text);
void support_put(const char *dir, const char *name, const char *text); /* to DIR/NAME */
/* The same to a path that is put together as by printf(). */
void support_writef(const void *bytes, size_t len, const char *path, ...) __attribute__((format(printf, 3, 4)));
void support_write_textf(const char *text, const char *path, ...) __attribute__((format(printf, 2, 3)));
uint8_t *support_read(const char *path, size_t *len); /* heap, NUL-terminated; len may be NULL */
bool support_exists(const char *path);
uint64_t support_size(const char *path);
void support_assert_same_file(const char *a, const char *b);

/* Every regular file under `dir`, sorted bytewise, each as "relative/path\n"; heap. */
char *support_list(const char *dir);
/* One number over the names and bytes of every file under `dir`: equal trees, equal numbers. */
uint64_t support_tree_hash(const char *dir);
/* The same for a dataset's files that must be equal: removes its report first, which may name the kind of source. */
uint64_t support_dataset_hash(const char *dataset);

/* ---- commands ------------------------------------------------------------------------------------------------- */

typedef struct support_limits { /* 0: the default */
    unsigned seconds;           /* then the whole process group is killed; HANG_SECONDS, for tests of all else */
    uint64_t memory;            /* address space in bytes, none; not in force under sanitizers */
    uint64_t file_size;         /* RLIMIT_FSIZE, none; SIGXFSZ is ignored, so that writes fail with EFBIG */
    const char *directory;      /* to run in, NULL: this one */
    const void *input;          /* on standard input, NULL: /dev/null */
    size_t input_len;
} support_limits;

typedef struct support_result {
    int status;           /* exit status, -1: ended by a signal */
    int signal;           /* that signal, else 0 */
    bool timed_out;       /* it hung */
    uint64_t peak_memory; /* resident, bytes */
    double cpu;           /* seconds of all its threads, the system's work for them included */
    char *out, *err;      /* heap, NUL-terminated */
    size_t out_len, err_len;
} support_result;

support_result support_run(const char *const *argv, const support_limits *limits); /* argv ends with NULL */
/* tests/SCRIPT with these arguments (NULL last) by the Python of MILLRACE_PYTHON, of scripts/venv hub, or the first
 * of the path: the first in which it does not exit with 77, "I miss a module".  If there is none, the test is skipped
 * with a message; any other failure fails it with what the script said.  The caller frees the result. */
support_result support_python(const char *script, const char *const *args, const support_limits *limits);
/* For those who hold memory: false, with the message, where the other would skip. */
bool support_python_ran(const char *script, const char *const *args, const support_limits *limits);
/* The same under mpirun with this many ranks, output of rank 0 and complaints of OpenMPI together; skips the test with
 * a message where mpirun is not installed. */
support_result support_mpirun(unsigned ranks, const char *const *argv);
support_result support_mpirun_in(unsigned ranks, const char *const *argv, const support_limits *limits);
/* The millrace under test (MILLRACE_BIN) with these arguments: support_millrace("verify", dir, (char *)NULL). */
support_result support_millrace(const char *arg, ...) __attribute__((sentinel));
/* The same under limits, at most 47 arguments, ended by NULL. */
support_result support_millrace_under(const char *const *args, const support_limits *limits);
void support_result_free(support_result *r);

/* Runs millrace, expects this exit status (the message shows both outputs otherwise), frees the result. */
void support_expect(int status, const char *arg, ...) __attribute__((sentinel));
/* Runs millrace with these arguments (NULL last) in `directory`, expects this exit status and exactly these words on
 * standard output and error; NULL: any. */
void support_says(const char *directory, int status, const char *out, const char *err, const char *const *args);
#define SAYS(directory, status, out, err, ...)                                                                         \
    support_says(directory, status, out, err, (const char *const[]){__VA_ARGS__, NULL})
/* Checks the exit status of a result that is kept. */
void support_assert_status(const support_result *r, int status);

/* Ends this process, with a message, when it still does WHAT after HANG_SECONDS; NULL: it is done. */
void support_watch(const char *what);

/* "not tried: WHAT: WHY"; with MILLRACE_TEST_ALL=1, for hosts that must be able to do all of it, a failure. */
void support_cannot(const char *what, const char *why);

const char *support_millrace_path(void);
bool support_sanitized(void); /* whether this build, and so the program, is */

/* Fails unless it ended by itself, by no signal, within 256 MiB (under a sanitizer more) and some twenty times the CPU
 * time that the program takes to draw 50 pictures on this machine in this run, and, if it failed, said why: status 1 to
 * 3 and a line "millrace: ...", or a result that tells. */
void support_assert_cheap(const support_result *r);
/* The same for a failure, with these words in the message; frees the result. */
void support_expect_refusal(support_result r, const char *words);

/* ---- samples and chance --------------------------------------------------------------------------------------- */

/* "$MILLRACE_DATA/sub" (default ../shared/data beside the source folder) on the heap, NULL if it is not there:
 *      char *data = support_data("imagenette"); if (!data) skip();                                                 */
char *support_data(const char *sub);

/* Seeded by MILLRACE_TEST_SEED or 1; the seed is printed when it is not 1. */
mr_random support_random(void);

#endif
