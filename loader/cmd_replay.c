/* cmd_replay.c - `millrace replay DATASET`: what did step 1234 see?
 * Invariant: the output is the same for any ranks and threads; under mpirun only rank 0 prints. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/scope.h"
#include "base/cli/term.h"
#include "base/text.h"
#include "loader/bench/replay.h"
#include "image/codec/image.h"
#include "shards/dataset/dataset.h"
#include "shards/dataset/dataset_ranks.h"
#include "shards/format/meta.h"
#include "loader/cmd_damage.h"
#include "loader/cmd_decoding.h"
#include "loader/cmd_local.h"
#include "loader/cmd_options.h"
#include "loader/cmd_transform.h"
#include "loader/commands.h"

typedef unsigned long long ull;

typedef struct request {
    mr_plan_request plan;
    mr_transform transform;
    mr_on_bad on_bad;
    uint64_t max_bad, max_pixels, printed;
    bool json, list;
    mr_decoding decoding;
    mr_local_request local;
    mr_device *device;
    mr_buf source; /* source of the sample described */
} request;

static const mr_option options[] = {
    {.kind = MR_ARG_TABLE, MR_FIELD(request, plan), .rows = mr_cmd_plan_options},
    {.kind = MR_ARG_TABLE, MR_FIELD(request, transform), .rows = mr_cmd_transform_options},
    {.kind = MR_ARG_TABLE, MR_FIELD(request, decoding), .rows = mr_cmd_decoding_options},
    {.kind = MR_ARG_TABLE, MR_FIELD(request, local), .rows = mr_cmd_local_options},
    {"list", 0, MR_ARG_FLAG, MR_FIELD(request, list), .group = "Output:",
     .help = "list the samples of each batch; number, source path, crop box, flip, and which damaged one it replaces"},
    {"on-bad", 0, MR_ARG_WORD, MR_FIELD(request, on_bad),
     .words =
         (const char *const[]){
             [MR_ON_BAD_FAIL] = "fail", [MR_ON_BAD_REPLACE] = "replace", [MR_ON_BAD_MASK] = "mask", NULL},
     .standard = "fail",
     .help = "what to do with damaged samples; replace: use the next good one; mask: zeros of weight 0"},
    {"max-bad", 0, MR_ARG_COUNT, MR_FIELD(request, max_bad), .value = "N", .low = 1,
     .help = "fail after N damaged samples per rank; with replace or mask"},
    {"max-pixels", 0, MR_ARG_COUNT, MR_FIELD(request, max_pixels), .value = "N", .low = 1,
     .standard = MR_TEXT_OF(MR_DEFAULT_MAX_PIXELS), .help = "treat larger images as damaged samples", .rare = true},
    {"json", 0, MR_ARG_FLAG, MR_FIELD(request, json), .own = true, .help = "print one JSON object"},
    MR_OPTION_QUIET_IGNORED,
    {0},
};

static const mr_option arguments[] = {{.value = "DATASET", .kind = MR_ARG_PATH, MR_FIELD(request, plan.dir)}, {0}};

static mr_status check(void *ctx, mr_error *err)
{
    request *q = ctx;
    MR_TRY(mr_cmd_plan_check(&q->plan, err));
    return mr_cmd_decoding_check(&q->decoding, q->plan.deliver, "add --size or --deliver f32", err);
}

/* ---- one sample ------------------------------------------------------------------------------------------------- */

static void describe_json(request *q, const mr_sample_facts *f, const mr_bad_slot *bad, mr_buf *out)
{
    mr_buf_printf(out, "  {\"sample\":%llu,\"source\":", (ull)f->sample);
    if (f->meta)
        mr_json_add_shown(out, (const char *)q->source.data, q->source.len);
    else
        mr_buf_add_text(out, "null");
    mr_buf_printf(out, ",\"left\":%u,\"top\":%u,\"width\":%u,\"height\":%u,\"flip\":%s,\"label\":%d,\"weight\":%g",
                  f->left, f->top, f->crop_width, f->crop_height, f->flip ? "true" : "false", (int)f->label,
                  (double)f->weight);
    if (bad)
        mr_buf_printf(out, ",\"damaged\":%llu", (ull)bad->sample);
    mr_buf_add_text(out, "},\n");
}

static void describe_human(request *q, const mr_sample_facts *f, const mr_bad_slot *bad, mr_buf *out)
{
    mr_buf_printf(out, "  %8llu  %5u x %-5u at %u,%u%s  ", (ull)f->sample, f->crop_width, f->crop_height, f->left,
                  f->top, f->flip ? " mirrored" : "");
    if (f->meta)
        mr_text_show(out, (const char *)q->source.data, q->source.len);
    else
        mr_buf_add_text(out, "damaged: masked");
    if (bad && f->meta)
        mr_buf_printf(out, "  (replaces %llu, damaged)", (ull)bad->sample);
    mr_buf_add_text(out, f->meta && f->weight <= 0 ? "  (repeated, weight 0)\n" : "\n");
}

static mr_status describe(void *ctx, const mr_sample_facts *f, const mr_bad_slot *bad, mr_buf *out, mr_error *err)
{
    request *q = ctx;
    mr_meta_facts facts;
    mr_buf_clear(&q->source);
    mr_buf_add_text(&q->source, "");
    if (f->meta)
        MR_TRY(mr_meta_scan(f->meta, f->meta_len, &facts, &q->source, err));
    (q->json ? describe_json : describe_human)(q, f, bad, out);
    return mr_buf_status(out, err, "listing samples");
}

/* ---- one batch -------------------------------------------------------------------------------------------------- */

static void begin_json(const request *q)
{
    const mr_plan_request *p = &q->plan;
    printf("{\"split\":\"%s\",\"global_batch\":%llu,\"epoch\":%llu,\"seed\":%llu,\"of\":\"%s\",\"batches\":[", p->split,
           (ull)p->global_batch, (ull)p->epoch, (ull)p->seed, mr_delivery_words[p->deliver]);
}

static mr_status print(void *ctx, const mr_replay_batch *b, mr_error *err)
{
    request *q = ctx;
    char hex[33];
    mr_hex(b->digest, sizeof b->digest, hex);
    if (q->json) {
        if (q->printed == 0)
            begin_json(q);
        printf("%s\n{\"step\":%llu,\"digest\":\"%s\"", q->printed ? "," : "", (ull)b->step, hex);
        /* The last sample's comma and line end are left out. */
        if (q->list)
            printf(",\"samples\":[\n%.*s]", (int)(b->text_len > 2 ? b->text_len - 2 : 0), b->text);
        printf("}");
    } else {
        printf("%sstep %llu%s  %s\n", mr_sgr(stdout, MR_BOLD), (ull)b->step, mr_sgr(stdout, MR_PLAIN), hex);
        fwrite(b->text, 1, b->text_len, stdout);
    }
    q->printed++;
    return mr_term_flush(err);
}

static mr_status replay(request *q, const mr_dataset *ds, mr_ranks *ranks, mr_error *err)
{
    const mr_plan_request *p = &q->plan;
    const mr_split *split;
    mr_schedule schedule;
    MR_TRY(mr_plan_make(&q->plan, mr_dataset_manifest(ds), mr_ranks_world(ranks), &split, &schedule, err));
    if (schedule.steps == 0 && !p->batches)
        return mr_fail(
            err, MR_MISUSE,
            "--global-batch %llu: split %s has %llu samples, which do not fill a batch; use a smaller one, or "
            "--tail pad or partial",
            (ull)p->global_batch, p->split, (ull)split->samples);
    q->transform.size = p->size;
    mr_replay r = {
        .options =
            {
                .split = p->split,
                .global_batch = p->global_batch,
                .threads = p->threads,
                .prefetch = p->prefetch,
                .seed = p->seed,
                .shuffle = p->shuffle,
                .window_bytes = p->window_bytes,
                .tail = p->tail,
                .deliver = q->device ? MR_DELIVER_CODED : p->deliver,
                .transform = q->transform,
                .on_bad = q->on_bad,
                .max_bad = q->max_bad,
                .max_pixels = q->max_pixels,
                .with_meta = q->list,
            },
        .device = q->device,
        .world = schedule.world,
        .first = p->batches ? p->first : 0,
        .end = p->batches ? p->end : schedule.steps,
        .describe = q->list ? describe : NULL,
        .take = print,
        .ctx = q,
    };
    r.options.start = (mr_cursor){p->epoch, mr_schedule_position(&schedule, r.first)};
    mr_damage damage = {0};
    mr_status status = mr_replay_run(&r, ds, ranks, &damage, err);
    bool prints = mr_ranks_rank(ranks) == 0;
    if (q->json && prints && status == MR_OK && q->printed == 0)
        begin_json(q);
    if (prints && q->json && status == MR_OK)
        printf("],\"damaged\":%zu}\n", damage.count);
    else if (prints && q->json && q->printed)
        printf("]}\n");
    if (prints && status == MR_OK)
        status = mr_cmd_damage_warn(&damage, ds, p->split, err);
    mr_damage_release(&damage);
    return status;
}

static mr_status run(request *q, const mr_cli *cli, mr_ranks **ranks, mr_dataset **ds, mr_error *err)
{
    MR_TRY(mr_cli_ranks(cli, MR_STALL_SECONDS, ranks, err));
    MR_TRY(mr_dataset_open_all(q->plan.dir, *ranks, ds, err));
    MR_TRY(mr_dataset_agree(*ranks, mr_dataset_digest(*ds), err));
    MR_TRY(mr_cmd_local_open(&q->local, *ranks, *ds, err));
    const mr_device_options device = {.threads = q->plan.threads ? q->plan.threads : 1,
                                      .local_rank = mr_ranks_rank(*ranks)};
    MR_TRY(mr_ranks_agree(*ranks, mr_cmd_decoding_open(&q->decoding, q->plan.deliver, &device, &q->device, err), err));
    return replay(q, *ds, *ranks, err);
}

static int start(int argc, char **argv)
{
    request q = {.json = false};
    mr_ranks *ranks = NULL;
    mr_dataset *ds = NULL;
    MR_AUTO(mr_cli_release) mr_cli cli = {0};
    mr_error err = {0};
    if (!mr_cli_parse(&cli, &mr_cmd_replay, argc, argv, &q))
        return cli.code;
    mr_status status = run(&q, &cli, &ranks, &ds, &err);
    mr_dataset_stage_warn(ds, ranks);
    mr_buf_free(&q.source);
    mr_device_close(q.device);
    mr_dataset_free(ds);
    return mr_cli_end(ranks, status, &err);
}

const mr_command mr_cmd_replay = {
    .name = "replay",
    .title = "load batches again, and print their digests and samples",
    .usage = "DATASET",
    .example = "millrace replay imagenette --global-batch 64",
    .summary = "Loads batches as a training run loads them and prints a digest of each: the XXH3-128 "
               "(canonical form) of the encoded bytes of all its samples, one after another in global "
               "batch order; with --size of the decoded pixels, float32, each sample 3 x SIZE x SIZE (or "
               "as set by --deliver).  It does not depend on ranks or threads.",
    .notes = "Examples:\n"
             "  millrace replay imagenette --global-batch 64 --batches 1234 --list\n"
             "  millrace replay imagenette --global-batch 64 --ranks 8 --threads 2 --epoch 3 --batches 0:10\n"
             "  millrace replay imagenette --split val --global-batch 64 --no-shuffle --tail partial --size 224 "
             "--augment eval\n"
             "  millrace replay imagenette --global-batch 64 --size 224 --device opencl\n"
             "  mpirun -n 4 millrace replay imagenette --global-batch 64 --batches 0:10 --json\n"
             "\n"
             "Exit status: 0 done; 1 a sample is damaged; 2 usage error; 3 system error.",
    .options = options,
    .arguments = arguments,
    .check = check,
    .run = start,
};
