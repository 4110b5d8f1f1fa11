/* test_report.c - report.json and the manifest.
 * Invariant tested: paths in the report start at the layout's root; a manifest that no reader would accept is rejected
 * before anything is written. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "ingest/pipeline/ingest_state.h"
#include "tests/support/sources/archive.h"
#include "tests/support/support.h"

static char *dir, *source;

static int set_up(void **state)
{
    (void)state;
    dir = support_tmpdir();
    source = support_path("%s/source", dir);
    support_expect(0, "sample", source, "--layout", "imagenette", "--images", "120", "--seed", "3", "--quiet",
                   (char *)NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(source);
    support_tmpdir_remove(dir);
    return 0;
}

static json_t *load(const char *path)
{
    json_t *doc = json_load_file(path, 0, NULL);
    assert_non_null(doc);
    return doc;
}

static bool listed(const json_t *doc, const char *kind, const char *file)
{
    size_t i;
    json_t *note;
    json_array_foreach(json_object_get(doc, kind), i,
                       note) if (strcmp(json_string_value(json_object_get(note, "file")), file) == 0) return true;
    return false;
}

static void test_the_report_names_paths_of_the_layout(void **state)
{
    (void)state;
    char *archive = support_path("%s/a.zip", dir), *target = support_path("%s/out", dir);
    char *report = support_path("%s/r.json", dir);
    support_put(dir, "source/imagenette2-160/train/n01440764/bad.JPEG", "no image");
    support_put(dir, "source/imagenette2-160/notes.md", "junk");
    support_put(dir, "source/outside.md", "junk");
    support_archive_tree(archive, "zip", source, false);
    support_result r =
        support_millrace("ingest", archive, target, "--max-rejects", "0", "--report", report, (char *)NULL);
    support_assert_status(&r, 1);
    assert_non_null(strstr(r.err, "train/n01440764/bad.JPEG"));
    support_result_free(&r);
    assert_false(support_exists(target));
    json_t *doc = load(report);
    assert_true(listed(doc, "rejects", "train/n01440764/bad.JPEG"));
    assert_true(listed(doc, "companions", "notes.md"));
    assert_true(listed(doc, "companions", "outside.md"));
    json_decref(doc);
    free(archive);
    free(target);
    free(report);
}

/* ---- the manifest ------------------------------------------------------------------------------------------------ */

static mr_status check(size_t shards, size_t classes, const char *class, mr_error *err)
{
    mr_ingest_options options = {.shard_size = 4096};
    mr_ingest in = {.options = &options, .choice.layout = &mr_layout_coco, .cut_count = shards};
    in.plan.split_count = 4;
    in.plan.class_count = classes;
    in.plan.splits = calloc(in.plan.split_count, sizeof *in.plan.splits);
    in.plan.classes = calloc(classes, sizeof *in.plan.classes);
    in.cuts = calloc(shards, sizeof *in.cuts);
    for (size_t i = 0; i < in.plan.split_count; i++)
        snprintf(in.plan.splits[i].name, sizeof in.plan.splits[i].name, "s%zu", i);
    for (size_t i = 0; i < classes; i++)
        in.plan.classes[i] = (mr_class){.name = (char *)(uintptr_t) class, .has_id = true, .id = (int64_t)i};
    for (size_t i = 0; i < shards; i++) {
        in.cuts[i] = (mr_shard_plan){.split = (uint32_t)(i % 4), .count = 1, .images = 1, .image_bytes = 1};
        snprintf(in.cuts[i].name, sizeof in.cuts[i].name, "s%zu-%05zu", i % 4, i / 4);
    }
    mr_status status = mr_ingest_check_manifest(&in, err);
    assert_null(in.manifest);
    free(in.plan.splits);
    free(in.plan.classes);
    free(in.cuts);
    return status;
}

static void test_manifest_too_large_to_read(void **state)
{
    (void)state;
    mr_error err;
    assert_int_equal(check(40, 3, "", &err), MR_OK);
    if (support_sanitized()) {
        print_message("manifests of 256 MiB: not under a sanitizer\n");
        skip();
    }
    assert_int_equal(check(4, 1400000, "", &err), MR_BAD_DATA);
    assert_non_null(strstr(err.text, "of memory, the limit is 512; there are 1400000 classes and 4 shards"));
    char *name = calloc(1, (32 << 20) + 1);
    memset(name, 'n', 32 << 20);
    assert_int_equal(check(4, 8, name, &err), MR_BAD_DATA);
    assert_non_null(strstr(err.text, "bytes are more than the limit of 256 MiB; there are 8 classes and 4 shards"));
    free(name);
}

static void test_what_is_written_can_be_read(void **state)
{
    (void)state;
    enum { SHARDS = MR_SHARDS_MAX + 1, SPLITS = MR_SPLITS_MAX + 1 };
    mr_buf out = {0};
    mr_error err;
    mr_split *splits = calloc(SPLITS, sizeof *splits);
    for (unsigned i = 0; i < SPLITS; i++)
        snprintf(splits[i].name, sizeof splits[i].name, "s%u", i);
    mr_manifest m = {.splits = splits, .split_count = SPLITS}, *back = NULL;
    assert_int_equal(mr_manifest_write(&m, &out, &err), MR_BAD_DATA);
    assert_non_null(strstr(err.text, "1001 splits are more than 1000"));
    m.split_count--;
    assert_int_equal(mr_manifest_write(&m, &out, &err), MR_OK);
    assert_int_equal(mr_manifest_parse(out.data, out.len, "m", &back, &err), MR_OK);
    mr_manifest_free(back);
    splits[0].shard_count = SHARDS;
    splits[0].shards = calloc(SHARDS, sizeof *splits[0].shards);
    assert_int_equal(mr_manifest_write(&m, &out, &err), MR_BAD_DATA);
    assert_non_null(strstr(err.text, "s0: 100001 shards are more than 100000"));
    free(splits[0].shards);
    free(splits);
    mr_buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_report_names_paths_of_the_layout, set_up, tear_down),
        cmocka_unit_test(test_manifest_too_large_to_read),
        cmocka_unit_test(test_what_is_written_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
