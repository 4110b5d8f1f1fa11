/* trainer.h - one training run on one rank.
 * Invariant: an update sees the next batch * grad_accum * world samples of the epoch's order (fewer at its end),
 * however they are divided among ranks and micro-steps; its gradient is the mean over them.  Between two updates the
 * run's whole state is (values, optimizer, cursor, update), which is what a checkpoint holds.
 *
 *      loader -> feed -> model forward -> losses
 *                        model backward -> gradients in the exchange -> sum of all ranks -> optimizer -> values
 *
 * This module: settings (options), pairs and labels (what a split offers), trainer_* (one run), pause (signals),
 * log_place; model_session (a checkpoint and a dataset, for eval and predict).  It uses all other modules of train/. */
#ifndef MR_TRAINER_H
#define MR_TRAINER_H

#include "base/ranks/owner.h"
#include "train/checkpoint/checkpoint.h"
#include "train/evaluate/evaluation.h"
#include "train/exchange/exchange.h"
#include "train/exchange/peers.h"
#include "shards/manifest/manifest.h"
#include "train/journal/journal.h"
#include "device/profile/limits.h"
#include "device/profile/profile.h"
#include "train/run/gradients.h"
#include "train/run/learning.h"
#include "train/run/pairs.h"
#include "train/run/passes.h"

enum { MR_MAX_BATCH = 1 << 20 };

#define MR_RUN_EVENTS  "tensorboard" /* in OUTPUT, beside checkpoints */
#define MR_RUN_RESULTS "train_results.json"

typedef struct mr_trainer {
    mr_settings *settings;
    mr_ranks *ranks;
    mr_owner *owner; /* owner of OUTPUT, on rank 0 */
    DIR *claim;      /* on OUTPUT, on rank 0; NULL: it does not exist yet, or none is given */
    mr_dataset *ds;
    const mr_manifest *manifest;
    const char *eval_split; /* NULL: none */
    unsigned threads, loader_threads;
    mr_model_config config;
    mr_params params;
    mr_optimizer_options update_rule;
    uint64_t steps;                /* micro-steps per epoch */
    uint64_t updates, first, done; /* updates of the whole run, done before this start, done now */
    mr_cursor cursor;
    mr_device *device;
    mr_profile *profile; /* with --profile: the device, measured */
    mr_limit limit_flops, limit_bytes;
    mr_model *model;
    float *values; /* on the device */
    float *mean;   /* mean of the values with --ema, on the device; else NULL */
    mr_optimizer optimizer;
    mr_exchange *exchange;
    mr_gradients gradients;
    mr_passes passes;
    mr_pairs pairs;       /* for models of images and texts */
    mr_learning learning; /* for models of labels */
    mr_peers peers;       /* with --gather-negatives */
    mr_feed feed;
    mr_journal *journal;
    double accuracy, best_accuracy; /* -1: none yet; for several labels, mean average precision */
    double threshold;               /* for several labels, found by the last evaluation; 0: none yet */
    uint64_t best_update;
    bool evaluation_due;    /* an evaluation of the current values is due */
    mr_damage eval_damage;  /* damage found in the last evaluation */
    json_t *facts;          /* kept in checkpoints: classes, transform, options ... */
    bool resumed;           /* from a checkpoint: */
    mr_checkpoint restored; /* released once its values are on the device */
    mr_buf remarks;         /* lines for the user about the setup */
} mr_trainer;

/* Everything but the model's memory: on resume the checkpoint, dataset, shape, schedule.  Collective: rank 0 reads
 * OUTPUT, which it claims first, config.json and the tokenizer, and lists the samples; the others get what it read. */
mr_status mr_trainer_prepare(mr_trainer *t, mr_settings *settings, mr_ranks *ranks, mr_error *err);

/* ---- trainer_profile.c: nothing without --profile ---------------------------------------------------------------- */

void mr_trainer_profile_count(mr_trainer *t, bool on); /* off: evaluations and checkpoints */
/* Measures what the device can do, at the end of the run. */
void mr_trainer_profile_limits(mr_trainer *t);
/* On rank 0, of its own time. */
mr_status mr_trainer_profile_json(const mr_trainer *t, const mr_rank_uses *uses, mr_buf *out, mr_error *err);
mr_status mr_trainer_profile_print(const mr_trainer *t, const mr_rank_uses *uses, mr_error *err);

/* ---- parts of prepare() ------------------------------------------------------------------------------------------ */

/* The claim on OUTPUT, on rank 0, as mr_checkpoint_claim(). */
mr_status mr_trainer_claim(mr_trainer *t, bool fresh, mr_error *err);
/* The checkpoint to resume from, if there is one, and its options.  Collective. */
mr_status mr_trainer_resume(mr_trainer *t, mr_error *err);
/* MR_MISUSE: the options or the dataset are not those of the run to resume. */
mr_status mr_trainer_same_run(const mr_trainer *t, uint64_t global, const char *digest, mr_error *err);
/* What is done with samples that do not fill a batch. */
mr_tail mr_trainer_tail(const mr_trainer *t);
/* Samples per rank and step of an evaluation; the most that the model is planned for. */
size_t mr_trainer_eval_batch(const mr_trainer *t);
size_t mr_trainer_rows(const mr_trainer *t);
/* How a feed of the run gets its images: MR_DELIVER_CODED where the device decodes. */
mr_delivery mr_trainer_delivery(const mr_trainer *t);
/* Samples that a loss is computed against: what is learned depends on it. */
uint64_t mr_trainer_negatives(const mr_trainer *t);
/* MR_MISUSE: --log is a file that the run reads or writes otherwise, or exists and is not a log. */
mr_status mr_log_place(const mr_settings *s, mr_error *err);
/* Config, tokenizer, params.  Collective. */
mr_status mr_trainer_shape(mr_trainer *t, mr_error *err);

/* ------------------------------------------------------------------------------------------------------------------ */

/* Model, values, optimizer, exchange, loader.  Collective. */
mr_status mr_trainer_open(mr_trainer *t, mr_error *err);
/* Runs to the end, to --stop-after or to the first of the signals of pause.h (*stopped: which).  Collective. */
mr_status mr_trainer_run(mr_trainer *t, int *stopped, mr_error *err);
void mr_trainer_close(mr_trainer *t); /* a zeroed one is fine */

/* Publishes a checkpoint of the state as it is (rank 0; collective). */
mr_status mr_trainer_save(mr_trainer *t, mr_error *err);

/* ---- shared with eval and predict -------------------------------------------------------------------------------- */

/* How images are prepared for this model in evaluation, as by the reference trainers. */
mr_transform mr_eval_transform(const mr_model_config *c, bool apply_orientation);
/* "square" or "center", as in checkpoints. */
const char *mr_transform_word(const mr_transform *t);
/* Threads of this rank: `asked`, or its share of the processors if that is 0. */
unsigned mr_rank_threads(uint64_t asked, const mr_ranks *ranks);

#endif
