/* test_ingest_limits.c - what no reader takes is refused before anything is written; a --split-map of too much.
 * Invariant tested: what ingest plans can be opened, or it ends with what to do instead and DST is not there. */
#include <stdlib.h>
#include <string.h>

#include "pipeline/ingest.h"
#include "support/image.h"

enum { ROWS_AT_THE_LIMIT = MR_SHARDS_MAX };

#define IN(name, file) char *name __attribute__((cleanup(free_text))) = support_path("%s/%s", (char *)*state, file)

static void free_text(char **text)
{
    free(*text);
}

static support_result ingest(const char *source, const char *target, const char *option, const char *dry)
{
    return support_millrace("ingest", source, target, option, "--quiet", dry, (char *)NULL);
}

static void refused(const char *source, const char *option, int status, const char *words)
{
    support_result r = ingest(source, "nowhere/never", option, "--dry-run");
    support_assert_status(&r, status);
    if (!strstr(r.err, words))
        fail_msg("%s: '%s' is not in: %s", option, words, r.err);
    support_result_free(&r);
}

/* ---- shards ------------------------------------------------------------------------------------------------------ */

/* Rows of one picture, which is larger than the smallest shard. */
static void draw_rows(const char *tree, unsigned rows)
{
    char *image = support_path("%s/all_contest_images/1.jpeg", tree);
    char *lines = support_path("%s/matching/train.jsonl", tree);
    picture p = make_jpeg((jpeg_kind){.width = 200, .height = 200, .components = 3});
    mr_buf text = {0};
    assert_true(p.len > 4096);
    for (unsigned i = 0; i < rows; i++)
        mr_buf_printf(&text, "{\"contest_number\":1,\"label\":\"A\",\"n\":%u}\n", i);
    assert_false(text.failed);
    support_write(image, p.bytes, p.len);
    support_write(lines, text.data, text.len);
    mr_buf_free(&text);
    picture_free(&p);
    free(image);
    free(lines);
}

static void test_more_shards_than_readers_take(void **state)
{
    if (support_sanitized()) {
        print_message("100,000 shards: not under a sanitizer\n");
        skip();
    }
    IN(tree, "lines");
    IN(target, "made/ds");
    IN(parent, "made");
    draw_rows(tree, ROWS_AT_THE_LIMIT + 1);
    refused(tree, "--shard-size=4KiB", 2,
            "--shard-size 4096: makes more than the 100000 shards that split 'train' may have; use 1MiB or more");
    support_result r = ingest(tree, target, "--shard-size=4KiB", NULL);
    support_assert_status(&r, 2);
    support_result_free(&r);
    assert_false(support_exists(parent));
    r = ingest(tree, target, "--shard-size=1MiB", "--dry-run");
    support_assert_status(&r, 0);
    support_result_free(&r);
    draw_rows(tree, ROWS_AT_THE_LIMIT);
    r = ingest(tree, target, "--shard-size=4KiB", "--dry-run");
    support_assert_status(&r, 0);
    support_result_free(&r);
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

static void test_a_manifest_that_nobody_could_read(void **state)
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

/* ---- --split-map ------------------------------------------------------------------------------------------------- */

static void test_split_maps(void **state)
{
    IN(source, "source");
    support_expect(0, "sample", source, "--layout", "imagenette", "--images", "20", "-q", (char *)NULL);
    refused(source, "--split-map=train=,val=", 1,
            "holds no image for layout imagenette but in splits that --split-map leaves out");
    refused(source, "--split-map=train=val,train=test", 2,
            "--split-map: 'train' is given twice, to become 'val' and 'test'");
    mr_buf many = {0};
    mr_buf_add_text(&many, "--split-map=");
    for (int i = 0; i < 33; i++)
        mr_buf_printf(&many, "%ss%d=val", i ? "," : "", i);
    refused(source, mr_buf_text(&many), 2, "--split-map s32=val: more than 32 splits to map");
    mr_buf_free(&many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(test_more_shards_than_readers_take),
        IN_TMPDIR(test_a_manifest_that_nobody_could_read),
        IN_TMPDIR(test_what_is_written_can_be_read),
        IN_TMPDIR(test_split_maps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
