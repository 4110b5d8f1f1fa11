/* server.c - starting server.py, and telling it what to do.
 * Invariant: the port is one that the system chose, so tests that run at once do not meet. */
#include "tests/support/remote/server.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/support.h"

bool support_server_start(const char *folder, support_server *out)
{
    int in[2], back[2];
    char line[32] = "";
    void *curl = dlopen("libcurl.so.4", RTLD_NOW);
    if (!curl) {
        support_cannot("URLs", "libcurl4 is not installed");
        return false;
    }
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(back), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(in[0], 0);
        dup2(back[1], 1);
        close(in[0]);
        close(in[1]);
        close(back[0]);
        close(back[1]);
        execlp("python3", "python3", MILLRACE_SOURCE_DIR "/tests/support/remote/server.py", folder, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(back[1]);
    for (size_t len = 0; len + 1 < sizeof line && !strchr(line, '\n') && read(back[0], line + len, 1) == 1;)
        len++;
    close(back[0]);
    *out = (support_server){.pid = pid, .input = in[1], .port = (unsigned)strtoul(line, NULL, 10)};
    if (out->port)
        return true;
    support_server_stop(out);
    support_cannot("a server", "python3 is not installed");
    return false;
}

void support_server_bucket(const char *folder, support_server *out)
{
    char *link = support_path("%s/bucket", folder), *cache = support_path("%s/cache", folder);
    if (!support_exists(link) && symlink(".", link) != 0)
        fail_msg("%s cannot be linked", link);
    if (support_server_start(folder, out)) {
        char *endpoint = support_path("http://127.0.0.1:%u", out->port);
        setenv("AWS_ENDPOINT_URL", endpoint, 1);
        setenv("XDG_CACHE_HOME", cache, 1);
        setenv("MILLRACE_PATIENCE", "2", 1);
        free(endpoint);
    } else {
        *out = (support_server){.port = 0};
    }
    free(link);
    free(cache);
}

void support_server_dataset(const char *root, const char *data)
{
    char *source = support_path("%s/source", root),
         *keep = support_path("%.*s/keep", (int)(strrchr(data, '/') - data), data);
    support_write_text(keep, "");
    support_expect(0, "sample", source, "--layout", "imagenette", "--images", "60", "--size", "48", "--quiet",
                   (char *)NULL);
    support_expect(0, "ingest", source, data, "--shard-size", "64KiB", "--quiet", (char *)NULL);
    free(keep);
    free(source);
}

void support_server_stop(support_server *s)
{
    if (s->pid <= 0)
        return;
    close(s->input);
    kill(s->pid, SIGKILL); /* a stalled answer need not end */
    waitpid(s->pid, NULL, 0);
    s->pid = 0;
}

bool support_server_ports(const char *folder, unsigned *ports, unsigned count)
{
    enum { MOST = 16 };
    support_server servers[MOST];
    unsigned found = 0;
    assert_true(count <= MOST);
    for (; found < count && support_server_start(folder, &servers[found]); found++)
        ports[found] = servers[found].port;
    for (unsigned i = 0; i < found; i++)
        support_server_stop(&servers[i]);
    return found == count;
}

bool support_server_runs(const char *folder, const char *command)
{
    char *quiet = support_path("{ %s; } >'%s/log' 2>&1", command, folder);
    bool good = system(quiet) == 0;
    free(quiet);
    return good;
}

/* The body of the answer. */
static char *ask(const support_server *s, const char *path)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)s->port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    char *request = support_path("GET %s HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n", path);
    assert_int_equal(write(fd, request, strlen(request)), (ssize_t)strlen(request));
    free(request);
    size_t len = 0, capacity = 1 << 20;
    char *answer = malloc(capacity);
    assert_non_null(answer);
    for (ssize_t n; len + 1 < capacity && (n = read(fd, answer + len, capacity - 1 - len)) > 0;)
        len += (size_t)n;
    answer[len] = '\0';
    close(fd);
    char *body = strstr(answer, "\r\n\r\n");
    assert_non_null(body);
    memmove(answer, body + 4, strlen(body + 4) + 1);
    return answer;
}

void support_server_fault(const support_server *s, const char *kind, const char *match, unsigned count)
{
    char *path = support_path("/-/fault?kind=%s&match=%s&count=%u", kind, match, count);
    free(ask(s, path));
    free(path);
}

void support_server_tell(const support_server *s, const char *order)
{
    char *path = support_path("/-/%s", order);
    free(ask(s, path));
    free(path);
}

void support_server_heal(const support_server *s)
{
    free(ask(s, "/-/fault?kind=none"));
}

char *support_server_log(const support_server *s)
{
    return ask(s, "/-/log");
}
