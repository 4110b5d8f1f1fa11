/* run_print.c - the newest checkpoint of a run, as lines or as JSON.
 * Invariant: only those options are listed that are not the program's own. */
#include "train/report/run_print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/cli/term.h"
#include "base/text.h"
#include "train/checkpoint/checkpoint.h"
#include "base/json/json.h"
#include "train/setup/settings.h"

typedef unsigned long long ull;

static const char *fact(const mr_checkpoint *c, const char *key)
{
    return json_string_value(json_object_get(c->facts, key));
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *share_json(double share)
{
    return share >= 0 ? json_real(share) : json_null();
}

static mr_status print_json(const mr_checkpoint *c, const char *path, mr_error *err)
{
    MR_AUTO(json_decrefp)
    json_t *doc = json_pack("{s:o, s:s, s:I, s:s?, s:I, s:o, s:o, s:I}", "checkpoint", mr_json_path(path, strlen(path)),
                            "version", c->version, "update", (json_int_t)c->update, "model", c->model.name,
                            "parameters", (json_int_t)c->params.elements, "accuracy", share_json(c->accuracy),
                            "best_accuracy", share_json(c->best_accuracy), "best_update", (json_int_t)c->best_update);
    if (!doc || json_object_update_missing(doc, c->facts) != 0)
        return mr_fail_memory(err, "printing a run");
    return mr_json_print(doc, err);
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static void print_line(const char *name, const char *text)
{
    printf("  %-12s", name);
    mr_term_text(stdout, text);
    printf("\n");
}

static void print_dataset(const mr_checkpoint *c)
{
    const char *digest = fact(c, "dataset"), *path = fact(c, "dataset_path"), *order = fact(c, "order");
    char text[64];
    if (path)
        print_line("dataset", path);
    print_line("digest", digest ? digest : "not known");
    snprintf(text, sizeof text, "%llu%s%.20s", (ull)c->seed, order ? ", order " : "", order ? order : "");
    print_line("seed", text);
}

static const char *share_word(const mr_checkpoint *c)
{
    const char *loss = fact(c, "loss");
    return c->model.iface->text ? "recall at 1" : loss && strcmp(loss, "bce") == 0 ? "mAP" : "accuracy";
}

static void print_accuracy(const mr_checkpoint *c)
{
    char text[160];
    if (c->accuracy < 0)
        snprintf(text, sizeof text, "%s", c->evaluation_due ? "to be evaluated by --resume" : "never evaluated");
    else
        snprintf(text, sizeof text, "%s %.5f; the best is %.5f at update %llu", share_word(c), c->accuracy,
                 c->best_accuracy, (ull)c->best_update);
    print_line("evaluated", text);
}

/* Reals are kept with all their digits, and read better without. */
static void add_value(mr_buf *out, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (strchr(text, '.') && end != text && !*end)
        mr_buf_printf(out, "%g", value);
    else
        mr_buf_add_text(out, text);
}

/* "batch=8, lr=0.05": those that differ from the defaults. */
static mr_status list_options(const json_t *options, mr_buf *out, mr_error *err)
{
    mr_settings defaults;
    const char *key;
    json_t *value;
    MR_TRY(mr_settings_begin(&defaults, err));
    MR_AUTO(json_decrefp) json_t *usual = mr_settings_json(&defaults);
    mr_settings_release(&defaults);
    if (!usual)
        return mr_fail_memory(err, "printing a run");
    json_object_foreach((json_t *)options, key, value)
    {
        const char *text = json_string_value(value), *own = json_string_value(json_object_get(usual, key));
        if (!text || (own && strcmp(text, own) == 0))
            continue;
        mr_buf_printf(out, "%s%s=", out->len ? ", " : "", key);
        add_value(out, text);
    }
    return mr_buf_status(out, err, "printing a run");
}

static mr_status print_lines(const char *run, const mr_checkpoint *c, const char *path, mr_error *err)
{
    char number[2][40];
    MR_AUTO(mr_buf_free) mr_buf options = {0};
    MR_TRY(list_options(json_object_get(c->facts, "options"), &options, err));
    printf("%s%s%s: ", mr_sgr(stdout, MR_BOLD), run, mr_sgr(stdout, MR_PLAIN));
    mr_term_text(stdout, *c->model.name ? c->model.name : c->model.iface->name);
    printf(", %s parameters, trained by millrace %s\n", mr_text_count(c->params.elements, number[0]), c->version);
    print_line("checkpoint", path);
    print_line("updates", mr_text_count(c->update, number[1]));
    print_accuracy(c);
    print_dataset(c);
    print_line("options", options.len ? mr_buf_text(&options) : "all by default");
    return MR_OK;
}

mr_status mr_run_print(const char *run, bool json, mr_error *err)
{
    MR_AUTO(mr_checkpoint_release) mr_checkpoint c = {0};
    MR_AUTO(mr_scope_free) char *path = NULL;
    MR_TRY(mr_checkpoint_look(run, false, &c, &path, err));
    if (c.params.elements == 0) /* state.json alone was read */
        MR_TRY(c.model.iface->params(&c.model, &c.params, err));
    return json ? print_json(&c, path, err) : print_lines(run, &c, path, err);
}
