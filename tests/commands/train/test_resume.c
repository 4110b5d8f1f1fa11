/* test_resume.c - `--resume` with few or no other options.
 * Invariant tested: a run continues with the options it was started with; an update has the same samples on any
 * number of ranks; a misspelled name does not start a new run.
 * Covers run/trainer_resume.c, run/log_place.c. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "tests/support/faults.h"
#include "tests/support/training/train.h"

static int set_up(void **state)
{
    char *dir = support_tmpdir();
    train_make_dataset(dir, 120); /* train 84, val 36 */
    /* One run of 12 samples an update, whole and cut in the middle of an epoch. */
    train_expect(0, dir, 0, "--batch", "6", "--grad-accum", "2", "--steps", "8", "--eval-every", "0", "--prefetch", "3",
                 "--output", "whole", (char *)NULL);
    train_expect(0, dir, 0, "--batch", "6", "--grad-accum", "2", "--steps", "8", "--eval-every", "0", "--prefetch", "3",
                 "--log", "cut.jsonl", "--output", "cut", "--stop-after", "3", (char *)NULL);
    *state = dir;
    return 0;
}

static void expect(const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("\"%s\" does not mention \"%s\"", text, words);
}

/* Goes on with a copy of the run that was cut; the rest are further arguments. */
static support_result go_on(const char *dir, const char *copy, int status, unsigned ranks, const char *option,
                            const char *value)
{
    char *command = support_path("cp -r cut %s", copy);
    support_shell(dir, command);
    free(command);
    return train_command(status, dir, ranks, "train", "data", "--resume", "--output", copy, option, value,
                         (char *)NULL);
}

static json_t *options_of(const char *dir, const char *run)
{
    char *path = support_path("%s/%s/step-00000008/state.json", dir, run);
    json_t *doc = json_load_file(path, JSON_DISABLE_EOF_CHECK, NULL);
    json_t *options = json_incref(json_object_get(json_object_get(doc, "facts"), "options"));
    assert_non_null(options);
    json_decref(doc);
    free(path);
    return options;
}

static void nothing_but_resume_is_enough(void **state)
{
    const char *dir = *state;
    IN(whole, "whole/step-00000008/weights.npz");
    IN(parts, "same/step-00000008/weights.npz");
    IN(log, "cut.jsonl");
    support_result r = go_on(dir, "same", 0, 0, NULL, NULL);
    expect(r.out, "12 per update");
    support_result_free(&r);
    support_assert_same_file(whole, parts);
    json_t *updates = train_log(log, "loss"), *options = options_of(dir, "same");
    assert_int_equal(json_array_size(updates), 3); /* no checkpoint says where to write */
    assert_null(json_object_get(options, "log"));
    assert_string_equal(json_string_value(json_object_get(options, "prefetch")), "3");
    assert_string_equal(json_string_value(json_object_get(options, "grad-accum")), "2");
    json_decref(updates);
    json_decref(options);
}

static void other_ranks_share_the_same_updates(void **state)
{
    static const struct {
        unsigned ranks;
        const char *copy, *option, *value, *words;
    } worlds[] = {
        {2, "two", NULL, NULL, "--batch 6 x --grad-accum 1 x 2 ranks"},
        {3, "three", NULL, NULL, "--batch 4 x --grad-accum 1 x 3 ranks"},
        {0, "batch", "--batch", "4", "--batch 4 x --grad-accum 3 x 1 rank\n"},
        {0, "accum", "--grad-accum", "1", "--batch 12 x --grad-accum 1 x 1 rank\n"},
    };
    const char *dir = *state;
    IN(whole, "whole/step-00000008/weights.npz");
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
        support_result r = go_on(dir, worlds[i].copy, 0, worlds[i].ranks, worlds[i].option, worlds[i].value);
        expect(r.out, "An update stays 12 samples: ");
        expect(r.out, worlds[i].words);
        support_result_free(&r);
        char *parts = support_path("%s/%s/step-00000008/weights.npz", dir, worlds[i].copy);
        assert_true(train_weights_distance(whole, parts) < 1e-5);
        free(parts);
    }
}

static void what_cannot_be_shared_is_refused(void **state)
{
    const char *dir = *state;
    support_result r = go_on(dir, "five", 2, 5, NULL, NULL);
    expect(r.err, "an update of this run is 12 samples, which 5 ranks cannot share evenly; resume it "
                  "on 4 or 6, the nearest numbers that can");
    support_result_free(&r);
    r = go_on(dir, "odd", 2, 0, "--batch", "5");
    expect(r.err, "the run was started with 12 samples per update");
    support_result_free(&r);
}

/* Scripts that give --resume and all else from the first call on begin as they go on. */
static void a_misspelt_name_begins_no_run(void **state)
{
    const char *dir = *state;
    IN(none, "ruh");
    support_result r = train_command(2, dir, 0, "train", "data", "--resume", "--output", "ruh", (char *)NULL);
    expect(r.err, "ruh: holds no checkpoint to resume from");
    support_result_free(&r);
    assert_false(support_exists(none));
    r = train_run(dir, 0, "--resume", "--output", "new", "--steps", "2", (char *)NULL);
    support_assert_status(&r, 0);
    expect(r.out, "No checkpoint in new: starting from scratch\n");
    support_result_free(&r);
}

/* ---- the log ----------------------------------------------------------------------------------------------------- */

/* Lines are never taken back: updates that are repeated after a kill are in the log twice. */
static void a_log_keeps_its_lines(void **state)
{
    const char *dir = *state;
    train_expect(0, dir, 0, "--steps", "2", "--output", "twice", "--log", "twice.jsonl", (char *)NULL);
    support_shell(dir, "rm -r twice/step-*; printf '{\"step\": 3, \"lo' >>twice.jsonl; cp twice.jsonl before.jsonl");
    train_expect(0, dir, 0, "--steps", "4", "--output", "twice", "--log", "twice.jsonl", "--resume", (char *)NULL);
    support_shell(
        dir, "test \"$(grep -c '\"loss\"' twice.jsonl)\" = 6; ! grep -q '\"run\"' twice.jsonl\n"
             "head -n -1 before.jsonl >whole.jsonl; head -c \"$(wc -c <whole.jsonl)\" twice.jsonl | cmp - whole.jsonl");
}

/* ---- checkpoints that are not usable ----------------------------------------------------------------------------- */

static void a_damaged_checkpoint_is_reported_with_the_way_out(void **state)
{
    const char *dir = *state;
    IN(whole, "whole/step-00000008/weights.npz");
    IN(parts, "hit/step-00000008/weights.npz");
    train_expect(0, dir, 0, "--batch", "6", "--grad-accum", "2", "--steps", "8", "--eval-every", "2", "--output", "hit",
                 "--stop-after", "4", (char *)NULL);
    support_shell(dir, "printf x | dd conv=notrunc bs=1 seek=999 status=none of=hit/step-00000004/optimizer.npz");
    support_result r = train_command(1, dir, 0, "train", "data", "--resume", "--output", "hit", (char *)NULL);
    expect(r.err, "hit/step-00000004/optimizer.npz: does not match its digest in state.json; it is damaged; move "
                  "hit/step-00000004 away to continue without it\n");
    support_result_free(&r);
    /* A new run there is told what a sound one would tell it. */
    r = train_run(dir, 0, "--steps", "2", "--output", "hit", (char *)NULL);
    support_assert_status(&r, 2);
    expect(r.err, "hit: holds checkpoints of an earlier run (step-00000004); continue with --resume, name another");
    support_result_free(&r);
    support_shell(dir, "mv hit/step-00000004 away");
    r = train_command(0, dir, 0, "train", "data", "--resume", "--output", "hit", (char *)NULL);
    expect(r.out, "Resuming from hit/step-00000002, 2 updates done");
    support_result_free(&r);
    support_assert_same_file(whole, parts);
}

/* A run within a checkpoint would be one that nobody finds. */
/* Told before any work is done. */
static void an_output_that_can_be_none(void **state)
{
    const char *dir = *state;
    support_shell(dir, "echo mine >plain; ln -s nowhere lost");
    support_result r = train_run(dir, 0, "--steps", "1", "--output", "plain", (char *)NULL);
    support_assert_status(&r, 2);
    assert_string_equal(r.err, "millrace: plain: exists and is not a folder; name another --output\n");
    support_result_free(&r);
    r = train_run(dir, 0, "--steps", "1", "--output", "lost", (char *)NULL);
    support_assert_status(&r, 2);
    assert_string_equal(r.err, "millrace: lost: is a dangling link; remove it or name another --output\n");
    support_result_free(&r);
}

/* A folder and a link called like the runs' files, and no log to look for names. */
static void foreign_files_beside_the_events(void **state)
{
    const char *dir = *state;
    support_shell(dir, "mkdir -p beside/tensorboard/events.out.tfevents.0\n"
                       "ln -s no beside/tensorboard/events.out.tfevents.1");
    train_expect(0, dir, 0, "--steps", "1", "--output", "beside", "--log", "beside.jsonl", (char *)NULL);
    train_expect(0, dir, 0, "--steps", "1", "--output", "beside", "--resume", (char *)NULL);
}

/* Only a log is appended to. */
static void a_log_takes_the_place_of_nothing(void **state)
{
    static const struct {
        const char *log, *words;
    } cases[] = {
        {"whole/step-00000008/weights.npz", "is in a checkpoint"},
        {"whole/step-00000008/log.jsonl", "is in a checkpoint"},
        {"twin", "exists and is not the log of a run"},
        {"json", "exists and is not the log of a run"},
        {"others", "exists and is not the log of a run"},
        {"notes", "exists and is not the log of a run"},
        {"whole/train_results.json", "is reserved for the run's train_results.json"},
        {"beside/../whole/tensorboard", "is reserved for the run's tensorboard"},
        {"whole/tensorboard/log", "is reserved for the run's tensorboard"},
    };
    support_shell(*state, "mkdir -p beside; ln whole/step-00000008/weights.npz twin; cp whole/train_results.json json\n"
                          "mkdir project; echo '{}' >project/state.json; printf '{\"step\":1,\"loss\":2}\n' >tight\n"
                          "printf '{\"event\":1}\n{\"event\":2}\n' >others\n"
                          "printf '# notes\n' >notes; printf '{\"st' >half; head -c 100 </dev/zero >zeros");
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        support_result r = train_command(2, *state, 0, "train", "data", "--resume", "--output", "whole", "--log",
                                         cases[i].log, (char *)NULL);
        char *said = support_path("--log %s: %s", cases[i].log, cases[i].words);
        expect(r.err, said);
        free(said);
        support_result_free(&r);
    }
    static const char *const fine[] = {"half",          "zeros", "cut.jsonl",        "whole/log.jsonl",
                                       "new/log.jsonl", "tight", "project/log.jsonl"};
    for (size_t i = 0; i < MR_COUNT(fine); i++)
        train_expect(0, *state, 0, "--steps", "1", "--eval-every", "0", "--log", fine[i], (char *)NULL);
}

/* Its terminal is closed when the first checkpoint is there: it writes its last one, but under nohup, where it goes on.
 * A run that was faster is tried again. */
static void the_end_of_the_terminal_ends_a_run_behind_a_checkpoint(void **state)
{
    const char *dir = *state;
    static const char run[] =
        "\"$0\" train data --model vit --image-size 32 --patch 8 --hidden 32 --layers 1 --heads 2 --mlp 32 --dropout 0 "
        "--batch 4 --steps 400 --eval-every 4 --keep 0 --threads 1 --output %s >%s.out & p=$!\n"
        "while [ ! -e %s/step-00000004 ]; do kill -0 $p || break; sleep 0.01; done; kill -HUP $p; wait $p; echo $?\n"
        "tail -n 2 %s.out";
    char *hung = support_path(run, "hung", "hung", "hung", "hung");
    char *kept = support_path(run, "kept", "kept", "kept", "kept"), *nohup = support_path("trap '' HUP\n%s", kept);
    support_limits limits = {.directory = dir};
    support_result r = {0};
    for (int i = 0; i < 9 && (!r.out || strncmp(r.out, "0\n", 2) == 0); i++) {
        support_shell(dir, "rm -rf hung");
        support_result_free(&r);
        r = support_run((const char *[]){"sh", "-c", hung, support_millrace_path(), NULL}, &limits);
    }
    unsigned long long done = 0;
    assert_int_equal(sscanf(r.out, "3\nStopped by Hangup after %llu of 400 updates; continue with --resume\n", &done),
                     1);
    char *last = support_path("%s/hung/step-%08llu/weights.npz", dir, done);
    assert_true(support_exists(last));
    support_result_free(&r);
    r = support_run((const char *[]){"sh", "-c", nohup, support_millrace_path(), NULL}, &limits);
    expect(r.out, "0\n");
    expect(r.out, "Saved to kept: checkpoint step-00000400");
    support_result_free(&r);
    free(last);
    free(nohup);
    free(kept);
    free(hung);
}

static void a_checkpoint_is_no_output(void **state)
{
    static const char *const outputs[] = {"whole/step-00000008", "whole/step-00000009/", "renamed"};
    support_shell(*state, "cp -r whole/step-00000008 renamed");
    for (size_t i = 0; i < 2 * MR_COUNT(outputs); i++) {
        support_result r =
            train_run(*state, 0, "--steps", "9", "--output", outputs[i / 2], i % 2 ? "--resume" : NULL, (char *)NULL);
        support_assert_status(&r, 2);
        expect(r.err, outputs[i / 2]);
        expect(r.err, ": is a checkpoint, or named like one; set --output to the folder of the run");
        support_result_free(&r);
    }
    char *path = support_path("%s/whole/step-00000009", (const char *)*state);
    assert_false(support_exists(path));
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_but_resume_is_enough),
        cmocka_unit_test(other_ranks_share_the_same_updates),
        cmocka_unit_test(what_cannot_be_shared_is_refused),
        cmocka_unit_test(a_misspelt_name_begins_no_run),
        cmocka_unit_test(a_log_keeps_its_lines),
        cmocka_unit_test(a_damaged_checkpoint_is_reported_with_the_way_out),
        cmocka_unit_test(an_output_that_can_be_none),
        cmocka_unit_test(foreign_files_beside_the_events),
        cmocka_unit_test(a_log_takes_the_place_of_nothing),
        cmocka_unit_test(the_end_of_the_terminal_ends_a_run_behind_a_checkpoint),
        cmocka_unit_test(a_checkpoint_is_no_output),
    };
    return cmocka_run_group_tests(tests, set_up, support_tmpdir_tear_down);
}
