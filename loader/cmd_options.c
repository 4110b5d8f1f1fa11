/* cmd_options.c - the part of a command line that names a plan.
 * Invariant: a request that passed the parser holds numbers in range; what depends on the dataset is checked by
 * mr_plan_make(), which says what the range is. */
#include "loader/cmd_options.h"

#include <string.h>

#include "base/text.h"
#include "batch/options.h"

typedef unsigned long long ull;

enum { MAX_RANKS = 1 << 20 };

const char *const mr_tail_words[] = {
    [MR_TAIL_DROP] = "drop", [MR_TAIL_PAD] = "pad", [MR_TAIL_PARTIAL] = "partial", NULL};

const char *const mr_delivery_words[] = {[MR_DELIVER_ENCODED] = "encoded",
                                         [MR_DELIVER_U8_NHWC] = "u8",
                                         [MR_DELIVER_F32_NCHW] = "f32",
                                         [MR_DELIVER_BF16_NCHW] = "bf16",
                                         NULL};

static uint64_t number(const char *option, const char *arg, uint64_t low, uint64_t high, struct argp_state *state)
{
    uint64_t n;
    if (!mr_text_parse_u64(arg, &n) || n < low || n > high)
        mr_cli_misuse(state, "--%s %s: expected a number from %llu to %llu", option, arg, (ull)low, (ull)high);
    return n;
}

static int word(const char *option, const char *arg, const char *const *words, struct argp_state *state)
{
    int n = 0;
    char all[64] = "";
    for (; words[n]; n++) {
        if (strcmp(words[n], arg) == 0)
            return n;
        strcat(strcat(all, n == 0 ? "" : words[n + 1] ? ", " : " or "), words[n]);
    }
    const char *near = mr_text_nearest(arg, words);
    mr_cli_misuse(state, "--%s %s: use %s%s%s%s", option, arg, all, near ? "; did you mean " : "", near ? near : "",
                  near ? "?" : "");
    return 0;
}

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
        return mr_fail(err, MR_MISUSE, "--batches %s: is empty; B is the first step left out", arg);
    q->batches = arg;
    return MR_OK;
}

static void finish(mr_plan_request *q, struct argp_state *state)
{
    mr_cli_dataset(ARGP_KEY_END, NULL, state, &q->dir);
    if (!q->global_batch)
        mr_cli_misuse(state, "--global-batch is missing: the samples a step, all ranks together, for example 64");
    if (!q->split)
        q->split = "train";
    if (q->size && !q->deliver_given)
        q->deliver = MR_DELIVER_F32_NCHW;
}

bool mr_plan_option(int key, char *arg, struct argp_state *state, mr_plan_request *q)
{
    mr_error err;
    switch (key) {
    case MR_OPT_SPLIT:
        q->split = arg;
        break;
    case MR_OPT_GLOBAL_BATCH:
        q->global_batch = number("global-batch", arg, 1, UINT32_MAX, state);
        break;
    case MR_OPT_RANKS:
        q->ranks = (unsigned)number("ranks", arg, 1, MAX_RANKS, state);
        break;
    case MR_OPT_THREADS:
        q->threads = (unsigned)number("threads", arg, 0, MR_MAX_THREADS, state);
        break;
    case MR_OPT_PREFETCH:
        q->prefetch = (unsigned)number("prefetch", arg, 1, MR_MAX_PREFETCH, state);
        break;
    case MR_OPT_EPOCH:
        q->epoch = number("epoch", arg, 0, INT64_MAX, state);
        break;
    case MR_OPT_SEED:
        q->seed = number("seed", arg, 0, INT64_MAX, state);
        break;
    case MR_OPT_SHUFFLE:
        mr_cli_must(state, mr_plan_take_shuffle(q, arg, &err), &err);
        break;
    case MR_OPT_NO_SHUFFLE:
        q->shuffle = MR_SHUFFLE_NONE;
        break;
    case MR_OPT_TAIL:
        q->tail = (mr_tail)word("tail", arg, mr_tail_words, state);
        break;
    case MR_OPT_BATCHES:
        mr_cli_must(state, mr_plan_take_batches(q, arg, &err), &err);
        break;
    case MR_OPT_DELIVER:
        q->deliver = (mr_delivery)word("deliver", arg, mr_delivery_words, state);
        q->deliver_given = true;
        break;
    case MR_OPT_SIZE:
        q->size = (uint32_t)number("size", arg, 1, MR_MAX_SIDE, state);
        break;
    case ARGP_KEY_ARG:
        mr_cli_dataset(key, arg, state, &q->dir);
        break;
    case ARGP_KEY_END:
        finish(q, state);
        break;
    default:
        return false;
    }
    return true;
}

/* ---- with the dataset at hand --------------------------------------------------------------------------------- */

static mr_status check_batches(mr_plan_request *q, uint64_t steps, mr_error *err)
{
    /* ":" means all, and all of nothing is no mistake. */
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
    mr_status status = mr_manifest_find_split(m, q->dir, q->split, split, err);
    if (status != MR_OK)
        return status;
    status = mr_order_make(q->shuffle, (*split)->samples, q->seed, q->window_bytes, mr_split_mean_bytes(*split), &order,
                           err);
    if (status == MR_OK)
        status = mr_schedule_make(&order, q->global_batch, q->ranks ? q->ranks : world, q->tail, out, err);
    if (status == MR_OK && q->batches)
        status = check_batches(q, out->steps, err);
    return status;
}
