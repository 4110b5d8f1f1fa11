/* test_view.c - `millrace view`: what is seen is what the conditions say, through every reader that takes a view.
 * Covers shards/cmd_view.c, shards/view_maker_names.c, shards/view/view.c, shards/view/conditions.c,
 * shards/view/condition_lists.c, shards/view/condition_metas.c, shards/dataset/dataset_view.c. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "millrace.h"
#include "base/hash.h"
#include "shards/view/view.h"
#include "tests/support/support.h"

static char *dir, *dataset;

static int set_up(void **state)
{
    (void)state;
    dir = support_tmpdir();
    dataset = support_path("%s/ds", dir);
    char *source = support_path("%s/source", dir);
    support_expect(0, "sample", source, "--layout", "imagenette", "--images", "40", "--quiet", (char *)NULL);
    support_expect(0, "ingest", source, dataset, "--quiet", (char *)NULL);
    free(source);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    support_tmpdir_remove(dir);
    free(dataset);
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

/* The view of the dataset's split train with one condition. */
static char *make(const char *name, const char *option, const char *argument)
{
    char *view = support_path("%s/%s.view", dir, name), *from = support_path("%s:train", dataset);
    support_expect(0, "view", view, from, option, argument, "--force", (char *)NULL);
    free(from);
    return view;
}

static uint64_t samples_of(const char *view)
{
    mr_dataset *ds = open_dataset(view);
    uint64_t samples = mr_dataset_samples(ds, "train");
    assert_int_equal(mr_dataset_split_count(ds), 1);
    mr_dataset_free(ds);
    return samples;
}

static void samples_are_those_of_the_dataset(void **state)
{
    (void)state;
    static const uint64_t numbers[] = {0, 1, 2, 5, 9};
    char *view = make("numbers", "--samples", "0-2,5,9");
    mr_dataset *seen = open_dataset(view), *all = open_dataset(dataset);
    mr_sample_view a = {0}, b = {0};
    int32_t labels[5];
    mr_error err;
    assert_int_equal(mr_dataset_samples(seen, "train"), 5);
    assert_string_not_equal(mr_dataset_sha256(seen), mr_dataset_sha256(all));
    assert_int_equal(mr_dataset_labels(seen, "train", labels, &err), MR_OK);
    for (uint64_t n = 0; n < 5; n++) {
        assert_int_equal(mr_dataset_read(seen, "train", n, &a, &err), MR_OK);
        assert_int_equal(mr_dataset_read(all, "train", numbers[n], &b, &err), MR_OK);
        assert_int_equal(a.image_len, b.image_len);
        assert_memory_equal(a.image, b.image, a.image_len);
        assert_int_equal(labels[n], b.label);
    }
    assert_int_equal(mr_dataset_read(seen, "train", 5, &a, &err), MR_MISUSE);
    mr_sample_view_free(&a);
    mr_sample_view_free(&b);
    mr_dataset_free(seen);
    mr_dataset_free(all);
    free(view);
}

static void a_loader_sees_each_sample_once(void **state)
{
    (void)state;
    char *view = make("loader", "--samples", "0-2,5,9");
    mr_dataset *seen = open_dataset(view), *all = open_dataset(dataset);
    mr_loader_options o = {
        .struct_size = sizeof o, .split = "train", .global_batch = 2, .tail = MR_TAIL_PARTIAL, .with_meta = 1};
    mr_sample_view whole = {0};
    mr_loader *loader = NULL;
    const mr_batch *batch;
    mr_error err;
    unsigned times[5] = {0};
    static const uint64_t numbers[] = {0, 1, 2, 5, 9};
    assert_int_equal(mr_loader_open(seen, &o, &loader, &err), MR_OK);
    assert_int_equal(mr_loader_steps(loader), 3);
    while (mr_loader_next(loader, &batch, &err) == MR_OK) {
        for (uint64_t i = 0; i < batch->count; i++) {
            const mr_sample_facts *f = &batch->samples[i];
            assert_in_range(f->sample, 0, 4);
            times[f->sample]++;
            assert_int_equal(mr_dataset_read(all, "train", numbers[f->sample], &whole, &err), MR_OK);
            assert_int_equal(f->length, whole.image_len);
            assert_memory_equal((const uint8_t *)batch->data + f->offset, whole.image, whole.image_len);
        }
        mr_batch_release(loader, batch);
    }
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(times[i], 1);
    mr_sample_view_free(&whole);
    mr_loader_free(loader);
    mr_dataset_free(seen);
    mr_dataset_free(all);
    free(view);
}

static void conditions_divide_a_split(void **state)
{
    (void)state;
    mr_dataset *all = open_dataset(dataset);
    uint64_t samples = mr_dataset_samples(all, "train"), sum = 0;
    for (unsigned i = 1; i <= 3; i++) {
        char *number = support_path("%u/3", i), *others = support_path("--fold=-%u/3", i);
        char *fold = make("fold", "--fold", number), *rest = make("rest", others, "--quiet");
        sum += samples_of(fold);
        assert_int_equal(samples_of(fold) + samples_of(rest), samples);
        free(number);
        free(others);
        free(fold);
        free(rest);
    }
    assert_int_equal(sum, samples);
    sum = 0;
    for (size_t i = 0; i < mr_dataset_class_count(all); i++) {
        const char *name = mr_dataset_class_name(all, i);
        char *glob = support_path("*/%s/*", name);
        char *class = make("class", "--class", name), *source = make("source", "--source", glob);
        assert_int_equal(samples_of(class), samples_of(source));
        sum += samples_of(class);
        free(glob);
        free(class);
        free(source);
    }
    assert_int_equal(sum, samples);
    char *first = make("first", "--first", "4"), *half = make("half", "--fraction", "0.5");
    assert_int_equal(samples_of(first), 4);
    assert_in_range(samples_of(half), 1, samples - 1);
    mr_dataset_free(all);
    free(first);
    free(half);
}

static void what_is_listed_is_dropped(void **state)
{
    (void)state;
    mr_dataset *all = open_dataset(dataset);
    uint64_t samples = mr_dataset_samples(all, "train"), hash;
    mr_sample_view v = {0};
    mr_error err;
    char *list = support_path("%s/list.tsv", dir), *text, *source, *end;
    assert_int_equal(mr_dataset_read(all, "train", 1, &v, &err), MR_OK);
    hash = mr_hash64(v.image, v.image_len);
    assert_int_equal(mr_dataset_read_meta(all, "train", 3, &v, &err), MR_OK);
    source = strndup(v.meta + strlen("{\"source\":\""), v.meta_len);
    end = strchr(source, '"');
    assert_non_null(end);
    *end = 0;
    text = support_path("%s\tasked to\t2026-01-31\n%016llx\tno licence\t2026-02-01\nnot/there\tx\t2026-02-02\n", source,
                        (unsigned long long)hash);
    support_write_text(list, text);
    char *view = make("dropped", "--drop", list);
    mr_dataset *seen = open_dataset(view);
    assert_int_equal(mr_dataset_samples(seen, "train"), samples - 2);
    for (uint64_t n = 0; n < samples - 2; n++) {
        assert_int_equal(mr_dataset_read(seen, "train", n, &v, &err), MR_OK);
        assert_int_not_equal(mr_hash64(v.image, v.image_len), hash);
        assert_null(memmem(v.meta, v.meta_len, source, strlen(source)));
    }
    support_result r = support_millrace("view", view, dataset, "--force", "--drop", list, (char *)NULL);
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.err, "1 of its lines names no sample"));
    assert_non_null(strstr(r.err, "not/there"));
    support_result_free(&r);
    support_write_text(list, "a/b.jpg\tno date\n");
    support_expect(2, "view", view, dataset, "--force", "--drop", list, (char *)NULL);
    r = support_millrace("view", view, dataset, "--force", "--drop", "/nowhere", (char *)NULL);
    support_assert_status(&r, 2);
    assert_non_null(strstr(r.err, "--drop /nowhere: no such file"));
    support_result_free(&r);
    mr_sample_view_free(&v);
    mr_dataset_free(seen);
    mr_dataset_free(all);
    free(view);
    free(list);
    free(text);
    free(source);
}

static void a_view_differs_by_what_it_leaves_out(void **state)
{
    (void)state;
    char *some = make("some", "--samples", "1-4,7"), *fewer = make("fewer", "--samples", "2-4,7");
    support_result r = support_millrace("diff", some, fewer, "--json", (char *)NULL);
    support_assert_status(&r, 1);
    assert_non_null(strstr(r.out, "\"removed\": 1"));
    assert_non_null(strstr(r.out, "\"added\": 0"));
    assert_non_null(strstr(r.out, "\"changed\": 0"));
    support_result_free(&r);
    support_expect(0, "diff", some, some, (char *)NULL);
    free(some);
    free(fewer);
}

/* OUT and DATASET in the wrong order must not cost a file. */
static void what_is_there_stays(void **state)
{
    (void)state;
    char *view = make("kept", "--first", "3"), *image = support_path("%s/kept.jpg", dir);
    size_t len, then;
    uint8_t *before = support_read(view, &len);
    support_write_text(image, "not a view");
    support_expect(2, "view", view, dataset, "--first", "2", (char *)NULL);
    support_expect(2, "view", image, dataset, "--force", "--first", "2", (char *)NULL);
    uint8_t *after = support_read(view, &then), *other = support_read(image, NULL);
    assert_int_equal(len, then);
    assert_memory_equal(before, after, len);
    assert_string_equal((char *)other, "not a view");
    free(before);
    free(after);
    free(other);
    free(view);
    free(image);
}

static void what_is_not_so_is_refused(void **state)
{
    (void)state;
    char *view = make("moved", "--first", "3"), *other = support_path("%s/other", dir), *from = NULL;
    char *none = support_path("%s/none.view", dir);
    support_expect(2, "view", none, dataset, "--min-side", "99999", (char *)NULL);
    support_expect(2, "view", none, dataset, "--class", "nothing", (char *)NULL);
    support_expect(2, "view", none, dataset, "--samples", "5-2", (char *)NULL);
    support_expect(2, "view", none, dataset, "--fold", "4/3", (char *)NULL);
    support_expect(2, "view", none, view, "--samples", "0-1", (char *)NULL);
    assert_int_equal(access(none, F_OK), -1);
    support_expect(0, "verify", view, "--quiet", (char *)NULL);
    support_expect(1, "verify", view, "--expect", "00000000000000000000000000000000000000000000000000000000000000ff",
                   (char *)NULL);
    assert_int_equal(rename(dataset, other), 0);
    support_expect(2, "inspect", view, (char *)NULL);
    from = support_path("%s/another", dir);
    support_expect(0, "sample", from, "--layout", "imagenette", "--images", "40", "--seed", "7", "--quiet",
                   (char *)NULL);
    support_expect(0, "ingest", from, dataset, "--quiet", (char *)NULL);
    support_expect(1, "inspect", view, (char *)NULL);
    support_expect(1, "verify", view, (char *)NULL);
    char *aside = support_path("%s/aside", dir);
    assert_int_equal(rename(dataset, aside), 0);
    assert_int_equal(rename(other, dataset), 0);
    free(aside);
    support_expect(0, "inspect", view, (char *)NULL);
    free(view);
    free(other);
    free(from);
    free(none);
}

static void sources_and_columns_are_asked(void **state)
{
    (void)state;
    mr_dataset *all = open_dataset(dataset);
    uint64_t samples = mr_dataset_samples(all, "train"), valid = 0, listed = 0;
    mr_buf list = {0};
    mr_sample_view v = {0};
    mr_error err;
    for (uint64_t n = 0; n < samples; n++) {
        assert_int_equal(mr_dataset_read(all, "train", n, &v, &err), MR_OK);
        valid += memmem(v.meta, v.meta_len, "\"is_valid\":\"False\"", 18) != NULL;
        if (n % 5 == 0)
            mr_buf_printf(&list, "%016llx\tsome remark\n", (unsigned long long)mr_hash64(v.image, v.image_len));
        listed += n % 5 == 0;
    }
    char *file = support_path("%s/kept.txt", dir);
    support_write(file, list.data, list.len);
    char *some = make("some", "--sample-list", file), *column = make("column", "--column", "is_valid=False");
    assert_int_equal(samples_of(some), listed);
    assert_int_equal(samples_of(column), valid);
    support_expect(2, "view", file, dataset, "--column", "is_valid", (char *)NULL);
    support_expect(2, "view", column, dataset, "--force", "--objects", "3-4", (char *)NULL);
    support_expect(2, "view", column, dataset, "--force", "--objects", "1..", (char *)NULL); /* none has any */
    char *none = make("none", "--objects", "0");
    assert_int_equal(samples_of(none), samples);
    mr_sample_view_free(&v);
    mr_dataset_free(all);
    mr_buf_free(&list);
    free(file);
    free(some);
    free(column);
    free(none);
}

/* Called otherwise, joined, and found where they are now. */
static void splits_and_places_have_other_names(void **state)
{
    (void)state;
    char *view = support_path("%s/renamed.view", dir), *moved = support_path("%s/elsewhere", dir);
    char *place = support_path("%s/ds", moved), *beside = support_path("%s/renamed.view", moved);
    char *again = support_path("%s/again.view", dir);
    mr_dataset *all = open_dataset(dataset);
    uint64_t train = mr_dataset_samples(all, "train"), val = mr_dataset_samples(all, "val");
    support_expect(0, "view", view, dataset, "--split", "everything=train", "--split", "everything=val", (char *)NULL);
    mr_dataset *seen = open_dataset(view);
    assert_int_equal(mr_dataset_split_count(seen), 1);
    assert_int_equal(mr_dataset_samples(seen, "everything"), train + val);
    char *at = support_path("%.8s=%s", mr_dataset_sha256(all), place);
    mr_dataset_free(seen);
    mr_dataset_free(all);
    support_expect(2, "view", again, dataset, "--split", "x=nothing", (char *)NULL);
    support_expect(2, "view", again, dataset, "--split", "x", (char *)NULL);
    assert_int_equal(mkdir(moved, 0755), 0);
    assert_int_equal(rename(dataset, place), 0);
    support_result r = support_millrace("inspect", view, (char *)NULL);
    support_assert_status(&r, 2);
    assert_non_null(strstr(r.err, "is not there; move it back or beside the view"));
    support_result_free(&r);
    support_expect(0, "view", again, view, "--at", at, (char *)NULL);
    support_expect(0, "inspect", again, (char *)NULL);
    assert_int_equal(rename(view, beside), 0);
    support_expect(0, "inspect", beside, (char *)NULL);
    assert_int_equal(rename(place, dataset), 0);
    free(view);
    free(moved);
    free(place);
    free(beside);
    free(again);
    free(at);
}

/* Each byte of a file changed: it is refused, or says the same. */
static void edits_are_noticed(void **state)
{
    (void)state;
    char *view = make("edited", "--first", "3");
    size_t len;
    uint8_t *bytes = support_read(view, &len);
    mr_view_file *v = NULL;
    uint8_t digest[32];
    mr_error err;
    assert_int_equal(mr_view_parse(bytes, len, "view", &v, &err), MR_OK);
    memcpy(digest, v->digest, sizeof digest);
    mr_view_file_free(v);
    for (size_t i = 0; i < len; i++) {
        bytes[i] ^= 1;
        v = NULL;
        if (mr_view_parse(bytes, len, "view", &v, &err) == MR_OK)
            assert_memory_equal(v->digest, digest, sizeof digest);
        mr_view_file_free(v);
        bytes[i] ^= 1;
    }
    for (size_t i = 0; i + 2 < len; i++)
        assert_int_not_equal(mr_view_parse(bytes, i, "view", &v, &err), MR_OK);
    free(bytes);
    free(view);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_those_of_the_dataset), cmocka_unit_test(a_loader_sees_each_sample_once),
        cmocka_unit_test(conditions_divide_a_split),        cmocka_unit_test(what_is_there_stays),
        cmocka_unit_test(what_is_not_so_is_refused),        cmocka_unit_test(edits_are_noticed),
        cmocka_unit_test(sources_and_columns_are_asked),    cmocka_unit_test(splits_and_places_have_other_names),
        cmocka_unit_test(what_is_listed_is_dropped),        cmocka_unit_test(a_view_differs_by_what_it_leaves_out),
    };
    return cmocka_run_group_tests_name("view", tests, set_up, tear_down);
}
