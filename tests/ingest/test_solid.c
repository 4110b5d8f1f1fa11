/* test_solid.c - `ingest VIEW DATASET`: what is seen becomes a dataset of its own.
 * Invariant tested: a view of everything gives the very dataset again; what a view drops is in no file; nothing is
 * published of a damaged source.
 * Covers ingest/solid.c, shards/format/seal_shard.c. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "millrace.h"
#include "base/hash.h"
#include "tests/support/support.h"

#define SHARD "30KiB"

static char *dir, *source, *dataset, *view, *solid;

/* Two images have a copy in their class. */
static int set_up(void **state)
{
    (void)state;
    dir = support_tmpdir();
    source = support_path("%s/source", dir);
    dataset = support_path("%s/ds", dir);
    view = support_path("%s/some.view", dir);
    solid = support_path("%s/solid", dir);
    support_expect(0, "sample", source, "--layout", "imagenette", "--images", "60", "--quiet", (char *)NULL);
    char *copies = support_path("cd '%s'/*/train && set -- n01440764/* && cp \"$1\" n01440764/n01440764_z.JPEG && "
                                "cp \"$2\" n02102040/n02102040_z.JPEG",
                                source);
    assert_int_equal(system(copies), 0);
    support_expect(0, "ingest", source, dataset, "--quiet", "--shard-size", SHARD, (char *)NULL);
    free(copies);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    support_tmpdir_remove(dir);
    free(source);
    free(dataset);
    free(view);
    free(solid);
    return 0;
}

static char *shell(const char *command)
{
    char *line = support_path("cd '%s' && %s", dir, command);
    support_result r = support_run((const char *const[]){"/bin/sh", "-c", line, NULL}, NULL);
    support_assert_status(&r, 0);
    char *out = strdup(r.out);
    support_result_free(&r);
    free(line);
    return out;
}

static void write_solid(const char *jobs, const char *size)
{
    support_expect(0, "ingest", view, solid, "--quiet", "--force", "--shard-size", size, "--jobs", jobs, (char *)NULL);
    support_expect(0, "verify", solid, "--quiet", "--deep", (char *)NULL);
    support_expect(0, "diff", view, solid, (char *)NULL);
}

static void all_of_it_is_the_same_dataset(void **state)
{
    (void)state;
    support_expect(0, "view", view, dataset, "--force", (char *)NULL);
    for (int jobs = 1; jobs <= 4; jobs += 3) {
        char *text = support_path("%d", jobs);
        write_solid(text, SHARD);
        free(shell("diff -r -x report.json ds solid"));
        free(text);
    }
    write_solid("2", "1MiB"); /* other shards, where equal images meet */
}

/* The bytes of an image, and of the source's name, in any file of the dataset. */
static bool is_there(const void *bytes, size_t len)
{
    bool found = false;
    DIR *d = opendir(solid);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        char *path = support_path("%s/%s", solid, e->d_name);
        size_t size;
        uint8_t *file = support_read(path, &size);
        found = found || memmem(file, size, bytes, len);
        free(file);
        free(path);
    }
    closedir(d);
    return found;
}

static void what_is_dropped_is_in_no_file(void **state)
{
    (void)state;
    char *list = support_path("%s/list.tsv", dir), *text;
    mr_dataset *ds = NULL;
    mr_sample_view v = {0}, kept = {0};
    mr_error err;
    assert_int_equal(mr_dataset_open(dataset, &ds, &err), MR_OK);
    assert_int_equal(mr_dataset_read(ds, "train", 7, &v, &err), MR_OK);
    assert_int_equal(mr_dataset_read(ds, "train", 8, &kept, &err), MR_OK);
    text = support_path("%016llx\tasked to\t2026-01-31\n", (unsigned long long)mr_hash64(v.image, v.image_len));
    support_write_text(list, text);
    support_expect(0, "view", view, dataset, "--force", "--drop", list, (char *)NULL);
    write_solid("2", SHARD);
    const char *name = v.meta + strlen("{\"source\":\""), *end = strchr(name, '"');
    assert_false(is_there(v.image, v.image_len));
    assert_false(is_there(v.image + v.image_len / 2, 64));
    assert_false(is_there(name, (size_t)(end - name)));
    assert_true(is_there(kept.image, 64));
    mr_sample_view_free(&v);
    mr_sample_view_free(&kept);
    mr_dataset_free(ds);
    free(list);
    free(text);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    support_expect(0, "view", view, dataset, "--force", "--first", "9", (char *)NULL);
    support_expect(2, "ingest", view, dataset, "--quiet", (char *)NULL);
    support_expect(2, "ingest", view, solid, "--quiet", "--force", "--shuffle", "1", (char *)NULL);
    support_expect(2, "ingest", view, solid, "--quiet", "--force", "--layout", "coco", (char *)NULL);
    free(shell("rm -rf solid && cp -r ds hurt && mkdir moved && mv ds moved && mv hurt ds"));
    free(shell("cd ds && printf x | dd of=train-00000.mdb bs=1 seek=$(($(stat -c %s train-00000.mdb) - 5000)) "
               "conv=notrunc 2>&1"));
    support_result r = support_millrace("ingest", view, solid, "--quiet", (char *)NULL);
    assert_in_range(r.status, 0, 1);
    assert_int_equal(support_exists(solid), r.status == 0); /* the byte may be of no sample that is seen */
    support_result_free(&r);
    free(shell(
        "cd ds && for f in train-*.mdb; do dd if=/dev/zero of=$f bs=4096 seek=2 count=3 conv=notrunc 2>&1; done"));
    support_expect(1, "ingest", view, solid, "--quiet", "--force", (char *)NULL);
    free(shell("rm -rf ds solid.partial && mv moved/ds . && rmdir moved"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_it_is_the_same_dataset),
        cmocka_unit_test(what_is_dropped_is_in_no_file),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests_name("solid", tests, set_up, tear_down);
}
