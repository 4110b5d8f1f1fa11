/* program.c - runs another program and waits for it.
 * Invariant: each program that was started is waited for once, whether or not reading its output failed. */
#include "base/system/program.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MESSAGE_MAX = 2000, PADDING_MAX = 1 << 20, PIPE_SIZE = 1 << 20 };

struct mr_program {
    pid_t pid;
    int out, errors;
    pthread_t listener;
    atomic_bool ended;         /* the process; its own children may keep the pipe open */
    char message[MESSAGE_MAX]; /* the last bytes of stderr; written by the listener until it is joined */
    size_t message_len;
    const char *when_short; /* what to say if memory is short; NULL: there is no limit */
};

extern char **environ;

/* ---- its messages ----------------------------------------------------------------------------------------------- */

static void keep_message(mr_program *p, const char *bytes, size_t len)
{
    if (len >= MESSAGE_MAX) {
        bytes += len - MESSAGE_MAX;
        len = MESSAGE_MAX;
    }
    size_t over = p->message_len + len > MESSAGE_MAX ? p->message_len + len - MESSAGE_MAX : 0;
    memmove(p->message, p->message + over, p->message_len - over);
    p->message_len -= over;
    memcpy(p->message + p->message_len, bytes, len);
    p->message_len += len;
}

static void *listen_to(void *arg)
{
    mr_program *p = arg;
    char bytes[4096];
    for (;;) {
        struct pollfd ready = {.fd = p->errors, .events = POLLIN};
        bool last = atomic_load(&p->ended);
        int n = poll(&ready, 1, last ? 0 : 50);
        if ((n < 0 && errno != EINTR) || (n == 0 && last))
            return NULL;
        if (n <= 0)
            continue;
        ssize_t got = read(p->errors, bytes, sizeof bytes);
        if (got == 0 || (got < 0 && errno != EINTR))
            return NULL;
        if (got > 0)
            keep_message(p, bytes, (size_t)got);
    }
}

/* The sentence of a millrace, without its name; NULL: it is not one.  "millrace: ...", "millrace train: ..." */
static const char *sentence_of(const char *line, size_t len)
{
    static const char name[] = "millrace";
    const char *colon = memmem(line, len, ": ", 2);
    return colon && len > sizeof name && memcmp(line, name, sizeof name - 1) == 0 ? colon + 2 : NULL;
}

static bool has_letter(const char *line, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (isalnum((unsigned char)line[i]))
            return true;
    return false;
}

static bool is_rule(const char *line, size_t len)
{
    enum { SHORTEST = 20 };
    size_t dashes = 0;
    while (dashes < len && line[dashes] == '-')
        dashes++;
    return dashes == len && len >= SHORTEST;
}

/* The first line of a millrace, which launchers talk after; otherwise the first below a rule, by which Open MPI's
 * launcher begins to explain; otherwise the last one with a letter: in a traceback, the error. */
static const char *telling_line(const mr_program *p, int *len)
{
    const char *found = "", *end = p->message + p->message_len;
    bool below_rule = false, explained = false;
    *len = 0;
    for (const char *line = p->message; line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line)), *stop = newline ? newline : end;
        const char *sentence = sentence_of(line, (size_t)(stop - line));
        while (stop > line && (stop[-1] == ' ' || stop[-1] == '\r'))
            stop--;
        if (sentence || (!explained && has_letter(line, (size_t)(stop - line)))) {
            found = sentence ? sentence : line;
            *len = (int)(stop - found);
            explained = below_rule;
        }
        if (sentence)
            break;
        below_rule = is_rule(line, (size_t)(stop - line));
        line = newline ? newline + 1 : end;
    }
    return found;
}

/* ---- start ---------------------------------------------------------------------------------------------------- */

static mr_status spawn(mr_program *p, const char *const *argv, int input, int out, int errors, mr_error *err)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t ignored; /* in this process; a child would inherit that */
    sigemptyset(&ignored);
    sigaddset(&ignored, SIGPIPE);
    sigaddset(&ignored, SIGXFSZ);
    int failed = posix_spawn_file_actions_init(&files);
    if (failed)
        return mr_fail_errno(err, failed, "%s", argv[0]);
    failed = posix_spawnattr_init(&how);
    if (!failed) {
        failed = posix_spawnattr_setsigdefault(&how, &ignored);
        if (!failed)
            failed = posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGDEF);
        if (!failed)
            failed = posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
        if (!failed)
            failed = posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
        if (!failed)
            failed = posix_spawn_file_actions_adddup2(&files, errors, STDERR_FILENO);
        if (!failed)
            failed = posix_spawnp(&p->pid, argv[0], &files, &how, (char *const *)argv, environ);
        posix_spawnattr_destroy(&how);
    }
    posix_spawn_file_actions_destroy(&files);
    return failed ? mr_fail_errno(err, failed, "%s: cannot be run", argv[0]) : MR_OK;
}

static void close_all(int fds[4])
{
    for (int i = 0; i < 4; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

mr_status mr_program_start(const char *const *argv, int input, mr_program **out, mr_error *err)
{
    int fds[4] = {-1, -1, -1, -1}; /* stdout: read end, write end; stderr: the same */
    mr_program *p = mr_alloc(1, sizeof *p);
    mr_status status = MR_OK;
    if (!p)
        return mr_fail_memory(err, argv[0]);
    if (pipe2(fds, O_CLOEXEC) != 0 || pipe2(fds + 2, O_CLOEXEC) != 0)
        status = mr_fail_errno(err, errno, "%s: cannot make a pipe", argv[0]);
    if (status == MR_OK) {
        fcntl(fds[0], F_SETPIPE_SZ, PIPE_SIZE); /* best effort: fewer context switches */
        status = spawn(p, argv, input, fds[1], fds[3], err);
    }
    if (status != MR_OK) {
        close_all(fds);
        free(p);
        return status;
    }
    close(fds[1]);
    close(fds[3]);
    p->out = fds[0];
    p->errors = fds[2];
    int failed = pthread_create(&p->listener, NULL, listen_to, p);
    if (failed) {
        kill(p->pid, SIGKILL);
        while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
            ;
        close(p->out);
        close(p->errors);
        free(p);
        return mr_fail_errno(err, failed, "%s: cannot start a thread, " MR_NO_THREAD, argv[0]);
    }
    *out = p;
    return MR_OK;
}

void mr_program_limit(mr_program *p, uint64_t bytes, const char *sentence)
{
    /* It has not read a byte of its input that could ask for memory yet.  A failure leaves the limit of this
     * process. */
    const struct rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};
    if (prlimit(p->pid, RLIMIT_AS, &limit, NULL) == 0)
        p->when_short = sentence;
}

int mr_program_output(const mr_program *p)
{
    return p->out;
}

/* ---- end ------------------------------------------------------------------------------------------------------ */

/* Reads the padding after the tar's end.  False: there is no end to it. */
static bool drain(int fd)
{
    char bytes[1 << 14];
    size_t total = 0;
    while (total <= PADDING_MAX) {
        ssize_t n = read(fd, bytes, sizeof bytes);
        if (n == 0 || (n < 0 && errno != EINTR))
            return true;
        total += n > 0 ? (size_t)n : 0;
    }
    return false;
}

/* How programs say that they ran out of memory: by code 4, in a traceback of Python, or as C++ does when it aborts. */
static bool is_short(const mr_program *p, int wait_status, const char *line, int len)
{
    enum { SHORT = 4 };
    if (!p->when_short)
        return false;
    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == SHORT)
        return true;
    return memmem(line, (size_t)len, "bad_alloc", 9) || (len >= 11 && memcmp(line, "MemoryError", 11) == 0);
}

static mr_status exit_failure(const mr_program *p, int wait_status, const char *name, mr_error *err)
{
    int len;
    const char *line = telling_line(p, &len);
    if (is_short(p, wait_status, line, len))
        return mr_fail(err, MR_BAD_DATA, "%s: %s", name, p->when_short);
    if (WIFSIGNALED(wait_status))
        return mr_fail(err, MR_SYSTEM, "%s: was killed by signal %d (%s)%s%.*s", name, WTERMSIG(wait_status),
                       strsignal(WTERMSIG(wait_status)), len ? ": " : "", len, line);
    int code = WEXITSTATUS(wait_status);
    mr_status status = code == 1 ? MR_BAD_DATA : code == 2 ? MR_MISUSE : MR_SYSTEM;
    if (!len)
        return mr_fail(err, status, "%s: exited with code %d and no message", name, code);
    return mr_fail(err, status, "%s: %.*s", name, len, line);
}

mr_status mr_program_end(mr_program *p, mr_status so_far, const char *name, mr_error *err)
{
    int wait_status = 0;
    bool complete = so_far != MR_SYSTEM && drain(p->out);
    close(p->out);
    if (!complete)
        kill(p->pid, SIGKILL);
    while (waitpid(p->pid, &wait_status, 0) < 0 && errno == EINTR)
        ;
    atomic_store(&p->ended, true);
    pthread_join(p->listener, NULL);
    close(p->errors);
    mr_status status = so_far;
    if (complete && !(WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0))
        status = exit_failure(p, wait_status, name, err);
    else if (!complete && so_far == MR_OK)
        status = mr_fail(err, MR_BAD_DATA, "%s: keeps writing after the end of its tar stream", name);
    free(p);
    return status;
}
