/* test_saw.c - `millrace saw`: the steps of a run that saw a sample.
 * Invariant tested: they are the batches that the run's loader delivers, whatever the run's batch, accumulation, view
 * and interruptions. Covers train/cmd_saw.c. */
#include <stdlib.h>
#include <string.h>

#include "millrace.h"
#include "base/hash.h"
#include "tests/support/json.h"
#include "tests/support/support.h"

static char *dir, *dataset, *view;

static int set_up(void **state)
{
    (void)state;
    dir = support_tmpdir();
    dataset = support_path("%s/ds", dir);
    view = support_path("%s/part.view", dir);
    char *source = support_path("%s/source", dir), *weight = support_path("%s:train=1.5", dataset);
    char *split = support_path("%s:train", dataset);
    support_expect(0, "sample", source, "--layout", "imagenette", "--images", "50", "--quiet", (char *)NULL);
    support_expect(0, "ingest", source, dataset, "--quiet", (char *)NULL);
    support_expect(0, "view", view, split, "--samples", "3-22", "--weight", weight, (char *)NULL);
    free(source);
    free(weight);
    free(split);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    support_tmpdir_remove(dir);
    free(dataset);
    free(view);
    return 0;
}

static char *train(const char *name, const char *from, const char *more, ...)
{
    char *run = support_path("%s/%s", dir, name);
    const char *argv[40] = {"train", from, "--model",  "vit", "--image-size", "32", "--patch", "16", "--hidden", "16",
                            "--mlp", "16", "--layers", "1",   "--heads",      "2",  "--batch", "6",  "--output", run};
    size_t n = 0;
    while (argv[n])
        n++;
    va_list rest;
    va_start(rest, more);
    for (; more && n < 38; more = va_arg(rest, const char *))
        argv[n++] = more;
    va_end(rest);
    support_limits limits = {.seconds = 120};
    support_result r = support_millrace_under(argv, &limits);
    support_assert_status(&r, 0);
    support_result_free(&r);
    return run;
}

static json_t *saw(const char *run, const char *option, const char *value, int status)
{
    support_result r = support_millrace("saw", run, option, value, "--json", (char *)NULL);
    support_assert_status(&r, status);
    json_t *doc = json_loads(r.out, 0, NULL);
    assert_non_null(doc);
    support_result_free(&r);
    return doc;
}

/* The steps in which the run's loader delivers each sample are those that `saw` names for its source. */
static void compare(const char *run, const char *from, uint64_t grad_accum, uint64_t updates)
{
    mr_dataset *ds = NULL;
    mr_loader *loader = NULL;
    const mr_batch *batch;
    mr_sample_view v = {0};
    mr_error err;
    mr_loader_options o = {.struct_size = sizeof o,
                           .split = "train",
                           .global_batch = 6,
                           .shuffle = MR_SHUFFLE_FULL,
                           .seed = 42,
                           .tail = MR_TAIL_PARTIAL,
                           .epochs = 1000};
    uint64_t steps[100][16], count[100] = {0};
    assert_int_equal(mr_dataset_open(from, &ds, &err), MR_OK);
    uint64_t samples = mr_dataset_samples(ds, "train");
    assert_true(samples <= 100);
    assert_int_equal(mr_loader_open(ds, &o, &loader, &err), MR_OK);
    uint64_t per_epoch = mr_loader_steps(loader), updates_per_epoch = (per_epoch + grad_accum - 1) / grad_accum;
    for (uint64_t update = 0; update <= updates;) {
        assert_int_equal(mr_loader_next(loader, &batch, &err), MR_OK);
        update = batch->epoch * updates_per_epoch + batch->step / grad_accum + 1;
        for (uint64_t i = 0; i < batch->count && update <= updates; i++) {
            uint64_t s = batch->samples[i].sample;
            assert_true(count[s] < 16);
            steps[s][count[s]++] = update;
        }
        mr_batch_release(loader, batch);
    }
    for (uint64_t n = 0; n < samples; n++) {
        assert_int_equal(mr_dataset_read(ds, "train", n, &v, &err), MR_OK);
        char *source = strndup(v.meta + strlen("{\"source\":\""), strcspn(v.meta + strlen("{\"source\":\""), "\""));
        json_t *doc = saw(run, "--source", source, count[n] ? 0 : 1);
        const json_t *list = json_object_get(json_array_get(json_object_get(doc, "runs"), 0), "seen");
        assert_int_equal(json_array_size(list), count[n]);
        for (size_t i = 0; i < count[n]; i++)
            assert_int_equal(json_integer_value(json_object_get(json_array_get(list, i), "step")), steps[n][i]);
        char *hash = support_path("%016llx", (unsigned long long)mr_hash64(v.image, v.image_len));
        json_t *same = saw(run, "--hash", hash, count[n] ? 0 : 1);
        assert_true(json_equal(doc, same));
        json_decref(doc);
        json_decref(same);
        free(hash);
        free(source);
    }
    mr_sample_view_free(&v);
    mr_loader_free(loader);
    mr_dataset_free(ds);
}

static void steps_are_those_of_the_loader(void **state)
{
    (void)state;
    char *run = train("plain", dataset, "--steps", "9", (char *)NULL);
    compare(run, dataset, 1, 9);
    free(run);
}

static void accumulation_views_and_resuming_count(void **state)
{
    (void)state;
    char *run = train("part", view, "--steps", "11", "--grad-accum", "2", "--stop-after", "4", (char *)NULL);
    compare(run, view, 2, 4);
    free(train("part", view, "--steps", "11", "--grad-accum", "2", "--resume", (char *)NULL));
    compare(run, view, 2, 11);
    free(run);
}

static void what_is_not_there_is_said(void **state)
{
    (void)state;
    char *run = train("missing", dataset, "--steps", "2", (char *)NULL), *away = support_path("%s/away", dir);
    support_result r = support_millrace("saw", run, "--source", "nothing.jpg", (char *)NULL);
    support_assert_status(&r, 1);
    assert_non_null(strstr(r.out, "never; its dataset has no such sample in train"));
    support_result_free(&r);
    support_expect(2, "saw", run, (char *)NULL);
    support_expect(2, "saw", run, "--hash", "12", (char *)NULL);
    support_expect(2, "saw", dir, "--source", "x", (char *)NULL);
    support_expect(2, "saw", run, "--source", "x", "--dataset", view, (char *)NULL);
    assert_int_equal(rename(dataset, away), 0);
    support_expect(2, "saw", run, "--source", "x", (char *)NULL);
    support_expect(1, "saw", run, "--source", "x", "--dataset", away, (char *)NULL);
    assert_int_equal(rename(away, dataset), 0);
    free(run);
    free(away);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_those_of_the_loader),
        cmocka_unit_test(accumulation_views_and_resuming_count),
        cmocka_unit_test(what_is_not_there_is_said),
    };
    return cmocka_run_group_tests_name("saw", tests, set_up, tear_down);
}
