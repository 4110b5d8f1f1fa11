/* test_pause.c - signals and --checkpoint-every, summed over ranks.
 * Invariant tested: all ranks stop, or save, after the same update. */
#include "train/run/pause.h"
#include "tests/support/support.h"

#include <signal.h>
#include <unistd.h>
#include <string.h>

static const mr_pace never = {.updates = 0};

/* Adds what a rank knows that got this signal; 0: none. */
static void add_rank(double sums[MR_PAUSE_NUMBERS], int signal)
{
    mr_pause p;
    double numbers[MR_PAUSE_NUMBERS];
    mr_pause_begin(&p, &never, false, true);
    if (signal)
        raise(signal);
    mr_pause_numbers(&p, numbers);
    mr_pause_end(&p);
    for (size_t i = 0; i < MR_PAUSE_NUMBERS; i++)
        sums[i] += numbers[i];
}

static void test_signals(void **state)
{
    (void)state;
    static const struct {
        int ranks[3], stops;
    } cases[] = {
        {{0, 0, 0}, 0},
        {{SIGINT, 0, 0}, SIGINT},
        {{0, SIGUSR1, 0}, SIGUSR1},
        {{SIGUSR2, SIGUSR2, SIGUSR2}, SIGUSR2},
        {{SIGHUP, SIGHUP, 0}, SIGHUP},
        {{SIGINT, SIGTERM, SIGUSR1}, SIGTERM},
    };
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        double sums[MR_PAUSE_NUMBERS] = {0};
        for (size_t k = 0; k < MR_COUNT(cases[i].ranks); k++)
            add_rank(sums, cases[i].ranks[k]);
        assert_int_equal(mr_pause_stops(sums), cases[i].stops);
    }
}

static void ignore(int number)
{
    (void)number;
}

/* Handlers are restored; a SIGHUP that is ignored stays so, as under nohup. */
static void test_handlers(void **state)
{
    (void)state;
    mr_pause p;
    double numbers[MR_PAUSE_NUMBERS];
    struct sigaction now;
    signal(SIGUSR1, ignore);
    signal(SIGHUP, SIG_IGN);
    mr_pause_begin(&p, &never, false, true);
    kill(getpid(), SIGHUP);
    mr_pause_numbers(&p, numbers);
    assert_int_equal(mr_pause_stops(numbers), 0);
    mr_pause_end(&p);
    sigaction(SIGUSR1, NULL, &now);
    assert_true(now.sa_handler == ignore);
    sigaction(SIGHUP, NULL, &now);
    assert_true(now.sa_handler == SIG_IGN);
    signal(SIGUSR1, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
}

static void test_saves(void **state)
{
    (void)state;
    const mr_pace updates = {.updates = 5}, minutes = {.minutes = 1};
    mr_pause p;
    double sums[MR_PAUSE_NUMBERS];
    mr_pause_begin(&p, &updates, true, false);
    mr_pause_numbers(&p, sums);
    assert_true(mr_pause_saves(&p, sums, 5) && mr_pause_saves(&p, sums, 10) && !mr_pause_saves(&p, sums, 6));
    mr_pause_end(&p);
    for (int keeps_time = 0; keeps_time < 2; keeps_time++) {
        mr_pause_begin(&p, &minutes, keeps_time, false);
        mr_pause_numbers(&p, sums);
        assert_false(mr_pause_saves(&p, sums, 5));
        p.saved -= 61;
        mr_pause_numbers(&p, sums);
        assert_int_equal(mr_pause_saves(&p, sums, 5), keeps_time); /* one rank's clock counts */
        mr_pause_saved(&p);
        mr_pause_numbers(&p, sums);
        assert_false(mr_pause_saves(&p, sums, 5));
        mr_pause_end(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_handlers),
        cmocka_unit_test(test_saves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
