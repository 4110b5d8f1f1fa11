/* run.c - a command run under limits, with everything it said.
 * Invariant: however the command behaves - silent, endless, forking - the call ends within its seconds (+ a moment),
 * and no process of its group is left behind.
 *
 *      test --input--> [stdin]  command  [stdout] --> out
 *                                        [stderr] --> err      one poll loop until both outputs are closed           */
#include "tests/support/support.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum { IN, OUT, ERR };

typedef struct text {
    char *data;
    size_t len, capacity;
} text;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static const char *watched;

static void say_hung(int number)
{
    static const char words[] = ": hung\n";
    bool said = write(STDERR_FILENO, watched, strlen(watched)) > 0 && write(STDERR_FILENO, words, strlen(words)) > 0;
    _exit(said ? 128 + number : 127);
}

void support_watch(const char *what)
{
    watched = what;
    signal(SIGALRM, what ? say_hung : SIG_DFL);
    alarm(what ? HANG_SECONDS : 0);
}

static void limit(int what, uint64_t value)
{
    struct rlimit l = {value, value};
    setrlimit(what, &l);
}

static void become(const char *const *argv, const support_limits *l, int in, int out, int err)
{
    setpgid(0, 0);
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
        _exit(126);
    limit(RLIMIT_CORE, 0);
    if (l->memory && !SANITIZED)
        limit(RLIMIT_AS, l->memory);
    if (l->file_size) {
        limit(RLIMIT_FSIZE, l->file_size);
        signal(SIGXFSZ, SIG_IGN);
    }
    signal(SIGPIPE, SIG_DFL);
    signal(SIGHUP, SIG_DFL); /* ignored where the suite runs under nohup */
    if (l->directory && chdir(l->directory))
        _exit(126);
    execvp(argv[0], (char *const *)argv);
    _exit(127);
}

/* One read into `t`; false at the end of the stream. */
static bool take(int fd, text *t)
{
    if (t->len + 65536 + 1 > t->capacity) {
        t->capacity = t->capacity * 2 + 65536 + 1;
        t->data = realloc(t->data, t->capacity);
        if (!t->data)
            fail_msg("out of memory");
    }
    ssize_t n = read(fd, t->data + t->len, 65536);
    if (n > 0)
        t->len += (size_t)n;
    t->data[t->len] = '\0';
    return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

static void drop(struct pollfd *p)
{
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
}

static bool is_zombie(unsigned long pid)
{
    char path[64], stat[512] = "";
    snprintf(path, sizeof path, "/proc/%lu/stat", pid);
    FILE *f = fopen(path, "r");
    bool got = f && fgets(stat, sizeof stat, f);
    if (f)
        fclose(f);
    const char *state = got ? strrchr(stat, ')') : NULL; /* "7 (name) Z ..." */
    return state && state[1] == ' ' && state[2] == 'Z';
}

/* Whether a launcher has children, and all of them have ended without being waited for.  mpirun of Open MPI 4.1 can
 * deadlock in PMIx_server_finalize() when a rank was killed. */
static bool has_only_zombies(pid_t launcher)
{
    char path[64], line[4096] = "";
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)launcher, (int)launcher);
    FILE *f = fopen(path, "r");
    bool got = f && fgets(line, sizeof line, f);
    if (f)
        fclose(f);
    char *rest = NULL, *word = got ? strtok_r(line, " \n", &rest) : NULL;
    bool any = word;
    for (; word; word = strtok_r(NULL, " \n", &rest))
        if (!is_zombie(strtoul(word, NULL, 10)))
            return false;
    return any;
}

enum { STUCK_SECONDS = 60 }; /* a launcher that waits for its children takes milliseconds */

/* Feeds and listens until both outputs are closed; false when the time is over. */
static bool converse(pid_t pid, struct pollfd p[3], const support_limits *l, double deadline, text *out, text *err)
{
    size_t fed = 0;
    double moving = now();
    if (!l->input_len)
        drop(&p[IN]);
    while (p[OUT].fd >= 0 || p[ERR].fd >= 0) {
        double left = deadline - now();
        if (left <= 0)
            return false;
        if (poll(p, 3, left > 1 ? 1000 : (int)(left * 1000) + 1) < 0 && errno != EINTR)
            fail_msg("poll: %s", strerror(errno));
        if (!has_only_zombies(pid))
            moving = now();
        if (now() - moving > STUCK_SECONDS) {
            print_message("a launcher does not notice that its processes have ended: killed\n");
            kill(pid, SIGKILL);
            moving = now();
        }
        if (p[IN].fd >= 0 && p[IN].revents) {
            ssize_t n = write(p[IN].fd, (const char *)l->input + fed, l->input_len - fed);
            fed += n > 0 ? (size_t)n : 0;
            if ((n < 0 && errno != EAGAIN && errno != EINTR) || fed == l->input_len)
                drop(&p[IN]);
        }
        if (p[OUT].fd >= 0 && p[OUT].revents && !take(p[OUT].fd, out))
            drop(&p[OUT]);
        if (p[ERR].fd >= 0 && p[ERR].revents && !take(p[ERR].fd, err))
            drop(&p[ERR]);
    }
    return true;
}

/* Waits for the command itself until the deadline; it may have closed its outputs long before its end. */
static bool reap(pid_t pid, double deadline, int *status, struct rusage *usage)
{
    struct timespec nap = {0, 1000000};
    while (wait4(pid, status, WNOHANG, usage) == 0) {
        if (now() > deadline)
            return false;
        nanosleep(&nap, NULL);
    }
    return true;
}

support_result support_run(const char *const *argv, const support_limits *limits)
{
    support_limits l = limits ? *limits : (support_limits){0};
    double deadline = now() + (l.seconds ? l.seconds : HANG_SECONDS);
    int pipes[3][2];
    for (int i = IN; i <= ERR; i++)
        if (pipe2(pipes[i], O_CLOEXEC))
            fail_msg("pipe: %s", strerror(errno));
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0 || null < 0)
        fail_msg("cannot start %s: %s", argv[0], strerror(errno));
    if (!pid)
        become(argv, &l, l.input ? pipes[IN][0] : null, pipes[OUT][1], pipes[ERR][1]);
    setpgid(pid, pid);
    close(null);
    close(pipes[IN][0]);
    close(pipes[OUT][1]);
    close(pipes[ERR][1]);
    fcntl(pipes[IN][1], F_SETFL, O_NONBLOCK);
    struct pollfd p[3] = {{pipes[IN][1], POLLOUT, 0}, {pipes[OUT][0], POLLIN, 0}, {pipes[ERR][0], POLLIN, 0}};
    text out = {calloc(1, 1), 0, 1}, err = {calloc(1, 1), 0, 1};
    int status = 0;
    struct rusage usage = {0};
    void (*old)(int) = signal(SIGPIPE, SIG_IGN);
    bool ended = converse(pid, p, &l, deadline, &out, &err) && reap(pid, deadline, &status, &usage);
    signal(SIGPIPE, old);
    kill(-pid, SIGKILL); /* its children too, whether it has ended or not */
    if (!ended)
        wait4(pid, &status, 0, &usage);
    for (int i = IN; i <= ERR; i++)
        drop(&p[i]);
    return (support_result){
        .status = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
        .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
        .timed_out = !ended,
        .peak_memory = (uint64_t)usage.ru_maxrss * 1024,
        .cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6,
        .out = out.data,
        .err = err.data,
        .out_len = out.len,
        .err_len = err.len,
    };
}

const char *support_millrace_path(void)
{
    const char *path = getenv("MILLRACE_BIN");
    if (!path || !*path)
        fail_msg("MILLRACE_BIN does not name the program under test: run by ctest, or set it; after a test's first "
                 "call of the program, configure again");
    return path;
}

enum { MAX_ARGS = 64 };

static support_result run_args(const char *arg, va_list rest)
{
    const char *argv[MAX_ARGS + 2] = {support_millrace_path()};
    size_t n = 1;
    for (; arg && n <= MAX_ARGS; arg = va_arg(rest, const char *))
        argv[n++] = arg;
    return support_run(argv, NULL);
}

support_result support_millrace_under(const char *const *args, const support_limits *limits)
{
    const char *argv[49] = {support_millrace_path()};
    for (size_t n = 1; args[n - 1]; n++) {
        assert_true(n < 48);
        argv[n] = args[n - 1];
    }
    return support_run(argv, limits);
}

support_result support_millrace(const char *arg, ...)
{
    va_list rest;
    va_start(rest, arg);
    support_result r = run_args(arg, rest);
    va_end(rest);
    return r;
}

void support_assert_status(const support_result *r, int status)
{
    if (r->status != status || r->timed_out)
        fail_msg("expected exit status %d, got %d (signal %d%s)\n--- stdout\n%.4000s\n--- stderr\n%.4000s", status,
                 r->status, r->signal, r->timed_out ? ": it hung" : "", r->out, r->err);
}

void support_cannot(const char *what, const char *why)
{
    const char *all = getenv("MILLRACE_TEST_ALL");
    if (all && strcmp(all, "1") == 0)
        fail_msg("MILLRACE_TEST_ALL=1, and not tried: %s: %s", what, why);
    print_message("not tried: %s: %s\n", what, why);
}

bool support_sanitized(void)
{
    return SANITIZED;
}

void support_expect(int status, const char *arg, ...)
{
    va_list rest;
    va_start(rest, arg);
    support_result r = run_args(arg, rest);
    va_end(rest);
    support_assert_status(&r, status);
    support_result_free(&r);
}

void support_says(const char *directory, int status, const char *out, const char *err, const char *const *args)
{
    const char *argv[MAX_ARGS + 2] = {support_millrace_path()};
    for (size_t n = 1; *args && n <= MAX_ARGS; n++)
        argv[n] = *args++;
    support_result r = support_run(argv, &(support_limits){.directory = directory});
    support_assert_status(&r, status);
    if (out)
        assert_string_equal(r.out, out);
    if (err)
        assert_string_equal(r.err, err);
    support_result_free(&r);
}

void support_result_free(support_result *r)
{
    free(r->out);
    free(r->err);
    *r = (support_result){0};
}

support_result support_mpirun(unsigned ranks, const char *const *argv)
{
    return support_mpirun_in(ranks, argv, NULL);
}

support_result support_mpirun_in(unsigned ranks, const char *const *argv, const support_limits *limits)
{
    /* OpenMPI keeps memory until the process ends and takes locks its own way: no matter for our sanitizers. */
    const char *full[96] = {"env", "ASAN_OPTIONS=detect_leaks=0", "TSAN_OPTIONS=detect_deadlocks=0"};
    char count[16];
    size_t n = 3;
    if (system("command -v mpirun >/dev/null 2>&1") != 0) {
        support_cannot("ranks", "mpirun is not installed");
        skip();
    }
    /* An mpirun that starts while another removes the folder that both would share fails with "File exists". */
    const char *given = getenv("OMPI_MCA_orte_tmpdir_base");
    char *own = given ? NULL : support_tmpdir();
    char *base = support_path("OMPI_MCA_orte_tmpdir_base=%s", own ? own : given);
    snprintf(count, sizeof count, "%u", ranks);
    const char *const launcher[] = {base, "mpirun", "--allow-run-as-root", "--oversubscribe", "-n", count};
    for (size_t i = 0; i < sizeof launcher / sizeof *launcher; i++)
        full[n++] = launcher[i];
    while (*argv && n < sizeof full / sizeof *full - 1)
        full[n++] = *argv++;
    support_result r = support_run(full, limits);
    free(base);
    support_tmpdir_remove(own);
    return r;
}

static support_result ask_python(const char *script, const char *const *args, const support_limits *limits)
{
    enum { MAX = 16 };
    const char *named = getenv("MILLRACE_PYTHON"), *made = MILLRACE_SOURCE_DIR "/build/hub-venv/bin/python";
    const char *const choices[] = {named && *named ? named : NULL, access(made, X_OK) == 0 ? made : NULL, "python3"};
    char *path = support_path("%s/tests/%s", MILLRACE_SOURCE_DIR, script);
    const char *argv[MAX + 3] = {NULL, path};
    for (size_t i = 0; args[i]; i++) {
        assert_true(i < MAX);
        argv[2 + i] = args[i];
    }
    support_result r = {.status = 77};
    for (size_t i = 0; i < sizeof choices / sizeof *choices && (r.status == 77 || r.status == 127); i++) {
        if (!choices[i])
            continue;
        support_result_free(&r);
        argv[0] = choices[i];
        r = support_run(argv, limits);
    }
    free(path);
    if (r.status == 77 || r.status == 127) {
        print_message("skipped: no Python has what %s needs (MILLRACE_PYTHON, scripts/venv hub)\n", script);
        r.status = 77;
    } else if (r.status != 0) {
        fail_msg("%s: %s%s", script, r.out, r.err);
    }
    return r;
}

support_result support_python(const char *script, const char *const *args, const support_limits *limits)
{
    support_result r = ask_python(script, args, limits);
    if (r.status == 77) {
        support_result_free(&r);
        skip();
    }
    return r;
}

bool support_python_ran(const char *script, const char *const *args, const support_limits *limits)
{
    support_result r = ask_python(script, args, limits);
    bool ran = r.status == 0;
    support_result_free(&r);
    return ran;
}
