/* cmd_bench.c - `millrace bench DATASET`: the loader's speed, the machine's limits, and the bottleneck.
 * Invariant: every figure is from this run; under mpirun rates are summed over ranks, and only rank 0 prints. */
#include "base/system/pool.h"
#include "base/ranks/ranks.h"
#include "base/scope.h"
#include "shards/dataset/dataset_ranks.h"
#include "base/cli/term.h"
#include "loader/batch/options.h"
#include "loader/cmd_bench.h"
#include "loader/cmd_decoding.h"
#include "loader/cmd_local.h"
#include "loader/cmd_transform.h"
#include "loader/commands.h"

static const mr_option options[] = {
    {"stage", 0, MR_ARG_WORD, MR_FIELD(mr_bench_request, bench.stage), .words = mr_bench_stage_words,
     .standard = "input",
     .help = "stage to measure; read: encoded batches; decode: the visible part of each image; input: complete float32 "
             "batches"},
    {"split", 0, MR_ARG_TEXT, MR_FIELD(mr_bench_request, bench.loader.split), .value = "NAME", .standard = "train",
     .help = "split to load"},
    {"threads", 0, MR_ARG_COUNT, MR_FIELD(mr_bench_request, bench.loader.threads), .value = "T", .high = MR_MAX_THREADS,
     .own = true, .help = "loader threads per rank (default: the processors; 0: none but the caller's)"},
    {"seconds", 0, MR_ARG_REAL, MR_FIELD(mr_bench_request, bench.budget.seconds), .value = "N", .above = true,
     .high = 86400, .standard = "8", .help = "total duration; up to 2 s more"},
    {"size", 0, MR_ARG_COUNT, MR_FIELD(mr_bench_request, bench.loader.transform.size), .value = "PIXELS", .low = 1,
     .high = MR_MAX_SIDE, .standard = "224", .help = "side of the output in pixels"},
    {"max-pixels", 0, MR_ARG_COUNT, MR_FIELD(mr_bench_request, bench.loader.max_pixels), .value = "N", .low = 1,
     .standard = MR_TEXT_OF(MR_DEFAULT_MAX_PIXELS), .help = "fail on larger images", .rare = true},
    {"json", 0, MR_ARG_FLAG, MR_FIELD(mr_bench_request, json), .own = true, .help = "print one JSON object"},
    MR_OPTION_QUIET_IGNORED,
    {.kind = MR_ARG_TABLE, MR_FIELD(mr_bench_request, bench.loader.transform), .rows = mr_cmd_transform_options},
    {.kind = MR_ARG_TABLE, MR_FIELD(mr_bench_request, decoding), .rows = mr_cmd_decoding_options},
    {.kind = MR_ARG_TABLE, MR_FIELD(mr_bench_request, local), .rows = mr_cmd_local_options},
    {0},
};

static mr_delivery delivery(const mr_bench_request *q)
{
    return q->bench.stage == MR_BENCH_READ ? MR_DELIVER_ENCODED : MR_DELIVER_F32_NCHW;
}

static mr_status check(void *ctx, mr_error *err)
{
    const mr_bench_request *q = ctx;
    return mr_cmd_decoding_check(&q->decoding, delivery(q), "use --stage decode or input", err);
}

static const mr_option arguments[] = {{.value = "DATASET", .kind = MR_ARG_PATH, MR_FIELD(mr_bench_request, dir)}, {0}};

/* ---- ranks ------------------------------------------------------------------------------------------------------ */

static double *figure(const mr_bench_result *r, size_t offset)
{
    return (double *)(void *)((char *)r + offset);
}

/* Rates and counts are summed; the rest are means. */
static void join(mr_bench_result *sum, const mr_bench_result *all, unsigned world)
{
#define RATE(field) offsetof(mr_bench_result, field.images_per_second)
#define MS(field)   offsetof(mr_bench_result, field)
    static const size_t rates[] = {RATE(product), RATE(limit), RATE(copy)};
    static const size_t means[] = {
        MS(product.cpu_ms),     MS(cpu_low_ms), MS(cpu_high_ms),    MS(limit.cpu_ms),      MS(copy.cpu_ms),
        MS(cpu_ratio),          MS(rate_ratio), MS(resized_ratio),  MS(read_ms),           MS(hash_ms),
        MS(decode_ms),          MS(resize_ms),  MS(first_batch_ms), MS(on_device.read_us), MS(on_device.describe_us),
        MS(on_device.device_us)};
#undef RATE
#undef MS
    *sum = all[0];
    for (unsigned i = 1; i < world; i++) {
        for (size_t k = 0; k < MR_COUNT(rates); k++)
            *figure(sum, rates[k]) += *figure(&all[i], rates[k]);
        for (size_t k = 0; k < MR_COUNT(means); k++)
            *figure(sum, means[k]) = (*figure(sum, means[k]) * i + *figure(&all[i], means[k])) / (i + 1);
        sum->images += all[i].images;
        sum->own_jpegs += all[i].own_jpegs;
        sum->jpegs += all[i].jpegs;
        sum->seek_jpegs += all[i].seek_jpegs;
        sum->seek_refused += all[i].seek_refused;
        sum->on_device.counts.device += all[i].on_device.counts.device;
        sum->on_device.counts.host += all[i].on_device.counts.host;
        sum->on_device.counts.flagged += all[i].on_device.counts.flagged;
        mr_bench_work_add(&sum->on_device.work, &all[i].on_device.work);
    }
}

static mr_status measure(mr_bench_request *q, const mr_dataset *ds, mr_ranks *ranks, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf packed = {0}, all = {0};
    mr_bench_result mine = {.turns = 0}, sum;
    unsigned world = mr_ranks_world(ranks);
    mr_status status = MR_OK;
    q->bench.loader.rank = mr_ranks_rank(ranks);
    q->bench.loader.world = world;
    MR_TRY(mr_ranks_agree(ranks, mr_bench_run(ds, &q->bench, &mine, err), err));
    mr_buf_add(&packed, &mine, sizeof mine);
    MR_TRY(mr_ranks_agree(ranks, mr_buf_status(&packed, err, "measuring"), err));
    MR_TRY(mr_ranks_gather(ranks, &packed, &all, NULL, err));
    if (mr_ranks_rank(ranks) == 0) {
        join(&sum, (const mr_bench_result *)(const void *)all.data, world);
        status = mr_bench_print(q, &sum, world, err);
    }
    return mr_ranks_agree(ranks, status, err);
}

static mr_status run(mr_bench_request *q, const mr_cli *cli, mr_ranks **ranks, mr_dataset **ds, mr_error *err)
{
    MR_TRY(mr_cli_ranks(cli, MR_STALL_SECONDS, ranks, err));
    MR_TRY(mr_dataset_open_all(q->dir, *ranks, ds, err));
    MR_TRY(mr_cmd_local_open(&q->local, *ranks, *ds, err));
    const mr_device_options device = {.threads = q->bench.loader.threads ? q->bench.loader.threads : 1,
                                      .local_rank = mr_ranks_rank(*ranks)};
    MR_TRY(
        mr_ranks_agree(*ranks, mr_cmd_decoding_open(&q->decoding, delivery(q), &device, &q->bench.device, err), err));
    return measure(q, *ds, *ranks, err);
}

static int start(int argc, char **argv)
{
    mr_bench_request q = {.bench = {.budget = {.begin = mr_seconds()}, .loader = {.threads = mr_pool_processors()}}};
    mr_ranks *ranks = NULL;
    mr_dataset *ds = NULL;
    MR_AUTO(mr_cli_release) mr_cli cli = {0};
    mr_error err = {0};
    if (!mr_cli_parse(&cli, &mr_cmd_bench, argc, argv, &q))
        return cli.code;
    mr_status status = run(&q, &cli, &ranks, &ds, &err);
    mr_dataset_stage_warn(ds, ranks);
    mr_device_close(q.bench.device);
    mr_dataset_free(ds);
    return mr_cli_end(ranks, status, &err);
}

const mr_command mr_cmd_bench = {
    .name = "bench",
    .title = "measure the loader against the machine's limits",
    .usage = "DATASET",
    .example = "millrace bench imagenette",
    .summary = "Measures the loader from a warm page cache, alternating with the best that the machine can do with the "
               "same records, in the same order, on as many threads: plain pread and memcpy for the stage read, the "
               "image library's decode of the whole image for the others.  Figures are medians over the rounds.",
    .notes = "Examples:\n"
             "  millrace bench imagenette\n"
             "  millrace bench imagenette --stage read --threads 1\n"
             "  millrace bench imagenette --threads 8 --size 160 --augment eval --json\n"
             "  mpirun -n 8 millrace bench imagenette --threads 2\n"
             "  millrace bench imagenette --stage decode --device opencl\n"
             "\n"
             "Exit status: 0 done; 1 a sample is damaged; 2 usage error; 3 system error.",
    .options = options,
    .arguments = arguments,
    .check = check,
    .run = start,
};
