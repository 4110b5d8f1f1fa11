/* test_foreign.c - archives and images of other projects: no signal, no excessive memory, no file outside DATASET, and
 * every rejected one is named. Uses the real collections; the hostile cases that the suite makes itself are in
 * test_hostile_source.c and test_image_hostile.c. */
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "ingest/source/names.h"
#include "ingest/source/source.h"
#include "tests/support/support.h"

static char *dir, *paths[4000];
static size_t path_count;

static int collect(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)at;
    if (type == FTW_F && path_count < sizeof paths / sizeof *paths)
        paths[path_count++] = strdup(path);
    return 0;
}

static bool find_samples(const char *sub)
{
    char *data = support_data(sub);
    path_count = 0;
    if (!data) {
        print_message("the samples '%s' are not here (MILLRACE_DATA)\n", sub);
        return false;
    }
    nftw(data, collect, 32, FTW_PHYS);
    free(data);
    return path_count > 0;
}

static void release_samples(void)
{
    for (size_t i = 0; i < path_count; i++)
        free(paths[i]);
}

/* One archive into a fresh folder: nothing may be there afterwards but the report, and the dataset if there is one. */
static void ingest_archive(const char *path)
{
    dir = support_tmpdir();
    char *target = support_path("%s/dataset", dir), *report = support_path("%s/report.json", dir);
    const char *argv[] = {
        support_millrace_path(), "ingest", path, target, "--layout", "imagenette", "--report", report, NULL};
    support_result r = support_run(argv, NULL);
    if (r.signal || r.timed_out || r.status > 1)
        fail_msg("%s: status %d, signal %d%s: %s", path, r.status, r.signal, r.timed_out ? ", hung" : "", r.err);
    assert_true(r.peak_memory < (uint64_t)1 << 30);
    assert_true(support_exists(report));
    if (r.status == 1)
        assert_non_null(strstr(r.err, "millrace: "));
    char *list = support_list(dir);
    for (char *name = strtok(list, "\n"); name; name = strtok(NULL, "\n"))
        if (strcmp(name, "report.json") != 0 && !(r.status == 0 && strncmp(name, "dataset/", 8) == 0))
            fail_msg("%s: left %s behind", path, name);
    free(list);
    support_result_free(&r);
    free(target);
    free(report);
    support_tmpdir_remove(dir);
}

/* A table that names the images would be labels that the layout does not read. */
static bool is_table(const char *path)
{
    return mr_name_ends(path, strlen(path), ".tsv") || mr_name_ends(path, strlen(path), ".csv");
}

static void test_every_archive(void **state)
{
    (void)state;
    if (!find_samples("archives"))
        skip();
    for (size_t i = 0; i < path_count; i++)
        if (!is_table(paths[i]) && !mr_name_ends(paths[i], strlen(paths[i]), ".txt")) /* beside the archives */
            ingest_archive(paths[i]);
    release_samples();
}

static bool names(const json_t *doc, const char *key, const char *base)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(doc, key), i, item)
    {
        const char *file = json_string_value(json_object_get(item, "file"));
        const char *slash = strrchr(file, '/');
        if (strcmp(slash ? slash + 1 : file, base) == 0)
            return true;
    }
    return false;
}

static void test_every_image(void **state)
{
    (void)state;
    if (!find_samples("images"))
        skip();
    dir = support_tmpdir();
    char *source = support_path("%s/source", dir), *target = support_path("%s/dataset", dir);
    char *back = support_path("%s/back", dir);
    for (size_t i = 0; i < path_count; i++) {
        size_t len;
        if (is_table(paths[i]))
            continue;
        uint8_t *bytes = support_read(paths[i], &len);
        support_writef(bytes, len, "%s/train/all/%zu-%s", source, i, strrchr(paths[i], '/') + 1);
        free(bytes);
    }
    const char *argv[] = {support_millrace_path(), "ingest", source,   target,   "--check", "decode",
                          "--max-rejects",         "100%",   "--json", "--jobs", "2",       NULL};
    support_result r = support_run(argv, NULL);
    support_assert_status(&r, 0);
    assert_true(r.peak_memory < (uint64_t)1 << 30);
    json_t *doc = json_loads(r.out, 0, NULL);
    assert_non_null(doc);
    support_result_free(&r);
    support_expect(0, "verify", target, "--decode", (char *)NULL);
    support_expect(0, "export", target, back, "--quiet", (char *)NULL);
    size_t taken = 0;
    for (size_t i = 0; i < path_count; i++) {
        if (is_table(paths[i]))
            continue;
        char *name = support_path("%zu-%s", i, strrchr(paths[i], '/') + 1);
        char *exported = support_path("%s/train/all/%s", back, name);
        if (support_exists(exported)) {
            support_assert_same_file(exported, paths[i]);
            taken++;
        } else if (!names(doc, "rejects", name) && !names(doc, "ignored", name) && !names(doc, "companions", name)) {
            fail_msg("%s is neither in the dataset nor in the report", name);
        }
        free(exported);
        free(name);
    }
    assert_true(taken > 100);
    json_decref(doc);
    free(source);
    free(target);
    free(back);
    support_tmpdir_remove(dir);
    release_samples();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_archive), cmocka_unit_test(test_every_image)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
