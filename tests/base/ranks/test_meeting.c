/* test_meeting.c - a process whose run does not come together.
 * Invariant tested: it ends by itself, with a sentence; one whose run has come together does not, and one that no
 * launcher started has nothing to wait for. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/ranks/meeting.h"
#include "tests/support/support.h"

static int pipe_end;

static void tell(const mr_error *err)
{
    if (write(pipe_end, err->text, strlen(err->text)) < 0)
        _exit(9);
}

static void launched(const char *rank)
{
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    setenv("OMPI_COMM_WORLD_RANK", rank, 1);
}

/* In a child; returns its exit code, and what it told. */
static int wait_alone(const char *rank, char text[512])
{
    int ends[2], code;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        mr_meeting *m = NULL;
        pipe_end = ends[1];
        launched(rank);
        if (mr_meeting_begin(1, tell, &m, NULL) != MR_OK || !m)
            _exit(9);
        for (;;)
            pause();
    }
    close(ends[1]);
    ssize_t n = read(ends[0], text, 511);
    text[n > 0 ? n : 0] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(pid, &code, 0), pid);
    return WIFEXITED(code) ? WEXITSTATUS(code) : -1;
}

static void who_waits_alone_ends(void **state)
{
    char text[512];
    (void)state;
    assert_int_equal(wait_alone("0", text), 3);
    assert_non_null(strstr(text, "rank 0 on "));
    assert_non_null(strstr(text, " timed out after 1 s waiting for the other ranks to start: "));
    assert_int_equal(wait_alone("1", text), 3); /* later, where nobody has ended it */
    assert_non_null(strstr(text, "rank 1 on "));
}

static void who_has_met_goes_on(void **state)
{
    mr_meeting *m = NULL;
    (void)state;
    assert_int_equal(mr_meeting_begin(1, tell, &m, NULL), MR_OK); /* no launcher */
    assert_null(m);
    launched("0");
    assert_int_equal(mr_meeting_begin(0, tell, &m, NULL), MR_OK); /* no limit */
    assert_null(m);
    assert_int_equal(mr_meeting_begin(3600, tell, &m, NULL), MR_OK);
    assert_non_null(m);
    mr_meeting_end(m); /* does not wait for the hour */
    mr_meeting_end(NULL);
    unsetenv("OMPI_COMM_WORLD_SIZE");
    unsetenv("OMPI_COMM_WORLD_RANK");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_waits_alone_ends),
        cmocka_unit_test(who_has_met_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
