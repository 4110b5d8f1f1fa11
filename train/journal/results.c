/* results.c - a run's throughput, and what it spent its time on.
 * Invariant: the file and the lines for users come from one set of sums, so that they cannot disagree. */
#include "train/journal/parts.h"

#include "base/error.h"
#include "base/text.h"

typedef unsigned long long ull;

enum { READ, DECODE, DATA, COMPUTE, EXCHANGE };

static const char *const share_names[MR_SHARES] = {"read", "decode", "data", "compute", "exchange"};

/* The wait for data is divided between reading and decoding as the loader's work is; `compute` is the time in which
 * this rank waited for nothing. */
static void set_shares(mr_journal_results *r, const mr_journal_end *end)
{
    double known = end->read_share + end->decode_share, seconds = r->counted.seconds;
    double wait = mr_per_second(r->counted.wait, seconds), exchange = mr_per_second(r->counted.exchange, seconds);
    for (int i = 0; i < MR_SHARES; i++)
        r->shares[i] = -1;
    r->bottleneck = -1;
    if (!(seconds > 0))
        return;
    if (known > 0) {
        r->shares[READ] = wait * end->read_share / known;
        r->shares[DECODE] = wait * end->decode_share / known;
    } else {
        r->shares[DATA] = wait;
    }
    r->shares[EXCHANGE] = exchange;
    r->shares[COMPUTE] = wait + exchange < 1 ? 1 - wait - exchange : 0;
    for (int i = 0; i < MR_SHARES; i++)
        if (r->bottleneck < 0 || r->shares[i] > r->shares[r->bottleneck])
            r->bottleneck = i;
}

void mr_results_make(const mr_journal *j, const mr_journal_end *end, mr_journal_results *out)
{
    *out = (mr_journal_results){.counted = j->all};
    if (j->all.updates > j->warmup.updates) {
        out->left_out = j->warmup;
        out->counted.updates -= j->warmup.updates;
        out->counted.samples -= j->warmup.samples;
        out->counted.seconds -= j->warmup.seconds;
        out->counted.wait -= j->warmup.wait;
        out->counted.exchange -= j->warmup.exchange;
    }
    out->samples_per_second = mr_per_second((double)out->counted.samples, out->counted.seconds);
    out->steps_per_second = mr_per_second((double)out->counted.updates, out->counted.seconds);
    set_shares(out, end);
}

/* What makes the run repeatable. */
static void add_origin(mr_members *m, const json_t *facts)
{
    static const char *const keys[][2] = {{"dataset_digest", "dataset"}, {"order", "order"}};
    const json_t *options = json_object_get(facts, "options");
    mr_member_text(m, "version", MILLRACE_VERSION);
    for (size_t i = 0; i < MR_COUNT(keys); i++) {
        const char *value = json_string_value(json_object_get(facts, keys[i][1]));
        if (value)
            mr_member_text(m, keys[i][0], value);
    }
    const char *seed = json_string_value(json_object_get(options, "seed"));
    if (seed)
        mr_member_text(m, "seed", seed);
}

static void add_evaluations(mr_members *m, const mr_journal *j, const mr_journal_end *end)
{
    if (j->evaluation.update) {
        mr_member_count(m, "eval_step", j->evaluation.update);
        mr_member_real(m, "eval_loss", j->evaluation.loss);
        mr_member_metrics(m, &j->evaluation);
        mr_member_time(m, "eval_runtime", j->evaluating);
    }
    if (end->best_accuracy >= 0) {
        mr_member_real(m,
                       end->pairs     ? "best_recall_at_1"
                       : end->several ? "best_mean_average_precision"
                                      : "best_accuracy",
                       end->best_accuracy);
        mr_member_count(m, "best_step", end->best_update);
    }
}

static void add_ranks(mr_members *m, const mr_rank_uses *uses)
{
    if (!uses)
        return;
    const mr_images_counts decoded = mr_rank_uses_decoded(uses);
    if (decoded.device || decoded.host) {
        mr_member_count(m, "decoded_on_device", decoded.device);
        mr_member_count(m, "decoded_on_host", decoded.host);
        mr_member_count(m, "flagged_by_device", decoded.flagged);
    }
    mr_member_begin(m, "ranks");
    mr_rank_uses_json(uses, m->out);
}

void mr_results_json(mr_buf *out, const mr_journal *j, const mr_journal_end *end, const mr_journal_results *r)
{
    mr_members m = {out, "{\n ", ",\n "};
    if (end->dataset)
        mr_member_text(&m, "dataset", end->dataset);
    add_origin(&m, end->facts);
    mr_member_count(&m, "first_step", j->options.first + 1);
    mr_member_count(&m, "last_step", j->last);
    mr_member_count(&m, "train_steps", j->all.updates);
    mr_member_count(&m, "train_samples", j->all.samples);
    mr_member_time(&m, "train_runtime", j->all.seconds);
    mr_member_count(&m, "warmup_steps", r->left_out.updates);
    mr_member_count(&m, "warmup_samples", r->left_out.samples);
    mr_member_time(&m, "warmup_runtime", r->left_out.seconds);
    mr_member_time(&m, "train_samples_per_second", r->samples_per_second);
    mr_member_time(&m, "train_steps_per_second", r->steps_per_second);
    mr_member_real(&m, "train_loss", j->losses / (double)j->all.updates);
    mr_member_time(&m, "wait_seconds", r->counted.wait);
    mr_member_time(&m, "exchange_seconds", r->counted.exchange);
    for (int i = 0; i < MR_SHARES; i++) {
        char key[32];
        snprintf(key, sizeof key, "share_%s", share_names[i]);
        if (r->shares[i] >= 0)
            mr_member_time(&m, key, r->shares[i]);
    }
    if (r->bottleneck >= 0)
        mr_member_text(&m, "bottleneck", share_names[r->bottleneck]);
    add_evaluations(&m, j, end);
    mr_member_count(&m, "damaged_samples", end->damaged);
    mr_member_count(&m, "eval_damaged_samples", end->eval_damaged);
    add_ranks(&m, end->uses);
    if (end->declined)
        mr_member_text(&m, "declined_products", end->declined);
    if (end->profile) {
        mr_member_begin(&m, "profile");
        mr_buf_add(out, end->profile->data, end->profile->len);
    }
    mr_memory_use memory = mr_memory_in_use();
    mr_member_time(&m, "memory_max_mb", (double)memory.max / 1e6);
    mr_member_time(&m, "memory_available_mb", (double)memory.available / 1e6);
    mr_member_text(&m, "formula",
                   "train_samples_per_second = (train_samples - warmup_samples) / (train_runtime - warmup_runtime); "
                   "runtime: wall time of the updates of this run, with their waiting for data, without evaluations "
                   "and checkpoints; wait, exchange and shares: of the same updates, on rank 0");
    mr_buf_add_text(out, "\n}\n");
}

static void add_bottleneck(mr_buf *out, const mr_journal_results *r)
{
    static const char *const names[MR_SHARES] = {"reading", "decoding", "waiting for data", "compute", "exchange"};
    const char *before = " (";
    mr_buf_printf(out, "Bottleneck: %s, %.1f %% of the time", names[r->bottleneck], 100 * r->shares[r->bottleneck]);
    for (int i = 0; i < MR_SHARES; i++) {
        if (i == r->bottleneck || r->shares[i] < 0)
            continue;
        mr_buf_printf(out, "%s%s %.1f %%", before, names[i], 100 * r->shares[i]);
        before = ", ";
    }
    mr_buf_add_text(out, ")\n");
}

static void add_decoded(mr_buf *out, const mr_images_counts *c)
{
    mr_buf_printf(out, "Images decoded: %llu on the device, %llu on the host", (ull)c->device, (ull)c->host);
    if (c->flagged)
        mr_buf_printf(out, " (%llu of them after the device could not)", (ull)c->flagged);
    mr_buf_add_text(out, "\n");
}

void mr_results_lines(mr_buf *out, const mr_journal *j, const mr_journal_end *end, const mr_journal_results *r)
{
    char seconds[32];
    if (end->best_accuracy >= 0)
        mr_buf_printf(out, "Best %s: \t%f (step %llu)\n",
                      end->pairs     ? "Recall@1"
                      : end->several ? "mAP"
                                     : "Accuracy",
                      end->best_accuracy, (ull)end->best_update);
    if (end->damaged || end->eval_damaged)
        mr_buf_printf(out, "Damaged samples skipped: %llu in training, %llu in the last evaluation\n",
                      (ull)end->damaged, (ull)end->eval_damaged);
    const mr_images_counts decoded = end->uses ? mr_rank_uses_decoded(end->uses) : (mr_images_counts){.device = 0};
    if (decoded.device || decoded.host)
        add_decoded(out, &decoded);
    if (!j->all.updates)
        return;
    mr_buf_printf(out, "Throughput: %.1f samples/sec, %.2f steps/sec: %llu steps in %s, data wait included",
                  r->samples_per_second, r->steps_per_second, (ull)r->counted.updates,
                  mr_text_seconds(r->counted.seconds, seconds));
    if (r->left_out.updates)
        mr_buf_printf(out, ", without the first %llu", (ull)r->left_out.updates);
    mr_buf_add_text(out, "\n");
    if (r->bottleneck >= 0)
        add_bottleneck(out, r);
    if (end->uses)
        mr_rank_uses_line(end->uses, out);
    if (end->declined)
        mr_buf_printf(out, "%s\n", end->declined);
}
