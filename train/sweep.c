/* sweep.c - ways made, planned, and measured by running this program.
 * Invariant: every run is a process of its own, so that memory and threads of one do not touch the next. */
#include "train/sweep.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/scope.h"
#include "base/term.h"
#include "base/text.h"
#include "run/pause.h"
#include "train/sweep_plan.h"
#include "train/sweep_process.h"

enum { MOST_WAYS = 1000, MOST_RANKS = 1024, FIRST_STEPS = 4, WARMUP = 1, RESULTS_MAX = 1 << 20 };

const char *const mr_sweep_words[MR_SWEEP_AXES] = {"ranks",     "threads",  "batch",     "decoder",
                                                   "decode-on", "exchange", "recompute", "precision"};

void mr_sweep_release(mr_sweep *s)
{
    free(s->ways);
    mr_buf_free(&s->texts);
}

static uint64_t number(const mr_sweep_way *w, mr_sweep_axis axis)
{
    return strtoull(w->value[axis], NULL, 10);
}

/* ---- ways -------------------------------------------------------------------------------------------------------- */

/* "1,2" becomes "1\0" "2\0"; returns how many. */
static size_t split(const char *list, mr_buf *out)
{
    size_t count = 0;
    for (const char *at = list; *at; at += *at == ',') {
        size_t len = strcspn(at, ",");
        mr_buf_add(out, at, len);
        mr_buf_add(out, "", 1);
        count += len > 0;
        at += len;
    }
    return count;
}

/* One rank exchanges nothing. */
static bool repeats(const mr_sweep_way *w, const size_t digit[MR_SWEEP_AXES])
{
    return number(w, MR_SWEEP_RANKS) == 1 && digit[MR_SWEEP_EXCHANGE] > 0;
}

/* The other values go to `train`, which says what is wrong with them. */
static mr_status check_ranks(const mr_sweep_way *w, mr_error *err)
{
    uint64_t ranks;
    if (mr_text_parse_u64(w->value[MR_SWEEP_RANKS], &ranks) && ranks >= 1 && ranks <= MOST_RANKS)
        return MR_OK;
    return mr_fail(err, MR_MISUSE, "--ranks %s: expected numbers from 1 to %d", w->value[MR_SWEEP_RANKS], MOST_RANKS);
}

static mr_status make_ways(mr_sweep *s, mr_error *err)
{
    size_t counts[MR_SWEEP_AXES], at[MR_SWEEP_AXES], digit[MR_SWEEP_AXES] = {0}, total = 1;
    for (int a = 0; a < MR_SWEEP_AXES; a++) {
        at[a] = s->texts.len;
        counts[a] = split(s->lists[a], &s->texts);
        total *= counts[a];
        if (counts[a] == 0 || total > MOST_WAYS)
            return mr_fail(err, MR_MISUSE, "--%s %s: gives %s", mr_sweep_words[a], s->lists[a],
                           counts[a] ? "more than 1000 ways together with the other lists" : "no value");
    }
    MR_TRY(mr_buf_status(&s->texts, err, "planning a sweep"));
    for (size_t n = 0; n < total; n++) {
        mr_sweep_way way = {.limit = 0};
        size_t rest = n;
        for (int a = 0; a < MR_SWEEP_AXES; a++) {
            digit[a] = rest % counts[a];
            rest /= counts[a];
            const char *text = (const char *)s->texts.data + at[a];
            for (size_t i = 0; i < digit[a]; i++)
                text += strlen(text) + 1;
            way.value[a] = text;
        }
        MR_TRY(check_ranks(&way, err));
        if (repeats(&way, digit))
            continue;
        if (!MR_GROW(s->ways, s->count, s->room))
            return mr_fail_memory(err, "planning a sweep");
        s->ways[s->count++] = way;
    }
    return MR_OK;
}

/* Cheap ones first: they take less time, and tell what larger ones will do. */
static int by_cost(const void *a, const void *b)
{
    const mr_sweep_way *x = a, *y = b;
    const uint64_t cost[2] = {number(x, MR_SWEEP_BATCH) * number(x, MR_SWEEP_RANKS),
                              number(y, MR_SWEEP_BATCH) * number(y, MR_SWEEP_RANKS)};
    if (cost[0] != cost[1])
        return cost[0] < cost[1] ? -1 : 1;
    return (x->value[MR_SWEEP_BATCH] > y->value[MR_SWEEP_BATCH]) -
           (x->value[MR_SWEEP_BATCH] < y->value[MR_SWEEP_BATCH]);
}

/* ---- one run ----------------------------------------------------------------------------------------------------- */

static double real(const json_t *doc, const char *key)
{
    return json_number_value(json_object_get(doc, key));
}

/* What the run wrote about itself. */
static mr_status read_results(const mr_sweep *s, mr_sweep_way *way, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0}, text = {0};
    MR_AUTO(json_decrefp) json_t *doc = NULL;
    mr_buf_printf(&path, "%s/run/" MR_RUN_RESULTS, s->folder);
    MR_TRY(mr_buf_status(&path, err, "reading a run's results"));
    MR_TRY(mr_file_read_all(AT_FDCWD, mr_buf_text(&path), RESULTS_MAX, &text, err));
    MR_TRY(mr_json_parse(text.data, text.len, mr_buf_text(&path), &doc, err));
    const json_t *ranks = json_object_get(doc, "ranks"), *slowest = json_array_get(ranks, 0);
    for (size_t i = 1; i < json_array_size(ranks); i++)
        if (real(json_array_get(ranks, i), "share_exchange") < real(slowest, "share_exchange"))
            slowest = json_array_get(ranks, i);
    way->rate = real(doc, "train_samples_per_second");
    way->compute = real(slowest, "share_compute");
    way->wait = real(slowest, "share_wait");
    way->exchange = real(slowest, "share_exchange");
    way->used = (uint64_t)(real(doc, "memory_max_mb") * 1e6);
    way->measured = way->rate > 0;
    return MR_OK;
}

static mr_status measure(const mr_sweep *s, mr_sweep_way *way, uint64_t steps, mr_error *err)
{
    char count[24], warmup[24];
    MR_AUTO(mr_buf_free) mr_buf output = {0}, unread = {0};
    snprintf(count, sizeof count, "%llu", (unsigned long long)steps + WARMUP);
    snprintf(warmup, sizeof warmup, "%d", WARMUP);
    mr_buf_printf(&output, "%s/run", s->folder);
    MR_TRY(mr_buf_status(&output, err, "sweeping"));
    mr_dir_remove(AT_FDCWD, mr_buf_text(&output), NULL);
    const char *const own[] = {"--steps", count,      "--throughput-warmup-steps", warmup, "--eval-every", "0",
                               "--quiet", "--output", mr_buf_text(&output),        NULL};
    MR_TRY(mr_sweep_process(s, way, true, own, &unread, err));
    return read_results(s, way, err);
}

/* ---- turns ------------------------------------------------------------------------------------------------------- */

static bool signalled(const mr_pause *p)
{
    double numbers[MR_PAUSE_NUMBERS];
    mr_pause_numbers(p, numbers);
    return mr_pause_stops(numbers) != 0;
}

static void say(const mr_sweep *s, const mr_sweep_way *w)
{
    if (!s->speaks)
        return;
    fprintf(stderr, "ranks %s, threads %s, batch %s", w->value[MR_SWEEP_RANKS], w->value[MR_SWEEP_THREADS],
            w->value[MR_SWEEP_BATCH]);
    if (*w->skipped)
        fprintf(stderr, ": %s\n", w->skipped);
    else
        fprintf(stderr, ": %.1f samples/s\n", w->rate);
}

const mr_sweep_way *mr_sweep_best(const mr_sweep *s)
{
    const mr_sweep_way *best = NULL;
    for (size_t i = 0; i < s->count; i++)
        if (s->ways[i].measured && (!best || s->ways[i].rate > best->rate))
            best = &s->ways[i];
    return best;
}

static void skip(mr_sweep_way *w, const char *why)
{
    snprintf(w->skipped, sizeof w->skipped, "%.390s", why);
}

/* Whether a way that is measured again should be: it came near the best. */
static bool is_hopeless(const mr_sweep *s, const mr_sweep_way *w)
{
    const mr_sweep_way *best = mr_sweep_best(s);
    return best && w->rate < best->rate / 2;
}

static void one_turn(mr_sweep *s, bool second, double since, const mr_pause *pause)
{
    for (size_t i = 0; i < s->count; i++) {
        mr_sweep_way *w = &s->ways[i];
        mr_error why = {0};
        s->stopped |= signalled(pause);
        if (*w->skipped || (second && !w->measured))
            continue;
        bool late = mr_seconds() - since > s->budget;
        if (s->stopped || late) {
            if (!w->measured)
                skip(w, s->stopped ? "stopped" : "no time is left (--budget)");
            continue;
        }
        if (second && is_hopeless(s, w)) {
            skip(w, "less than half of the best after a few updates");
            continue;
        }
        uint64_t batch = number(w, MR_SWEEP_BATCH) * number(w, MR_SWEEP_RANKS);
        double steps = second ? w->rate * s->seconds / (double)(batch ? batch : 1) : FIRST_STEPS;
        mr_sweep_way before = *w;
        mr_status status = measure(s, w, steps > FIRST_STEPS ? (uint64_t)steps : FIRST_STEPS, &why);
        if (status != MR_OK) {
            bool stopped = signalled(pause);
            *w = before;
            w->measured &= stopped;
            if (!w->measured)
                skip(w, stopped ? "stopped" : why.text);
        }
        say(s, w);
    }
}

mr_status mr_sweep_run(mr_sweep *s, mr_error *err)
{
    double since = mr_seconds();
    const mr_pace never = {0};
    mr_pause pause;
    MR_TRY(make_ways(s, err));
    qsort(s->ways, s->count, sizeof *s->ways, by_cost);
    MR_TRY(mr_sweep_plan(s, err));
    mr_pause_begin(&pause, &never, false, true);
    one_turn(s, false, since, &pause);
    one_turn(s, true, since, &pause);
    mr_pause_end(&pause);
    return MR_OK;
}
