/* cmd_sweep.c - `millrace sweep DATASET`: how many samples a second each way to run `train` gives on this machine.
 * Invariant: one table whatever happens; ways that did not run are in it, with the reason. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/pool.h"
#include "base/scope.h"
#include "base/term.h"
#include "base/text.h"
#include "train/commands.h"
#include "train/sweep_process.h"

typedef struct request {
    mr_sweep sweep;
    mr_cli_list options; /* after DATASET */
    const char *budget;
    char counts[32]; /* the usual ranks and threads */
    double seconds;
    bool json, quiet;
} request;

#define AXIS(axis, word, ...)                                                                                          \
    {                                                                                                                  \
        word, 0, MR_ARG_TEXT, MR_FIELD(request, sweep.lists[axis]), .value = "LIST", __VA_ARGS__                       \
    }

static const mr_option options[] = {
    AXIS(MR_SWEEP_RANKS, "ranks", .help = "processes, for example 1,2 (default: 1, and as many as processors)",
         .group = "What is tried; each a list with commas:"),
    AXIS(MR_SWEEP_THREADS, "threads", .help = "per rank (default: 1, and as many as processors)"),
    AXIS(MR_SWEEP_BATCH, "batch", .standard = "16,32", .help = "samples per rank and update"),
    AXIS(MR_SWEEP_DECODER, "decoder", .standard = "auto", .help = "of JPEGs: auto, libjpeg"),
    AXIS(MR_SWEEP_DECODE_ON, "decode-on", .standard = "auto", .help = "auto, host, device"),
    AXIS(MR_SWEEP_EXCHANGE, "exchange", .standard = "flat", .help = "of gradients between ranks: flat, buckets"),
    AXIS(MR_SWEEP_RECOMPUTE, "recompute", .standard = "no", .help = "no, yes"),
    AXIS(MR_SWEEP_PRECISION, "precision", .standard = "float32", .help = "float32, bf16"),
    {"budget", 0, MR_ARG_TEXT, MR_FIELD(request, budget), .value = "TIME", .standard = "5m",
     .help = "begin no run after this time: 90s, 5m, 1h", .group = "How:"},
    {"seconds", 0, MR_ARG_REAL, MR_FIELD(request, seconds), .value = "S", .standard = "5", .low = 0, .high = 3600,
     .above = true, .help = "length of a run whose result counts"},
    {"launcher", 0, MR_ARG_TEXT, MR_FIELD(request, sweep.launcher), .value = "WORDS",
     .standard = "mpirun --bind-to none", .help = "starts several ranks; -n RANKS follows"},
    {"json", 0, MR_ARG_FLAG, MR_FIELD(request, json), .own = true, .help = "print one JSON object"},
    {"quiet", 'q', MR_ARG_FLAG, MR_FIELD(request, quiet), .own = true, .help = "no line for each run"},
    {0},
};

static const mr_option arguments[] = {{.value = "DATASET", .kind = MR_ARG_PATH, MR_FIELD(request, sweep.dataset)},
                                      {.value = "OPTION", .kind = MR_ARG_LIST, MR_FIELD(request, options)},
                                      {0}};

/* ---- what was found ---------------------------------------------------------------------------------------------- */

/* "auto" and "flat" of all ways say nothing. */
static bool varies(const mr_sweep *s, mr_sweep_axis axis)
{
    for (size_t i = 1; i < s->count; i++)
        if (strcmp(s->ways[i].value[axis], s->ways[0].value[axis]) != 0)
            return true;
    return false;
}

/* The decoder, the exchange ... of a way, as far as they differ among ways. */
static void add_other(const mr_sweep *s, const mr_sweep_way *w, mr_buf *out)
{
    for (int a = MR_SWEEP_DECODER; a < MR_SWEEP_AXES; a++)
        if (varies(s, (mr_sweep_axis)a))
            mr_buf_printf(out, "%s%s %s", out->len ? ", " : "", mr_sweep_words[a], w->value[a]);
}

static void add_row(mr_table *table, const mr_sweep *s, const mr_sweep_way *w)
{
    char rate[32] = "-", wait[16] = "-", exchange[16] = "-", share[16] = "-", bytes[32] = "-", limit[32] = "-";
    MR_AUTO(mr_buf_free) mr_buf other = {0};
    add_other(s, w, &other);
    if (w->limit > 0)
        snprintf(limit, sizeof limit, "%.1f", w->limit);
    if (w->measured) {
        snprintf(rate, sizeof rate, "%.1f", w->rate);
        snprintf(wait, sizeof wait, "%.1f %%", 100 * w->wait);
        snprintf(exchange, sizeof exchange, "%.1f %%", 100 * w->exchange);
        mr_text_bytes(w->used, bytes);
        if (w->limit > 0)
            snprintf(share, sizeof share, "%.0f %%", 100 * w->rate / w->limit);
    }
    if (*w->skipped)
        mr_buf_printf(&other, "%s%s", other.len ? "; " : "", w->skipped);
    mr_table_row(table, w->value[MR_SWEEP_RANKS], w->value[MR_SWEEP_THREADS], w->value[MR_SWEEP_BATCH], rate, limit,
                 share, wait, exchange, bytes, mr_buf_text(&other));
}

static mr_status print_table(const mr_sweep *s, mr_error *err)
{
    const mr_sweep_way *best = mr_sweep_best(s);
    MR_AUTO(mr_buf_free) mr_buf command = {0};
    mr_table *table = mr_table_new(10);
    mr_table_row(table, ">ranks", ">threads", ">batch", ">samples/s", ">limit", ">of it", ">data wait", ">rank wait",
                 ">memory", "");
    for (size_t i = 0; i < s->count; i++)
        add_row(table, s, &s->ways[i]);
    MR_TRY(mr_table_print(table, stdout, err));
    printf("\nLimit: samples/s if all of the work were one large matrix multiplication. Memory: of one rank.\n");
    if (!best) {
        printf("Nothing could be measured.\n");
        return MR_OK;
    }
    mr_sweep_command(s, best, &command);
    printf("\nThe fastest, %.1f samples/s:\n  ", best->rate);
    mr_term_text(stdout, mr_buf_text(&command));
    printf("\n");
    return mr_buf_status(&command, err, "printing");
}

static json_t *way_json(const mr_sweep_way *w)
{
    json_t *doc = json_object();
    for (int a = 0; a < MR_SWEEP_AXES; a++)
        json_object_set_new(doc, mr_sweep_words[a],
                            a <= MR_SWEEP_BATCH ? json_integer(strtoll(w->value[a], NULL, 10))
                                                : json_string(w->value[a]));
    json_object_set_new(doc, "planned_bytes", json_integer((json_int_t)w->memory));
    json_object_set_new(doc, "limit_samples_per_second", w->limit > 0 ? json_real(w->limit) : json_null());
    json_object_set_new(doc, "samples_per_second", w->measured ? json_real(w->rate) : json_null());
    if (w->measured) {
        json_object_set_new(doc, "share_compute", json_real(w->compute));
        json_object_set_new(doc, "share_wait", json_real(w->wait));
        json_object_set_new(doc, "share_exchange", json_real(w->exchange));
        json_object_set_new(doc, "memory_max_bytes", json_integer((json_int_t)w->used));
    }
    if (*w->skipped)
        json_object_set_new(doc, "skipped", mr_json_path(w->skipped, strlen(w->skipped)));
    return doc;
}

static mr_status print_json(const mr_sweep *s, mr_error *err)
{
    const mr_sweep_way *best = mr_sweep_best(s);
    MR_AUTO(mr_buf_free) mr_buf command = {0};
    json_t *ways = json_array();
    for (size_t i = 0; i < s->count; i++)
        json_array_append_new(ways, way_json(&s->ways[i]));
    MR_AUTO(json_decrefp)
    json_t *doc = json_pack("{s:o, s:I, s:o}", "dataset", mr_json_path(s->dataset, strlen(s->dataset)), "processors",
                            (json_int_t)mr_pool_processors(), "ways", ways);
    if (best) {
        mr_sweep_command(s, best, &command);
        json_object_set_new(doc, "best", json_integer(best - s->ways));
        json_object_set_new(doc, "command", mr_json_path(mr_buf_text(&command), command.len));
    }
    return doc ? mr_json_print(doc, err) : mr_fail_memory(err, "printing");
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static mr_status parse_time(const char *text, double *seconds, mr_error *err)
{
    char *end;
    double value = strtod(text, &end), unit = *end == 'h' ? 3600 : *end == 'm' ? 60 : 1;
    bool named = *end == 's' || *end == 'm' || *end == 'h';
    *seconds = value * unit;
    if (end != text && !end[named] && value > 0 && *seconds < 1e9)
        return MR_OK;
    return mr_fail(err, MR_MISUSE, "--budget %s: expected a time such as 90s, 5m or 1h", text);
}

/* One, and all processors. */
static void list_counts(char text[32])
{
    unsigned all = mr_pool_processors();
    snprintf(text, 32, all > 1 ? "1,%u" : "1", all);
}

static mr_status sweep(request *q, mr_error *err)
{
    char folder[] = "/tmp/millrace-sweep-XXXXXX";
    mr_sweep *s = &q->sweep;
    MR_TRY(parse_time(q->budget, &s->budget, err));
    s->seconds = q->seconds;
    s->options = q->options.items;
    s->option_count = q->options.count;
    s->speaks = !q->quiet && isatty(STDERR_FILENO);
    list_counts(q->counts);
    for (int a = MR_SWEEP_RANKS; a <= MR_SWEEP_THREADS; a++)
        s->lists[a] = s->lists[a] ? s->lists[a] : q->counts;
    if (!mkdtemp(folder))
        return mr_fail_errno(err, errno, "%s: cannot be made", folder);
    s->folder = folder;
    mr_status status = mr_sweep_run(s, err);
    mr_dir_remove(AT_FDCWD, folder, NULL);
    if (status == MR_OK)
        status = q->json ? print_json(s, err) : print_table(s, err);
    return status;
}

static int start(int argc, char **argv)
{
    request q = {.json = false};
    MR_AUTO(mr_cli_release) mr_cli cli = {0};
    mr_error err = {0};
    if (!mr_cli_parse(&cli, &cmd_sweep, argc, argv, &q))
        return cli.code;
    mr_status status = sweep(&q, &err);
    bool stopped = q.sweep.stopped;
    mr_sweep_release(&q.sweep);
    free(q.options.items);
    int code = mr_cli_end(NULL, status, &err);
    return code == 0 && stopped ? 3 : code;
}

const mr_command cmd_sweep = {
    .name = "sweep",
    .title = "which ranks, threads and batches train fastest here",
    .usage = "DATASET [-- OPTION...]",
    .example = "millrace sweep flowers -- --model ViT-B_16",
    .summary = "Runs millrace train in short runs, one for each way to divide the work among ranks, threads and "
               "batches, and prints what each gives, beside what the processors could do at most, and the fastest as a "
               "command.  Cheap ways are first; those that cannot work here, or are far slower after a few updates, "
               "are skipped with the reason.  Options after -- are for all runs.  Nothing is kept.",
    .notes = "Examples:\n"
             "  millrace sweep flowers -- --model ViT-B_16 --image-size 160\n"
             "  millrace sweep flowers --ranks 1 --threads 1,2,4 --batch 8,16 --precision float32,bf16 --budget 20m\n"
             "  millrace sweep flowers --json | jq .command\n"
             "\n"
             "Ctrl-C ends it with the table so far.\n"
             "\n"
             "Exit status: 0 done; 1 the dataset is bad; 2 wrong use; 3 the system failed, or it was stopped.",
    .options = options,
    .arguments = arguments,
    .run = start,
};
