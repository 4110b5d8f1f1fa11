/* cmd_options.h - the part of a command line that names a plan: which split, which order, which batches.
 * Invariant: plan and replay read the same words, so what plan prints is what replay loads. */
#ifndef MR_LOADER_CMD_OPTIONS_H
#define MR_LOADER_CMD_OPTIONS_H

#include "base/cli.h"
#include "format/manifest.h"
#include "order/schedule.h"

typedef struct mr_plan_request { /* zeroed before parsing */
    const char *dir, *split;
    uint64_t global_batch, epoch, seed, window_bytes;
    unsigned ranks;             /* 0: those of mpirun, or one */
    unsigned threads, prefetch; /* prefetch 0: the loader's own */
    mr_shuffle shuffle;
    mr_tail tail;
    mr_delivery deliver;
    bool deliver_given;
    uint32_t size;       /* pixels; 0: not given */
    const char *batches; /* as given, NULL: none */
    uint64_t first, end; /* end UINT64_MAX: to the last */
} mr_plan_request;

enum {
    MR_OPT_SPLIT = 1024,
    MR_OPT_GLOBAL_BATCH,
    MR_OPT_RANKS,
    MR_OPT_THREADS,
    MR_OPT_PREFETCH,
    MR_OPT_EPOCH,
    MR_OPT_SEED,
    MR_OPT_SHUFFLE,
    MR_OPT_NO_SHUFFLE,
    MR_OPT_TAIL,
    MR_OPT_BATCHES,
    MR_OPT_DELIVER,
    MR_OPT_SIZE
};

/* Rows for a command's own table of argp options, in groups 1 to 3. */
#define MR_PLAN_OPTIONS                                                                                                \
    {.doc = "What is loaded:", .group = 1}, {"split", MR_OPT_SPLIT, "NAME", 0, "split (default train)", 1},            \
        {"global-batch", MR_OPT_GLOBAL_BATCH, "N", 0, "samples a step, all ranks together", 1},                        \
        {"batches", MR_OPT_BATCHES, "A:B", 0, "steps A to B - 1 of the epoch; A:, :B and A alone are understood", 1},  \
        {"tail",                                                                                                       \
         MR_OPT_TAIL,                                                                                                  \
         "HOW",                                                                                                        \
         0,                                                                                                            \
         "samples that fill no batch: drop (default), pad (repeats with weight 0) or "                                 \
         "partial (a shorter batch)",                                                                                  \
         1},                                                                                                           \
        {.doc = "In which order:", .group = 2}, {"epoch", MR_OPT_EPOCH, "E", 0, "epoch, from 0 (default 0)", 2},       \
        {"seed", MR_OPT_SEED, "S", 0, "seed of all randomness (default 0)", 2},                                        \
        {"shuffle",                                                                                                    \
         MR_OPT_SHUFFLE,                                                                                               \
         "HOW",                                                                                                        \
         0,                                                                                                            \
         "full (default), or window:BYTES for disks that are slow at jumping: "                                        \
         "neighbours stay together, shuffled within windows of so many bytes",                                         \
         2},                                                                                                           \
        {"no-shuffle", MR_OPT_NO_SHUFFLE, 0, 0, "the dataset's own order", 2},                                         \
        {.doc = "By whom, and what for:", .group = 3},                                                                 \
        {"ranks", MR_OPT_RANKS, "R", 0, "ranks that share each global batch (default: those of mpirun, else 1)", 3},   \
        {"threads", MR_OPT_THREADS, "T", 0, "threads a rank (default 0: none beside the caller's)", 3},                \
        {"prefetch", MR_OPT_PREFETCH, "N", 0, "batches made ahead, a rank (default 2)", 3},                            \
        {"deliver", MR_OPT_DELIVER, "FORM", 0, "encoded (default), u8, f32 (default with --size) or bf16", 3},         \
    {                                                                                                                  \
        "size", MR_OPT_SIZE, "PIXELS", 0, "side of decoded pictures (default 224)", 3                                  \
    }

/* To be called first in a command's parser: true if `key` was one of the rows above, the directory or the end. */
bool mr_plan_option(int key, char *arg, struct argp_state *state, mr_plan_request *q);

/* The values of --shuffle and --batches (which stays lent as `batches`); MR_MISUSE says what is understood. */
mr_status mr_plan_take_shuffle(mr_plan_request *q, const char *arg, mr_error *err);
mr_status mr_plan_take_batches(mr_plan_request *q, const char *arg, mr_error *err);

/* With the split at hand: its schedule, and first and end made exact.  MR_MISUSE: no such split, batches that there
 * are none of, a global batch that the ranks do not divide. */
mr_status mr_plan_make(mr_plan_request *q, const mr_manifest *m, unsigned world, const mr_split **split,
                       mr_schedule *out, mr_error *err);

/* The words of the options, by their numbers. */
extern const char *const mr_tail_words[], *const mr_delivery_words[];

#endif
