/* test_output.c - what a file is written to: a new file, one that is there, a link, a pipe, a device; by several at
 * once.  Invariant tested: a regular file is seen whole or not at all, even if others write it; nothing else that
 * stands under a name that the user gave is replaced. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/file.h"
#include "tests/support/support.h"

#define IN(name, file) char *name __attribute__((cleanup(free_text))) = support_path("%s/%s", (char *)*state, file)

static void free_text(char **text)
{
    free(*text);
}

static mr_status publish(const char *path, const char *text, mr_error *err)
{
    return mr_file_publish(AT_FDCWD, path, text, strlen(text), err);
}

static void expect(const char *path, const char *text)
{
    mr_error err = {0};
    if (publish(path, text, &err) != MR_OK)
        fail_msg("%s", err.text);
}

static void refuse(const char *path, mr_status status, const char *words)
{
    mr_error err = {0};
    assert_int_equal(publish(path, "text", &err), status);
    if (!strstr(err.text, words))
        fail_msg("'%s' is not in: %s", words, err.text);
}

static void holds(const char *path, const char *text)
{
    uint8_t *bytes = support_read(path, NULL);
    assert_string_equal((char *)bytes, text);
    free(bytes);
}

static mode_t type_of(const char *path)
{
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    return st.st_mode & S_IFMT;
}

/* ---- several writers --------------------------------------------------------------------------------------------- */

enum { WRITERS = 4, ROUNDS = 30, LEN = 200000 };

static void write_often(const char *path, int writer)
{
    char *bytes = malloc(LEN);
    memset(bytes, 'a' + writer, LEN);
    mr_error err = {0};
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 8 == 7)
            mr_file_forget(AT_FDCWD, path); /* takes no other's away */
        if (mr_file_publish(AT_FDCWD, path, bytes, LEN, &err) != MR_OK) {
            fprintf(stderr, "writer %d: %s\n", writer, err.text);
            _exit(1);
        }
    }
    _exit(0);
}

static void test_writers_take_turns(void **state)
{
    IN(path, "file");
    IN(temp, "file.millrace.tmp");
    expect(path, "");
    int start[2], status, ended = 0;
    assert_int_equal(pipe(start), 0);
    for (int i = 0; i < WRITERS; i++) {
        if (fork() == 0) {
            close(start[1]);
            if (read(start[0], &status, 1) == 0) /* all begin at once */
                write_often(path, i);
            _exit(1);
        }
    }
    close(start[0]);
    close(start[1]);
    while (ended < WRITERS) {
        size_t len;
        uint8_t *bytes = support_read(path, &len);
        assert_true(len == 0 || (len == LEN && memcmp(bytes, bytes + 1, LEN - 1) == 0));
        free(bytes);
        while (ended < WRITERS && waitpid(-1, &status, WNOHANG) > 0) {
            assert_int_equal(status, 0);
            ended++;
        }
    }
    assert_false(support_exists(temp));
}

static void test_what_a_killed_writer_left(void **state)
{
    IN(path, "file");
    IN(temp, "file.millrace.tmp");
    mr_output o;
    mr_error err;
    support_write_text(temp, "half");
    expect(path, "new");
    holds(path, "new");
    assert_false(support_exists(temp));
    support_write_text(temp, "half");
    mr_file_forget(AT_FDCWD, path);
    assert_false(support_exists(temp));
    assert_int_equal(mr_output_open(AT_FDCWD, path, &o, &err), MR_OK);
    mr_file_forget(AT_FDCWD, path); /* its writer lives */
    assert_true(support_exists(temp));
    assert_int_equal(mr_file_write(o.fd, "newer", 5, path, &err), MR_OK);
    holds(path, "new");
    assert_int_equal(mr_output_close(&o, MR_OK, &err), MR_OK);
    holds(path, "newer");
    assert_int_equal(mr_output_open(AT_FDCWD, path, &o, &err), MR_OK);
    assert_int_equal(mr_output_close(&o, mr_fail(&err, MR_BAD_DATA, "of the writer's own"), &err), MR_BAD_DATA);
    holds(path, "newer");
    assert_false(support_exists(temp));
    /* A stranger's link is not a temporary file of ours: what it leads to stays as it is. */
    IN(other, "other");
    support_write_text(other, "other");
    assert_int_equal(symlink("other", temp), 0);
    expect(path, "newest");
    assert_int_equal(unlink(temp) == 0 ? 0 : errno, ENOENT);
    assert_int_equal(link(other, temp), 0);
    expect(path, "newest");
    holds(other, "other");
}

/* What is at the temporary name now is another's, or nothing: neither becomes the file. */
static void test_taken_away(void **state)
{
    IN(path, "file");
    IN(temp, "file.millrace.tmp");
    mr_output o;
    mr_error err;
    expect(path, "old");
    for (int another = 0; another < 2; another++) {
        assert_int_equal(mr_output_open(AT_FDCWD, path, &o, &err), MR_OK);
        assert_int_equal(unlink(temp), 0);
        if (another)
            support_write_text(temp, "another's");
        assert_int_equal(mr_output_close(&o, MR_OK, &err), MR_SYSTEM);
        assert_non_null(strstr(err.text, "file.millrace.tmp: was removed or replaced while being written"));
        holds(path, "old");
    }
    holds(temp, "another's");
}

/* ---- links ------------------------------------------------------------------------------------------------------- */

static void test_links_are_followed(void **state)
{
    IN(file, "a/file");
    IN(link, "b/link");
    IN(again, "again");
    IN(nowhere, "b/nowhere");
    IN(made, "a/made");
    IN(astray, "astray");
    IN(ring, "ring");
    support_write_text(file, "old");
    support_write_text(link, "");
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink("../a/file", link), 0);
    assert_int_equal(symlink(link, again), 0);
    assert_int_equal(symlink("../a/made", nowhere), 0);
    assert_int_equal(symlink("no/such/folder", astray), 0);
    assert_int_equal(symlink("ring", ring), 0);
    expect(again, "new");
    holds(file, "new");
    assert_int_equal(type_of(again), S_IFLNK);
    assert_int_equal(type_of(link), S_IFLNK);
    expect(nowhere, "made");
    holds(made, "made");
    assert_int_equal(type_of(nowhere), S_IFLNK);
    refuse(astray, MR_MISUSE, "no/such/folder: its folder does not exist");
    refuse(ring, MR_SYSTEM, "ring: ");
    assert_int_equal(type_of(ring), S_IFLNK);
    /* Below a folder that we hold it is our own name, and a link there somebody else's. */
    int dir = open(*state, O_RDONLY | O_DIRECTORY);
    mr_error err;
    assert_int_equal(mr_file_publish(dir, "again", "own", 3, &err), MR_OK);
    close(dir);
    assert_int_equal(type_of(again), S_IFREG);
    holds(file, "new");
}

/* ---- things that are not files ----------------------------------------------------------------------------------- */

static void test_fifos_and_folders(void **state)
{
    IN(fifo, "fifo");
    IN(link, "link");
    IN(folder, "folder");
    IN(below, "fifo/file");
    char got[16] = "";
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(symlink("fifo", link), 0);
    assert_int_equal(mkdir(folder, 0700), 0);
    refuse(fifo, MR_MISUSE, "fifo: is a FIFO without a reader");
    refuse(folder, MR_MISUSE, "folder: is a directory; name a file");
    refuse(below, MR_MISUSE, "its folder does not exist");
    int reader = open(fifo, O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    expect(link, "through it");
    assert_int_equal(read(reader, got, sizeof got), 10);
    assert_string_equal(got, "through it");
    close(reader);
    assert_int_equal(type_of(fifo), S_IFIFO);
    assert_int_equal(type_of(link), S_IFLNK);
}

/* Not opened again: what was appended before stays, and what comes next goes after it. */
static void test_descriptors(void **state)
{
    IN(file, "file");
    IN(closed, "closed");
    int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    char *path = support_path("/proc/self/fd/%d", fd), *wrong = support_path("/proc/self/fd/%d", 987);
    IN(link, "link");
    assert_int_equal(write(fd, "one ", 4), 4);
    if (!support_exists(path)) {
        support_cannot("descriptors by their names", "there is no /proc");
    } else {
        assert_int_equal(symlink(path, link), 0);
        assert_int_equal(symlink(wrong, closed), 0);
        expect(link, "two ");
        assert_int_equal(write(fd, "three", 5), 5);
        holds(file, "one two three");
        assert_int_equal(type_of(link), S_IFLNK);
        refuse(closed, MR_MISUSE, "its folder does not exist");
    }
    close(fd);
    free(path);
    free(wrong);
}

static void test_devices(void **state)
{
    IN(device, "device");
    IN(link, "link");
    IN(disk, "disk");
    int fd = -1;
    if (mknod(device, S_IFCHR | 0600, makedev(1, 3)) != 0 || (fd = open(device, O_WRONLY)) < 0) {
        support_cannot("a device in a folder", strerror(errno));
        return;
    }
    close(fd);
    assert_int_equal(symlink("device", link), 0);
    expect(device, "gone");
    expect(link, "gone");
    assert_int_equal(type_of(device), S_IFCHR);
    assert_int_equal(type_of(link), S_IFLNK);
    if (mknod(disk, S_IFBLK | 0600, makedev(7, 4095)) == 0)
        refuse(disk, MR_MISUSE, "disk: is a disk; name a file");
}

/* A name may be as long as the file system takes it, though the temporary file's is longer. */
static void test_long_names(void **state)
{
    char name[NAME_MAX + 2], *paths[3];
    static const int lengths[] = {NAME_MAX, NAME_MAX, NAME_MAX - 13};
    for (int i = 0; i < 3; i++) {
        memset(name, 'n', sizeof name);
        name[lengths[i] - 1] = (char)('0' + i);
        name[lengths[i]] = '\0';
        paths[i] = support_path("%s/%s", (char *)*state, name);
        expect(paths[i], name + lengths[i] - 1);
    }
    for (int i = 0; i < 3; i++)
        holds(paths[i], (const char *const[]){"0", "1", "2"}[i]);
    memset(name, 'n', sizeof name); /* nor one that is named like a temporary file */
    strcpy(name + NAME_MAX - 13, ".millrace.tmp");
    free(paths[1]);
    paths[1] = support_path("%s/%s", (char *)*state, name);
    expect(paths[1], "old");
    mr_output o;
    mr_error err;
    assert_int_equal(mr_output_open(AT_FDCWD, paths[1], &o, &err), MR_OK);
    holds(paths[1], "old");
    assert_int_equal(mr_output_close(&o, MR_SYSTEM, &err), MR_SYSTEM);
    holds(paths[1], "old");
    assert_int_equal(unlink(paths[1]), 0);
    memset(name, 'n', sizeof name);
    name[NAME_MAX + 1] = '\0';
    free(paths[0]);
    paths[0] = support_path("%s/%s", (char *)*state, name);
    refuse(paths[0], MR_SYSTEM, "File name too long");
    char *left = support_list(*state);
    assert_null(strstr(left, ".tmp"));
    free(left);
    for (int i = 0; i < 3; i++)
        free(paths[i]);
}

/* ---- the commands ------------------------------------------------------------------------------------------------ */

/* Each by a link of the folder's own to the descriptor 3, which is a pipe. */
static void test_commands(void **state)
{
    static const struct {
        const char *command, *begin;
    } trials[] = {
        {"ingest source again -q --report out", "{"},
        {"verify ds -q --junit out", "<?xml"},
        {"show ds train 0 --force --image out", "\xFF\xD8"},
        {"tokenizer ds --text-column image_description --size 300 -q --output out", "{"},
    };
    IN(out, "out");
    IN(got, "got");
    char *dir = *state;
    support_limits limits = {.directory = dir};
    SAYS(dir, 0, NULL, NULL, "sample", "source", "--layout", "newyorker", "--images", "12", "-q");
    SAYS(dir, 0, NULL, NULL, "ingest", "source", "ds", "-q");
    assert_int_equal(symlink("/proc/self/fd/3", out), 0);
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        char *line = support_path("{ '%s' %s 3>&1 >words; echo $? >status; } | cat >got && exit $(cat status)",
                                  support_millrace_path(), trials[i].command);
        const char *argv[] = {"sh", "-c", line, NULL};
        support_result r = support_run(argv, &limits);
        support_assert_status(&r, 0);
        uint8_t *bytes = support_read(got, NULL);
        if (strncmp((char *)bytes, trials[i].begin, strlen(trials[i].begin)) != 0)
            fail_msg("%s: wrote %.40s", trials[i].command, (char *)bytes);
        assert_int_equal(type_of(out), S_IFLNK);
        free(bytes);
        support_result_free(&r);
        free(line);
    }
}

/* What is printed goes nowhere, and into no file; that it went nowhere is an error. */
static void test_closed_descriptors(void **state)
{
    static const struct {
        const char *command, *begin, *end;
    } trials[] = {
        {"verify ds --junit out", "<?xml", "</testsuites>\n"},
        {"ingest source again --report out", "{", "}\n"},
    };
    IN(out, "out");
    SAYS(*state, 0, NULL, NULL, "sample", "source", "--layout", "imagenette", "--images", "12", "-q");
    SAYS(*state, 0, NULL, NULL, "ingest", "source", "ds", "-q");
    for (size_t i = 0; i < MR_COUNT(trials); i++) {
        char *line = support_path("'%s' %s <&- >&- 2>&-; echo $? >status; exit $(cat status)", support_millrace_path(),
                                  trials[i].command);
        const char *argv[] = {"sh", "-c", line, NULL};
        support_result r = support_run(argv, &(support_limits){.directory = *state});
        support_assert_status(&r, 3);
        size_t len, end = strlen(trials[i].end);
        uint8_t *bytes = support_read(out, &len);
        assert_true(strncmp((char *)bytes, trials[i].begin, strlen(trials[i].begin)) == 0 && len > end);
        assert_string_equal((char *)bytes + len - end, trials[i].end);
        free(bytes);
        support_result_free(&r);
        free(line);
    }
}

/* What several do to one dataset at once. */
static void test_commands_at_once(void **state)
{
    static const char line[] =
        "rm ds/*.idx; for c in reindex 'seek --force'; do for i in 1 2 3; do '%s' $c ds -q || echo $c >>failed & done; "
        "wait; done; test ! -e failed && '%s' verify ds --deep -q && test -z \"$(ls ds | grep tmp)\"";
    char *dir = *state, *text = support_path(line, support_millrace_path(), support_millrace_path());
    const char *argv[] = {"sh", "-c", text, NULL};
    support_limits limits = {.directory = dir};
    SAYS(dir, 0, NULL, NULL, "sample", "source", "--layout", "imagenette", "--images", "30", "-q");
    SAYS(dir, 0, NULL, NULL, "ingest", "source", "ds", "--shard-size", "16KiB", "-q");
    support_result r = support_run(argv, &limits);
    support_assert_status(&r, 0);
    support_result_free(&r);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(test_writers_take_turns),
        IN_TMPDIR(test_what_a_killed_writer_left),
        IN_TMPDIR(test_taken_away),
        IN_TMPDIR(test_links_are_followed),
        IN_TMPDIR(test_fifos_and_folders),
        IN_TMPDIR(test_descriptors),
        IN_TMPDIR(test_devices),
        IN_TMPDIR(test_long_names),
        IN_TMPDIR(test_closed_descriptors),
        IN_TMPDIR(test_commands),
        IN_TMPDIR(test_commands_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
