/* test_events.c - TensorBoard event files: CRCs by known answers, records read back by a parser of the tests' own, full
 * disks, names.  (The tensorboard package reads them in read_with_tensorboard.py.)
 * Invariant tested: a file holds whole records, whatever happens to its writer. */
#include "train/journal/events.h"
#include "tests/support/training/events.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void test_crc32c(void **state)
{
    (void)state;
    uint8_t bytes[32];
    /* RFC 3720, appendix B.4. */
    memset(bytes, 0, sizeof bytes);
    assert_true(mr_crc32c(bytes, 32) == 0x8A9136AAu);
    memset(bytes, 0xFF, sizeof bytes);
    assert_true(mr_crc32c(bytes, 32) == 0x62A8AB43u);
    for (unsigned i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    assert_true(mr_crc32c(bytes, 32) == 0x46DD794Eu);
    for (unsigned i = 0; i < 32; i++)
        bytes[i] = (uint8_t)(31 - i);
    assert_true(mr_crc32c(bytes, 32) == 0x113FDB5Cu);
    static const uint8_t command[48] = {1, 0xC0, [16] = 0x14, [22] = 4, [27] = 0x14, [31] = 0x18, 0x28, [40] = 2};
    assert_true(mr_crc32c(command, sizeof command) == 0xD9963A56u);
    assert_true(mr_crc32c("123456789", 9) == 0xE3069283u);
    assert_true(mr_crc32c("", 0) == 0);
}

static mr_events *open_events(const char *dir)
{
    mr_events *e = NULL;
    mr_error err;
    if (mr_events_open(dir, &e, &err) != MR_OK)
        fail_msg("%s", err.text);
    return e;
}

static void add_one(mr_events *e, uint64_t step, const char *tag, float value)
{
    mr_scalar one = {tag, value};
    mr_error err;
    if (mr_events_add(e, 1.5e9 + (double)step / 8, step, &one, 1, &err) != MR_OK)
        fail_msg("%s", err.text);
}

static void test_read_back(void **state)
{
    (void)state;
    char *tmp = support_tmpdir(), *dir = support_path("%s/a/b/events", tmp);
    static const uint64_t steps[] = {0, 1, 127, 128, 16383, 16384, UINT32_MAX, INT64_MAX};
    static const float values[] = {0, -0.0f, 1.5f, 1e-45f, 3.4e38f, -1, INFINITY, NAN};
    mr_scalar many[] = {{"train/loss", 2.25f}, {"train/lr", 1e-3f}, {"", 0}, {"test/\xC3\xA4", 4}};
    double before = (double)time(NULL);
    mr_error err;
    mr_events *e = open_events(dir);
    for (size_t i = 0; i < MR_COUNT(steps); i++)
        add_one(e, steps[i], "x", values[i]);
    assert_int_equal(mr_events_add(e, 2, 9, many, MR_COUNT(many), &err), MR_OK);
    assert_int_equal(mr_events_restart(e, 3, 300, &err), MR_OK);
    assert_int_equal(mr_events_close(e, &err), MR_OK);

    size_t count;
    support_event *events = support_events_in(dir, &count);
    assert_int_equal(count, 1 + MR_COUNT(steps) + 2);
    assert_string_equal(events[0].version, "brain.Event:2");
    assert_true(events[0].wall_time >= before && events[0].wall_time < (double)time(NULL) + 1);
    assert_true(events[0].step == 0 && events[0].count == 0);
    for (size_t i = 0; i < MR_COUNT(steps); i++) {
        const support_event *one = &events[1 + i];
        assert_true(one->step == steps[i] && one->count == 1 && !*one->version);
        assert_true(one->wall_time == 1.5e9 + (double)steps[i] / 8);
        assert_memory_equal(&one->scalars[0].value, &values[i], sizeof values[i]);
    }
    const support_event *last = &events[count - 2];
    assert_int_equal(last->count, MR_COUNT(many));
    for (size_t i = 0; i < MR_COUNT(many); i++) {
        assert_string_equal(last->scalars[i].tag, many[i].tag);
        assert_true(last->scalars[i].value == many[i].value);
    }
    assert_true(events[count - 1].starts && events[count - 1].step == 300);
    free(events);
    free(dir);
    support_tmpdir_remove(tmp);
}

/* Runs that begin in the same second, by the same process, do not touch one another's files. */
static void test_names(void **state)
{
    (void)state;
    char *tmp = support_tmpdir(), pid[32];
    mr_events *e[3];
    long long last = 0;
    snprintf(pid, sizeof pid, ".%ld.", (long)getpid());
    for (int i = 0; i < 3; i++) {
        e[i] = open_events(tmp);
        const char *path = mr_events_path(e[i]);
        assert_true(strncmp(path, tmp, strlen(tmp)) == 0);
        assert_true(strncmp(path + strlen(tmp), "/events.out.tfevents.", 21) == 0);
        long long second = strtoll(path + strlen(tmp) + 21, NULL, 10);
        assert_true(second > 1500000000 && second > last); /* the first is told from the others by it */
        last = second;
        assert_non_null(strstr(path, pid));
        for (int k = 0; k < i; k++)
            assert_string_not_equal(path, mr_events_path(e[k]));
    }
    for (int i = 0; i < 3; i++) {
        size_t count;
        bool whole;
        add_one(e[i], (uint64_t)i, "n", (float)i);
        char *path = support_path("%s", mr_events_path(e[i]));
        assert_int_equal(mr_events_close(e[i], NULL), MR_OK);
        support_event *events = support_events_read(path, &count, &whole);
        assert_true(whole && count == 2 && events[1].step == (uint64_t)i);
        free(events);
        free(path);
    }
    assert_int_equal(mr_events_close(NULL, NULL), MR_OK);
    support_tmpdir_remove(tmp);
}

/* A disk that is full in the midst of a record: the call fails, the file ends with the record before, and goes on when
 * there is room again. */
static void test_full_disk(void **state)
{
    (void)state;
    char *tmp = support_tmpdir();
    struct rlimit old, small;
    mr_scalar one = {"train/loss", 1};
    mr_error err = {0};
    mr_events *e = open_events(tmp);
    char *path = support_path("%s", mr_events_path(e));
    add_one(e, 1, "train/loss", 1);
    uint64_t before = support_size(path);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = before + 20;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    mr_status status = mr_events_add(e, 0, 2, &one, 1, &err);
    uint64_t after = support_size(path);
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, MR_SYSTEM);
    assert_non_null(strstr(err.text, path));
    assert_true(after == before);
    add_one(e, 3, "train/loss", 3);
    assert_int_equal(mr_events_close(e, NULL), MR_OK);
    size_t count;
    support_event *events = support_events_in(tmp, &count);
    assert_true(count == 3 && events[1].step == 1 && events[2].step == 3);
    free(events);
    free(path);
    support_tmpdir_remove(tmp);
}

static void test_no_directory(void **state)
{
    (void)state;
    char *tmp = support_tmpdir(), *file = support_path("%s/file", tmp), *dir = support_path("%s/file/events", tmp);
    mr_events *e = NULL;
    mr_error err;
    support_write_text(file, "x");
    assert_int_equal(mr_events_open(dir, &e, &err), MR_SYSTEM);
    assert_non_null(strstr(err.text, file));
    assert_null(e);
    free(dir);
    free(file);
    support_tmpdir_remove(tmp);
}

/* A run's folder may come from a stranger, with a link to somebody's folder, or to nothing, in place of its own. */
static void test_link(void **state)
{
    (void)state;
    char *tmp = support_tmpdir(), *other = support_path("%s/other", tmp), *link = support_path("%s/run", tmp);
    char *inside = support_path("%s/run/tensorboard", tmp);
    mr_events *e = NULL;
    mr_error err;
    for (unsigned there = 0; there < 2; there++) {
        if (there)
            assert_int_equal(mkdir(other, 0777), 0);
        assert_int_equal(symlink(other, link), 0);
        assert_int_equal(mr_events_open(link, &e, &err), MR_MISUSE);
        assert_non_null(strstr(err.text, "run: is a link"));
        assert_null(e);
        assert_int_equal(unlink(link), 0);
    }
    char *list = support_list(other);
    assert_string_equal(list, "");
    free(list);
    assert_int_equal(symlink(other, link), 0); /* a link above is the user's own way of naming the place */
    assert_int_equal(mr_events_open(inside, &e, &err), MR_OK);
    assert_int_equal(mr_events_close(e, &err), MR_OK);
    list = support_list(other);
    assert_non_null(strstr(list, "tensorboard/events.out.tfevents."));
    free(list);
    free(inside);
    free(link);
    free(other);
    support_tmpdir_remove(tmp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crc32c),    cmocka_unit_test(test_read_back),    cmocka_unit_test(test_names),
        cmocka_unit_test(test_full_disk), cmocka_unit_test(test_no_directory), cmocka_unit_test(test_link),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
