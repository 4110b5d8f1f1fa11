/* test_checkpoint_shared.c - an OUTPUT used by others: a second run, readers of a run in progress.
 * Invariant tested: one run at a time writes there, leaves no lock file, and does not write to a folder that has
 * taken the name; a reader that names the run gets a complete checkpoint, however fast the run replaces them. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/file.h"
#include "tests/support/training/checkpoint.h"
#include "tests/support/training/train.h"

/* ---- readers of a run that goes on ------------------------------------------------------------------------------- */

/* The only checkpoint, with a state.json that takes longer to read than it takes to remove the files beside it. */
static mr_status replace(const char *out, uint64_t update)
{
    enum { MANY = 20000 };
    mr_checkpoint c = make_checkpoint(update, MR_SGD);
    json_t *many = json_array();
    for (int i = 0; i < MANY; i++)
        json_array_append_new(many, json_integer(i));
    json_object_set_new(c.facts, "many", many);
    c.accuracy = c.best_accuracy = 0.5;
    c.best_update = update;
    mr_status status = mr_checkpoint_write(&c, out, 1, NULL, NULL);
    mr_checkpoint_release(&c);
    return status;
}

static void a_run_that_goes_on_is_read(void **state)
{
    enum { REPLACED = 20, MAX = 1000 }; /* the writer ends by itself, whatever becomes of this one */
    char *out = support_path("%s/run", (char *)*state);
    uint64_t last = 0;
    assert_int_equal(replace(out, 1), MR_OK);
    pid_t pid = fork();
    if (pid == 0) {
        for (uint64_t update = 2; update <= MAX && replace(out, update) == MR_OK;)
            update++;
        _exit(1);
    }
    for (int i = 0; last <= REPLACED; i++) {
        mr_checkpoint c;
        mr_error err;
        assert_int_equal(waitpid(pid, NULL, WNOHANG), 0); /* it goes on */
        if (mr_checkpoint_read(out, i % 2, true, &c, NULL, &err) != MR_OK) {
            kill(pid, SIGKILL);
            fail_msg("read %d, %s: %s", i, i % 2 ? "the best" : "the newest", err.text);
        }
        mr_checkpoint want = make_checkpoint(c.update, MR_SGD);
        assert_memory_equal(want.values, c.values, c.params.total * sizeof *c.values);
        mr_checkpoint_release(&want);
        last = c.update;
        mr_checkpoint_release(&c);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    free(out);
}

/* ---- a second run ------------------------------------------------------------------------------------------------ */

static void expect_claimed(const char *out, bool fresh, const char *words)
{
    DIR *claim;
    mr_error err;
    assert_int_equal(mr_checkpoint_claim(out, fresh, &claim, &err), MR_MISUSE);
    assert_null(claim);
    if (!strstr(err.text, words))
        fail_msg("'%s' has no '%s'", err.text, words);
}

static void a_claim_is_of_one(void **state)
{
    char *out = support_path("%s/run", (char *)*state);
    DIR *claim, *none;
    assert_int_equal(mr_checkpoint_claim(out, true, &none, NULL), MR_OK);
    assert_null(none);
    assert_false(support_exists(out));
    put_step(out, 1, 0, -1, 0);
    assert_int_equal(mr_checkpoint_claim(out, false, &claim, NULL), MR_OK);
    assert_non_null(claim);
    expect_claimed(out, false, "run: another run is using it; wait until it ends, or name another --output");
    closedir(claim);
    expect_claimed(out, true, "run: another run has since written checkpoints to it");
    assert_int_equal(mr_checkpoint_claim(out, false, &claim, NULL), MR_OK);
    closedir(claim);
    char *names = names_in(out);
    assert_string_equal(names, "step-00000001 ");
    free(names);
    free(out);
}

/* What a second run is told while the first one, begun here and killed, is at work; then a third goes on. */
static const char two_runs[] =
    "mkdir run\n"
    "\"$0\" train data --model vit --image-size 24 --patch 8 --hidden 16 --layers 1 --heads 2 --mlp 16 --threads 1 "
    "    --steps 1000000 --eval-every 1 --keep 1 --output run --quiet & first=$!\n"
    "trap 'kill -KILL $first' EXIT\n"
    "until ls run | grep -q '^step-'; do sleep 0.01; done\n"
    "\"$0\" train data --resume --output run --stop-after 1; echo \"second: $?\"\n"
    "\"$0\" train data --resume --output run --plan > plan; echo \"plan: $?\"\n"
    "\"$0\" eval data run > eval; echo \"eval: $?\"\n"
    "kill -0 $first; echo \"first: $?\"\n"
    "trap - EXIT; kill -KILL $first; wait $first\n"
    "\"$0\" train data --resume --output run --stop-after 1 --quiet; echo \"third: $?\"\n";

static void two_runs_are_kept_apart(void **state)
{
    const char *dir = *state;
    train_make_dataset(dir, 24);
    support_limits limits = {.directory = dir};
    support_result r = support_run((const char *[]){"sh", "-c", two_runs, support_millrace_path(), NULL}, &limits);
    if (strcmp(r.out, "second: 2\nplan: 0\neval: 0\nfirst: 0\nthird: 0\n") != 0 ||
        !strstr(r.err, "run: another run is using it"))
        fail_msg("%s\n%s", r.out, r.err);
    support_result_free(&r);
}

/* The rank that has the claim says it for all. */
static void ranks_are_kept_out_together(void **state)
{
    const char *dir = *state;
    IN(out, "run");
    train_make_dataset(dir, 24);
    train_expect(0, dir, 0, "--steps", "1", "--output", "run", (char *)NULL);
    DIR *claim;
    assert_int_equal(mr_checkpoint_claim(out, false, &claim, NULL), MR_OK);
    support_result r = train_run(dir, 2, "--steps", "3", "--output", "run", "--resume", (char *)NULL);
    support_assert_status(&r, 2);
    assert_non_null(strstr(r.err, "run: another run is using it"));
    support_result_free(&r);
    closedir(claim);
}

/* ---- a folder that is taken away -------------------------------------------------------------------------------- */

static void put_and_tell(const char *out, DIR *claim, mr_status expected)
{
    mr_checkpoint c = make_checkpoint(2, MR_SGD);
    mr_error err = {0};
    c.claim = claim;
    c.accuracy = -1;
    c.best_accuracy = -1;
    assert_int_equal(mr_checkpoint_write(&c, out, 1, NULL, &err), expected);
    assert_true(expected == MR_OK || strstr(err.text, "run: was moved, removed or replaced"));
    assert_int_equal(mr_checkpoint_evaluated(&c, out, 1, &err), expected);
    assert_int_equal(mr_checkpoint_sweep(&c, out, 1, &err), expected);
    mr_checkpoint_release(&c);
}

static void expect_names(const char *dir, const char *expected)
{
    char *names = names_in(dir);
    assert_string_equal(names, expected);
    free(names);
}

static void what_took_its_place_stays(void **state)
{
    const char *dir = *state;
    IN(out, "run");
    IN(moved, "moved");
    DIR *claim;
    put_step(out, 1, 0, -1, 0);
    assert_int_equal(mr_checkpoint_claim(out, false, &claim, NULL), MR_OK);
    put_and_tell(out, claim, MR_OK);
    assert_int_equal(rename(out, moved), 0);
    put_and_tell(out, claim, MR_SYSTEM);
    assert_false(support_exists(out));
    put_step(out, 1, 0, -1, 0);
    put_and_tell(out, claim, MR_SYSTEM);
    expect_names(out, "step-00000001 ");
    expect_names(moved, "step-00000002 ");
    /* By another name it is the same folder. */
    assert_int_equal(mr_dir_remove(AT_FDCWD, out, NULL), MR_OK);
    assert_int_equal(symlink("moved", out), 0);
    put_and_tell(out, claim, MR_OK);
    closedir(claim);
}

/* A run of this rank, and, of rank 0, what happens to its OUTPUT as soon as that holds a checkpoint. */
static const char taken_away[] =
    "if [ \"${OMPI_COMM_WORLD_RANK:-0}\" = 0 ]; then\n"
    "    { until ls run 2>/dev/null | grep -q '^step-' || ! kill -0 $$ 2>/dev/null; do sleep 0.01; done\n"
    "      eval \"$1\"; } &\n"
    "fi\n"
    "exec \"$0\" train data --model vit --image-size 24 --patch 8 --hidden 16 --layers 1 --heads 2 --mlp 16 "
    "    --threads 1 --steps 1000000 --eval-every 1 --keep 1 --output run --quiet\n";

static void a_run_ends_with_its_folder(void **state)
{
    static const struct {
        unsigned ranks;
        const char *what;
        bool replaced;
    } cases[] = {
        {0, "mv run moved; mkdir run", true}, {0, "mv run moved", false}, {2, "mv run moved; mkdir run", true}};
    const char *dir = *state;
    IN(out, "run");
    IN(moved, "moved");
    train_make_dataset(dir, 24);
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        support_limits limits = {.directory = dir};
        const char *argv[] = {"sh", "-c", taken_away, support_millrace_path(), cases[i].what, NULL};
        unsigned ranks = cases[i].ranks;
        support_result r = ranks ? support_mpirun_in(ranks, argv, &limits) : support_run(argv, &limits);
        const char *told = strstr(r.err, "run: was moved, removed or replaced during the run");
        if (r.status != mr_exit_code(MR_SYSTEM) || !told || strstr(told + 1, "run: was moved"))
            fail_msg("'%s' on %u ranks: %d\n%s", cases[i].what, ranks, r.status, r.err);
        assert_int_equal(support_exists(out), cases[i].replaced);
        if (cases[i].replaced)
            expect_names(out, "");
        assert_int_equal(mr_dir_remove(AT_FDCWD, out, NULL), MR_OK);
        assert_int_equal(mr_dir_remove(AT_FDCWD, moved, NULL), MR_OK);
        support_result_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(a_run_that_goes_on_is_read), IN_TMPDIR(a_claim_is_of_one),
        IN_TMPDIR(two_runs_are_kept_apart),    IN_TMPDIR(ranks_are_kept_out_together),
        IN_TMPDIR(what_took_its_place_stays),  IN_TMPDIR(a_run_ends_with_its_folder),
    };
    return cmocka_run_group_tests_name("checkpoint_shared", tests, NULL, NULL);
}
