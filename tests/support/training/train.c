/* train.c - small training runs through the program. */
#include "tests/support/training/train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/files/npz.h"
#include "train/files/safetensors.h"

void train_make_dataset(const char *dir, unsigned images)
{
    char count[16];
    snprintf(count, sizeof count, "%u", images);
    char *source = support_path("%s/source", dir), *data = support_path("%s/data", dir);
    support_expect(0, "sample", source, "--layout", "imagenette", "--images", count, "--size", "32:40", "--quiet",
                   (char *)NULL);
    support_expect(0, "ingest", source, data, "--quiet", (char *)NULL);
    free(source);
    free(data);
}

static void make_words(const char *dir, const char *const *drawn, const char *column)
{
    TRAIN_PATH(source, dir, "source");
    TRAIN_PATH(data, dir, "data");
    TRAIN_PATH(tokenizer, dir, "tok.json");
    support_expect(0, "sample", source, "--size", "32", "--quiet", "--layout", drawn[0], "--images", drawn[1], drawn[2],
                   (char *)NULL);
    support_expect(0, "ingest", source, data, "--quiet", (char *)NULL);
    support_expect(0, "tokenizer", data, "--text-column", column, "--size", "300", "--output", tokenizer, (char *)NULL);
}

void train_make_pairs(const char *dir)
{
    make_words(dir, (const char *[]){"newyorker", "24", "--simple"}, "image_description");
}

void train_make_captions(const char *dir)
{
    make_words(dir, (const char *[]){"coco", "16", NULL}, "captions");
}

void train_path_free(char **path)
{
    free(*path);
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

static const char *const labels[] = {
    "train",   "data", "--model", "vit", "--image-size", "24", "--patch", "8",    "--hidden", "16", "--layers", "2",
    "--heads", "2",    "--mlp",   "32",  "--threads",    "1",  "--lr",    "0.05", NULL,
};

static const char *const pairs[] = {
    "train",          "data", "--model",   "bridgetower", "--tokenizer", "tok.json",
    "--image-size",   "32",   "--patch",   "16",          "--hidden",    "64",
    "--layers",       "2",    "--heads",   "1",           "--mlp",       "64",
    "--cross-layers", "1",    "--embed",   "16",          "--max-text",  "16",
    "--dropout",      "0",    "--lr",      "0.001",       "--batch",     "8",
    "--eval-every",   "0",    "--threads", "1",           NULL,
};

static support_result run(const char *dir, unsigned ranks, const char *const *usual, const char *arg, va_list rest)
{
    enum { MAX = 80 };
    const char *argv[MAX] = {support_millrace_path()};
    size_t n = 1;
    while (usual && *usual)
        argv[n++] = *usual++;
    for (; arg && n < MAX - 1; arg = va_arg(rest, const char *))
        argv[n++] = arg;
    assert_null(arg);
    support_limits limits = {.directory = dir};
    return ranks ? support_mpirun_in(ranks, argv, &limits) : support_run(argv, &limits);
}

/* The same runner behind three names: what comes back, and what a test expects of it. */
#define RUN(usual)                                                                                                     \
    va_list rest;                                                                                                      \
    va_start(rest, arg);                                                                                               \
    support_result r = run(dir, ranks, usual, arg, rest);                                                              \
    va_end(rest)

support_result train_run(const char *dir, unsigned ranks, const char *arg, ...)
{
    RUN(labels);
    return r;
}

void train_expect(int status, const char *dir, unsigned ranks, const char *arg, ...)
{
    RUN(labels);
    support_assert_status(&r, status);
    support_result_free(&r);
}

support_result train_pairs_run(const char *dir, unsigned ranks, const char *arg, ...)
{
    RUN(pairs);
    return r;
}

void train_pairs_expect(int status, const char *dir, unsigned ranks, const char *arg, ...)
{
    RUN(pairs);
    support_assert_status(&r, status);
    support_result_free(&r);
}

support_result train_command(int status, const char *dir, unsigned ranks, const char *arg, ...)
{
    RUN(NULL);
    support_assert_status(&r, status);
    return r;
}

/* ---- what they left ---------------------------------------------------------------------------------------------- */

static json_int_t step_of(const json_t *line)
{
    return json_integer_value(json_object_get(line, "step"));
}

json_t *train_log(const char *path, const char *member)
{
    char *text = (char *)support_read(path, NULL), *rest = text, *line;
    json_t *all = json_array();
    while ((line = strsep(&rest, "\n")) && *line) {
        json_error_t e;
        json_t *one = json_loads(line, 0, &e);
        if (!one)
            fail_msg("%s: no JSON: %s", path, line);
        size_t count = json_array_size(all);
        json_int_t step = step_of(one);
        while (json_object_get(one, member) && count && step_of(json_array_get(all, count - 1)) >= step)
            json_array_remove(all, --count);
        if (json_object_get(one, member))
            json_array_append(all, one);
        json_decref(one);
    }
    free(text);
    return all;
}

double train_log_distance(const char *a, const char *b, const char *member)
{
    json_t *x = train_log(a, member), *y = train_log(b, member);
    double worst = 0;
    assert_int_equal(json_array_size(x), json_array_size(y));
    assert_true(json_array_size(x) > 0);
    for (size_t i = 0; i < json_array_size(x); i++) {
        double d = fabs(json_number_value(json_object_get(json_array_get(x, i), member)) -
                        json_number_value(json_object_get(json_array_get(y, i), member)));
        worst = fmax(worst, d);
    }
    json_decref(x);
    json_decref(y);
    return worst;
}

double train_weights_distance(const char *a, const char *b)
{
    return train_arrays_distance(a, b, "");
}

double train_arrays_distance(const char *a, const char *b, const char *prefix)
{
    mr_error err = {0};
    mr_npz_reader *x = NULL, *y = NULL;
    const mr_npz_array *p, *q;
    double worst = 0;
    size_t arrays = 0;
    if (mr_npz_open(a, &x, &err) != MR_OK || mr_npz_open(b, &y, &err) != MR_OK)
        fail_msg("%s", err.text);
    while (mr_npz_next(x, &p, &err) == MR_OK) {
        assert_int_equal(mr_npz_next(y, &q, &err), MR_OK);
        assert_string_equal(p->name, q->name);
        assert_int_equal(p->count, q->count);
        size_t count = (size_t)p->count;
        float *u = calloc(count, sizeof *u), *v = calloc(count, sizeof *v);
        assert_int_equal(mr_npz_take(x, u, count * sizeof *u, &err), MR_OK);
        assert_int_equal(mr_npz_take(y, v, count * sizeof *v, &err), MR_OK);
        bool counts = strncmp(p->name, prefix, strlen(prefix)) == 0;
        for (size_t i = 0; i < count && counts; i++)
            worst = fmax(worst, fabs((double)u[i] - (double)v[i]));
        free(u);
        free(v);
        arrays += counts;
    }
    assert_true(arrays > (*prefix ? 0 : 10));
    mr_npz_reader_free(x);
    mr_npz_reader_free(y);
    return worst;
}

double train_tensors_distance(const char *a, const char *b, const char *prefix, size_t *count)
{
    mr_error err = {0};
    mr_safetensors *x = NULL, *y = NULL;
    double worst = 0;
    size_t met = 0;
    if (mr_safetensors_open(a, &x, &err) != MR_OK || mr_safetensors_open(b, &y, &err) != MR_OK)
        fail_msg("%s", err.text);
    assert_int_equal(mr_safetensors_count(x), mr_safetensors_count(y));
    for (size_t i = 0; i < mr_safetensors_count(x); i++) {
        const mr_tensor *t = mr_safetensors_at(x, i), *o = mr_safetensors_find(y, t->name);
        if (prefix && strncmp(t->name, prefix, strlen(prefix)) != 0)
            continue;
        assert_non_null(o);
        assert_int_equal(t->count, o->count);
        float *u = calloc((size_t)t->count, sizeof *u), *v = calloc((size_t)t->count, sizeof *v);
        assert_int_equal(mr_safetensors_take(x, t, u, &err), MR_OK);
        assert_int_equal(mr_safetensors_take(y, o, v, &err), MR_OK);
        for (size_t k = 0; k < t->count; k++)
            worst = fmax(worst, fabs((double)u[k] - (double)v[k]));
        free(u);
        free(v);
        met++;
    }
    assert_true(met > 0);
    if (count)
        *count = met;
    mr_safetensors_free(x);
    mr_safetensors_free(y);
    return worst;
}
