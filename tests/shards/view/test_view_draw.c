/* test_view_draw.c - views with weights, balanced classes and repetition, as loaders see them.
 * Invariant tested: an epoch has what the view says, within one, in the same batches for any number of ranks; in order,
 * each sample is seen once.
 * Covers shards/dataset/view_draw.c. */
#include <stdlib.h>
#include <string.h>

#include "millrace.h"
#include "base/hash.h"
#include "shards/view/view.h"
#include "tests/support/support.h"

enum { BATCH = 8 };

static char *dir, *a, *b, *view;

static char *make_dataset(const char *name, const char *seed)
{
    char *source = support_path("%s/%s.source", dir, name), *dataset = support_path("%s/%s", dir, name);
    support_expect(0, "sample", source, "--layout", "imagenette", "--images", "43", "--seed", seed, "--quiet",
                   (char *)NULL);
    support_expect(0, "ingest", source, dataset, "--quiet", (char *)NULL);
    free(source);
    return dataset;
}

static int set_up(void **state)
{
    (void)state;
    dir = support_tmpdir();
    a = make_dataset("a", "1");
    b = make_dataset("b", "2");
    view = support_path("%s/drawn.view", dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    support_tmpdir_remove(dir);
    free(a);
    free(b);
    free(view);
    return 0;
}

static mr_dataset *open_dataset(const char *path)
{
    mr_error err;
    mr_dataset *ds = NULL;
    if (mr_dataset_open(path, &ds, &err) != MR_OK)
        fail_msg("%s", err.text);
    return ds;
}

/* The samples of an epoch, step by step; the caller frees. */
static uint64_t *samples_of(const mr_dataset *ds, mr_shuffle shuffle, unsigned world, uint64_t epoch, uint64_t *count)
{
    uint64_t *all = calloc(10000, sizeof *all);
    for (unsigned rank = 0; rank < world; rank++) {
        mr_loader_options o = {.struct_size = sizeof o,
                               .split = "train",
                               .global_batch = BATCH,
                               .world = world,
                               .rank = rank,
                               .shuffle = shuffle,
                               .seed = 5,
                               .tail = world == 1 ? MR_TAIL_PARTIAL : MR_TAIL_DROP,
                               .start.epoch = epoch};
        mr_loader *loader = NULL;
        const mr_batch *batch;
        mr_error err;
        *count = 0;
        if (mr_loader_open(ds, &o, &loader, &err) != MR_OK)
            fail_msg("%s", err.text);
        for (uint64_t step = 0; mr_loader_next(loader, &batch, &err) == MR_OK; step++) {
            for (uint64_t i = 0; i < batch->count; i++)
                all[step * BATCH + rank * (BATCH / world) + i] = batch->samples[i].sample;
            *count += batch->count;
            mr_batch_release(loader, batch);
        }
        mr_loader_free(loader);
    }
    return all;
}

static void ranks_share_the_same_batches(const mr_dataset *ds)
{
    uint64_t count, part;
    uint64_t *one = samples_of(ds, MR_SHUFFLE_FULL, 1, 3, &count), *four = samples_of(ds, MR_SHUFFLE_FULL, 4, 3, &part);
    assert_memory_equal(one, four, count / BATCH * BATCH * sizeof *one);
    free(one);
    free(four);
}

static void weights_are_kept(void **state)
{
    (void)state;
    char *half = support_path("%s=0.5", a), *thrice = support_path("%s=3", b);
    support_expect(0, "view", view, a, b, "--weight", half, "--weight", thrice, "--force", (char *)NULL);
    mr_dataset *ds = open_dataset(view), *first = open_dataset(a);
    uint64_t border = mr_dataset_samples(first, "train"), all = mr_dataset_samples(ds, "train"), count;
    uint64_t *times = calloc(all, sizeof *times);
    for (uint64_t epoch = 0; epoch < 4; epoch++) {
        uint64_t *samples = samples_of(ds, MR_SHUFFLE_FULL, 1, epoch, &count), low = 0;
        assert_int_equal(count, (border + 1) / 2 + 3 * (all - border));
        for (uint64_t i = 0; i < count; i++) {
            times[samples[i]]++;
            low += samples[i] < border;
        }
        assert_int_equal(low, (border + 1) / 2);
        free(samples);
    }
    for (uint64_t n = 0; n < all; n++)
        if (n < border)
            assert_in_range(times[n], 2, 3);
        else
            assert_int_equal(times[n], 12);
    uint64_t *ordered = samples_of(ds, MR_SHUFFLE_NONE, 1, 0, &count);
    assert_int_equal(count, all);
    for (uint64_t n = 0; n < all; n++)
        assert_int_equal(ordered[n], n);
    ranks_share_the_same_batches(ds);
    support_expect(0, "verify", view, "--quiet", (char *)NULL);
    free(ordered);
    free(times);
    free(half);
    free(thrice);
    mr_dataset_free(ds);
    mr_dataset_free(first);
}

static void classes_are_balanced(void **state)
{
    (void)state;
    support_expect(0, "view", view, a, "--class", "n01440764,n02102040,n03445777", "--balance", "class", "--repeat",
                   "5", "--force", (char *)NULL);
    mr_dataset *ds = open_dataset(view);
    uint64_t all = mr_dataset_samples(ds, "train"), count, of[10] = {0};
    int32_t *labels = calloc(all, sizeof *labels);
    mr_error err;
    assert_int_equal(mr_dataset_labels(ds, "train", labels, &err), MR_OK);
    uint64_t *samples = samples_of(ds, MR_SHUFFLE_FULL, 1, 2, &count);
    assert_int_equal(count, 5 * all);
    for (uint64_t i = 0; i < count; i++)
        of[labels[samples[i]]]++;
    for (size_t c = 0; c < 10; c++)
        if (of[c])
            assert_in_range(of[c], count / 3, count / 3 + 1);
    ranks_share_the_same_batches(ds);
    free(samples);
    free(labels);
    mr_dataset_free(ds);
}

/* A view that somebody made without the program: one part sees nothing, the other one is seen very often. */
static void a_strangers_view_is_survived(void **state)
{
    (void)state;
    char *twice = support_path("%s=2", a);
    support_expect(0, "view", view, a, b, "--weight", twice, "--first", "3", "--force", (char *)NULL);
    mr_view_file *v = NULL;
    mr_buf bytes = {0};
    mr_error err;
    assert_int_equal(mr_view_read(view, &v, &err), MR_OK);
    mr_view_part *p = v->splits[0].parts;
    mr_condition_free(&p->conditions[0]);
    assert_int_equal(mr_condition_make("min-side", "99999", &p->conditions[0], &err), MR_OK);
    p->samples = 0;
    mr_hash128("", 0, p->list);
    p[1].weight = strdup("1000000");
    for (v->splits[0].repeat = 1; v->splits[0].repeat <= MR_VIEW_REPEAT; v->splits[0].repeat *= 100) {
        mr_buf_clear(&bytes);
        assert_int_equal(mr_view_write(v, &bytes, &err), MR_OK);
        support_write(view, bytes.data, bytes.len);
        mr_dataset *ds = open_dataset(view);
        assert_int_equal(mr_dataset_samples(ds, "train"), 3);
        mr_loader_options o = {
            .struct_size = sizeof o, .split = "train", .global_batch = 4, .shuffle = MR_SHUFFLE_FULL, .seed = 5};
        mr_loader *loader = NULL;
        const mr_batch *batch;
        if (mr_loader_open(ds, &o, &loader, &err) == MR_OK) {
            assert_int_equal(mr_loader_next(loader, &batch, &err), MR_OK);
            for (uint64_t i = 0; i < batch->count; i++)
                assert_in_range(batch->samples[i].sample, 0, 2);
            mr_batch_release(loader, batch);
        } else {
            assert_int_equal(err.status, MR_MISUSE);
        }
        mr_loader_free(loader);
        mr_dataset_free(ds);
    }
    mr_view_file_free(v);
    mr_buf_free(&bytes);
    free(twice);
}

static void what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    char *zero = support_path("%s=0", a), *one = support_path("%s=2", a), *other = support_path("%s/other.view", dir);
    support_expect(2, "view", other, a, "--weight", zero, (char *)NULL);
    support_expect(2, "view", other, a, "--weight", "nothing=2", (char *)NULL);
    support_expect(2, "view", other, a, "--weight", one, "--balance", "class", (char *)NULL);
    support_expect(0, "view", view, a, "--balance", "class", "--force", (char *)NULL);
    support_expect(2, "view", other, view, (char *)NULL);
    assert_false(support_exists(other));
    const uint64_t items[] = {1, 2};
    mr_loader_options o = {.struct_size = sizeof o,
                           .split = "train",
                           .global_batch = 2,
                           .shuffle = MR_SHUFFLE_FULL,
                           .items = items,
                           .item_count = 2};
    mr_loader *loader = NULL;
    mr_error err;
    mr_dataset *ds = open_dataset(view);
    assert_int_equal(mr_loader_open(ds, &o, &loader, &err), MR_MISUSE);
    assert_non_null(strstr(err.text, "name a view without weights"));
    mr_dataset_free(ds);
    free(zero);
    free(one);
    free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_kept),
        cmocka_unit_test(classes_are_balanced),
        cmocka_unit_test(a_strangers_view_is_survived),
        cmocka_unit_test(what_makes_no_sense_is_refused),
    };
    return cmocka_run_group_tests_name("drawn views", tests, set_up, tear_down);
}
