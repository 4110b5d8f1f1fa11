/* cmd_plan.c - `millrace plan DATASET`: what a run will see, step by step, without running it.
 * Invariant: reads only the manifest; no index, no image.  Under mpirun only rank 0 prints. */
#include <errno.h>
#include <stdio.h>

#include "base/ranks/ranks.h"
#include "base/scope.h"
#include "base/cli/term.h"
#include "base/text.h"
#include "loader/cmd_options.h"
#include "loader/commands.h"
#include "shards/remote/remote.h"
#include "shards/dataset/dataset.h"
#include "shards/view/view.h"

typedef unsigned long long ull;

enum { DEFAULT_PREFETCH = 2, DEFAULT_SIZE = 224 };

typedef struct request {
    mr_plan_request plan;
    bool json;
} request;

/* The most that a loader of one rank holds: (prefetch + 2) batches, and a file and an image per thread. */
typedef struct memory {
    uint64_t batches, batch_bytes, bytes, mean;
    bool estimate; /* from the mean record: the size of an encoded batch depends on its files */
} memory;

static const mr_option options[] = {
    {.kind = MR_ARG_TABLE, MR_FIELD(request, plan), .rows = mr_cmd_plan_options},
    {"json", 0, MR_ARG_FLAG, MR_FIELD(request, json), .own = true, .group = "Output:", .help = "print one JSON object"},
    MR_OPTION_QUIET_IGNORED,
    {0},
};

static const mr_option arguments[] = {{.value = "DATASET", .kind = MR_ARG_PATH, MR_FIELD(request, plan.dir)}, {0}};

static mr_status check(void *ctx, mr_error *err)
{
    request *q = ctx;
    return mr_cmd_plan_check(&q->plan, err);
}

/* ---- figures -------------------------------------------------------------------------------------------------- */

static mr_status memory_of(const mr_plan_request *q, const mr_split *split, const mr_schedule *s, memory *out,
                           mr_error *err)
{
    static const uint64_t value_bytes[] = {
        [MR_DELIVER_U8_NHWC] = 1, [MR_DELIVER_F32_NCHW] = 4, [MR_DELIVER_BF16_NCHW] = 2};
    uint64_t side = q->size ? q->size : DEFAULT_SIZE, samples = s->global_batch / s->world;
    memory m = {.batches = (q->prefetch ? q->prefetch : DEFAULT_PREFETCH) + 2,
                .mean = mr_split_mean_bytes(split),
                .estimate = q->deliver == MR_DELIVER_ENCODED};
    uint64_t each = m.estimate ? m.mean : side * side * 3 * value_bytes[q->deliver];
    if (__builtin_mul_overflow(samples, each + sizeof(mr_sample_facts), &m.batch_bytes) ||
        __builtin_mul_overflow(m.batch_bytes, m.batches, &m.bytes) || m.bytes > INT64_MAX)
        return mr_fail(err, MR_MISUSE,
                       "%llu batches of %llu samples do not fit in memory; use a smaller --global-batch, --size or "
                       "--prefetch",
                       (ull)m.batches, (ull)samples);
    *out = m;
    return MR_OK;
}

static uint64_t covered(const mr_schedule *s)
{
    return mr_schedule_position(s, s->steps);
}

static uint64_t padded(const mr_schedule *s)
{
    return s->tail == MR_TAIL_PAD ? s->steps * s->global_batch - covered(s) : 0;
}

/* Samples, not padding, in the last step. */
static uint64_t last_batch(const mr_schedule *s)
{
    return s->steps ? covered(s) - (s->steps - 1) * s->global_batch : 0;
}

/* Both forms are printed as they are computed, so that a plan of any length takes no memory; if output fails they stop,
 * even in the middle of a step. */

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

static void list_json(const mr_schedule *s, uint64_t epoch, uint64_t step, bool weights)
{
    printf(",\"%s\":[", weights ? "weights" : "ranks");
    for (unsigned rank = 0; rank < s->world && !ferror(stdout); rank++) {
        uint64_t count = mr_schedule_count(s, step, rank);
        printf("%s[", rank ? "," : "");
        for (uint64_t i = 0; i < count && !ferror(stdout); i++) {
            mr_slot slot = mr_schedule_slot(s, epoch, step, rank, i);
            printf("%s%llu", i ? "," : "", weights ? (ull)slot.weight : (ull)slot.sample);
        }
        printf("]");
    }
    printf("]");
}

static void print_json(const mr_plan_request *q, const mr_schedule *s, const memory *m)
{
    static const char *const shuffles[] = {
        [MR_SHUFFLE_FULL] = "full", [MR_SHUFFLE_NONE] = "none", [MR_SHUFFLE_WINDOW] = "window"};
    printf("{\"split\":\"%s\",\"samples\":%llu,\"steps\":%llu,\"global_batch\":%llu,\"world\":%u,\"epoch\":%llu,"
           "\"seed\":%llu,\"shuffle\":\"%s\",",
           q->split, (ull)s->order.samples, (ull)s->steps, (ull)s->global_batch, s->world, (ull)q->epoch, (ull)q->seed,
           shuffles[q->shuffle]);
    if (q->shuffle == MR_SHUFFLE_WINDOW)
        printf("\"window_bytes\":%llu,\"window_samples\":%llu,\"block_samples\":%llu,", (ull)q->window_bytes,
               (ull)s->order.window, (ull)s->order.block);
    printf("\"tail\":\"%s\",\"dropped\":%llu,\"padded\":%llu,\"last_batch\":%llu,\n", mr_tail_words[s->tail],
           (ull)(s->order.samples - covered(s)), (ull)padded(s), (ull)last_batch(s));
    printf("\"memory\":{\"deliver\":\"%s\",\"batches\":%llu,\"batch_bytes\":%llu,\"bytes\":%llu,\"estimate\":%s,"
           "\"threads\":%u,\"mean_record_bytes\":%llu},\n\"batches\":[",
           mr_delivery_words[q->deliver], (ull)m->batches, (ull)m->batch_bytes, (ull)m->bytes,
           m->estimate ? "true" : "false", q->threads, (ull)m->mean);
    for (uint64_t k = q->first; q->batches && k < q->end && !ferror(stdout); k++) {
        printf("%s\n{\"step\":%llu", k > q->first ? "," : "", (ull)k);
        list_json(s, q->epoch, k, false);
        if (k + 1 == s->steps && padded(s))
            list_json(s, q->epoch, k, true);
        printf("}");
    }
    printf("]}\n");
}

/* ---- text ------------------------------------------------------------------------------------------------------- */

static void print_order(const mr_plan_request *q, const mr_schedule *s)
{
    char bytes[32], window[32], block[32];
    printf("  order   epoch %llu of seed %llu, ", (ull)q->epoch, (ull)q->seed);
    if (q->shuffle == MR_SHUFFLE_NONE)
        printf("not shuffled\n");
    else if (q->shuffle == MR_SHUFFLE_FULL)
        printf("shuffled\n");
    else
        printf("shuffled in windows of %s: %s samples, in blocks of %s neighbours\n",
               mr_text_bytes(q->window_bytes, bytes), mr_text_count(s->order.window, window),
               mr_text_count(s->order.block, block));
}

static void print_tail(const mr_schedule *s)
{
    char n[32], last[32];
    uint64_t dropped = s->order.samples - covered(s);
    mr_text_count(last_batch(s), last);
    printf("  tail    %s: ", mr_tail_words[s->tail]);
    if (s->order.samples % s->global_batch == 0)
        printf("none, the batches divide the samples evenly\n");
    else if (dropped && s->steps == 0)
        printf("no batch can be filled; --tail pad or partial keeps the samples\n");
    else if (dropped)
        printf("%s sample%s of this epoch left out\n", mr_text_count(dropped, n), dropped == 1 ? "" : "s");
    else if (s->tail == MR_TAIL_PAD)
        printf("the last batch has %s samples and %s repeated ones of weight 0\n", last, mr_text_count(padded(s), n));
    else
        printf("the last batch has %s sample%s\n", last, last_batch(s) == 1 ? "" : "s");
}

static void print_memory(const mr_plan_request *q, const mr_schedule *s, const memory *m)
{
    char all[32], each[32], mean[32];
    uint32_t side = q->size ? q->size : DEFAULT_SIZE;
    printf("  memory  %s %s per rank: %llu batches of %s", m->estimate ? "about" : "at most",
           mr_text_bytes(m->bytes, all), (ull)m->batches, mr_text_bytes(m->batch_bytes, each));
    if (m->estimate)
        printf(" (an estimate: records of %s, the mean)", mr_text_bytes(m->mean, mean));
    else
        printf(" (%llu x %u x %u x 3 %s)", (ull)(s->global_batch / s->world), side, side,
               mr_delivery_words[q->deliver]);
    printf("; plus ");
    if (q->threads > 1)
        printf("for each of %u threads ", q->threads);
    printf("one encoded file%s\n", m->estimate ? "" : " and one decoded image");
}

static void print_batches(const mr_plan_request *q, const mr_schedule *s)
{
    bool marked = false;
    if (q->first < q->end)
        printf("\n");
    for (uint64_t k = q->first; k < q->end && !ferror(stdout); k++)
        for (unsigned rank = 0; rank < s->world && !ferror(stdout); rank++) {
            uint64_t count = mr_schedule_count(s, k, rank);
            printf("  step %llu  rank %u ", (ull)k, rank);
            for (uint64_t i = 0; i < count && !ferror(stdout); i++) {
                mr_slot slot = mr_schedule_slot(s, q->epoch, k, rank, i);
                printf(" %llu%s", (ull)slot.sample, slot.weight > 0 ? "" : "*");
                marked |= slot.weight <= 0;
            }
            printf(count ? "\n" : " -\n");
        }
    if (marked)
        printf("  * repeated, weight 0\n");
}

static void print_human(const mr_plan_request *q, const mr_schedule *s, const memory *m)
{
    char samples[32], steps[32], batch[32], share[32];
    printf("%s%s %s%s: %s sample%s, %s%s step%s%s of %s (%u rank%s x %s)\n", mr_sgr(stdout, MR_BOLD), q->dir, q->split,
           mr_sgr(stdout, MR_PLAIN), mr_text_count(s->order.samples, samples), s->order.samples == 1 ? "" : "s",
           mr_sgr(stdout, MR_BOLD), mr_text_count(s->steps, steps), s->steps == 1 ? "" : "s", mr_sgr(stdout, MR_PLAIN),
           mr_text_count(s->global_batch, batch), s->world, s->world == 1 ? "" : "s",
           mr_text_count(s->global_batch / s->world, share));
    print_order(q, s);
    print_tail(s);
    print_memory(q, s, m);
    if (q->batches)
        print_batches(q, s);
}

static mr_status plan(request *q, const mr_manifest *m, unsigned world, mr_error *err)
{
    const mr_split *split = NULL;
    mr_schedule schedule = {0};
    memory need = {0};
    MR_TRY(mr_plan_make(&q->plan, m, world, &split, &schedule, err));
    MR_TRY(memory_of(&q->plan, split, &schedule, &need, err));
    (q->json ? print_json : print_human)(&q->plan, &schedule, &need);
    return MR_OK;
}

/* Makes a view's list; no shard of a dataset is looked at. */
static mr_status read_and_plan(request *q, unsigned world, mr_error *err)
{
    MR_AUTO(mr_manifest_release) mr_manifest *m = NULL;
    MR_AUTO(mr_dataset_release) mr_dataset *view = NULL;
    if (mr_view_is_at(q->plan.dir)) {
        MR_TRY(mr_dataset_open(q->plan.dir, &view, err));
        return plan(q, mr_dataset_manifest(view), world, err);
    }
    MR_TRY(mr_remote_open(q->plan.dir, err));
    MR_TRY(mr_manifest_open(q->plan.dir, &m, NULL, err));
    return plan(q, m, world, err);
}

static int start(int argc, char **argv)
{
    request q = {0};
    mr_ranks *ranks = NULL;
    MR_AUTO(mr_cli_release) mr_cli cli = {0};
    mr_error err = {0};
    if (!mr_cli_parse(&cli, &mr_cmd_plan, argc, argv, &q))
        return cli.code;
    mr_status status = mr_cli_ranks(&cli, MR_STALL_SECONDS, &ranks, &err);
    if (status == MR_OK && mr_ranks_rank(ranks) == 0)
        status = read_and_plan(&q, mr_ranks_world(ranks), &err);
    if (ranks)
        status = mr_ranks_agree(ranks, status, &err);
    return mr_cli_end(ranks, status, &err);
}

const mr_command mr_cmd_plan = {
    .name = "plan",
    .title = "print what a run will load, step by step, without running it",
    .usage = "DATASET",
    .example = "millrace plan imagenette --global-batch 64",
    .summary = "Prints what a run will see: its steps, what happens to the tail, the memory per rank, and with "
               "--batches the exact samples.  A run with the same options matches it exactly.  No image is "
               "read.",
    .notes = "Examples:\n"
             "  millrace plan imagenette --global-batch 64\n"
             "  millrace plan imagenette --global-batch 64 --ranks 8 --batches 100:102\n"
             "  millrace plan imagenette --split val --global-batch 64 --tail partial\n"
             "  millrace plan imagenette --global-batch 64 --batches : --json | jq .steps\n"
             "\n"
             "Exit status: 0 done; 1 the manifest is damaged; 2 usage error or no such dataset; 3 system error"
             ".",
    .options = options,
    .arguments = arguments,
    .check = check,
    .run = start,
};
