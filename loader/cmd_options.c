/* cmd_options.c - the part of a command line that describes a plan.
 * Invariant: a request that passed the parser holds numbers in range; mr_plan_make() checks what depends on the
 * dataset, and its messages state the range. */
#include "loader/cmd_options.h"

#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "loader/batch/options.h"

typedef unsigned long long ull;

enum { MAX_RANKS = 1 << 20 };

const char *const mr_tail_words[] = {
    [MR_TAIL_DROP] = "drop", [MR_TAIL_PAD] = "pad", [MR_TAIL_PARTIAL] = "partial", NULL};

const char *const mr_delivery_words[] = {[MR_DELIVER_ENCODED] = "encoded",
                                         [MR_DELIVER_U8_NHWC] = "u8",
                                         [MR_DELIVER_F32_NCHW] = "f32",
                                         [MR_DELIVER_BF16_NCHW] = "bf16",
                                         NULL};

mr_status mr_plan_take_shuffle(mr_plan_request *q, const char *arg, mr_error *err)
{
    if (strcmp(arg, "full") == 0)
        q->shuffle = MR_SHUFFLE_FULL;
    else if (strncmp(arg, "window:", 7) == 0 && mr_text_parse_size(arg + 7, &q->window_bytes) && q->window_bytes)
        q->shuffle = MR_SHUFFLE_WINDOW;
    else
        return mr_fail(err, MR_MISUSE, "--shuffle %s: use full or window:BYTES, for example window:1GiB", arg);
    return MR_OK;
}

mr_status mr_plan_take_batches(mr_plan_request *q, const char *arg, mr_error *err)
{
    char first[32] = "";
    const char *colon = strchr(arg, ':');
    size_t len = colon ? (size_t)(colon - arg) : strlen(arg);
    bool ok = len < sizeof first;
    if (ok)
        memcpy(first, arg, len);
    q->first = 0;
    q->end = UINT64_MAX;
    if (ok && len)
        ok = mr_text_parse_u64(first, &q->first) && q->first < UINT64_MAX;
    if (!colon)
        q->end = q->first + 1;
    if (!ok || *arg == '\0' || (colon && colon[1] && !mr_text_parse_u64(colon + 1, &q->end)))
        return mr_fail(err, MR_MISUSE, "--batches %s: use A:B for the steps from A to B - 1, for example 0:10", arg);
    if (q->first >= q->end)
        return mr_fail(err, MR_MISUSE, "--batches %s: is empty; B is the first step not included", arg);
    q->batches = arg;
    return MR_OK;
}

static mr_status take_shuffle(void *field, const char *text, mr_error *err)
{
    return mr_plan_take_shuffle(field, text, err);
}

static mr_status take_batches(void *field, const char *text, mr_error *err)
{
    return mr_plan_take_batches(field, text, err);
}

const mr_option mr_cmd_plan_options[] = {
    {"split", 0, MR_ARG_TEXT, MR_FIELD(mr_plan_request, split), .value = "NAME", .standard = "train",
     .group = "Data:", .help = "split to load"},
    {"global-batch", 0, MR_ARG_COUNT, MR_FIELD(mr_plan_request, global_batch), .value = "N", .low = 1,
     .high = UINT32_MAX, .help = "samples per step over all ranks"},
    {"batches", 0, MR_ARG_OTHER, .take = take_batches, .value = "A:B",
     .help = "steps A to B - 1 of the epoch; A:, :B and A alone work, too"},
    {"tail", 0, MR_ARG_WORD, MR_FIELD(mr_plan_request, tail), .words = mr_tail_words, .standard = "drop",
     .help = "samples that do not fill a batch; drop them, pad it with samples of weight 0, or use a smaller (partial) "
             "batch"},
    {"epoch", 0, MR_ARG_COUNT, MR_FIELD(mr_plan_request, epoch), .value = "E", .high = INT64_MAX,
     .group = "Order:", .help = "epoch, from 0 (default 0)"},
    {"seed", 0, MR_ARG_COUNT, MR_FIELD(mr_plan_request, seed), .value = "S", .high = INT64_MAX,
     .help = "random seed (default 0)"},
    {"shuffle", 0, MR_ARG_OTHER, .take = take_shuffle, .value = "full|window:BYTES", .standard = "full",
     .help = "shuffle all samples, or within windows of BYTES; a window suits disks that are slow at random access"},
    {"no-shuffle", 0, MR_ARG_SET, MR_FIELD(mr_plan_request, shuffle), .low = MR_SHUFFLE_NONE,
     .help = "keep the dataset's order"},
    {"ranks", 0, MR_ARG_COUNT, MR_FIELD(mr_plan_request, ranks), .value = "R", .low = 1, .high = MAX_RANKS,
     .group = "Execution:", .help = "ranks that share each global batch (default: those of mpirun, otherwise 1)"},
    {"threads", 0, MR_ARG_COUNT, MR_FIELD(mr_plan_request, threads), .value = "T", .high = MR_MAX_THREADS, .own = true,
     .help = "loader threads per rank (default 0: none but the caller's)"},
    {"prefetch", 0, MR_ARG_COUNT, MR_FIELD(mr_plan_request, prefetch), .value = "N", .low = 1, .high = MR_MAX_PREFETCH,
     .own = true, .help = "batches to prefetch per rank (default 2)", .rare = true},
    {"deliver", 0, MR_ARG_WORD, MR_FIELD(mr_plan_request, deliver), .words = mr_delivery_words,
     .given = offsetof(mr_plan_request, deliver_given),
     .help = "type of a batch (default: f32 with --size, otherwise encoded)"},
    {"size", 0, MR_ARG_COUNT, MR_FIELD(mr_plan_request, size), .value = "PIXELS", .low = 1, .high = MR_MAX_SIDE,
     .help = "side of the output in pixels (default 224)"},
    {0},
};

mr_status mr_cmd_plan_check(mr_plan_request *q, mr_error *err)
{
    if (!q->global_batch)
        return mr_fail(err, MR_MISUSE,
                       "--global-batch is missing: the samples per step, all ranks together, for example 64");
    if (q->size && !q->deliver_given)
        q->deliver = MR_DELIVER_F32_NCHW;
    return MR_OK;
}

/* ---- checks against the dataset ------------------------------------------------------------------------------- */

static mr_status check_batches(mr_plan_request *q, uint64_t steps, mr_error *err)
{
    /* ":" means all, which may be nothing. */
    bool all = q->first == 0 && q->end == UINT64_MAX;
    if (q->end == UINT64_MAX)
        q->end = steps;
    if (all || (q->end <= steps && q->first < q->end))
        return MR_OK;
    if (steps == 0)
        return mr_fail(err, MR_MISUSE, "--batches %s: the epoch has no steps", q->batches);
    return mr_fail(err, MR_MISUSE, "--batches %s: the epoch has the steps 0 to %llu; 0:%llu is all of them", q->batches,
                   (ull)steps - 1, (ull)steps);
}

mr_status mr_plan_make(mr_plan_request *q, const mr_manifest *m, unsigned world, const mr_split **split,
                       mr_schedule *out, mr_error *err)
{
    mr_order order;
    MR_TRY(mr_manifest_find_split(m, q->dir, q->split, split, err));
    MR_TRY(mr_order_make(q->shuffle, mr_draw_items(*split, q->shuffle), q->seed, q->window_bytes,
                         mr_split_mean_bytes(*split), &order, err));
    MR_TRY(mr_schedule_make(&order, q->global_batch, q->ranks ? q->ranks : world, q->tail, out, err));
    out->draw = mr_draw_of(*split, q->shuffle);
    return q->batches ? check_batches(q, out->steps, err) : MR_OK;
}
