/* owner_file.c - an owner's file as text, and what this host knows of the process that it names.
 * Invariant: a file that cannot be read still has an owner, an unknown one. */
#include "base/ranks/owner_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/scope.h"

/* At most size - 1 bytes of a small file, as text; false: it cannot be read. */
static bool read_small(int dirfd, const char *path, char *text, size_t size, size_t *len)
{
    MR_AUTO(mr_scope_close) int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t n = fd >= 0 ? read(fd, text, size - 1) : -1;
    text[n > 0 ? n : 0] = '\0';
    if (len)
        *len = n > 0 ? (size_t)n : 0;
    return n >= 0;
}

/* When a process started, in ticks since boot; false: it does not run.  Source: proc(5), fields 3 and 22 of stat. */
static bool started(uint64_t process, uint64_t *start)
{
    char path[64], stat[1024];
    snprintf(path, sizeof path, "/proc/%" PRIu64 "/stat", process);
    if (!read_small(AT_FDCWD, path, stat, sizeof stat, NULL))
        return false;
    const char *rest = strrchr(stat, ')'); /* "7 (name) S ..." */
    char state = 'X';
    *start = 0;
    int found = rest ? sscanf(rest, /* NOLINT(cert-err34-c): the kernel's numbers fit */
                              ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                              "%" SCNu64,
                              &state, start)
                     : 0;
    return found == 2 && state != 'Z' && state != 'X';
}

mr_status mr_owner_self(mr_owner_identity *out, mr_error *err)
{
    uint8_t random[MR_OWNER_ID / 2];
    struct stat space;
    *out = (mr_owner_identity){.process = (uint64_t)getpid()};
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return mr_fail_errno(err, errno, "no random bytes");
    mr_hex(random, sizeof random, out->id);
    gethostname(out->host, sizeof out->host);
    out->host[sizeof out->host - 1] = '\0';
    out->host[strcspn(out->host, "\n")] = '\0';
    if (!read_small(AT_FDCWD, "/proc/sys/kernel/random/boot_id", out->boot, sizeof out->boot, NULL) || !*out->boot)
        snprintf(out->boot, sizeof out->boot, "-");
    out->boot[strcspn(out->boot, "\n")] = '\0';
    started(out->process, &out->start);
    out->space = stat("/proc/self/ns/pid", &space) == 0 ? space.st_ino : 0;
    return MR_OK;
}

size_t mr_owner_text(const mr_owner_identity *identity, char text[MR_OWNER_TEXT])
{
    int n = snprintf(text, MR_OWNER_TEXT,
                     "millrace owner\nbeats %020" PRIu64 "\nhost %s\nboot %s\nprocess %" PRIu64 " %" PRIu64 " %" PRIu64
                     "\nid %s\n",
                     identity->beats, *identity->host ? identity->host : "-", identity->boot, identity->process,
                     identity->start, identity->space, identity->id);
    return n > 0 && n < MR_OWNER_TEXT ? (size_t)n : 0;
}

mr_status mr_owner_look(int dirfd, const char *name, const char *path, mr_owner_file *out, mr_error *err)
{
    mr_owner_identity *c = &out->identity;
    *out = (mr_owner_file){.known = false};
    if (!read_small(dirfd, name, out->text, sizeof out->text, &out->len))
        return errno == ENOENT ? MR_END : mr_fail_errno(err, errno, "%s: cannot read the lock file %s", path, name);
    /* NOLINTNEXTLINE(cert-err34-c): a number that does not fit is another owner's, whatever it becomes */
    out->known = sscanf(out->text,
                        "millrace owner\nbeats %20" SCNu64 "\nhost %64[^\n]\nboot %40[^\n]\nprocess %20" SCNu64
                        " %20" SCNu64 " %20" SCNu64 "\nid %32[0-9a-f]",
                        &c->beats, c->host, c->boot, &c->process, &c->start, &c->space, c->id) == 7;
    return MR_OK;
}

bool mr_owner_same_boot(const mr_owner_identity *a, const mr_owner_identity *b)
{
    return strcmp(a->boot, "-") != 0 && strcmp(a->boot, b->boot) == 0;
}

bool mr_owner_runs(const mr_owner_identity *identity)
{
    uint64_t start;
    return started(identity->process, &start) && start == identity->start;
}
