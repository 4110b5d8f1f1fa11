/* test_divide.c - ingest --split: shares of each class, groups that stay together, and what is refused.
 * Invariant: images of a single tone, each of another, are files of their own; they look like no other image. */
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "shards/dataset/dataset.h"
#include "tests/support/sources/leak.h"

enum { SPLITS_MAX = 4 };

/* Files of one tone each: FOLDER/0.png ... */
static void put_tones(const char *folder, unsigned begin, unsigned end, unsigned tint)
{
    for (unsigned i = begin; i < end; i++) {
        char name[64];
        mr_picture tone = alike_tone((uint8_t)(i % 250), (uint8_t)(i / 250), (uint8_t)tint);
        snprintf(name, sizeof name, "%s/%u.png", folder, i);
        leak_put_bytes(name, alike_file(&tone, ALIKE_PNG));
        mr_picture_free(&tone);
    }
}

static char *ingest(const char *name, const char *split, const char *option, const char *value)
{
    char *target = support_path("%s/%s", leak_dir, name);
    support_expect(0, "ingest", leak_source, target, "--quiet", "--no-seek-index", "--split", split, option, value,
                   (char *)NULL);
    return target;
}

/* The split of a file of the dataset; NULL: none has it. */
static const char *split_of(mr_dataset *ds, const char *const *splits, const char *file)
{
    mr_sample_view v = {0};
    mr_error err;
    const char *found = NULL;
    char *wanted = support_path("\"%s\"", file);
    for (size_t s = 0; splits[s]; s++)
        for (uint64_t i = 0; i < mr_dataset_samples(ds, splits[s]); i++) {
            assert_int_equal(mr_dataset_read_meta(ds, splits[s], i, &v, &err), MR_OK);
            if (!memmem(v.meta, v.meta_len, wanted, strlen(wanted)))
                continue;
            assert_null(found); /* in one split only */
            found = splits[s];
        }
    free(wanted);
    mr_sample_view_free(&v);
    return found;
}

static mr_dataset *open_at(const char *path)
{
    mr_dataset *ds;
    mr_error err;
    assert_int_equal(mr_dataset_open(path, &ds, &err), MR_OK);
    return ds;
}

/* ---- shares ------------------------------------------------------------------------------------------------------ */

static void each_class_has_its_shares(void **state)
{
    static const char *const names[SPLITS_MAX + 1] = {"train", "val", "test", "held", NULL};
    mr_random rnd = support_random();
    unsigned sizes[4], parts[SPLITS_MAX], all = 0, count = 2 + (unsigned)mr_random_below(&rnd, SPLITS_MAX - 1);
    mr_buf option = {0};
    (void)state;
    for (unsigned c = 0; c < 4; c++) {
        char folder[8];
        snprintf(folder, sizeof folder, "c%u", c);
        sizes[c] = 8 + (unsigned)mr_random_below(&rnd, 30);
        put_tones(folder, 0, sizes[c], c * 60);
    }
    for (unsigned s = 0; s < count; s++)
        all += parts[s] = 2 + (unsigned)mr_random_below(&rnd, 8);
    for (unsigned s = 0; s < count; s++)
        mr_buf_printf(&option, "%s%s=%.9f", s ? "," : "", names[s], (double)parts[s] / all);
    char *one = ingest("one", mr_buf_text(&option), "--jobs", "1"),
         *four = ingest("four", mr_buf_text(&option), "--jobs", "4");
    mr_dataset *ds = open_at(one), *again = open_at(four);
    assert_memory_equal(mr_dataset_digest(ds), mr_dataset_digest(again), 32);
    for (unsigned c = 0; c < 4; c++) {
        double got[SPLITS_MAX] = {0};
        for (unsigned i = 0; i < sizes[c]; i++) {
            char file[32];
            snprintf(file, sizeof file, "c%u/%u.png", c, i);
            const char *split = split_of(ds, names, file);
            assert_non_null(split);
            for (unsigned s = 0; s < count; s++)
                got[s] += strcmp(split, names[s]) == 0;
        }
        for (unsigned s = 0; s < count; s++) {
            double due = (double)sizes[c] * parts[s] / all;
            if (got[s] < due - 1 - 1e-6 || got[s] > due + 1 + 1e-6)
                fail_msg("c%u of %u: %s has %g, due %g", c, sizes[c], names[s], got[s], due);
        }
    }
    mr_dataset_free(ds);
    mr_dataset_free(again);
    mr_buf_free(&option);
    free(one);
    free(four);
}

/* A renamed file keeps its split, and of those that were there few change it when others come. */
static void files_that_come_move_few(void **state)
{
    static const char *const names[] = {"train", "val", NULL};
    enum { OLD = 200, ALL = 220 };
    (void)state;
    put_tones("cat", 0, OLD, 7);
    put_tones("dog", 0, 10, 8);
    char *before = ingest("before", "train=0.8,val=0.2", "--jobs", "2");
    put_tones("cat", OLD, ALL, 7);
    char *from = support_path("%s/cat/0.png", leak_source), *to = support_path("%s/cat/zero.png", leak_source);
    assert_int_equal(rename(from, to), 0);
    char *after = ingest("after", "train=0.8,val=0.2", "--jobs", "2");
    mr_dataset *a = open_at(before), *b = open_at(after);
    unsigned moved = 0;
    for (unsigned i = 0; i < OLD; i++) {
        char old[32], new[32];
        snprintf(old, sizeof old, "cat/%u.png", i);
        snprintf(new, sizeof new, i ? "cat/%u.png" : "cat/zero.png", i);
        moved += strcmp(split_of(a, names, old), split_of(b, names, new)) != 0;
    }
    assert_in_range(moved, 0, OLD / 20);
    mr_dataset_free(a);
    mr_dataset_free(b);
    free(from);
    free(to);
    free(before);
    free(after);
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static void groups_stay_together(void **state)
{
    static const char *const names[] = {"a", "b", "c", NULL};
    static const char *const together[][4] = {
        {"x/one.jpg", "x/mirrored.jpg", "x/darker.jpg", "y/equal.jpg"}, /* looks, and bytes under another class */
        {"x/name.rf.1.png", "x/name.rf.2.png"},
        {"y/p7_front.png", "x/p7_back.png"}, /* by the pattern */
    };
    (void)state;
    leak_put("x/one.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    leak_put("y/equal.jpg", 1, (alike_edit){0}, ALIKE_JPEG);
    leak_put("x/mirrored.jpg", 1, (alike_edit){.mirror = true}, ALIKE_JPEG);
    leak_put("x/darker.jpg", 1, (alike_edit){.gain = 0.8}, ALIKE_ROUGH_JPEG);
    for (size_t g = 1; g < MR_COUNT(together); g++)
        for (size_t i = 0; i < 2; i++) {
            mr_picture tone = alike_tone((uint8_t)(100 * g), (uint8_t)(100 * i), 200);
            leak_put_bytes(together[g][i], alike_file(&tone, ALIKE_PNG));
            mr_picture_free(&tone);
        }
    for (unsigned round = 0; round < 4; round++) { /* others, which move the groups in their classes */
        char name[16];
        put_tones("x", 20 * round, 20 * round + 20, 1);
        put_tones("y", 20 * round, 20 * round + 20, 2);
        snprintf(name, sizeof name, "ds%u", round);
        char *target = ingest(name, "a=0.4,b=0.35,c=0.25", "--group-pattern", "/(p[0-9]+)_");
        mr_dataset *ds = open_at(target);
        for (size_t g = 0; g < MR_COUNT(together); g++)
            for (size_t i = 1; i < 4 && together[g][i]; i++)
                assert_string_equal(split_of(ds, names, together[g][i]), split_of(ds, names, together[g][0]));
        mr_dataset_free(ds);
        support_expect(0, "ingest", leak_source, "--dry-run", "--quiet", "--split", "a=0.4,b=0.35,c=0.25",
                       "--fail-on-leak=alike", (char *)NULL);
        free(target);
    }
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

static void refuse(int code, const char *split, const char *pattern, const char *words)
{
    char *target = support_path("%s/refused", leak_dir);
    support_result r = support_millrace("ingest", leak_source, target, "--split", split,
                                        pattern ? "--group-pattern" : NULL, pattern, (char *)NULL);
    support_assert_status(&r, code);
    if (!strstr(r.err, words))
        fail_msg("\"%s\" is not in: %s", words, r.err);
    assert_false(support_exists(target));
    support_result_free(&r);
    free(target);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    put_tones("cat", 0, 3, 1);
    put_tones("dog", 0, 3, 4);
    refuse(2, "train=0.8,val=0.1", NULL, "--split train=0.8,val=0.1: the shares add up to 0.9, not to 1\n");
    refuse(2, "train", NULL, "--split train: use NAME=SHARE, for example --split train=0.8,val=0.1,test=0.1\n");
    refuse(2, "train=1.5", NULL, "--split train=1.5: use NAME=SHARE");
    refuse(2, "train=nan", NULL, "--split train=nan: use NAME=SHARE");
    refuse(2, "a/b=1", NULL, "--split: 'a/b' is not a valid split name; use letters, digits, - and _\n");
    refuse(2, "a=0.5,a=0.5", NULL, "--split: 'a' is given twice\n");
    refuse(2, "a=0.5,b=0.5", "(", "--group-pattern (: not a valid regular expression\n");
    refuse(2, "a=0.5,b=0.5", "bird", "--group-pattern bird: matches none of the images' paths\n");
    refuse(1, "a=0.5,b=0.4999,c=0.0001", NULL, "--split: c would get none of the 6 images, or groups of images");
    support_expect(2, "ingest", leak_source, "--dry-run", "--group-pattern", "cat", (char *)NULL);
    put_tones("train/cat", 0, 3, 2);
    put_tones("val/cat", 0, 3, 3);
    static const char *const folders[] = {"cat", "dog"};
    for (size_t i = 0; i < MR_COUNT(folders); i++) {
        char *from = support_path("%s/%s", leak_source, folders[i]), *to = support_path("%s/%s", leak_dir, folders[i]);
        assert_int_equal(rename(from, to), 0);
        free(from);
        free(to);
    }
    refuse(2, "a=0.5,b=0.5", NULL, "--split divides sources without splits, and this one has train and val;");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_class_has_its_shares, leak_set_up, leak_tear_down),
        cmocka_unit_test_setup_teardown(files_that_come_move_few, leak_set_up, leak_tear_down),
        cmocka_unit_test_setup_teardown(groups_stay_together, leak_set_up, leak_tear_down),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_refused, leak_set_up, leak_tear_down),
    };
    return cmocka_run_group_tests_name("divide", tests, NULL, NULL);
}
