/* line.c - the lines of a run, for users and for programs.
 * Invariant: JSON numbers read back as the exact doubles that were written; NaN and infinity, which JSON lacks, become
 * null.  Source of the text for users: HabanaAI's ViT trainer, so that what parses its output parses ours. */
#include "train/journal/parts.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

typedef unsigned long long ull;

double mr_per_second(double count, double seconds)
{
    return seconds > 0 ? count / seconds : 0;
}

/* ---- for users -------------------------------------------------------------------------------------------------- */

/* At the pace of the updates done so far, evaluations included; the warm-up is left out if more than that was done. */
static double time_left(const mr_journal *j, uint64_t update)
{
    bool warm = j->all.updates > j->warmup.updates;
    double seconds = j->all.seconds - (warm ? j->warmup.seconds : 0) + j->evaluating;
    uint64_t updates = j->all.updates - (warm ? j->warmup.updates : 0);
    return updates && update < j->options.steps ? seconds / (double)updates * (double)(j->options.steps - update) : 0;
}

bool mr_line_stays(const mr_journal *j, const mr_journal_update *u)
{
    return u->update % j->options.logging_steps == 0 || u->update == j->options.steps;
}

void mr_line_training(mr_buf *out, const mr_journal *j, const mr_journal_update *u)
{
    char left[32], now[32], max[32], available[32];
    mr_memory_use use = mr_memory_in_use();
    mr_buf_printf(out, "Training (%llu / %llu Steps) (loss=%2.5f images/sec=%2.5f)", (ull)u->update,
                  (ull)j->options.steps, u->loss, mr_per_second((double)j->line.samples, j->line.seconds));
    mr_buf_printf(out, " ETA %s lr=%.4g wait_ms=%.1f", mr_text_seconds(time_left(j, u->update), left), u->lr,
                  u->wait * 1e3);
    if (use.now)
        mr_buf_printf(out, " memory=%s max=%s", mr_text_bytes(use.now, now), mr_text_bytes(use.max, max));
    if (use.available)
        mr_buf_printf(out, " available=%s", mr_text_bytes(use.available, available));
    mr_rank_uses_ranges(&u->uses, &j->uses, out);
}

void mr_line_validation(mr_buf *out, const mr_journal_evaluation *e)
{
    mr_buf_printf(out, "Validation Results / Global Steps: %llu / Valid Loss: %2.5f", (ull)e->update, e->loss);
    if (e->several) {
        mr_buf_printf(out, " / Valid mAP: %2.5f / F1: %2.5f at %.3f", e->accuracy, e->f1, e->threshold);
        return;
    }
    if (!e->pairs) {
        mr_buf_printf(out, " / Valid Accuracy: %2.5f", e->accuracy);
        return;
    }
    const double *r = e->recall.text_to_image;
    mr_buf_printf(out, " / Text>Image@1 @5 @10: %.4f %.4f %.4f", r[0], r[1], r[2]);
    r = e->recall.image_to_text;
    mr_buf_printf(out, " / Image>Text@1 @5 @10: %.4f %.4f %.4f", r[0], r[1], r[2]);
}

/* ---- for programs ----------------------------------------------------------------------------------------------- */

void mr_member_begin(mr_members *m, const char *key)
{
    mr_buf_printf(m->out, "%s\"%s\": ", m->before, key);
    m->before = m->between;
}

void mr_member_count(mr_members *m, const char *key, uint64_t value)
{
    mr_member_begin(m, key);
    mr_buf_printf(m->out, "%llu", (ull)value);
}

void mr_member_real(mr_members *m, const char *key, double value)
{
    char digits[32] = "null";
    mr_member_begin(m, key);
    for (int n = 15; isfinite(value) && n <= 17; n++) {
        snprintf(digits, sizeof digits, "%.*g", n, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    mr_buf_add_text(m->out, digits);
}

void mr_member_time(mr_members *m, const char *key, double value)
{
    mr_member_begin(m, key);
    if (isfinite(value))
        mr_buf_printf(m->out, "%.7g", value);
    else
        mr_buf_add_text(m->out, "null");
}

void mr_member_text(mr_members *m, const char *key, const char *bytes)
{
    mr_member_begin(m, key);
    mr_json_add_path(m->out, bytes, strlen(bytes));
}

void mr_member_metrics(mr_members *m, const mr_journal_evaluation *e)
{
    char key[64];
    if (e->several) {
        mr_member_real(m, "eval_mean_average_precision", e->accuracy);
        mr_member_real(m, "eval_f1", e->f1);
        mr_member_real(m, "eval_threshold", e->threshold);
        return;
    }
    if (!e->pairs) {
        mr_member_real(m, "eval_accuracy", e->accuracy);
        return;
    }
    for (int i = 0; i < 2 * MR_RECALLS; i++) {
        bool text = i >= MR_RECALLS;
        int k = i % MR_RECALLS;
        snprintf(key, sizeof key, "eval_%s_recall_at_%u", text ? "image_to_text" : "text_to_image", mr_recall_at[k]);
        mr_member_real(m, key, text ? e->recall.image_to_text[k] : e->recall.text_to_image[k]);
    }
}

void mr_line_update_json(mr_buf *out, const mr_journal *j, const mr_journal_update *u)
{
    mr_members m = {out, "{", ", "};
    mr_member_count(&m, "step", u->update);
    mr_member_real(&m, "loss", u->loss);
    mr_member_real(&m, "lr", u->lr);
    mr_member_real(&m, "grad_norm", u->grad_norm);
    mr_member_time(&m, "images_per_sec", mr_per_second((double)u->samples, u->seconds));
    mr_member_time(&m, "wait_ms", u->wait * 1e3);
    mr_member_time(&m, "exchange_ms", u->exchange * 1e3);
    if (mr_line_stays(j, u))
        mr_rank_uses_members(&u->uses, &j->uses, out);
    mr_buf_add_text(out, "}\n");
}

void mr_line_evaluation_json(mr_buf *out, const mr_journal_evaluation *e)
{
    mr_members m = {out, "{", ", "};
    mr_member_count(&m, "step", e->update);
    mr_member_real(&m, "eval_loss", e->loss);
    mr_member_metrics(&m, e);
    mr_member_count(&m, "samples", e->samples);
    mr_member_time(&m, "seconds", e->seconds);
    mr_buf_add_text(out, "}\n");
}
