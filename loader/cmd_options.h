/* cmd_options.h - the part of a command line that describes a plan: which split, which order, which batches.
 * Invariant: plan and replay share these options, so what plan prints is what replay loads. */
#ifndef MR_LOADER_CMD_OPTIONS_H
#define MR_LOADER_CMD_OPTIONS_H

#include "base/cli/cli.h"
#include "shards/manifest/manifest.h"
#include "loader/order/schedule.h"

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

extern const mr_option mr_cmd_plan_options[];                   /* of mr_plan_request */
mr_status mr_cmd_plan_check(mr_plan_request *q, mr_error *err); /* after parsing */

/* The values of --shuffle and --batches (`batches` keeps the pointer); MR_MISUSE: the message lists what is
 * accepted. */
mr_status mr_plan_take_shuffle(mr_plan_request *q, const char *arg, mr_error *err);
mr_status mr_plan_take_batches(mr_plan_request *q, const char *arg, mr_error *err);

/* Makes the split's schedule, and resolves `first` and `end`.  MR_MISUSE: no such split, batches that do not exist, a
 * global batch that is not divisible by the ranks. */
mr_status mr_plan_make(mr_plan_request *q, const mr_manifest *m, unsigned world, const mr_split **split,
                       mr_schedule *out, mr_error *err);

/* The words of the options, by their numbers. */
extern const char *const mr_tail_words[], *const mr_delivery_words[];

#endif
