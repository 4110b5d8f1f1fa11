/* parity.c - the fixtures of the parity folder, and how far from them a result may be. */
#include "tests/support/training/parity.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void parity_note(parity_table *t, const char *kind, double error, double tolerance, const char *model,
                 const char *where)
{
    size_t i = 0;
    while (i < t->count && strcmp(t->rows[i].kind, kind) != 0)
        i++;
    assert_true(i < MR_COUNT(t->rows));
    parity_worst *w = &t->rows[i];
    if (i == t->count || !(error / tolerance <= w->error / w->tolerance)) {
        *w = (parity_worst){.kind = kind, .error = error, .tolerance = tolerance};
        snprintf(w->where, sizeof w->where, "%s %s", model, where);
        t->count += i == t->count;
    }
    if (!(error <= tolerance))
        fail_msg("%s, %s %s: off by %.3g, accepted %.3g", kind, model, where, error, tolerance);
}

void parity_print(const parity_table *t)
{
    const char *verbose = getenv("MILLRACE_VERBOSE");
    for (size_t i = 0; verbose && *verbose && i < t->count; i++)
        print_message("%-28s %9.2e of %7.1e = %6.3f  %s\n", t->rows[i].kind, t->rows[i].error, t->rows[i].tolerance,
                      t->rows[i].error / t->rows[i].tolerance, t->rows[i].where);
}

double parity_largest(const float *a, size_t count)
{
    double most = 0;
    for (size_t i = 0; i < count; i++)
        most = fabs((double)a[i]) > most ? fabs((double)a[i]) : most;
    return most;
}

double parity_difference(const float *a, const float *b, size_t count)
{
    double most = 0;
    for (size_t i = 0; i < count; i++) {
        double d = fabs((double)a[i] - (double)b[i]);
        most = d <= most ? most : isnan(d) ? INFINITY : d;
    }
    return most;
}

double parity_number(const json_t *object, const char *key, int at)
{
    const json_t *value = json_object_get(object, key);
    if (at >= 0)
        value = json_array_get(value, (size_t)at);
    if (!json_is_number(value))
        fail_msg("the fixture has no number '%s'", key);
    return json_number_value(value);
}

void parity_angle_add(parity_angle *a, const float *got, const float *want, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        a->product += (double)got[i] * (double)want[i];
        a->squares[0] += (double)got[i] * (double)got[i];
        a->squares[1] += (double)want[i] * (double)want[i];
    }
}

double parity_angle_off(const parity_angle *a)
{
    return 1 - a->product / sqrt(a->squares[0] * a->squares[1]);
}

void parity_note_bf16(parity_table *t, const char *kind, const float *got, const float *want, size_t count,
                      const char *model)
{
    parity_note(t, kind, parity_difference(got, want, count) / parity_largest(want, count), 4e-2, model, "bf16");
}

void parity_note_pass_bf16(parity_table *t, double loss, double want_loss, const parity_angle *all, const char *model)
{
    const double norms[] = {sqrt(all->squares[0]), sqrt(all->squares[1])};
    parity_note(t, "loss in bf16", fabs(loss - want_loss), 2e-2, model, "bf16");
    parity_note(t, "all gradients in bf16, 1 - cosine", parity_angle_off(all), 1e-3, model, "bf16");
    parity_note(t, "gradient norm in bf16, relative", fabs(norms[0] - norms[1]) / norms[1], 2e-2, model, "bf16");
}

char *parity_part(const char *name, const char *what)
{
    char *sub = support_path("%s_%s", name, what), *path = support_parity(sub);
    if (!path)
        fail_msg("%s: its .json is there, but %s is not", name, sub);
    free(sub);
    return path;
}

json_t *parity_facts(const char *name)
{
    json_error_t error;
    char *sub = support_path("%s.json", name), *path = support_parity(sub);
    json_t *facts = path ? json_load_file(path, 0, &error) : NULL;
    if (!facts)
        fail_msg("%s: %s", sub, path ? error.text : "is not there");
    free(path);
    free(sub);
    return facts;
}

void parity_each(const char *prefix, void (*check)(const char *name, parity_table *t))
{
    char *folder = support_parity(".");
    struct dirent **entries = NULL;
    parity_table t = {0};
    int count = folder ? scandir(folder, &entries, NULL, alphasort) : 0, met = 0;
    free(folder);
    for (int i = 0; i < count; i++) {
        char *name = entries[i]->d_name, *end = strrchr(name, '.');
        if (strncmp(name, prefix, strlen(prefix)) == 0 && end && strcmp(end, ".json") == 0) {
            *end = '\0';
            check(name, &t);
            met++;
        }
        free(entries[i]);
    }
    free(entries);
    if (!met) {
        print_message("skipped: no parity fixtures %s*.json (MILLRACE_PARITY)\n", prefix);
        skip();
    }
    parity_print(&t);
}
