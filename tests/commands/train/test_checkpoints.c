/* test_checkpoints.c - checkpoints between evaluations, and signals that end a run after a checkpoint.
 * Invariant tested: neither changes what is learned, and all ranks stop and save after the same update.
 * Covers run/trainer_checkpoint.c. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "tests/support/faults.h"
#include "tests/support/training/train.h"

static int set_up(void **state)
{
    char *dir = support_tmpdir();
    train_make_dataset(dir, 120); /* train 84, val 36 */
    train_expect(0, dir, 0, "--batch", "6", "--grad-accum", "2", "--steps", "9", "--eval-every", "4", "--keep", "0",
                 "--output", "whole", (char *)NULL);
    *state = dir;
    return 0;
}

/* The checkpoints in DIR/run, as "3 4 6 ". */
static void expect_steps(const char *dir, const char *run, const char *steps)
{
    char *command = support_path("ls '%s/%s' | sed -n 's/^step-0*//p' | tr '\\n' ' '", dir, run);
    support_result r = support_run((const char *[]){"sh", "-c", command, NULL}, NULL);
    if (strcmp(r.out, steps) != 0)
        fail_msg("%s holds checkpoints of %s, not of %s", run, r.out, steps);
    support_result_free(&r);
    free(command);
}

static void expect_same_weights(const char *dir, const char *run, const char *other, unsigned step)
{
    char *a = support_path("%s/%s/step-%08u/weights.npz", dir, run, step);
    char *b = support_path("%s/%s/step-%08u/weights.npz", dir, other, step);
    support_assert_same_file(a, b);
    free(a);
    free(b);
}

static size_t evaluations(const char *log)
{
    json_t *lines = train_log(log, "eval_loss");
    size_t count = json_array_size(lines);
    json_decref(lines);
    return count;
}

/* ---- this many updates ------------------------------------------------------------------------------------------- */

static void checkpoints_come_between_evaluations(void **state)
{
    const char *dir = *state;
    IN(log, "often.jsonl");
    train_expect(0, dir, 0, "--batch", "6", "--grad-accum", "2", "--steps", "9", "--eval-every", "4", "--keep", "0",
                 "--checkpoint-every", "3", "--output", "often", "--log", "often.jsonl", (char *)NULL);
    expect_steps(dir, "whole", "4 8 9 ");
    expect_steps(dir, "often", "3 4 6 8 9 ");
    assert_int_equal(evaluations(log), 3);
    expect_same_weights(dir, "often", "whole", 4);
    expect_same_weights(dir, "often", "whole", 9);
    support_result r = train_command(0, dir, 0, "eval", "data", "often/step-00000006", (char *)NULL);
    support_result_free(&r);
}

static void only_what_is_to_be_kept_stays(void **state)
{
    const char *dir = *state;
    train_expect(0, dir, 0, "--batch", "6", "--grad-accum", "2", "--steps", "9", "--eval-every", "0", "--keep", "1",
                 "--checkpoint-every", "2", "--output", "few", "--stop-after", "7", (char *)NULL);
    expect_steps(dir, "few", "7 ");
    support_result r = train_command(0, dir, 0, "train", "data", "--resume", "--output", "few", (char *)NULL);
    support_result_free(&r);
    expect_steps(dir, "few", "9 ");
    expect_same_weights(dir, "few", "whole", 9);
}

/* How a run goes on is what it was begun with, unless it is told otherwise. */
static void a_resumed_run_knows_how_often(void **state)
{
    const char *dir = *state;
    train_expect(0, dir, 0, "--steps", "8", "--eval-every", "0", "--keep", "0", "--checkpoint-every", "2", "--output",
                 "kept", "--stop-after", "3", (char *)NULL);
    support_shell(dir, "cp -r kept changed; cp -r kept timed");
    support_result r = train_command(0, dir, 0, "train", "data", "--resume", "--output", "kept", (char *)NULL);
    support_result_free(&r);
    expect_steps(dir, "kept", "2 3 4 6 8 ");
    r = train_command(0, dir, 0, "train", "data", "--resume", "--output", "changed", "--checkpoint-every", "5",
                      (char *)NULL);
    support_result_free(&r);
    expect_steps(dir, "changed", "2 3 5 8 ");
    r = train_command(0, dir, 0, "train", "data", "--resume", "--output", "timed", "--checkpoint-every",
                      "9223372036854775807m", (char *)NULL);
    support_result_free(&r);
    expect_steps(dir, "timed", "2 3 8 ");
}

/* The run is killed without a word when it has one of its own: what it did since is done again. */
static void a_killed_run_continues_from_one(void **state)
{
    const char *dir = *state;
    static const char killed[] =
        "\"$0\" train data --model vit --image-size 24 --patch 8 --hidden 16 --layers 2 --heads 2 --mlp 32 --threads 1 "
        "--lr 0.05 --batch 6 --grad-accum 2 --steps 4000 --eval-every 0 --checkpoint-every 3 --output killed -q & "
        "p=$!\n"
        "until ls killed 2>&1 | grep -q ^step; do kill -0 $p || exit 9; sleep 0.01; done; kill -KILL $p; wait $p; echo "
        "$?";
    support_limits limits = {.directory = dir, .seconds = 60};
    support_result r = support_run((const char *[]){"sh", "-c", killed, support_millrace_path(), NULL}, &limits);
    assert_string_equal(r.out, "137\n");
    support_result_free(&r);
    char *last = support_path("%s", "ls killed | sed -n 's/^step-0*//p' | tail -n 1");
    r = support_run((const char *[]){"sh", "-c", last, NULL}, &limits);
    char *more = support_path("%d", 40 - atoi(r.out) % 40), *end = support_path("%d", atoi(r.out) + atoi(more));
    support_result_free(&r);
    r = train_command(0, dir, 0, "train", "data", "--resume", "--output", "killed", "--stop-after", more, "-q",
                      (char *)NULL);
    support_result_free(&r);
    train_expect(0, dir, 0, "--batch", "6", "--grad-accum", "2", "--steps", "4000", "--eval-every", "0", "--output",
                 "alive", "--stop-after", end, "-q", (char *)NULL);
    expect_same_weights(dir, "killed", "alive", (unsigned)atoi(end));
    free(more);
    free(end);
    free(last);
}

static void how_often_is_a_number_from_one(void **state)
{
    static const char *const wrong[] = {"0",
                                        "-1",
                                        "5x",
                                        "m",
                                        "0m",
                                        "10s",
                                        "1.5m",
                                        "10M",
                                        " 5",
                                        "5 m",
                                        "+5",
                                        "5mm",
                                        "9223372036854775808",
                                        "18446744073709551616m",
                                        "99999999999999999999999999999999999999"};
    for (size_t i = 0; i < MR_COUNT(wrong); i++) {
        support_result r =
            train_run(*state, 0, "--steps", "1", "--output", "none", "--checkpoint-every", wrong[i], (char *)NULL);
        char *said = support_path("millrace train: --checkpoint-every %s: expected a number of updates from 1, or "
                                  "minutes, for example 500 or 10m\n",
                                  wrong[i]);
        support_assert_status(&r, 2);
        assert_int_equal(strncmp(r.err, said, strlen(said)), 0);
        support_result_free(&r);
        free(said);
    }
    support_result r = train_run(*state, 0, "--steps", "1", "--checkpoint-every", "5", (char *)NULL);
    support_assert_status(&r, 2);
    assert_string_equal(r.err, "millrace: --checkpoint-every: give --output DIR, the folder to write checkpoints to\n");
    support_result_free(&r);
}

/* ---- this many minutes ------------------------------------------------------------------------------------------- */

/* `train` with clocks of rank `hurried` alone that make an hour of every moment: the
 * others would take it to have stalled. */
static void run_in_a_hurry(const char *dir, unsigned ranks, unsigned hurried, const char *run, const char *pace)
{
    static const char script[] =
        "[ \"${OMPI_COMM_WORLD_RANK:-0}\" != $1 ] || export MILLRACE_TEST_HURRY=1e9\n"
        "export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0 LD_PRELOAD=" MILLRACE_TEST_HURRY "\n"
        "exec \"$0\" train data --model vit --image-size 24 --patch 8 --hidden 16 --layers 2 --heads 2 --mlp 32 "
        "--threads 1 --lr 0.05 --batch 6 --steps 5 --eval-every 0 --keep 0 -q --output $2 --checkpoint-every $3 "
        "--stall-timeout 0";
    char *rank = support_path("%u", hurried);
    const char *argv[] = {"sh", "-c", script, support_millrace_path(), rank, run, pace, NULL};
    support_limits limits = {.directory = dir, .seconds = 60};
    support_result r = ranks ? support_mpirun_in(ranks, argv, &limits) : support_run(argv, &limits);
    support_assert_status(&r, 0);
    support_result_free(&r);
    free(rank);
}

static void a_checkpoint_comes_when_its_time_is_up(void **state)
{
    const char *dir = *state;
    run_in_a_hurry(dir, 0, 0, "minutes", "10m");
    expect_steps(dir, "minutes", "1 2 3 4 5 ");
    run_in_a_hurry(dir, 0, 1, "hours", "600m");
    expect_steps(dir, "hours", "5 ");
}

static void the_clock_of_rank_0_counts(void **state)
{
    const char *dir = *state;
    run_in_a_hurry(dir, 2, 0, "first", "10m");
    expect_steps(dir, "first", "1 2 3 4 5 ");
    run_in_a_hurry(dir, 2, 1, "second", "600m");
    expect_steps(dir, "second", "5 ");
    expect_same_weights(dir, "first", "second", 5);
}

/* ---- signals ----------------------------------------------------------------------------------------------------- */

/* Signals `$1` rank `$2` of a run in `$3` as soon as it has a checkpoint. */
static const char signalled[] =
    "rank=${OMPI_COMM_WORLD_RANK:-0}; p=$$\n"
    "[ $rank != $2 ] || { until ls $3 2>/dev/null | grep -q ^step-; do kill -0 $p || exit; sleep 0.01; done; kill -$1 "
    "$p; } &\n"
    "exec \"$0\" train data --model vit --image-size 24 --patch 8 --hidden 16 --layers 2 --heads 2 --mlp 32 --threads "
    "1 "
    "--batch 4 --steps 1000000 --eval-every 0 --checkpoint-every 4 --output $3";

static void expect_stop(const char *dir, unsigned ranks, const char *number, const char *name, const char *rank)
{
    char *run = support_path("stop-%u-%s", ranks, number);
    const char *argv[] = {"sh", "-c", signalled, support_millrace_path(), number, rank, run, NULL};
    support_limits limits = {.directory = dir, .seconds = 60};
    support_result r = ranks ? support_mpirun_in(ranks, argv, &limits) : support_run(argv, &limits);
    char *said = support_path("Stopped by %s after ", name);
    support_assert_status(&r, 3);
    const char *at = strstr(r.out, said);
    if (!at)
        fail_msg("no \"%s\" in: %s", said, r.out);
    char *last = support_path("%s/%s/step-%08d/weights.npz", dir, run, atoi(at + strlen(said)));
    assert_true(support_exists(last));
    support_result_free(&r);
    r = train_command(0, dir, ranks, "train", "data", "--resume", "--output", run, "--stop-after", "1", (char *)NULL);
    support_result_free(&r);
    free(last);
    free(said);
    free(run);
}

static void signals_stop_a_run_behind_a_checkpoint(void **state)
{
    static const char *const numbers[] = {"INT", "TERM", "USR1", "USR2"};
    static const int signals[] = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
    for (size_t i = 0; i < MR_COUNT(numbers); i++)
        expect_stop(*state, 0, numbers[i], strsignal(signals[i]), "0");
}

static void a_signal_to_any_rank_stops_all(void **state)
{
    expect_stop(*state, 2, "USR1", strsignal(SIGUSR1), "1");
    expect_stop(*state, 3, "USR2", strsignal(SIGUSR2), "0");
    expect_stop(*state, 4, "TERM", strsignal(SIGTERM), "3");
}

/* There is nothing to save. */
static void without_an_output_a_signal_ends_a_run_at_once(void **state)
{
    static const char run[] =
        "\"$0\" train data --model vit --image-size 24 --patch 8 --hidden 16 --layers 2 --heads 2 --mlp 32 --threads 1 "
        "--batch 4 --steps 1000000 --eval-every 0 -q --log plain.jsonl & p=$!\n"
        "while [ ! -s plain.jsonl ]; do kill -0 $p || exit 9; sleep 0.01; done; kill -USR1 $p; wait $p; echo $?";
    support_limits limits = {.directory = *state, .seconds = 60};
    support_result r = support_run((const char *[]){"sh", "-c", run, support_millrace_path(), NULL}, &limits);
    assert_string_equal(r.out, "138\n");
    support_result_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoints_come_between_evaluations),
        cmocka_unit_test(only_what_is_to_be_kept_stays),
        cmocka_unit_test(a_resumed_run_knows_how_often),
        cmocka_unit_test(a_killed_run_continues_from_one),
        cmocka_unit_test(how_often_is_a_number_from_one),
        cmocka_unit_test(a_checkpoint_comes_when_its_time_is_up),
        cmocka_unit_test(the_clock_of_rank_0_counts),
        cmocka_unit_test(signals_stop_a_run_behind_a_checkpoint),
        cmocka_unit_test(a_signal_to_any_rank_stops_all),
        cmocka_unit_test(without_an_output_a_signal_ends_a_run_at_once),
    };
    return cmocka_run_group_tests(tests, set_up, support_tmpdir_tear_down);
}
