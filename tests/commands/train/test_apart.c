/* test_apart.c - ranks that see different files, each in a folder of its own.
 * Invariant tested: all ranks have what rank 0 reads: checkpoint, start values, tokenizer, list of samples; no rank
 * waits for another that has failed. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/faults.h"
#include "tests/support/shards/loader.h"
#include "tests/support/training/train.h"

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

/* Only rank 0 reads the checkpoint; the other one has a newer, another or none. */
static void rank_0_reads_the_checkpoint(void **state)
{
    const char *dir = *state;
    IN(a, "a");
    static const char *const others[] = {"true", "rm -r b/run; cp -r b/other b/run", "rm -r b/run"};
    support_shell(dir, "cp -r b/run b/kept; mv a/run/step-00000004 a/kept");
    support_result alone = train_command(0, a, 0, "predict", "data", "run", "--threads", "1", (char *)NULL);
    for (size_t i = 0; i < MR_COUNT(others); i++) {
        support_shell(dir, others[i]);
        support_result both = APART(dir, 0, "predict", "data", "run", "--threads", "1");
        assert_string_equal(alone.out, both.out);
        support_result_free(&both);
        both = APART(dir, 0, "eval", "data", "run", "--threads", "1");
        assert_non_null(strstr(both.out, "run/step-00000002, val of data: accuracy"));
        support_result_free(&both);
    }
    support_result_free(&alone);
    support_shell(dir, "mv a/kept a/run/step-00000004; mv b/kept b/run");
}

#define TINY                                                                                                           \
    "train", "data", "--model", "vit", "--image-size", "24", "--patch", "8", "--hidden", "16", "--layers", "2",        \
        "--heads", "2", "--mlp", "32", "--threads", "1", "--eval-every", "0", "--batch", "2", "--lr", "0.05"

/* Trains in a and b, then twice in a, and compares what is in OUTPUT.  `reset` undoes the first run. */
static void expect_the_same(const char *dir, const char *output, const char *reset, const char *const *args)
{
    IN(a, "a");
    support_result r = apart(dir, 0, args, args);
    support_result_free(&r);
    char *keep = support_path("rm -rf apart; cp -r a/%s apart; test ! -e b/%s; %s", output, output, reset);
    support_shell(dir, keep);
    const char *argv[64] = {"--wdir", a, "-n", "2", support_millrace_path()};
    for (size_t i = 0; args[i]; i++)
        argv[5 + i] = args[i];
    r = support_mpirun(1, argv);
    support_assert_status(&r, 0);
    support_result_free(&r);
    char *compare = support_path("for f in a/%s/step-*/*z; do cmp $f apart/${f#a/%s/}; done", output, output);
    support_shell(dir, compare);
    free(keep);
    free(compare);
}

/* The start values and the state to resume from are those that rank 0 reads; the other has none, or others. */
static void rank_0_reads_the_weights(void **state)
{
    const char *dir = *state;
    IN(a, "a");
    train_expect(0, a, 0, "--steps", "6", "--stop-after", "2", "--batch", "4", "--eval-every", "0", "--output", "on",
                 (char *)NULL);
    support_shell(dir,
                  "cp a/on/step-00000002/weights.npz a/start.npz; cp b/other/step-00000002/weights.npz b/start.npz\n"
                  "cp -r a/on begun");
    expect_the_same(dir, "new", "rm -r a/new",
                    LIST(TINY, "--steps", "2", "--pretrained", "start.npz", "--output", "new"));
    expect_the_same(dir, "on", "rm -r a/on; cp -r begun a/on",
                    LIST(TINY, "--steps", "6", "--output", "on", "--resume"));
    expect_the_same(dir, "on", "rm -r a/on; cp -r begun a/on",
                    LIST("train", "data", "--threads", "1", "--output", "on", "--resume"));
}

#define WORDS                                                                                                          \
    "train", "words/data", "--model", "bridgetower", "--tokenizer", "words/tok.json", "--image-size", "32", "--patch", \
        "16", "--hidden", "64", "--layers", "1", "--heads", "1", "--mlp", "64", "--cross-layers", "1", "--embed",      \
        "16", "--max-text", "16", "--batch", "4", "--threads", "1", "--max-bad", "9", "--eval-every", "0", "--epochs", \
        "1"

/* Two tokens have changed their numbers for the other rank. */
static void rank_0_reads_the_tokenizer(void **state)
{
    const char *dir = *state;
    support_shell(dir, "sed -i 's/\"\xc4\x80\":4,\"\xc4\x81\":5/\"\xc4\x80\":5,\"\xc4\x81\":4/' b/words/tok.json\n"
                       "! cmp -s a/words/tok.json b/words/tok.json");
    expect_the_same(dir, "texts", "rm -r a/texts", LIST(WORDS, "--output", "texts"));
    support_shell(dir, "rm b/words/tok.json");
    expect_the_same(dir, "more", "rm -r a/more", LIST(WORDS, "--output", "more"));
}

/* Rank 0 lists the samples; those that are damaged where the other one runs are for its loader to find. */
static void rank_0_lists_the_samples(void **state)
{
    const char *dir = *state;
    IN(hurt, "b/words/data");
    static const char *const ways[] = {"--expand-captions", "--quiet"};
    for (uint64_t n = 0; n < 8; n++)
        hurt_meta(hurt, n, 1000);
    for (size_t i = 0; i < MR_COUNT(ways); i++) {
        support_result r = APART(dir, 0, WORDS, ways[i]);
        support_result_free(&r);
    }
    support_result r = APART(dir, 1, WORDS, "--max-bad", "0");
    assert_non_null(strstr(r.err, "rank 1: "));
    support_result_free(&r);
}

/* One would wait for what the other does not do, or evaluate something else. */
static void other_options_are_reported(void **state)
{
    const char *dir = *state;
    static const char told[] =
        "mpirun: rank 1 was given a different command or different options than rank 0; give all ranks";
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
        cmocka_unit_test(rank_0_reads_the_checkpoint), cmocka_unit_test(rank_0_reads_the_weights),
        cmocka_unit_test(rank_0_reads_the_tokenizer),  cmocka_unit_test(rank_0_lists_the_samples),
        cmocka_unit_test(other_options_are_reported),
    };
    return cmocka_run_group_tests(tests, set_up, support_tmpdir_tear_down);
}
