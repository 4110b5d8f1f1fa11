/* support_train.c - small training runs through the program. */
#include "support_train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "npz.h"

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

static support_result run(const char *dir, unsigned ranks, const char *arg, va_list rest)
{
    const char *argv[64] = {support_millrace_path(), "train", "data"};
    static const char *const usual[] = {
        "--model", "vit", "--image-size", "24", "--patch", "8", "--hidden", "16", "--layers", "2", "--heads", "2",
        "--mlp", "32", "--threads", "1", "--lr", "0.05",
    };
    size_t n = 3;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        argv[n++] = usual[i];
    for (; arg && n < 62; arg = va_arg(rest, const char *))
        argv[n++] = arg;
    support_limits limits = {.directory = dir, .seconds = 120};
    support_result r = ranks ? support_mpirun_in(ranks, argv, &limits) : support_run(argv, &limits);
    return r;
}

support_result train_run(const char *dir, unsigned ranks, const char *arg, ...)
{
    va_list rest;
    va_start(rest, arg);
    support_result r = run(dir, ranks, arg, rest);
    va_end(rest);
    return r;
}

void train_expect(int status, const char *dir, unsigned ranks, const char *arg, ...)
{
    va_list rest;
    va_start(rest, arg);
    support_result r = run(dir, ranks, arg, rest);
    va_end(rest);
    support_assert_status(&r, status);
    support_result_free(&r);
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
        for (size_t i = 0; i < count; i++)
            worst = fmax(worst, fabs((double)u[i] - (double)v[i]));
        free(u);
        free(v);
        arrays++;
    }
    assert_true(arrays > 10);
    mr_npz_reader_free(x);
    mr_npz_reader_free(y);
    return worst;
}
