/* test_owner.c - who owns a folder, decided by a file with a heartbeat.
 * Invariant tested: a living owner keeps its folder, a dead one's is taken over, and who has lost its folder knows. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/ranks/owner.h"
#include "base/ranks/owner_file.h"
#include "tests/support/support.h"

enum { TICK_MS = 5, SLOW_TICK_MS = 200 }; /* slow: the other thread changes the file within 15 of them */

static int said;
static atomic_int lost_count;

static void say(const char *text)
{
    assert_non_null(strstr(text, "folder: "));
    said++;
}

static void lost(mr_ranks *ranks, const mr_error *why)
{
    (void)ranks;
    atomic_fetch_add(&lost_count, strstr(why->text, "process 4711 on node7 took over") != NULL ||
                                      strstr(why->text, "its lock file owner was removed") != NULL);
}

static mr_owner_options options(int dir)
{
    said = 0;
    atomic_store(&lost_count, 0);
    return (mr_owner_options){
        .dirfd = dir, .name = "owner", .lock = -1, .path = "folder", .say = say, .lost = lost, .tick_ms = TICK_MS};
}

static int open_dir(void **state)
{
    int dir = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(dir >= 0);
    return dir;
}

static bool exists(int dir)
{
    return faccessat(dir, "owner", F_OK, 0) == 0;
}

/* A file of process 4711 on node7, or of one of this boot. */
static mr_owner_identity other(bool here)
{
    mr_owner_identity identity;
    assert_int_equal(mr_owner_self(&identity, NULL), MR_OK);
    snprintf(identity.host, sizeof identity.host, "node7");
    identity.process = 4711;
    if (!here)
        snprintf(identity.boot, sizeof identity.boot, "of-another-host");
    return identity;
}

static void put(int dir, const mr_owner_identity *identity)
{
    char text[MR_OWNER_TEXT];
    size_t len = mr_owner_text(identity, text);
    assert_int_equal(mr_file_publish(dir, "owner", text, len, NULL), MR_OK);
}

static void an_owner_shows_that_it_lives(void **state)
{
    int dir = open_dir(state);
    mr_owner_options o = options(dir);
    mr_owner *mine;
    mr_owner_file first, now = {.len = 0};
    assert_int_equal(mr_owner_take(&o, &mine, NULL), MR_OK);
    assert_int_equal(mr_owner_look(dir, "owner", "folder", &first, NULL), MR_OK);
    assert_true(first.known);
    assert_int_equal(first.identity.process, getpid());
    do /* ends by the limit of the test if it does not */
        assert_int_equal(mr_owner_look(dir, "owner", "folder", &now, NULL), MR_OK);
    while (now.identity.beats < first.identity.beats + 2);
    assert_string_equal(now.identity.id, first.identity.id);
    assert_int_equal(mr_owner_check(mine, NULL), MR_OK);
    mr_owner_release(mine);
    assert_false(exists(dir));
    assert_int_equal(said, 0);
    close(dir);
}

static atomic_bool ends;

/* What the thread of an owner on another host does. */
static void *beat(void *arg)
{
    int dir = *(int *)arg, fd = openat(dir, "owner", O_WRONLY | O_CLOEXEC);
    mr_owner_identity identity = other(false);
    char text[MR_OWNER_TEXT];
    while (!atomic_load(&ends)) {
        identity.beats++;
        size_t len = mr_owner_text(&identity, text);
        if (pwrite(fd, text, len, 0) != (ssize_t)len)
            break;
        usleep(1000);
    }
    close(fd);
    return NULL;
}

static void an_owner_on_another_host_is_watched(void **state)
{
    int dir = open_dir(state);
    mr_owner_options o = options(dir);
    mr_owner *mine;
    mr_owner_identity identity = other(false);
    mr_error err;
    pthread_t thread;
    put(dir, &identity);
    o.tick_ms = SLOW_TICK_MS;
    atomic_store(&ends, false);
    assert_int_equal(pthread_create(&thread, NULL, beat, &dir), 0);
    assert_int_equal(mr_owner_take(&o, &mine, &err), MR_AGAIN);
    assert_string_equal(err.text, "process 4711 on node7");
    assert_null(mine);
    assert_int_equal(said, 1); /* that it waits */
    atomic_store(&ends, true);
    pthread_join(thread, NULL);

    o = options(dir);
    assert_int_equal(mr_owner_take(&o, &mine, &err), MR_OK); /* it has stopped */
    assert_int_equal(said, 2);
    assert_int_equal(mr_owner_check(mine, &err), MR_OK);
    mr_owner_release(mine);
    assert_false(exists(dir));
    close(dir);
}

static void on_one_host_the_lock_or_the_process_decides(void **state)
{
    int dir = open_dir(state);
    mr_owner_options o = options(dir);
    mr_owner *mine;
    mr_error err;
    mr_owner_identity identity = other(true);
    identity.process = (uint64_t)getpid(); /* it runs */
    put(dir, &identity);
    assert_int_equal(mr_owner_take(&o, &mine, &err), MR_AGAIN);
    identity.start++; /* another process had its number */
    put(dir, &identity);
    assert_int_equal(mr_owner_take(&o, &mine, &err), MR_OK);
    mr_owner_release(mine);

    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    identity.process = (uint64_t)pid;
    put(dir, &identity); /* a zombie, then nothing */
    assert_int_equal(mr_owner_take(&o, &mine, &err), MR_OK);
    mr_owner_release(mine);
    assert_int_equal(waitpid(pid, NULL, 0), pid);

    identity = other(true);
    identity.space++; /* of another container, whose numbers mean nothing here, but the kernel's lock does */
    put(dir, &identity);
    o.lock = dir;
    assert_int_equal(mr_owner_take(&o, &mine, &err), MR_OK);
    mr_owner_release(mine);
    assert_int_equal(said, 0);
    close(dir);
}

static void a_folder_that_was_taken_is_noticed(void **state)
{
    int dir = open_dir(state);
    mr_owner_options o = options(dir);
    mr_owner *mine;
    mr_error err;
    mr_owner_identity identity = other(false);
    assert_int_equal(mr_owner_take(&o, &mine, &err), MR_OK);
    put(dir, &identity);
    assert_int_equal(mr_owner_check(mine, &err), MR_SYSTEM);
    assert_non_null(strstr(err.text, "folder: process 4711 on node7 took over"));
    while (!atomic_load(&lost_count)) /* ends by the limit of the test if it does not */
        usleep(1000);
    mr_owner_release(mine);
    assert_true(exists(dir)); /* it is the other's */
    assert_int_equal(unlinkat(dir, "owner", 0), 0);
    close(dir);
}

/* As after another owner that has ended. */
static void a_file_that_is_gone_is_noticed(void **state)
{
    int dir = open_dir(state);
    mr_owner_options o = options(dir);
    mr_owner *mine;
    mr_error err;
    assert_int_equal(mr_owner_take(&o, &mine, &err), MR_OK);
    assert_int_equal(unlinkat(dir, "owner", 0), 0);
    assert_int_equal(mr_owner_check(mine, &err), MR_SYSTEM);
    assert_non_null(strstr(err.text, "folder: lost ownership of this folder: its lock file owner was removed"));
    while (!atomic_load(&lost_count)) /* ends by the limit of the test if it does not */
        usleep(1000);
    mr_owner_release(mine);
    assert_false(exists(dir));
    close(dir);
}

static void a_file_of_any_content_is_an_owner(void **state)
{
    static const char *const texts[] = {"", "millrace owner\n", "millrace owner\nbeats 1\nhost h\nboot b\nprocess x"};
    int dir = open_dir(state);
    mr_owner *mine;
    for (size_t i = 0; i < MR_COUNT(texts); i++) {
        mr_owner_options o = options(dir);
        o.tick_ms = 1;
        assert_int_equal(mr_file_publish(dir, "owner", texts[i], strlen(texts[i]), NULL), MR_OK);
        assert_int_equal(mr_owner_take(&o, &mine, NULL), MR_OK);
        assert_int_equal(said, 2); /* it has not responded either */
        mr_owner_release(mine);
        assert_false(exists(dir));
    }
    close(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(an_owner_shows_that_it_lives),
        IN_TMPDIR(an_owner_on_another_host_is_watched),
        IN_TMPDIR(on_one_host_the_lock_or_the_process_decides),
        IN_TMPDIR(a_folder_that_was_taken_is_noticed),
        IN_TMPDIR(a_file_that_is_gone_is_noticed),
        IN_TMPDIR(a_file_of_any_content_is_an_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
