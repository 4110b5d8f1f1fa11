/* test_view_joined.c - views of several datasets, and of views: their samples, classes and files.
 * Invariant tested: a joined split is the datasets' splits one after another, with classes by name.
 * Covers shards/view_maker.c, shards/view/place.c, shards/dataset/view_list.c, shards/dataset/view_classes.c. */
#include <stdlib.h>
#include <string.h>

#include "millrace.h"
#include "base/error.h"
#include "tests/support/support.h"

static char *dir, *a, *b, *objects;

static char *make_dataset(const char *name, const char *layout, const char *variant, const char *seed)
{
    char *source = support_path("%s/%s.source", dir, name), *dataset = support_path("%s/%s", dir, name);
    support_expect(0, "sample", source, "--layout", layout, "--images", "40", "--seed", seed, "--quiet",
                   variant ? "--variant" : NULL, variant, (char *)NULL);
    support_expect(0, "ingest", source, dataset, "--quiet", "--shard-size", "100KiB", (char *)NULL);
    free(source);
    return dataset;
}

static int set_up(void **state)
{
    (void)state;
    dir = support_tmpdir();
    a = make_dataset("a", "imagenette", NULL, "1");
    b = make_dataset("b", "roboflow", NULL, "2");
    objects = make_dataset("objects", "coco", NULL, "3");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    support_tmpdir_remove(dir);
    free(a);
    free(b);
    free(objects);
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

static char *place(const char *name)
{
    return support_path("%s/%s.view", dir, name);
}

static void same_sample(const mr_dataset *x, uint64_t n, const mr_dataset *y, uint64_t m)
{
    mr_sample_view v = {0}, w = {0};
    mr_error err;
    assert_int_equal(mr_dataset_read(x, "train", n, &v, &err), MR_OK);
    assert_int_equal(mr_dataset_read(y, "train", m, &w, &err), MR_OK);
    assert_int_equal(v.image_len, w.image_len);
    assert_memory_equal(v.image, w.image, v.image_len);
    assert_string_equal(mr_dataset_class_name(x, (size_t)v.label), mr_dataset_class_name(y, (size_t)w.label));
    char *named =
        support_path("\"label\":%d,\"class\":\"%s\"", (int)v.label, mr_dataset_class_name(x, (size_t)v.label));
    assert_non_null(memmem(v.meta, v.meta_len, named, strlen(named)));
    free(named);
    mr_sample_view_free(&v);
    mr_sample_view_free(&w);
}

/* Each image of the split once, from any number of threads; the loader's labels are those of the view. */
static void load_all(const mr_dataset *ds, unsigned threads)
{
    mr_loader_options o = {.struct_size = sizeof o, .split = "train", .global_batch = 8, .threads = threads};
    uint64_t samples = mr_dataset_samples(ds, "train"), count = 0;
    uint8_t *times = calloc(samples, 1);
    int32_t *labels = calloc(samples, sizeof *labels);
    mr_loader *loader = NULL;
    const mr_batch *batch;
    mr_sample_view v = {0};
    mr_error err;
    o.tail = MR_TAIL_PARTIAL;
    assert_int_equal(mr_dataset_labels(ds, "train", labels, &err), MR_OK);
    assert_int_equal(mr_loader_open(ds, &o, &loader, &err), MR_OK);
    while (mr_loader_next(loader, &batch, &err) == MR_OK) {
        for (uint64_t i = 0; i < batch->count; i++, count++) {
            const mr_sample_facts *f = &batch->samples[i];
            assert_int_equal(times[f->sample]++, 0);
            assert_int_equal(f->label, labels[f->sample]);
            assert_int_equal(mr_dataset_read(ds, "train", f->sample, &v, &err), MR_OK);
            assert_int_equal(f->length, v.image_len);
            assert_memory_equal((const uint8_t *)batch->data + f->offset, v.image, v.image_len);
        }
        mr_batch_release(loader, batch);
    }
    assert_int_equal(count, samples);
    mr_sample_view_free(&v);
    mr_loader_free(loader);
    free(times);
    free(labels);
}

static void splits_follow_one_another(void **state)
{
    (void)state;
    char *view = place("joined");
    support_expect(0, "view", view, a, b, (char *)NULL);
    mr_dataset *ds = open_dataset(view), *first = open_dataset(a), *second = open_dataset(b);
    uint64_t before = mr_dataset_samples(first, "train"), after = mr_dataset_samples(second, "train");
    assert_int_equal(mr_dataset_samples(ds, "train"), before + after);
    assert_int_equal(mr_dataset_samples(ds, "val"),
                     mr_dataset_samples(first, "val") + mr_dataset_samples(second, "val"));
    assert_int_equal(mr_dataset_samples(ds, "test"), mr_dataset_samples(second, "test"));
    assert_int_equal(mr_dataset_class_count(ds), mr_dataset_class_count(first) + mr_dataset_class_count(second));
    for (uint64_t n = 0; n < before; n++)
        same_sample(ds, n, first, n);
    for (uint64_t n = 0; n < after; n++)
        same_sample(ds, before + n, second, n);
    load_all(ds, 0);
    load_all(ds, 3);
    char *copies = support_path("%s/copies", dir);
    mr_error err;
    assert_int_equal(mr_dataset_stage(ds, copies, 0, 1, &err), MR_OK);
    load_all(ds, 2);
    free(copies);
    mr_dataset_free(ds);
    mr_dataset_free(first);
    mr_dataset_free(second);
    support_expect(0, "verify", view, "--quiet", (char *)NULL);
    support_expect(0, "inspect", view, "--near-duplicates", (char *)NULL);
    char *page = support_path("%s/page.html", dir);
    support_expect(0, "report", view, "--output", page, "--quiet", (char *)NULL);
    free(page);
    free(view);
}

/* One rank of a host finds what is seen, and the others read its list. */
static void ranks_of_a_host_see_the_same(void **state)
{
    (void)state;
    static const char *const conditions[] = {"*e*", "*"};
    char *view = place("ranks");
    for (size_t i = 0; i < MR_COUNT(conditions); i++) {
        support_expect(0, "view", view, a, b, "--source", conditions[i], "--force", (char *)NULL);
        const char *const argv[] = {
            support_millrace_path(), "replay",  view, "--split", "train", "--global-batch", "6", "--shuffle",
            "window:40KiB",          "--quiet", NULL};
        support_result alone = support_run(argv, NULL), ranks = support_mpirun(3, argv);
        support_assert_status(&alone, 0);
        support_assert_status(&ranks, 0);
        assert_string_equal(alone.out, ranks.out);
        support_result_free(&alone);
        support_result_free(&ranks);
    }
    free(view);
}

static char *line_of(const char *view, const char *begins)
{
    support_result r = support_millrace("inspect", view, "--classes", (char *)NULL);
    support_assert_status(&r, 0);
    char *at = strstr(r.out, begins), *line = at ? strndup(at, strcspn(at, "\n")) : NULL;
    support_result_free(&r);
    return line;
}

/* What was asked of an inner view stays what it was, however its classes are called later. */
static void views_of_views_are_flat(void **state)
{
    (void)state;
    char *inner = place("inner"), *outer = place("outer"), *once = place("once"), *picked = place("picked");
    char *split = support_path("%s:train", a);
    support_expect(0, "view", inner, split, "--class", "n01440764,n02102040", (char *)NULL);
    support_expect(0, "view", outer, inner, "--first", "5", (char *)NULL);
    support_expect(0, "view", once, split, "--class", "n01440764,n02102040", "--first", "5", (char *)NULL);
    support_expect(0, "diff", outer, once, (char *)NULL);
    size_t len, other;
    uint8_t *x = support_read(outer, &len), *y = support_read(once, &other);
    assert_int_equal(len, other);
    assert_memory_equal(x, y, len);
    free(x);
    free(y);
    support_expect(0, "view", outer, inner, b, "--force", "--rename-class", "n01440764=fish", "--rename-class",
                   "star=fish", (char *)NULL);
    char *train = support_path("%s:train", outer);
    support_expect(0, "view", picked, train, "--class", "tench", "--rename-class", "fish=tench", (char *)NULL);
    mr_dataset *renamed = open_dataset(outer), *fish = open_dataset(picked), *first = open_dataset(a);
    assert_string_equal(mr_dataset_class_name(renamed, 0), "fish");
    char *counted = line_of(outer, "0  fish"), *again = line_of(picked, "0  tench");
    assert_non_null(counted);
    assert_non_null(again);
    assert_int_equal(atoi(counted + strlen("0  fish")), mr_dataset_samples(fish, "train"));
    assert_int_equal(mr_dataset_class_count(fish), mr_dataset_class_count(renamed));
    mr_dataset_free(renamed);
    mr_dataset_free(fish);
    mr_dataset_free(first);
    free(counted);
    free(again);
    free(split);
    free(train);
    free(inner);
    free(outer);
    free(once);
    free(picked);
}

static void says(const char *words, const char *const *args)
{
    support_limits limits = {.seconds = 60};
    support_result r = support_millrace_under(args, &limits);
    support_assert_status(&r, 2);
    if (!strstr(r.err, words))
        fail_msg("\"%s\" is not in %s", words, r.err);
    support_result_free(&r);
}

static void what_cannot_be_joined_is_refused(void **state)
{
    (void)state;
    char *none = place("none"), *fish = place("fish"), *twin = support_path("%s/copy", dir);
    const char *const with_objects[] = {"view", none, a, objects, NULL};
    says("has objects; datasets whose samples have objects or several labels join only if they list the same classes",
         with_objects);
    const char *const unknown[] = {"view", none, a, b, "--rename-class", "nothing=x", NULL};
    says("none of the datasets has a class of this name", unknown);
    const char *const half[] = {"view", none, a, "--rename-class", "star", NULL};
    says("give the old and the new name, OLD=NEW", half);
    const char *const twice[] = {"view",           none,          a,   "--rename-class", "n01440764=x",
                                 "--rename-class", "n01440764=y", NULL};
    says("n01440764 is renamed to x and to y", twice);
    support_expect(0, "view", fish, a, (char *)NULL);
    const char *const numbers[] = {"view", none, fish, "--samples", "1-2", NULL};
    says("name its dataset", numbers);
    assert_false(support_exists(none));
    support_expect(0, "view", none, objects, objects, "--first", "2", (char *)NULL); /* the same classes */
    free(twin);
    free(none);
    free(fish);
}

/* Damage to any of them is found, and one that is gone is named. */
static void each_dataset_counts(void **state)
{
    (void)state;
    char *view = place("counts"), *spare = make_dataset("spare", "imagenette", NULL, "5");
    char *shard = support_path("%s/train-00000.mdb", spare), *away = support_path("%s/away", dir);
    support_expect(0, "view", view, a, spare, (char *)NULL);
    support_expect(0, "verify", view, "--quiet", (char *)NULL);
    support_expect(2, "verify", view, "--json", (char *)NULL);
    size_t len;
    uint8_t *bytes = support_read(shard, &len);
    bytes[len / 2] ^= 1;
    support_write(shard, bytes, len);
    support_expect(1, "verify", view, "--quiet", (char *)NULL);
    assert_int_equal(rename(spare, away), 0);
    support_result r = support_millrace("inspect", view, (char *)NULL);
    support_assert_status(&r, 2);
    assert_non_null(strstr(r.err, "spare"));
    support_result_free(&r);
    free(bytes);
    free(view);
    free(spare);
    free(shard);
    free(away);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits_follow_one_another), cmocka_unit_test(ranks_of_a_host_see_the_same),
        cmocka_unit_test(views_of_views_are_flat),   cmocka_unit_test(what_cannot_be_joined_is_refused),
        cmocka_unit_test(each_dataset_counts),
    };
    return cmocka_run_group_tests_name("joined views", tests, set_up, tear_down);
}
