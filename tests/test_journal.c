/* test_journal.c - what a run says: lines for people, JSON lines, TensorBoard, results; and what it does not lose.
 * Invariant tested: a log holds each update of a run once, however often the run was killed. */
#include "journal.h"
#include "support_events.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct place {              /* a private folder with all that a journal writes */
    char *dir, *log, *events, *results;
    char *said;                     /* on the stream; of what is closed */
    size_t said_len;
} place;

static place place_open(void)
{
    place p = {.dir = support_tmpdir()};
    p.log = support_path("%s/logs/run.jsonl", p.dir);
    p.events = support_path("%s/out/tensorboard", p.dir);
    p.results = support_path("%s/results/train_results.json", p.dir);
    return p;
}

static void place_close(place *p)
{
    support_tmpdir_remove(p->dir);
    free(p->log);
    free(p->events);
    free(p->results);
    free(p->said);
}

static mr_journal *open_journal(const mr_journal_options *o)
{
    mr_journal *j = NULL;
    mr_error err;
    if (mr_journal_open(o, &j, &err) != MR_OK)
        fail_msg("%s", err.text);
    return j;
}

/* Update k: loss 1/k, 64 samples in half a second, of it 0.1 s for data and 0.05 s for other ranks. */
static mr_journal_update update_of(uint64_t k)
{
    mr_journal_update u = {.update = k, .loss = 1.0 / (double)k, .lr = 0.06 / (double)k, .grad_norm = 2 + (double)k,
                           .samples = 64, .seconds = 0.5, .wait = 0.1, .exchange = 0.05};
    return u;
}

static void do_updates(mr_journal *j, uint64_t from, uint64_t to)
{
    mr_error err;
    for (uint64_t k = from; k <= to; k++) {
        mr_journal_update u = update_of(k);
        if (mr_journal_update_done(j, &u, &err) != MR_OK)
            fail_msg("%s", err.text);
    }
}

static void evaluate(mr_journal *j, uint64_t update, double loss, double accuracy)
{
    mr_journal_evaluation e = {.update = update, .loss = loss, .accuracy = accuracy, .samples = 123, .seconds = 2.5};
    mr_error err;
    if (mr_journal_evaluated(j, &e, &err) != MR_OK)
        fail_msg("%s", err.text);
}

static void finish(mr_journal *j, const mr_journal_end *end)
{
    mr_error err;
    if (mr_journal_finish(j, end, &err) != MR_OK)
        fail_msg("%s", err.text);
    mr_journal_free(j);
}

static const mr_journal_end never = {.best_accuracy = -1};

/* ---- lines for people ------------------------------------------------------------------------------------------- */

/* Takes one line off *text and checks how it begins; returns what is behind. */
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
    place p = place_open();
    mr_journal_options o = {.stream = open_memstream(&p.said, &p.said_len), .steps = 7, .logging_steps = 3};
    mr_journal_end end = {.dataset = "d", .read_share = 0.25, .decode_share = 0.75, .best_accuracy = 0.875,
                          .best_update = 3};
    mr_journal *j = open_journal(&o);
    do_updates(j, 1, 3);
    evaluate(j, 3, 2.302585, 0.875);
    do_updates(j, 4, 7);
    finish(j, &end);
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
                                         "included"), "");
    assert_string_equal(expect_line(&at, "Bottleneck: compute, 70.0 % of the time (reading 5.0 %, decoding 15.0 %, "
                                         "exchange 10.0 %)"), "");
    assert_string_equal(at, "");
    place_close(&p);
}

static void test_lines_every_ten_by_default(void **state)
{
    (void)state;
    place p = place_open();
    mr_journal_options o = {.stream = open_memstream(&p.said, &p.said_len), .steps = 100, .warmup_steps = 1};
    mr_journal *j = open_journal(&o);
    do_updates(j, 1, 25);
    mr_journal_free(j);             /* a run that failed: nothing more to say */
    fclose(o.stream);
    char *at = p.said;
    expect_line(&at, "Training (10 / 100 Steps) (loss=0.10000 images/sec=128.00000) ETA 45 s");
    expect_line(&at, "Training (20 / 100 Steps) (loss=0.05000 images/sec=128.00000) ETA 40 s");
    assert_string_equal(at, "");
    place_close(&p);
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
    mr_journal *j = open_journal(&o);
    do_updates(j, 48, 49);          /* the first is drawn, the second is too soon after it */
    do_updates(j, 50, 51);
    mr_journal_free(j);
    char *seen = from_terminal(master), *lasting;
    static const char first[] = "\r\033[KTraining (48 / 100 Steps) (loss=0.02083 images/sec=128.00000";
    assert_true(strncmp(seen, first, strlen("\r\033[K") + 59) == 0);
    assert_non_null(lasting = strstr(seen, "\r\033[KTraining (50 / 100 Steps) (loss=0.02000 images/sec=128.00000) ETA "));
    assert_true(lasting == seen + strlen("\r\033[K") + 59);           /* one column is left to the cursor */
    assert_null(strstr(seen, "(49 /"));
    assert_non_null(strstr(lasting, "\n\r\033[KTraining (51 / 100"));
    assert_string_equal(seen + strlen(seen) - 4, "\r\033[K");       /* nothing half-drawn is left behind */
    free(seen);
    fclose(o.stream);
    close(master);
}

/* A stream that is gone ends no run; the files go on. */
static void test_closed_stream(void **state)
{
    (void)state;
    place p = place_open();
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    void (*old)(int) = signal(SIGPIPE, SIG_IGN);        /* as millrace.c does */
    mr_journal_options o = {.stream = fdopen(ends[1], "w"), .log = p.log, .steps = 3, .logging_steps = 1};
    mr_journal *j = open_journal(&o);
    do_updates(j, 1, 3);
    finish(j, &never);
    fclose(o.stream);
    signal(SIGPIPE, old);
    char *text = (char *)support_read(p.log, NULL);
    assert_non_null(strstr(text, "\"step\": 3"));
    free(text);
    place_close(&p);
}

/* ---- lines for programs ----------------------------------------------------------------------------------------- */

static void test_log(void **state)
{
    (void)state;
    place p = place_open();
    mr_journal_options o = {.log = p.log, .steps = 4};
    mr_journal *j = open_journal(&o);
    mr_error err;
    mr_journal_update odd = {.update = 2, .loss = NAN, .lr = 1.0 / 3, .grad_norm = INFINITY, .samples = 1};
    do_updates(j, 1, 1);
    assert_int_equal(mr_journal_update_done(j, &odd, &err), MR_OK);
    evaluate(j, 2, 0.1, 1);
    finish(j, &never);
    char *text = (char *)support_read(p.log, NULL);
    assert_string_equal(
        text,
        "{\"step\": 1, \"loss\": 1, \"lr\": 0.06, \"grad_norm\": 3, \"images_per_sec\": 128, \"wait_ms\": 100, "
        "\"exchange_ms\": 50}\n"
        "{\"step\": 2, \"loss\": null, \"lr\": 0.3333333333333333, \"grad_norm\": null, \"images_per_sec\": 0, "
        "\"wait_ms\": 0, \"exchange_ms\": 0}\n"
        "{\"step\": 2, \"eval_loss\": 0.1, \"eval_accuracy\": 1, \"samples\": 123, \"seconds\": 2.5}\n");
    free(text);
    place_close(&p);
}

/* Numbers are the very doubles that were told. */
static void test_log_keeps_doubles(void **state)
{
    (void)state;
    place p = place_open();
    mr_random r = support_random();
    mr_journal_options o = {.log = p.log, .steps = 200};
    mr_journal *j = open_journal(&o);
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
    finish(j, &never);
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
    place_close(&p);
}

static void test_events(void **state)
{
    (void)state;
    place p = place_open();
    mr_journal_options o = {.events = p.events, .steps = 4};
    mr_journal *j = open_journal(&o);
    do_updates(j, 1, 4);
    evaluate(j, 4, 0.25, 0.5);
    finish(j, &never);
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
    j = open_journal(&o);
    do_updates(j, 3, 3);
    mr_journal_free(j);
    events = support_events_in(o.events, &count);
    assert_true(count == 3 && events[1].starts && events[1].step == 3);
    free((char *)o.events);
    free(events);
    place_close(&p);
}

/* ---- results ---------------------------------------------------------------------------------------------------- */

static double number(const json_t *doc, const char *key)
{
    const json_t *value = json_object_get(doc, key);
    if (!json_is_number(value))
        fail_msg("\"%s\" is no number", key);
    return json_number_value(value);
}

static void assert_near(const json_t *doc, const char *key, double expected)
{
    if (!(fabs(number(doc, key) - expected) <= 1e-6 * (1 + fabs(expected))))
        fail_msg("\"%s\" is %.9g, expected %.9g", key, number(doc, key), expected);
}

/* Runs updates 1 to 6, of which 1 and 2 are slow, and reads the results. */
static json_t *results_of(place *p, uint64_t warmup, const mr_journal_end *end)
{
    mr_journal_options o = {.stream = open_memstream(&p->said, &p->said_len), .results = p->results, .steps = 6,
                            .warmup_steps = warmup};
    mr_journal *j = open_journal(&o);
    mr_error err;
    for (uint64_t k = 1; k <= 6; k++) {
        mr_journal_update u = update_of(k);
        u.samples = k < 6 ? 64 : 10;
        u.seconds = k < 3 ? 10 : 0.5;
        assert_int_equal(mr_journal_update_done(j, &u, &err), MR_OK);
    }
    evaluate(j, 6, 0.5, 0.75);
    finish(j, end);
    fclose(o.stream);
    size_t len;
    char *text = (char *)support_read(p->results, &len);
    json_t *doc = NULL;
    if (mr_json_parse(text, len, p->results, &doc, &err) != MR_OK)
        fail_msg("%s", err.text);
    assert_true(text[len - 1] == '\n');
    free(text);
    char *list = support_list(p->dir);
    assert_string_equal(list, "results/train_results.json\n");      /* and no temp file */
    free(list);
    return doc;
}

static void test_results(void **state)
{
    (void)state;
    place p = place_open();
    mr_journal_end end = {.dataset = "data/\xFF" "flowers", .read_share = 2, .decode_share = 6, .best_accuracy = 0.75,
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
    assert_near(doc, "train_samples_per_second", (number(doc, "train_samples") - number(doc, "warmup_samples")) /
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
    assert_non_null(strstr(p.said, "Throughput: 101.0 samples/sec, 2.00 steps/sec: 4 steps in 2.0 s, data wait included, "
                                   "without the first 2\n"));
    json_decref(doc);
    place_close(&p);
}

/* Where the warm-up is the whole run, all of it counts; where nobody knows how the loader's work divides, data is one. */
static void test_results_all_warmup(void **state)
{
    (void)state;
    place p = place_open();
    json_t *doc = results_of(&p, 6, &never);
    assert_near(doc, "warmup_steps", 0);
    assert_near(doc, "train_samples_per_second", 330 / 22.0);
    assert_near(doc, "share_data", 0.6 / 22);
    assert_null(json_object_get(doc, "share_read"));
    assert_null(json_object_get(doc, "best_accuracy"));
    assert_null(json_object_get(doc, "dataset"));
    assert_null(strstr(p.said, "without the first"));
    assert_null(strstr(p.said, "Best Accuracy"));
    assert_non_null(strstr(p.said, "Bottleneck: compute, 95.9 % of the time (waiting for data 2.7 %, exchange 1.4 %)\n"));
    json_decref(doc);
    place_close(&p);
}

/* Each of the four can be the bottleneck. */
static void test_bottlenecks(void **state)
{
    (void)state;
    static const struct {
        double wait, exchange, read, decode;
        const char *sentence;
    } known[] = {
        {0.6, 0.1, 0.9, 0.1, "Bottleneck: reading, 54.0 % of the time (decoding 6.0 %, compute 30.0 %, exchange 10.0 %)"},
        {0.6, 0.1, 0.1, 0.9, "Bottleneck: decoding, 54.0 % of the time (reading 6.0 %, compute 30.0 %, exchange 10.0 %)"},
        {0.6, 0.1, 0, 0, "Bottleneck: waiting for data, 60.0 % of the time (compute 30.0 %, exchange 10.0 %)"},
        {0.1, 0.6, 0.5, 0.5, "Bottleneck: exchange, 60.0 % of the time (reading 5.0 %, decoding 5.0 %, compute 30.0 %)"},
        {0, 0, 0, 0, "Bottleneck: compute, 100.0 % of the time (waiting for data 0.0 %, exchange 0.0 %)"},
        {0.8, 0.4, 0, 0, "Bottleneck: waiting for data, 80.0 % of the time (compute 0.0 %, exchange 40.0 %)"},
    };
    for (size_t i = 0; i < MR_COUNT(known); i++) {
        place p = place_open();
        mr_journal_options o = {.stream = open_memstream(&p.said, &p.said_len), .steps = 1, .logging_steps = 2};
        mr_journal_end end = {.read_share = known[i].read, .decode_share = known[i].decode, .best_accuracy = -1};
        mr_journal *j = open_journal(&o);
        mr_error err;
        mr_journal_update u = {.update = 1, .samples = 1, .seconds = 1, .wait = known[i].wait,
                               .exchange = known[i].exchange};
        assert_int_equal(mr_journal_update_done(j, &u, &err), MR_OK);
        finish(j, &end);
        fclose(o.stream);
        if (!strstr(p.said, known[i].sentence))
            fail_msg("expected '%s' in '%s'", known[i].sentence, p.said);
        place_close(&p);
    }
}

/* A resumed run that has nothing left to do keeps the results of the one that did the work. */
static void test_results_without_updates(void **state)
{
    (void)state;
    place p = place_open();
    mr_journal_end end = {.best_accuracy = 0.5, .best_update = 4};
    mr_journal_options o = {.stream = open_memstream(&p.said, &p.said_len), .results = p.results, .steps = 6, .first = 6};
    support_write_text(p.results, "earlier");
    finish(open_journal(&o), &end);
    fclose(o.stream);
    char *text = (char *)support_read(p.results, NULL);
    assert_string_equal(text, "earlier");
    assert_string_equal(p.said, "Best Accuracy: \t0.500000 (step 4)\n");
    free(text);
    place_close(&p);
}

/* ---- runs that were killed -------------------------------------------------------------------------------------- */

/* The steps of the lines, "1 2 e2 3": e before an evaluation's, ? for what is none of ours. */
static char *steps_in(const char *path)
{
    char *out = calloc(1, 1 << 12), line[1 << 12];
    FILE *f = fopen(path, "r");
    assert_true(out && f);
    while (fgets(line, sizeof line, f)) {
        json_t *doc = json_loads(line, 0, NULL), *step = json_object_get(doc, "step");
        size_t len = strlen(out);
        assert_true(line[strlen(line) - 1] == '\n');
        if (json_is_integer(step))
            snprintf(out + len, (1 << 12) - len, "%s%s%d", len ? " " : "", json_object_get(doc, "eval_loss") ? "e" : "",
                     (int)json_integer_value(step));
        else
            snprintf(out + len, (1 << 12) - len, "%s?", len ? " " : "");
        json_decref(doc);
    }
    fclose(f);
    return out;
}

static void resume_over(const char *before, bool resume, uint64_t first, const char *expected)
{
    place p = place_open();
    mr_journal_options o = {.log = p.log, .steps = 100, .resume = resume, .first = first};
    support_write_text(p.log, before);
    mr_journal *j = open_journal(&o);
    do_updates(j, first + 1, first + 2);
    mr_journal_free(j);
    char *steps = steps_in(p.log), *list = support_list(p.dir);
    if (strcmp(steps, expected) != 0)
        fail_msg("after update %d: '%s', expected '%s'", (int)first, steps, expected);
    assert_string_equal(list, "logs/run.jsonl\n");
    free(steps);
    free(list);
    place_close(&p);
}

#define L(step) "{\"step\": " #step ", \"loss\": 1}\n"
#define E(step) "{\"step\": " #step ", \"eval_loss\": 1}\n"

static void test_resume(void **state)
{
    (void)state;
    /* What a killed run said beyond its checkpoint goes; what it said of the checkpoint's own update stays. */
    resume_over(L(1) L(2) E(2) L(3) L(4) E(4), true, 2, "1 2 e2 3 4");
    resume_over(L(1) L(2) E(2) L(3), true, 3, "1 2 e2 3 4 5");
    resume_over(L(1) L(2), true, 5, "1 2 6 7");                         /* the log came later than the checkpoint */
    resume_over("", true, 2, "3 4");
    /* Killed before its first checkpoint, and gone on with from the start. */
    resume_over(L(1) L(2) L(3), true, 0, "1 2");
    /* Earlier runs in the same file stay, whatever their length. */
    resume_over(L(1) L(2) L(3) L(4) L(1) L(2) L(3), true, 2, "1 2 3 4 1 2 3 4");
    resume_over(L(1) L(2) L(3) L(1), true, 2, "1 2 3 1 3 4");
    /* A new run in an old log loses nothing. */
    resume_over(L(1) L(2) L(3), false, 0, "1 2 3 1 2");
    /* Lines cut in two by a power failure, and what is none of ours. */
    resume_over(L(1) L(2) "{\"step\": 3, \"lo", true, 2, "1 2 3 4");
    resume_over(L(1) L(2) "{\"step\": 2, \"lo", true, 2, "1 2 3 4");
    resume_over(L(1) "{\"step\": 2, \"loss\": 1}", true, 2, "1 2 3 4");
    resume_over(L(1) L(2) "{\"lo", false, 0, "1 2 ? 1 2");
    resume_over("# notes\n\n[1]\n{\"step\": \"2\"}\n{\"step\": null}\n" L(1) L(2) L(3), true, 1, "? ? ? ? ? 1 2 3");
    resume_over("x", true, 1, "2 3");
}

/* A line longer than any of ours is nobody's business, and is not taken into memory. */
static void test_resume_long_line(void **state)
{
    (void)state;
    char *long_line = malloc(100002);
    assert_non_null(long_line);
    memset(long_line, 'x', 100000);
    strcpy(long_line + 100000, "\n");
    place p = place_open();
    mr_journal_options o = {.log = p.log, .steps = 100, .first = 1};
    char *text = support_path("%s%s%s", L(1), long_line, L(2));
    support_write_text(p.log, text);
    mr_journal_free(open_journal(&o));
    assert_int_equal(support_size(p.log), strlen(L(1)) + 100001);
    free(text);
    free(long_line);
    place_close(&p);
}

/* Whatever bytes a killed machine left: the log opens, and what stays is a beginning of what was there. */
static void test_resume_any_bytes(void **state)
{
    (void)state;
    mr_random r = support_random();
    place p = place_open();
    static const char good[] = L(1) L(2) E(2) L(3) L(4);
    for (int turn = 0; turn < 300; turn++) {
        uint8_t bytes[sizeof good];
        size_t len = mr_random_below(&r, sizeof good);
        memcpy(bytes, good, sizeof bytes);
        for (uint64_t k = mr_random_below(&r, 4); k; k--)
            bytes[mr_random_below(&r, sizeof good)] = (uint8_t)mr_random_below(&r, 256);
        support_write(p.log, bytes, len);
        mr_journal_options o = {.log = p.log, .steps = 100, .resume = true, .first = mr_random_below(&r, 5)};
        mr_journal_free(open_journal(&o));
        size_t left;
        uint8_t *now = support_read(p.log, &left);
        size_t same = left && left > len ? left - 1 : left;     /* an end of line may have come */
        if (same > len || memcmp(now, bytes, same) != 0 || (left && now[left - 1] != '\n'))
            fail_msg("turn %d: %zu bytes became %zu", turn, len, left);
        free(now);
    }
    place_close(&p);
}

/* ---- failing files ---------------------------------------------------------------------------------------------- */

static void test_full_disk(void **state)
{
    (void)state;
    place p = place_open();
    struct rlimit old, small;
    mr_error err = {0};
    mr_journal_options o = {.log = p.log, .steps = 10};
    mr_journal *j = open_journal(&o);
    do_updates(j, 1, 2);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = support_size(p.log) + 20;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    mr_journal_update u = update_of(3);
    mr_status status = mr_journal_update_done(j, &u, &err);
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, MR_SYSTEM);
    assert_non_null(strstr(err.text, p.log));
    assert_non_null(strstr(err.text, "cannot write"));
    mr_journal_free(j);
    o.first = 2;                    /* the half line does not stay either */
    j = open_journal(&o);
    do_updates(j, 3, 4);
    mr_journal_free(j);
    char *steps = steps_in(p.log);
    assert_string_equal(steps, "1 2 3 4");
    free(steps);
    place_close(&p);
}

static void test_bad_places(void **state)
{
    (void)state;
    place p = place_open();
    char *file = support_path("%s/file", p.dir), *under = support_path("%s/file/x/y", p.dir);
    mr_journal_options options[] = {{.log = under}, {.log = p.dir}, {.events = under}, {.results = under}};
    support_write_text(file, "x");
    for (size_t i = 0; i < MR_COUNT(options); i++) {
        mr_journal *j = NULL;
        mr_error err = {0};
        assert_int_equal(mr_journal_open(&options[i], &j, &err), MR_SYSTEM);
        assert_null(j);
        assert_non_null(strstr(err.text, p.dir));
    }
    free(file);
    free(under);
    place_close(&p);
}

/* A program may listen instead of a file. */
static void test_log_to_pipe(void **state)
{
    (void)state;
    place p = place_open();
    char *fifo = support_path("%s/fifo", p.dir), line[512];
    assert_int_equal(mkfifo(fifo, 0600), 0);
    int reader = open(fifo, O_RDONLY | O_NONBLOCK);
    mr_journal_options o = {.log = fifo, .steps = 10, .resume = true, .first = 4};
    mr_journal *j = open_journal(&o);
    do_updates(j, 5, 5);
    ssize_t n = read(reader, line, sizeof line - 1);
    assert_true(n > 0);
    line[n] = '\0';
    assert_true(strncmp(line, "{\"step\": 5, ", 12) == 0 && strchr(line, '\n') == line + n - 1);
    mr_journal_free(j);
    close(reader);
    free(fifo);
    place_close(&p);
}

/* Other ranks have no journal. */
static void test_none(void **state)
{
    (void)state;
    mr_journal_update u = update_of(1);
    mr_journal_evaluation e = {.update = 1};
    assert_int_equal(mr_journal_update_done(NULL, &u, NULL), MR_OK);
    assert_int_equal(mr_journal_evaluated(NULL, &e, NULL), MR_OK);
    assert_int_equal(mr_journal_finish(NULL, &never, NULL), MR_OK);
    mr_journal_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_lines_every_ten_by_default),
        cmocka_unit_test(test_terminal),
        cmocka_unit_test(test_closed_stream),
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_log_keeps_doubles),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_results_all_warmup),
        cmocka_unit_test(test_bottlenecks),
        cmocka_unit_test(test_results_without_updates),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_resume_long_line),
        cmocka_unit_test(test_resume_any_bytes),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_bad_places),
        cmocka_unit_test(test_log_to_pipe),
        cmocka_unit_test(test_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
