/* cmd_train.c - `millrace train DATASET`: fine-tune a model from prepared shards, alone or among ranks.
 * Invariant: only rank 0 prints; what is printed about the run is computed by the code that runs it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cli/cli.h"
#include "base/scope.h"
#include "shards/dataset/dataset_ranks.h"
#include "base/cli/term.h"
#include "base/text.h"
#include "shards/dataset/dataset.h"
#include "loader/cmd_damage.h"
#include "train/run/trainer.h"
#include "train/commands.h"
#include "train/plan.h"

typedef unsigned long long ull;

static const mr_option arguments[] = {{.value = "DATASET", .kind = MR_ARG_PATH, MR_FIELD(mr_settings, dataset)}, {0}};

/* ---- what is going to happen ------------------------------------------------------------------------------------- */

/* For one rank; attention's sums, which the device keeps, are not in it. */
static void print_recompute(const mr_trainer *t)
{
    mr_model_config keeping = t->config;
    mr_model_costs less, more;
    char bytes[2][32];
    keeping.recompute = false;
    t->config.iface->costs(&t->config, mr_trainer_rows(t), true, &less);
    t->config.iface->costs(&keeping, mr_trainer_rows(t), true, &more);
    printf("recompute: %s of activations per rank instead of %s\n", mr_text_bytes(less.activation_bytes, bytes[0]),
           mr_text_bytes(more.activation_bytes, bytes[1]));
}

static void print_start(mr_trainer *t)
{
    char shape[200], number[40];
    mr_plan_shape(&t->config, shape, sizeof shape);
    unsigned world = mr_ranks_world(t->ranks);
    mr_term_text(stdout, shape);
    printf(", %s parameters\n", mr_text_count(t->params.elements, number));
    printf("%s on %u rank%s with %s\n", t->settings->dataset, world, world == 1 ? "" : "s, each",
           t->device->iface->describe(t->device));
    if (t->config.compute != MR_F32)
        printf("%s: products by %s\n", mr_type_word(t->config.compute),
               t->device->iface->products(t->device, t->config.compute));
    if (t->config.recompute)
        print_recompute(t);
    fputs(mr_buf_text(&t->remarks), stdout);
    if (!t->eval_split)
        printf("No val or test split: the run is not evaluated; --eval-split names one\n");
    if (!*t->settings->output)
        printf("Without --output nothing of this run is saved: no checkpoints, no weights\n");
    printf("\n");
    mr_term_flush_stream(stdout);
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static mr_status run(mr_trainer *t, mr_settings *settings, mr_ranks *ranks, int *stopped, mr_error *err)
{
    bool speaks = mr_ranks_rank(ranks) == 0;
    MR_TRY(mr_trainer_prepare(t, settings, ranks, err));
    if (mr_settings_plans(settings))
        return speaks ? mr_plan_print(t, err) : MR_OK;
    bool shows = speaks && !settings->quiet;
    if (shows)
        mr_term_redraw(stdout, "Preparing the model");
    mr_status status = mr_trainer_open(t, err);
    if (shows)
        mr_term_redraw(stdout, "");
    if (status != MR_OK)
        return status;
    if (shows)
        print_start(t);
    return mr_trainer_run(t, stopped, err);
}

static mr_status warn_of_damage(const mr_trainer *t, mr_error *err)
{
    MR_TRY(mr_cmd_damage_warn(&t->feed.damage, t->ds, t->settings->split, err));
    return t->eval_split ? mr_cmd_damage_warn(&t->eval_damage, t->ds, t->eval_split, err) : MR_OK;
}

static void print_end(const mr_trainer *t, int stopped)
{
    const mr_settings *s = t->settings;
    if (stopped)
        printf("Stopped by %s after %llu of %llu updates; continue with --resume\n", strsignal(stopped), (ull)t->done,
               (ull)t->updates);
    else if (t->done < t->updates)
        printf("Stopped after %llu of %llu updates as requested%s\n", (ull)t->done, (ull)t->updates,
               *s->output ? "; continue with --resume" : "");
    if (*s->output)
        printf("Saved to %s: checkpoint step-%08llu, train_results.json, and tensorboard/ for "
               "'tensorboard --logdir %s/tensorboard'\n",
               s->output, (ull)t->done, s->output);
}

static int start(int argc, char **argv)
{
    MR_AUTO(mr_settings_release) mr_settings settings = {0};
    mr_trainer t = {0};
    mr_ranks *ranks = NULL;
    MR_AUTO(mr_cli_release) mr_cli cli = {0};
    mr_error err = {0};
    int stopped = 0;
    if (!mr_cli_parse(&cli, &mr_cmd_train, argc, argv, &settings))
        return cli.code;
    mr_status status = mr_cli_ranks(&cli, settings.stall_timeout, &ranks, &err);
    if (status == MR_OK)
        status = run(&t, &settings, ranks, &stopped, &err);
    bool speaks = t.exchange ? mr_exchange_speaks(t.exchange) : !ranks || mr_ranks_rank(ranks) == 0;
    if (status == MR_OK && speaks && !mr_settings_plans(&settings))
        status = warn_of_damage(&t, &err);
    if (status == MR_OK && speaks && !settings.quiet && !mr_settings_plans(&settings))
        print_end(&t, stopped);
    if (status != MR_OK && speaks)
        mr_term_error(&err);
    mr_dataset_stage_warn(t.ds, ranks);
    mr_trainer_close(&t);
    mr_ranks_end(ranks);
    return stopped && status == MR_OK ? 3 : mr_exit_code(status);
}

const mr_command mr_cmd_train = {
    .name = "train",
    .title = "fine-tune a model on a dataset, on one or several ranks",
    .usage = "DATASET",
    .example = "millrace train flowers --pretrained ViT-B_16.npz --output run",
    .summary = "Fine-tunes a Vision Transformer on labels, or BridgeTower on texts.",
    .notes = "Examples:\n"
             "  millrace train flowers --pretrained ViT-B_16.npz --image-size 160 --batch 16 --steps 500 --output run\n"
             "  millrace train flowers --output run --resume\n"
             "  millrace train flowers --model ViT-L_16 --plan",
    .more =
        "\n"
        "  mpirun -n 2 millrace train shapes --model vit --image-size 32 --patch 8 --hidden 64 --layers 2 --heads 4 "
        "\\\n"
        "      --mlp 256 --dropout 0 --optimizer adamw --epochs 20 --output run\n"
        "  srun --mpi=pmix -n 8 millrace train flowers --output run --resume --checkpoint-every 10m\n"
        "  millrace train newyorker --model bridgetower --config bt/config.json --pretrained bt --batch 8 "
        "--output run\n"
        "  millrace train newyorker --model bridgetower-large --tokenizer bt --plan\n"
        "  tensorboard --logdir run/tensorboard\n"
        "\n"
        "The same options, ranks, placement on hosts and kind of processor give the same bits.  For a Vision "
        "Transformer "
        "any division of batch x grad-accum x ranks gives the same results up to rounding; BridgeTower's negatives are "
        "those of a batch.  SIGINT, SIGTERM, SIGHUP, SIGUSR1 or SIGUSR2 to any rank "
        "stops the run, after a checkpoint if --output is given.\n"
        "\n"
        "Exit status: 0 done; 1 the data is bad; 2 usage error; 3 system error, or stopped by a signal.",
    .options = mr_setting_rows,
    .arguments = arguments,
    .run = start,
};
