/* test_train_apart.c - ranks that see different files, each in a folder of its own.
 * Invariant tested: all of them work on the same weights and the same samples, or all end with the reason; none waits
 * for what another will not do. */
#include <stdlib.h>
#include <string.h>

#include "support/faults.h"
#include "support/loader.h"
#include "support/train.h"

/* DIR/a and DIR/b, each with data (a dataset of classes) and words (one of captions), and a run of two checkpoints. */
static int set_up(void **state)
{
    char *dir = support_tmpdir();
    IN(a, "a");
    IN(words, "a/words");
    support_shell(dir, "mkdir -p a/words");
    train_make_dataset(a, 24);
    train_make_captions(words);
    train_expect(0, a, 0, "--steps", "4", "--batch", "4", "--eval-every", "2", "--keep", "0", "--output", "run",
                 (char *)NULL);
    train_expect(0, a, 0, "--steps", "2", "--batch", "4", "--seed", "9", "--output", "other", (char *)NULL);
    support_shell(dir, "cp -r a b");
    *state = dir;
    return 0;
}

/* A command in each folder, rank 0 in `a`. */
static support_result apart(const char *dir, int status, const char *const *args, const char *const *others)
{
    enum { MAX = 44 };
    IN(a, "a");
    IN(b, "b");
    const char *argv[2 * MAX] = {"--wdir", a, support_millrace_path()};
    size_t n = 3;
    for (size_t i = 0; args[i]; i++)
        argv[n++] = args[i];
    static const char *const then[] = {":", "-n", "1", "--wdir"};
    for (size_t i = 0; i < MR_COUNT(then); i++)
        argv[n++] = then[i];
    argv[n++] = b;
    argv[n++] = support_millrace_path();
    for (size_t i = 0; others[i]; i++)
        argv[n++] = others[i];
    support_result r = support_mpirun(1, argv);
    support_assert_status(&r, status);
    assert_false(r.timed_out);
    return r;
}
#define LIST(...)               ((const char *const[]){__VA_ARGS__, NULL})
#define APART(dir, status, ...) apart(dir, status, LIST(__VA_ARGS__), LIST(__VA_ARGS__))

/* The second sees a checkpoint more, as it does where a run goes on. */
static void all_read_the_checkpoint_that_the_first_has_found(void **state)
{
    const char *dir = *state;
    IN(a, "a");
    support_shell(dir, "mv a/run/step-00000004 a/kept");
    support_result alone = train_command(0, a, 0, "predict", "data", "run", "--threads", "1", (char *)NULL);
    support_result both = APART(dir, 0, "predict", "data", "run", "--threads", "1");
    assert_string_equal(alone.out, both.out);
    support_result_free(&both);
    both = APART(dir, 0, "eval", "data", "run", "--threads", "1");
    assert_non_null(strstr(both.out, "run/step-00000002, val of data: accuracy"));
    support_result_free(&both);
    support_result_free(&alone);
    support_shell(dir, "mv a/kept a/run/step-00000004");
}

static void other_weights_are_told(void **state)
{
    const char *dir = *state;
    support_shell(dir, "mv b/run b/ours; cp -r b/other b/run; rm -r a/run/step-00000004");
    support_result r = APART(dir, 1, "eval", "data", "run", "--threads", "1");
    assert_non_null(
        strstr(r.err, "mpirun: rank 1 has another checkpoint in run/step-00000002 than rank 0; give all of them"));
    support_result_free(&r);
    support_shell(dir, "rm -r b/run"); /* and one that is not there at all */
    r = APART(dir, 2, "eval", "data", "run", "--threads", "1");
    assert_non_null(strstr(r.err, "run/step-00000002: "));
    support_result_free(&r);
    support_shell(dir, "mv b/ours b/run");
}

/* OUTPUT is what rank 0 writes: where the others do not see it they would start again, or with what is there. */
static void runs_that_go_on_are_the_same(void **state)
{
    const char *dir = *state;
#define TINY                                                                                                           \
    "train", "data", "--model", "vit", "--image-size", "24", "--patch", "8", "--hidden", "16", "--layers", "2",        \
        "--heads", "2", "--mlp", "32", "--threads", "1", "--eval-every", "0", "--batch", "2", "--lr", "0.05"
    IN(a, "a");
    train_expect(0, a, 0, "--steps", "6", "--stop-after", "2", "--batch", "4", "--eval-every", "0", "--output", "on",
                 (char *)NULL);
    train_expect(0, a, 0, "--steps", "6", "--stop-after", "2", "--batch", "4", "--eval-every", "0", "--seed", "5",
                 "--output", "off", (char *)NULL);
    support_result r = APART(dir, 1, TINY, "--steps", "6", "--output", "on", "--resume");
    assert_non_null(strstr(r.err, "mpirun: rank 1 finds another checkpoint in --output, or has other options, than"));
    support_result_free(&r);
    support_shell(dir, "cp -r a/on b/on; cp a/off/step-00000002/weights.npz b/start.npz; cp -r a/off b/keep\n"
                       "cp a/on/step-00000002/weights.npz a/start.npz");
    r = APART(dir, 1, TINY, "--steps", "2", "--pretrained", "start.npz", "--output", "new");
    assert_non_null(strstr(r.err, "mpirun: rank 1 begins with other weights than rank 0; give all of them the same "
                                  "--pretrained"));
    support_result_free(&r);
    r = APART(dir, 0, TINY, "--steps", "6", "--output", "on", "--resume");
    support_result_free(&r);
    /* The same weights, from runs that would go on another way: one judges more often than the other. */
    IN(b, "b");
    for (int i = 0; i < 2; i++)
        train_expect(0, i ? b : a, 0, "--steps", "6", "--stop-after", "2", "--batch", "2", "--grad-accum", "2",
                     "--eval-every", i ? "1" : "2", "--output", "ways", (char *)NULL);
    support_shell(dir,
                  "cmp a/ways/step-00000002/weights.npz b/ways/step-00000002/weights.npz; rm -r b/ways/step-00000001");
    r = APART(dir, 1, "train", "data", "--resume", "--output", "ways", "--threads", "1");
    assert_non_null(strstr(r.err, "mpirun: rank 1 finds another checkpoint in --output, or has other options, than"));
    support_result_free(&r);
#undef TINY
}

#define WORDS                                                                                                          \
    "train", "words/data", "--model", "bridgetower", "--tokenizer", "words/tok.json", "--image-size", "32", "--patch", \
        "16", "--hidden", "64", "--layers", "1", "--heads", "1", "--mlp", "64", "--cross-layers", "1", "--embed",      \
        "16", "--max-text", "16", "--batch", "4", "--threads", "1", "--max-bad", "9", "--eval-every", "0", "--epochs", \
        "1"

/* A damaged sample counts as one with words, and all its captions as one: the lists differ, and with them the steps. */
static void other_samples_are_told(void **state)
{
    const char *dir = *state;
    IN(hurt, "b/words/data");
    static const char *const ways[] = {"--expand-captions", "--quiet"};
    hurt_meta(hurt, 0, 1000);
    hurt_meta(hurt, 1, 1000);
    for (size_t i = 0; i < MR_COUNT(ways); i++) {
        support_result r = APART(dir, i ? 0 : 1, WORDS, ways[i]);
        if (i == 0)
            assert_non_null(strstr(r.err, "mpirun: rank 1 finds words for other samples than rank 0, so one of them "
                                          "reads damaged metas; run 'millrace verify' where each"));
        support_result_free(&r);
    }
}

/* Two tokens have changed their numbers. */
static void other_tokens_are_told(void **state)
{
    const char *dir = *state;
    support_shell(dir, "sed -i 's/\"\xc4\x80\":4,\"\xc4\x81\":5/\"\xc4\x80\":5,\"\xc4\x81\":4/' b/words/tok.json\n"
                       "! cmp -s a/words/tok.json b/words/tok.json");
    support_result r = APART(dir, 1, WORDS);
    assert_non_null(strstr(r.err, "mpirun: rank 1 has another tokenizer than rank 0; give all of them the same"));
    support_result_free(&r);
}

/* One would wait for what the other does not do, or judge other things. */
static void other_options_are_told(void **state)
{
    const char *dir = *state;
    static const char told[] =
        "mpirun: rank 1 was given another command, or other options, than rank 0; give all of them";
    const struct {
        const char *const *one, *const *other;
    } pairs[] = {
        {LIST("train", "data", "--model", "vit"), LIST("train", "data", "--model", "vit", "--plan")},
        {LIST("eval", "data", "run"), LIST("predict", "data", "run")},
        {LIST("verify", "data", "--decode"), LIST("verify", "data", "--quick")},
        {LIST("ingest", "source", "new", "--shuffle", "1"), LIST("ingest", "source", "new", "--shuffle=2")},
        {LIST("seek", "data"), LIST("seek", "data", "--drop")},
    };
    for (size_t i = 0; i < MR_COUNT(pairs); i++) {
        support_result r = apart(dir, 2, pairs[i].one, pairs[i].other);
        assert_non_null(strstr(r.err, told));
        assert_null(strstr(strstr(r.err, told) + 1, told));
        assert_string_equal(r.out, "");
        support_result_free(&r);
    }
    support_result r = apart(dir, 0, LIST("verify", "data", "-q", "--jobs", "2"), LIST("verify", "--quiet", "data"));
    support_result_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_read_the_checkpoint_that_the_first_has_found),
        cmocka_unit_test(other_weights_are_told),
        cmocka_unit_test(runs_that_go_on_are_the_same),
        cmocka_unit_test(other_samples_are_told),
        cmocka_unit_test(other_tokens_are_told),
        cmocka_unit_test(other_options_are_told),
    };
    return cmocka_run_group_tests(tests, set_up, support_tmpdir_tear_down);
}
