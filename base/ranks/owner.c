/* owner.c - taking a folder, the thread that shows that its owner lives, and whether other hosts see it.
 * Invariant: only the owner writes to its file, through the descriptor with which it made it: a file that has taken the
 * name belongs to another, and is never touched. */
#include "base/ranks/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/ranks/owner_file.h"
#include "base/system/pool.h"
#include "base/scope.h"

enum {
    ATTEMPTS = 3, /* to make the file, while others make and remove theirs */
    SEEN_TRIES = 50,
    SEEN_MS = 100,
};

struct mr_owner {
    mr_owner_options o;
    char *name, *path;
    mr_owner_identity identity;
    int dirfd, fd, bell;
    pthread_t thread;
    bool started;
};

/* ---- taking it --------------------------------------------------------------------------------------------------- */

/* MR_AGAIN: there is a file of that name.  fd stays -1 where nothing can be written. */
static mr_status make_file(mr_owner *w, mr_error *err)
{
    char text[MR_OWNER_TEXT];
    size_t len = mr_owner_text(&w->identity, text);
    w->fd = openat(w->dirfd, w->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (w->fd < 0 && errno == EEXIST)
        return mr_fail(err, MR_AGAIN, "another process");
    if (w->fd < 0 && (errno == EROFS || errno == EACCES || errno == EPERM))
        return MR_OK;
    if (w->fd < 0)
        return mr_fail_errno(err, errno, "%s: cannot create the lock file %s", w->path, w->name);
    mr_status status = mr_file_pwrite(w->fd, text, len, 0, w->path, err);
    if (status != MR_OK)
        unlinkat(w->dirfd, w->name, 0);
    return status;
}

static mr_status is_used(const mr_owner_file *file, mr_error *err)
{
    if (!file->known)
        return mr_fail(err, MR_AGAIN, "another process");
    return mr_fail(err, MR_AGAIN, "process %llu on %s", (unsigned long long)file->identity.process,
                   file->identity.host);
}

/* A tick, during which the other ranks wait for this one. */
static void wait_for(const mr_owner *w, long ms)
{
    if (w->o.ranks)
        mr_ranks_waits(w->o.ranks, true);
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
    if (w->o.ranks)
        mr_ranks_waits(w->o.ranks, false);
}

/* MR_OK: its owner does not respond, or the file is gone. */
static mr_status watch(const mr_owner *w, const mr_owner_file *before, mr_error *err)
{
    mr_error who, text;
    is_used(before, &who);
    mr_fail(&text, MR_AGAIN, "%s: in use by %s; waiting up to %g s to see whether it is still running", w->path,
            who.text, MR_OWNER_TICKS * (double)w->o.tick_ms / 1000);
    w->o.say(text.text);
    for (int tick = 0; tick < MR_OWNER_TICKS; tick++) {
        mr_owner_file now;
        wait_for(w, w->o.tick_ms);
        mr_status status = mr_owner_look(w->dirfd, w->name, w->path, &now, err);
        if (status != MR_OK)
            return status == MR_END ? MR_OK : status;
        if (now.len != before->len || memcmp(now.text, before->text, now.len) != 0)
            return is_used(&now, err);
    }
    mr_fail(&text, MR_AGAIN, "%s: %s is not responding; taking over", w->path, who.text);
    w->o.say(text.text);
    return MR_OK;
}

static bool has_lock(const mr_owner *w)
{
    return w->o.lock >= 0 &&
           flock(w->o.lock, LOCK_EX | LOCK_NB) == 0; /* the caller's descriptor, so this has an effect only once */
}

/* MR_OK: the owner has ended. */
static mr_status judge(const mr_owner *w, const mr_owner_file *file, mr_error *err)
{
    bool here = file->known && mr_owner_same_boot(&file->identity, &w->identity);
    if (here && has_lock(w))
        return MR_OK;
    if (here && file->identity.space == w->identity.space)
        return mr_owner_runs(&file->identity) ? is_used(file, err) : MR_OK;
    return watch(w, file, err);
}

/* Removes the file of an owner that has ended, unless it is another's by now. */
static void remove_dead(const mr_owner *w, const mr_owner_file *dead)
{
    mr_owner_file now;
    if (mr_owner_look(w->dirfd, w->name, w->path, &now, NULL) == MR_OK && now.len == dead->len &&
        memcmp(now.text, dead->text, now.len) == 0)
        unlinkat(w->dirfd, w->name, 0);
}

static mr_status take(mr_owner *w, mr_error *err)
{
    mr_status status = make_file(w, err);
    for (int i = 0; i < ATTEMPTS && status == MR_AGAIN; i++) {
        mr_owner_file file;
        status = mr_owner_look(w->dirfd, w->name, w->path, &file, err);
        if (status == MR_OK)
            status = judge(w, &file, err);
        if (status == MR_OK)
            remove_dead(w, &file);
        else if (status != MR_END)
            return status;
        status = make_file(w, err);
    }
    return status;
}

/* ---- keeping it -------------------------------------------------------------------------------------------------- */

mr_status mr_owner_check(const mr_owner *w, mr_error *err)
{
    mr_owner_file file;
    mr_error who;
    if (!w)
        return MR_OK;
    mr_status status = mr_owner_look(w->dirfd, w->name, w->path, &file, NULL);
    if (status == MR_END)
        return mr_fail(err, MR_SYSTEM,
                       "%s: lost ownership of this folder: its lock file %s was removed, or another process took over "
                       "because this one did not respond for %d s; stopping",
                       w->path, w->name, MR_OWNER_TICKS);
    if (status != MR_OK || !file.known || strcmp(file.identity.id, w->identity.id) == 0)
        return MR_OK;
    is_used(&file, &who);
    return mr_fail(err, MR_SYSTEM, "%s: %s took over, because this process did not respond for %d s; stopping", w->path,
                   who.text, MR_OWNER_TICKS);
}

/* Closing any descriptor of a file sends what was written to the server of a network file system. */
static void beat(mr_owner *w)
{
    char text[MR_OWNER_TEXT];
    w->identity.beats++;
    size_t len = mr_owner_text(&w->identity, text);
    ssize_t n = pwrite(w->fd, text, len, 0);
    int again = dup(w->fd);
    (void)n; /* a file that cannot be written looks like a dead owner, and its folder will be taken over */
    mr_scope_close(&again);
}

static void tell_cost(const mr_owner *w)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    if (w->o.ranks)
        mr_ranks_aside(w->o.ranks, (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec);
}

static void *run(void *arg)
{
    mr_owner *w = arg;
    mr_error why;
    struct pollfd bell = {.fd = w->bell, .events = POLLIN};
    while (poll(&bell, 1, (int)w->o.tick_ms) <= 0) {
        beat(w);
        tell_cost(w);
        if (mr_owner_check(w, &why) == MR_OK)
            continue;
        w->o.lost(w->o.ranks, &why);
        break;
    }
    return NULL;
}

static mr_status start(mr_owner *w, mr_error *err)
{
    w->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->bell < 0)
        return mr_fail_errno(err, errno, "%s: watching its lock file", w->path);
    int code = mr_thread_start(&w->thread, run, w);
    w->started = code == 0;
    return w->started ? MR_OK
                      : mr_fail_errno(err, code, "%s: cannot start the heartbeat thread,  " MR_NO_THREAD, w->path);
}

static mr_status begin(mr_owner *w, const mr_owner_options *o, mr_error *err)
{
    w->o = *o;
    w->o.tick_ms = o->tick_ms ? o->tick_ms : MR_OWNER_TICK_MS;
    w->name = strdup(o->name);
    w->path = strdup(o->path);
    if (!w->name || !w->path)
        return mr_fail_memory(err, o->path);
    w->dirfd = fcntl(o->dirfd, F_DUPFD_CLOEXEC, 0);
    if (w->dirfd < 0)
        return mr_fail_errno(err, errno, "%s", o->path);
    MR_TRY(mr_owner_self(&w->identity, err));
    MR_TRY(take(w, err));
    return w->fd >= 0 ? start(w, err) : MR_OK;
}

mr_status mr_owner_take(const mr_owner_options *o, mr_owner **out, mr_error *err)
{
    mr_owner *w = mr_alloc(1, sizeof *w);
    *out = NULL;
    if (!w)
        return mr_fail_memory(err, o->path);
    *w = (mr_owner){.dirfd = -1, .fd = -1, .bell = -1};
    mr_status status = begin(w, o, err);
    if (status == MR_OK && w->fd >= 0)
        *out = w;
    else
        mr_owner_release(w);
    return status;
}

void mr_owner_release(mr_owner *w)
{
    mr_owner_file file;
    if (!w)
        return;
    if (w->started) {
        eventfd_write(w->bell, 1);
        pthread_join(w->thread, NULL);
    }
    if (w->fd >= 0 && mr_owner_look(w->dirfd, w->name, w->path, &file, NULL) == MR_OK && file.known &&
        strcmp(file.identity.id, w->identity.id) == 0)
        unlinkat(w->dirfd, w->name, 0);
    mr_scope_close(&w->fd);
    mr_scope_close(&w->bell);
    mr_scope_close(&w->dirfd);
    free(w->name);
    free(w->path);
    free(w);
}

/* ---- on the other hosts ------------------------------------------------------------------------------------------ */

static mr_status look_for(const char *file, const char *id, mr_ranks *ranks, mr_error *err)
{
    for (int i = 0; i < SEEN_TRIES; i++) {
        mr_owner_file seen;
        if (mr_owner_look(AT_FDCWD, file, file, &seen, NULL) == MR_OK && seen.known &&
            strcmp(seen.identity.id, id) == 0)
            return MR_OK;
        nanosleep(&(struct timespec){.tv_nsec = SEEN_MS * 1000000}, NULL);
    }
    return mr_fail(err, MR_MISUSE, "%s: was created by %s, but is not visible here", file,
                   mr_ranks_name_of(ranks, 0).text);
}

mr_status mr_owner_seen(const mr_owner *w, const char *file, mr_ranks *ranks, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf id = {0};
    if (w)
        mr_buf_add_text(&id, w->identity.id);
    MR_TRY(mr_ranks_agree(ranks, mr_buf_status(&id, err, file), err));
    MR_TRY(mr_ranks_share(ranks, &id, err));
    bool looks = id.len && mr_ranks_rank(ranks) != 0 && mr_ranks_local_rank(ranks) == 0;
    return mr_ranks_agree(ranks, looks ? look_for(file, mr_buf_text(&id), ranks, err) : MR_OK, err);
}
