/* run_page.c - the sections of a page about a run, from its identity to its options.
 * Invariant: a figure that the run did not keep is left out. */
#include "train/report/run_page.h"

#include <math.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "train/report/curve.h"
#include "shards/report/frame.h"
#include "shards/report/html.h"

/* ---- what it is -------------------------------------------------------------------------------------------------- */

static void add_option(mr_buf *out, const char *term, const mr_run_facts *f, const char *name)
{
    const char *value = json_string_value(json_object_get(f->options, name));
    if (value && *value)
        mr_frame_fact(out, term, value);
}

static void add_score(mr_buf *out, const char *term, double accuracy, uint64_t update)
{
    char text[80], count[32];
    snprintf(text, sizeof text, "%.2f %% after update %s", 100 * accuracy, mr_text_count(update, count));
    if (accuracy >= 0)
        mr_frame_fact(out, term, text);
}

/* How evaluations of the run are judged. */
static const char *score_name(const mr_run_facts *f)
{
    const char *loss = json_string_value(json_object_get(f->checkpoint.facts, "loss"));
    if (f->checkpoint.model.iface->text)
        return "Recall at 1";
    return loss && strcmp(loss, "bce") == 0 ? "Mean average precision" : "Accuracy";
}

static void add_rate(const mr_run_facts *f, mr_buf *out)
{
    const char *text_given = json_string_value(json_object_get(f->options, "lr"));
    double given = text_given ? strtod(text_given, NULL) : 0, highest = 0;
    const mr_curve *used = &f->curves[MR_CURVE_LR];
    char text[80];
    for (size_t i = 0; i < used->count; i++)
        highest = fmax(highest, (double)used->points[i].value);
    if (given > 0)
        snprintf(text, sizeof text, "%g", given);
    else if (highest > 0)
        snprintf(text, sizeof text, "%.3g, the optimizer's default", highest);
    if (given > 0 || highest > 0)
        mr_frame_fact(out, "Learning rate", text);
}

static void add_facts(const mr_run_facts *f, mr_buf *out)
{
    const mr_checkpoint *c = &f->checkpoint;
    const char *digest = json_string_value(json_object_get(c->facts, "dataset"));
    const char *steps = json_string_value(json_object_get(f->options, "steps"));
    double rate = json_number_value(json_object_get(f->results, "train_samples_per_second"));
    char text[64], count[32];
    mr_buf_printf(out, "<p class=\"note\">A model trained by millrace %s, after ", c->version);
    mr_html_count(out, c->update);
    mr_buf_printf(out, " update%s.</p>\n<dl>\n", c->update == 1 ? "" : "s");
    mr_frame_fact(out, "Model", c->model.name);
    add_score(out, score_name(f), c->accuracy, c->update);
    add_score(out, "Best", c->best_accuracy, c->best_update);
    if (digest) {
        mr_buf_add_text(out, "<dt>Dataset</dt><dd><code>");
        mr_html_string(out, digest);
        mr_buf_add_text(out, "</code></dd>\n");
    }
    if (steps && *steps && strcmp(steps, "0") != 0)
        mr_frame_fact(out, "Updates planned", steps);
    add_option(out, "Optimizer", f, "optimizer");
    add_rate(f, out);
    long long batch = json_integer_value(json_object_get(c->facts, "global_batch"));
    long long ranks = json_integer_value(json_object_get(c->facts, "world"));
    snprintf(text, sizeof text, "%lld samples on %lld rank%s", batch, ranks, ranks == 1 ? "" : "s");
    mr_frame_fact(out, "Update", text);
    snprintf(text, sizeof text, "%" PRIu64, c->seed);
    mr_frame_fact(out, "Seed", text);
    if (rate >= 1000)
        snprintf(text, sizeof text, "%s samples per second", mr_text_count((uint64_t)rate, count));
    else
        snprintf(text, sizeof text, "%.4g samples per second", rate);
    if (rate > 0)
        mr_frame_fact(out, "Throughput", text);
    mr_buf_add_text(out, "</dl>\n");
}

/* ---- curves, time, options --------------------------------------------------------------------------------------- */

static void add_curves(const mr_run_facts *f, mr_buf *out)
{
    const mr_curve *c = f->curves;
    bool pairs = f->checkpoint.model.iface->text;
    size_t begin = out->len;
    mr_html_section(out, "curves", "Curves");
    mr_buf_add_text(out, "<div class=\"curves\">\n");
    size_t empty = out->len;
    const mr_chart charts[] = {
        {"Loss", {{"training", &c[MR_CURVE_LOSS]}, {"evaluation", &c[MR_CURVE_EVAL_LOSS]}}, .from_zero = false},
        {pairs ? "Recall" : score_name(f),
         {{pairs ? "at 1, both ways" : "evaluation", &c[MR_CURVE_EVAL]},
          {"text to image at 5", pairs ? &c[MR_CURVE_EVAL_5] : NULL}},
         .percent = true,
         .from_zero = true},
        {"Learning rate", {{NULL, &c[MR_CURVE_LR]}}, .from_zero = true},
        {"Images per second", {{NULL, &c[MR_CURVE_RATE]}}, .from_zero = true},
        {"Wait for data, ms per update", {{NULL, &c[MR_CURVE_WAIT]}}, .from_zero = true},
    };
    for (size_t i = 0; i < MR_COUNT(charts); i++)
        mr_chart_add(out, &charts[i]);
    if (out->len == empty)
        out->len = begin;
    else
        mr_buf_add_text(out, "</div>\n<p class=\"note\">Over the updates. Where there are many, a point is the mean of "
                             "several.</p>\n</section>\n");
}

static void add_time(const mr_run_facts *f, mr_buf *out)
{
    static const char *const keys[] = {"share_read", "share_decode", "share_data", "share_compute", "share_exchange"};
    static const char *const names[] = {"Reading", "Decoding", "Waiting for data", "Compute", "Exchange"};
    double shares[MR_COUNT(keys)], most = 0;
    for (size_t i = 0; i < MR_COUNT(keys); i++) {
        double share = json_number_value(json_object_get(f->results, keys[i]));
        shares[i] = share > 0 && share <= 1 ? share : 0;
        most = shares[i] > most ? shares[i] : most;
    }
    if (!(most > 0))
        return;
    mr_html_section(out, "time", "Where time went");
    mr_buf_add_text(out, "<table class=\"bars\"><caption>Share of the updates' time, on the first rank</caption>\n");
    for (size_t i = 0; i < MR_COUNT(keys); i++) {
        uint64_t width = (uint64_t)(shares[i] * 1e6);
        if (!json_is_number(json_object_get(f->results, keys[i])))
            continue;
        mr_buf_printf(out, "<tr><th scope=\"row\">%s</th><td class=\"n\">%.1f %%</td><td class=\"b\">", names[i],
                      100 * shares[i]);
        mr_html_stack(out, &width, 1, (uint64_t)(most * 1e6));
        mr_buf_add_text(out, "</td></tr>\n");
    }
    mr_buf_add_text(out, "</table>\n</section>\n");
}

static void add_options(const mr_run_facts *f, mr_buf *out)
{
    const char *name;
    json_t *value;
    mr_html_section(out, "options", "Options");
    mr_buf_add_text(out, "<details><summary>All options of the run</summary>\n<table class=\"balance\">"
                         "<thead><tr><th scope=\"col\">Option</th><th scope=\"col\">Value</th></tr></thead>\n");
    json_object_foreach((json_t *)(uintptr_t)f->options, name, value)
    {
        const char *text = json_string_value(value);
        if (!text || !*text)
            continue;
        mr_buf_add_text(out, "<tr><th scope=\"row\"><code>--");
        mr_html_string(out, name);
        mr_buf_add_text(out, "</code></th><td>");
        mr_html_string(out, text);
        mr_buf_add_text(out, "</td></tr>\n");
    }
    mr_buf_add_text(out, "</table></details>\n</section>\n");
}

/* ---- the page ---------------------------------------------------------------------------------------------------- */

static const mr_frame_section sections[] = {
    {"curves", "Curves"},     {"time", "Where time went"}, {"classes", "Classes"},
    {"mistakes", "Mistakes"}, {"searches", "Searches"},    {"options", "Options"},
};

mr_status mr_run_page_write(const char *run, const char *dataset, uint64_t max_pixels, mr_buf *out, mr_error *err)
{
    MR_AUTO(mr_run_facts_free) mr_run_facts f = {0};
    MR_AUTO(mr_thumbs_free) mr_thumbs thumbs = {.max_pixels = max_pixels};
    MR_AUTO(mr_buf_free) mr_buf body = {0}, name = {0};
    MR_TRY(mr_run_facts_read(run, dataset, &f, err));
    mr_frame_name(&name, run);
    add_curves(&f, &body);
    add_time(&f, &body);
    MR_TRY(mr_confusion_add(&f, &body, err));
    MR_TRY(mr_class_scores_add(&f, &body, err));
    MR_TRY(mr_mistakes_add(&f, &thumbs, &body, err));
    MR_TRY(mr_searches_add(&f, &thumbs, &body, err));
    add_options(&f, &body);
    MR_TRY(mr_buf_status(&body, err, "writing a report"));
    mr_frame_begin(out, mr_buf_text(&name), "training report");
    add_facts(&f, out);
    mr_frame_end(out, sections, MR_COUNT(sections), &body);
    return mr_buf_status(out, err, "writing a report");
}
