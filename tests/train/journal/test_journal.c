/* test_journal.c - the reports of a run: lines for people, JSON lines, TensorBoard.
 * Invariant tested: what can be read back is what was reported, to the digit. */
#include "tests/support/training/events.h"
#include "tests/support/training/journal.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- lines for people ------------------------------------------------------------------------------------------- */

/* Takes one line off *text and checks how it begins; returns the rest. */
static const char *expect_line(char **text, const char *start)
{
    char *line = *text, *end = strchr(line, '\n');
    if (!end || strncmp(line, start, strlen(start)) != 0)
        fail_msg("expected a line that begins '%s', not '%s'", start, line);
    *end = '\0';
    *text = end + 1;
    return line + strlen(start);
}

static void test_lines(void **state)
{
    (void)state;
    support_journal p = support_journal_begin();
    mr_journal_options o = {.stream = open_memstream(&p.said, &p.said_len), .steps = 7, .logging_steps = 3};
    mr_journal_end end = {
        .dataset = "d", .read_share = 0.25, .decode_share = 0.75, .best_accuracy = 0.875, .best_update = 3};
    mr_journal *j = support_journal_open(&o);
    support_journal_updates(j, 1, 3);
    support_journal_evaluate(j, 3, 2.302585, 0.875);
    support_journal_updates(j, 4, 7);
    support_journal_finish(j, &end);
    fclose(o.stream);

    char *at = p.said;
    const char *rest = expect_line(&at, "Training (3 / 7 Steps) (loss=0.33333 images/sec=128.00000) ETA 2.0 s lr=0.02 "
                                        "wait_ms=100.0 memory=");
    assert_non_null(strstr(rest, " max="));
    expect_line(&at, "Validation Results / Global Steps: 3 / Valid Loss: 2.30259 / Valid Accuracy: 0.87500");
    /* Six updates took 3 s, the evaluation 2.5 s: the seventh is expected to take their mean. */
    expect_line(&at, "Training (6 / 7 Steps) (loss=0.16667 images/sec=128.00000) ETA 917 ms lr=0.01 wait_ms=100.0");
    expect_line(&at, "Training (7 / 7 Steps) (loss=0.14286 images/sec=128.00000) ETA 0 ms lr=0.008571");
    assert_string_equal(expect_line(&at, "Best Accuracy: \t0.875000 (step 3)"), "");
    assert_string_equal(expect_line(&at, "Throughput: 128.0 samples/sec, 2.00 steps/sec: 7 steps in 3.5 s, data wait "
                                         "included"),
                        "");
    assert_string_equal(expect_line(&at, "Bottleneck: compute, 70.0 % of the time (reading 5.0 %, decoding 15.0 %, "
                                         "exchange 10.0 %)"),
                        "");
    assert_string_equal(at, "");
    support_journal_end(&p);
}

/* The rate of a line is that of the updates since the line before it, not of the last of them. */
static void test_rate_of_a_line(void **state)
{
    (void)state;
    static const double seconds[] = {1, 0.5, 0.5, 7, 0.5, 0.5};
    support_journal p = support_journal_begin();
    mr_journal_options o = {.stream = open_memstream(&p.said, &p.said_len), .steps = 100, .logging_steps = 3};
    mr_journal *j = support_journal_open(&o);
    mr_error err;
    for (uint64_t k = 1; k <= 6; k++) {
        mr_journal_update u = support_journal_update(k);
        u.seconds = seconds[k - 1];
        assert_int_equal(mr_journal_update_done(j, &u, &err), MR_OK);
    }
    mr_journal_free(j);
    fclose(o.stream);
    char *at = p.said;
    expect_line(&at, "Training (3 / 100 Steps) (loss=0.33333 images/sec=96.00000)");
    expect_line(&at, "Training (6 / 100 Steps) (loss=0.16667 images/sec=24.00000)");
    support_journal_end(&p);
}

static void test_lines_every_ten_by_default(void **state)
{
    (void)state;
    support_journal p = support_journal_begin();
    mr_journal_options o = {.stream = open_memstream(&p.said, &p.said_len), .steps = 100, .warmup_steps = 1};
    mr_journal *j = support_journal_open(&o);
    support_journal_updates(j, 1, 25);
    mr_journal_free(j); /* a run that failed: nothing more to say */
    fclose(o.stream);
    char *at = p.said;
    expect_line(&at, "Training (10 / 100 Steps) (loss=0.10000 images/sec=128.00000) ETA 45 s");
    expect_line(&at, "Training (20 / 100 Steps) (loss=0.05000 images/sec=128.00000) ETA 40 s");
    assert_string_equal(at, "");
    support_journal_end(&p);
}

/* What a program on the other side of a terminal sees. */
static char *from_terminal(int master)
{
    char *out = calloc(1, 1 << 16);
    size_t len = 0;
    assert_non_null(out);
    fcntl(master, F_SETFL, O_NONBLOCK);
    for (ssize_t n; (n = read(master, out + len, (1 << 16) - 1 - len)) > 0;)
        len += (size_t)n;
    return out;
}

static void test_terminal(void **state)
{
    (void)state;
    struct winsize size = {.ws_row = 24, .ws_col = 60};
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_true(slave >= 0 && ioctl(slave, TIOCSWINSZ, &size) == 0);
    mr_journal_options o = {.stream = fdopen(slave, "w"), .steps = 100, .logging_steps = 50};
    setenv("TERM", "xterm", 1);
    mr_journal *j = support_journal_open(&o);
    support_journal_updates(j, 48, 49); /* the first is drawn, the second is too soon after it */
    support_journal_updates(j, 50, 51);
    mr_journal_free(j);
    char *seen = from_terminal(master), *lasting = strstr(seen, "\r\033[KTraining (50 / 100 Steps) (loss=0.02000 ");
    static const char first[] = "\r\033[KTraining (48 / 100 Steps) (loss=0.02083\r"; /* the next word does not fit */
    assert_true(strncmp(seen, first, strlen(first)) == 0);
    assert_non_null(lasting);
    assert_non_null(strstr(lasting, " max=")); /* lasting lines are not cut */
    assert_true(lasting == seen + strlen(first) - 1);
    assert_null(strstr(seen, "(49 /"));
    assert_non_null(strstr(lasting, "\n\r\033[KTraining (51 / 100"));
    assert_string_equal(seen + strlen(seen) - 4, "\r\033[K"); /* nothing half-drawn is left behind */
    free(seen);
    fclose(o.stream);
    close(master);
}

/* A stream that is gone ends no run; the files go on. */
static void test_closed_stream(void **state)
{
    (void)state;
    support_journal p = support_journal_begin();
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    void (*old)(int) = signal(SIGPIPE, SIG_IGN); /* as millrace.c does */
    mr_journal_options o = {.stream = fdopen(ends[1], "w"), .log = p.log, .steps = 3, .logging_steps = 1};
    mr_journal *j = support_journal_open(&o);
    support_journal_updates(j, 1, 3);
    support_journal_finish(j, NULL);
    fclose(o.stream);
    signal(SIGPIPE, old);
    char *text = (char *)support_read(p.log, NULL);
    assert_non_null(strstr(text, "\"step\": 3"));
    free(text);
    support_journal_end(&p);
}

/* ---- lines for programs ----------------------------------------------------------------------------------------- */

static void test_log(void **state)
{
    (void)state;
    support_journal p = support_journal_begin();
    mr_journal_options o = {.log = p.log, .steps = 4};
    mr_journal *j = support_journal_open(&o);
    mr_error err;
    mr_journal_update odd = {.update = 2, .loss = NAN, .lr = 1.0 / 3, .grad_norm = INFINITY, .samples = 1};
    support_journal_updates(j, 1, 1);
    assert_int_equal(mr_journal_update_done(j, &odd, &err), MR_OK);
    support_journal_evaluate(j, 2, 0.1, 1);
    support_journal_finish(j, NULL);
    char *text = (char *)support_read(p.log, NULL);
    assert_string_equal(
        text, "{\"step\": 1, \"loss\": 1, \"lr\": 0.06, \"grad_norm\": 3, \"images_per_sec\": 128, \"wait_ms\": 100, "
              "\"exchange_ms\": 50}\n"
              "{\"step\": 2, \"loss\": null, \"lr\": 0.3333333333333333, \"grad_norm\": null, \"images_per_sec\": 0, "
              "\"wait_ms\": 0, \"exchange_ms\": 0}\n"
              "{\"step\": 2, \"eval_loss\": 0.1, \"eval_accuracy\": 1, \"samples\": 123, \"seconds\": 2.5}\n");
    free(text);
    support_journal_end(&p);
}

/* Numbers are the very doubles that were told. */
static void test_log_keeps_doubles(void **state)
{
    (void)state;
    support_journal p = support_journal_begin();
    mr_random r = support_random();
    mr_journal_options o = {.log = p.log, .steps = 200};
    mr_journal *j = support_journal_open(&o);
    double lr[200], loss[200];
    mr_error err;
    for (uint64_t k = 0; k < 200; k++) {
        uint64_t bits = mr_random_u64(&r) & ~(UINT64_C(1) << 63);
        memcpy(&lr[k], &bits, sizeof bits);
        if (!isfinite(lr[k]))
            lr[k] = 5e-324;
        loss[k] = (float)mr_random_real(&r, 0, 10);
        mr_journal_update u = {.update = k + 1, .loss = loss[k], .lr = lr[k]};
        assert_int_equal(mr_journal_update_done(j, &u, &err), MR_OK);
    }
    support_journal_finish(j, NULL);
    FILE *f = fopen(p.log, "r");
    char line[1024];
    for (uint64_t k = 0; k < 200; k++) {
        assert_non_null(fgets(line, sizeof line, f));
        json_t *doc = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(doc);
        assert_int_equal(json_integer_value(json_object_get(doc, "step")), k + 1);
        assert_true(json_number_value(json_object_get(doc, "lr")) == lr[k]);
        assert_true(json_number_value(json_object_get(doc, "loss")) == loss[k]);
        json_decref(doc);
    }
    fclose(f);
    support_journal_end(&p);
}

static void test_events(void **state)
{
    (void)state;
    support_journal p = support_journal_begin();
    mr_journal_options o = {.events = p.events, .steps = 4};
    mr_journal *j = support_journal_open(&o);
    support_journal_updates(j, 1, 4);
    support_journal_evaluate(j, 4, 0.25, 0.5);
    support_journal_finish(j, NULL);
    size_t count;
    support_event *events = support_events_in(p.events, &count);
    assert_int_equal(count, 1 + 4 + 1);
    for (uint64_t k = 1; k <= 4; k++) {
        assert_true(support_events_value(events, count, "train/loss", k) == (float)(1.0 / (double)k));
        assert_true(support_events_value(events, count, "train/lr", k) == (float)(0.06 / (double)k));
        assert_true(support_events_value(events, count, "train/images_per_sec", k) == 128);
        assert_true(support_events_value(events, count, "train/wait_ms", k) == 100);
        assert_false(events[k].starts);
    }
    assert_true(support_events_value(events, count, "test/loss", 4) == 0.25f);
    assert_true(support_events_value(events, count, "test/accuracy", 4) == 0.5f);
    free(events);

    /* A run that goes on after update 2 tells readers to forget 3 and 4 of the old file. */
    o.events = support_path("%s/second", p.dir);
    o.first = 2;
    j = support_journal_open(&o);
    support_journal_updates(j, 3, 3);
    mr_journal_free(j);
    events = support_events_in(o.events, &count);
    assert_true(count == 3 && events[1].starts && events[1].step == 3);
    free((char *)o.events);
    free(events);
    support_journal_end(&p);
}

/* Other ranks have no journal. */
static void test_none(void **state)
{
    (void)state;
    mr_journal_update u = support_journal_update(1);
    mr_journal_evaluation e = {.update = 1};
    assert_int_equal(mr_journal_update_done(NULL, &u, NULL), MR_OK);
    assert_int_equal(mr_journal_evaluated(NULL, &e, NULL), MR_OK);
    assert_int_equal(mr_journal_finish(NULL, NULL, NULL), MR_OK);
    mr_journal_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_rate_of_a_line),
        cmocka_unit_test(test_lines_every_ten_by_default),
        cmocka_unit_test(test_terminal),
        cmocka_unit_test(test_closed_stream),
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_log_keeps_doubles),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
