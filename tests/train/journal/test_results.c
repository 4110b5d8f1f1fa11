/* test_results.c - the results of a run: train_results.json and the last lines.
 * Invariant tested: each number is that of its formula, and the shares add up. */
#include "tests/support/training/journal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- results ---------------------------------------------------------------------------------------------------- */

static double number(const json_t *doc, const char *key)
{
    const json_t *value = json_object_get(doc, key);
    if (!json_is_number(value))
        fail_msg("\"%s\" is not a number", key);
    return json_number_value(value);
}

static void assert_near(const json_t *doc, const char *key, double expected)
{
    if (!(fabs(number(doc, key) - expected) <= 1e-6 * (1 + fabs(expected))))
        fail_msg("\"%s\" is %.9g, expected %.9g", key, number(doc, key), expected);
}

/* Runs updates 1 to 6, of which 1 and 2 are slow, and reads the results. */
static json_t *results_of(support_journal *p, uint64_t warmup, const mr_journal_end *end)
{
    mr_journal_options o = {
        .stream = open_memstream(&p->said, &p->said_len), .results = p->results, .steps = 6, .warmup_steps = warmup};
    mr_journal *j = support_journal_open(&o);
    mr_error err;
    for (uint64_t k = 1; k <= 6; k++) {
        mr_journal_update u = support_journal_update(k);
        u.samples = k < 6 ? 64 : 10;
        u.seconds = k < 3 ? 10 : 0.5;
        assert_int_equal(mr_journal_update_done(j, &u, &err), MR_OK);
    }
    support_journal_evaluate(j, 6, 0.5, 0.75);
    support_journal_finish(j, end);
    fclose(o.stream);
    size_t len;
    char *text = (char *)support_read(p->results, &len);
    json_t *doc = NULL;
    if (mr_json_parse(text, len, p->results, &doc, &err) != MR_OK)
        fail_msg("%s", err.text);
    assert_true(text[len - 1] == '\n');
    free(text);
    char *list = support_list(p->dir);
    assert_string_equal(list, "results/train_results.json\n"); /* and no temp file */
    free(list);
    return doc;
}

static void test_results(void **state)
{
    (void)state;
    support_journal p = support_journal_begin();
    mr_journal_end end = {.dataset = "data/\xFF"
                                     "flowers",
                          .read_share = 2,
                          .decode_share = 6,
                          .best_accuracy = 0.75,
                          .best_update = 6};
    json_t *doc = results_of(&p, 2, &end);
    assert_string_equal(json_string_value(json_object_get(doc, "dataset")), "data/\\xFFflowers");
    assert_near(doc, "train_steps", 6);
    assert_near(doc, "train_samples", 330);
    assert_near(doc, "train_runtime", 22);
    assert_near(doc, "warmup_steps", 2);
    assert_near(doc, "warmup_samples", 128);
    assert_near(doc, "warmup_runtime", 20);
    /* The formula, word by word, and its number. */
    assert_near(doc, "train_samples_per_second",
                (number(doc, "train_samples") - number(doc, "warmup_samples")) /
                    (number(doc, "train_runtime") - number(doc, "warmup_runtime")));
    assert_near(doc, "train_samples_per_second", 202 / 2.0);
    assert_near(doc, "train_steps_per_second", 2);
    assert_near(doc, "train_loss", (1 + 1 / 2. + 1 / 3. + 1 / 4. + 1 / 5. + 1 / 6.) / 6);
    assert_near(doc, "wait_seconds", 0.4);
    assert_near(doc, "exchange_seconds", 0.2);
    assert_near(doc, "share_read", 0.05);
    assert_near(doc, "share_decode", 0.15);
    assert_near(doc, "share_exchange", 0.1);
    assert_near(doc, "share_compute", 0.7);
    assert_null(json_object_get(doc, "share_data"));
    assert_string_equal(json_string_value(json_object_get(doc, "bottleneck")), "compute");
    assert_near(doc, "eval_accuracy", 0.75);
    assert_near(doc, "eval_loss", 0.5);
    assert_near(doc, "eval_runtime", 2.5);
    assert_near(doc, "best_accuracy", 0.75);
    assert_near(doc, "best_step", 6);
    assert_true(number(doc, "memory_max_mb") > 0.1);
    assert_non_null(strstr(json_string_value(json_object_get(doc, "formula")), "train_samples - warmup_samples"));
    assert_non_null(strstr(p.said, "Throughput: 101.0 samples/sec, 2.00 steps/sec: 4 steps in 2.0 s, data wait "
                                   "included, without the first 2\n"));
    json_decref(doc);
    support_journal_end(&p);
}

/* Where the warm-up is the whole run, all of it counts; where nobody knows how the loader's work divides, data is one
 * share. */
static void test_results_all_warmup(void **state)
{
    (void)state;
    support_journal p = support_journal_begin();
    json_t *doc = results_of(&p, 6, NULL);
    assert_near(doc, "warmup_steps", 0);
    assert_near(doc, "train_samples_per_second", 330 / 22.0);
    assert_near(doc, "share_data", 0.6 / 22);
    assert_null(json_object_get(doc, "share_read"));
    assert_null(json_object_get(doc, "best_accuracy"));
    assert_null(json_object_get(doc, "dataset"));
    assert_null(strstr(p.said, "without the first"));
    assert_null(strstr(p.said, "Best Accuracy"));
    assert_non_null(strstr(p.said, "Bottleneck: compute, 95.9 % of the time (waiting for data 2.7 %, "
                                   "exchange 1.4 %)\n"));
    json_decref(doc);
    support_journal_end(&p);
}

/* Each of the four can be the bottleneck. */
static void test_bottlenecks(void **state)
{
    (void)state;
    static const struct {
        double wait, exchange, read, decode;
        const char *said;
    } known[] = {
        {0.6, 0.1, 0.9, 0.1, "reading, 54.0 % of the time (decoding 6.0 %, compute 30.0 %, exchange 10.0 %)"},
        {0.6, 0.1, 0.1, 0.9, "decoding, 54.0 % of the time (reading 6.0 %, compute 30.0 %, exchange 10.0 %)"},
        {0.6, 0.1, 0, 0, "waiting for data, 60.0 % of the time (compute 30.0 %, exchange 10.0 %)"},
        {0.1, 0.6, 0.5, 0.5, "exchange, 60.0 % of the time (reading 5.0 %, decoding 5.0 %, compute 30.0 %)"},
        {0, 0, 0, 0, "compute, 100.0 % of the time (waiting for data 0.0 %, exchange 0.0 %)"},
        {0.8, 0.4, 0, 0, "waiting for data, 80.0 % of the time (compute 0.0 %, exchange 40.0 %)"},
    };
    for (size_t i = 0; i < MR_COUNT(known); i++) {
        char *sentence = support_path("\nBottleneck: %s\n", known[i].said);
        support_journal p = support_journal_begin();
        mr_journal_options o = {.stream = open_memstream(&p.said, &p.said_len), .steps = 1, .logging_steps = 2};
        mr_journal_end end = {.read_share = known[i].read, .decode_share = known[i].decode, .best_accuracy = -1};
        mr_journal *j = support_journal_open(&o);
        mr_error err;
        mr_journal_update u = {
            .update = 1, .samples = 1, .seconds = 1, .wait = known[i].wait, .exchange = known[i].exchange};
        assert_int_equal(mr_journal_update_done(j, &u, &err), MR_OK);
        support_journal_finish(j, &end);
        fclose(o.stream);
        if (!strstr(p.said, sentence))
            fail_msg("expected '%s' in '%s'", sentence, p.said);
        free(sentence);
        support_journal_end(&p);
    }
}

/* A resumed run that has nothing left to do keeps the results of the one that did the work. */
static void test_results_without_updates(void **state)
{
    (void)state;
    support_journal p = support_journal_begin();
    mr_journal_end end = {.best_accuracy = 0.5, .best_update = 4};
    mr_journal_options o = {
        .stream = open_memstream(&p.said, &p.said_len), .results = p.results, .steps = 6, .first = 6};
    support_write_text(p.results, "earlier");
    support_journal_finish(support_journal_open(&o), &end);
    fclose(o.stream);
    char *text = (char *)support_read(p.results, NULL);
    assert_string_equal(text, "earlier");
    assert_string_equal(p.said, "Best Accuracy: \t0.500000 (step 4)\n");
    free(text);
    support_journal_end(&p);
}

/* One that was killed before it said so leaves none, and a temp file: the run that finds nothing to do says what it
 * knows. */
static void test_results_that_were_lost(void **state)
{
    (void)state;
    mr_error err;
    support_journal p = support_journal_begin();
    mr_journal_end end = {.best_accuracy = 0.5, .best_update = 4};
    mr_journal_options o = {
        .stream = open_memstream(&p.said, &p.said_len), .results = p.results, .steps = 6, .first = 6};
    char *temp = support_path("%s.millrace.tmp", p.results);
    support_write_text(temp, "{\"half");
    for (int i = 0; i < 2; i++) {
        size_t len;
        support_journal_finish(support_journal_open(&o), &end);
        char *text = (char *)support_read(p.results, &len);
        json_t *doc = NULL;
        if (mr_json_parse(text, len, p.results, &doc, &err) != MR_OK)
            fail_msg("%s", err.text);
        assert_near(doc, "last_step", 6);
        assert_near(doc, "train_steps", 0);
        assert_near(doc, "best_step", 4);
        assert_true(json_is_null(json_object_get(doc, "train_loss")));
        json_decref(doc);
        free(text);
        assert_false(support_exists(temp));
        support_write_text(temp, "{\"half"); /* beside whole results it goes, too */
    }
    fclose(o.stream);
    free(temp);
    support_journal_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_results_all_warmup),
        cmocka_unit_test(test_bottlenecks),
        cmocka_unit_test(test_results_without_updates),
        cmocka_unit_test(test_results_that_were_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
