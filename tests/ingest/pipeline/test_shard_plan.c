/* test_shard_plan.c - which samples go into which shard, in which order.
 * Invariant tested: every accepted sample is in exactly one shard of its split, shards keep to their size, and the
 * order depends on the seed alone; more shards than readers accept are rejected before anything is written. */
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/scope.h"
#include "ingest/pipeline/ingest_state.h"
#include "ingest/source/list.h"
#include "tests/support/images/image.h"

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

/* ---- plans of random samples ------------------------------------------------------------------------------------- */

enum { FILES = 300, SAMPLES = 900, SPLITS = 3 };

typedef struct random_plan {
    mr_entry entries[FILES];
    mr_source source;
    mr_sample samples[SAMPLES];
    mr_plan_split splits[SPLITS];
    mr_examined examined[FILES];
    uint32_t file_of[FILES];
    mr_ingest_options options;
    mr_ingest in;
} random_plan;

static void draw_plan(random_plan *p, mr_random *random, mr_ranks *ranks)
{
    static char rejected[] = "rejected";
    *p = (random_plan){.options = {.shard_size = 4096 + mr_random_below(random, 20000), .shuffle = true, .seed = 5}};
    for (uint32_t i = 0; i < FILES; i++) {
        p->file_of[i] = i;
        p->examined[i].content = (uint32_t)mr_random_below(random, FILES); /* some files have equal bytes */
        p->examined[i].why = mr_random_below(random, 8) ? NULL : rejected;
    }
    for (uint32_t i = 0; i < FILES; i++)
        p->entries[i].size = 1 + 37 * p->examined[i].content;
    for (uint32_t i = 0; i < SAMPLES; i++)
        p->samples[i] = (mr_sample){.entry = (uint32_t)mr_random_below(random, FILES),
                                    .split = (uint32_t)mr_random_below(random, SPLITS),
                                    .label = -1,
                                    .meta_bytes = (uint32_t)mr_random_below(random, 300)};
    for (unsigned i = 0; i < SPLITS; i++)
        snprintf(p->splits[i].name, sizeof p->splits[i].name, "split%u", i);
    p->source = (mr_source){.entries = p->entries, .count = FILES};
    p->in = (mr_ingest){.options = &p->options,
                        .ranks = ranks,
                        .source = &p->source,
                        .choice.layout = &mr_layout_imagenette,
                        .examined = p->examined,
                        .file_of = p->file_of,
                        .file_count = FILES,
                        .content_count = FILES};
    p->in.plan.samples = p->samples;
    p->in.plan.sample_count = SAMPLES;
    p->in.plan.splits = p->splits;
    p->in.plan.split_count = SPLITS;
}

static void plan_shards(random_plan *p)
{
    mr_error err;
    if (mr_plan_shards(&p->in, &err) != MR_OK)
        fail_msg("%s", err.text);
}

static void release(random_plan *p)
{
    free(p->in.order);
    free(p->in.cuts);
    free(p->in.shards);
    free(p->in.tallies);
    p->in.order = NULL;
    p->in.cuts = NULL;
    p->in.shards = NULL;
    p->in.order_count = p->in.cut_count = p->in.cut_capacity = 0;
}

/* The bytes of a shard: metas, and each content once. */
static uint64_t shard_bytes(const random_plan *p, const mr_shard_plan *cut, uint64_t *images)
{
    uint64_t bytes = 0;
    uint8_t seen[FILES] = {0};
    *images = 0;
    for (size_t i = cut->begin; i < cut->begin + cut->count; i++) {
        const mr_sample *s = &p->samples[p->in.order[i]];
        uint32_t content = p->examined[s->entry].content;
        bytes += s->meta_bytes + (seen[content] ? 0 : p->entries[s->entry].size);
        *images += !seen[content];
        seen[content] = 1;
    }
    return bytes;
}

static void check_samples(const random_plan *p)
{
    uint8_t planned[SAMPLES] = {0};
    for (size_t i = 0; i < p->in.order_count; i++)
        planned[p->in.order[i]]++;
    for (size_t i = 0; i < SAMPLES; i++)
        assert_int_equal(planned[i], !p->examined[p->samples[i].entry].why);
}

static void check_shards(const random_plan *p)
{
    size_t at = 0, number = 0;
    uint64_t first = 0, images;
    for (size_t i = 0; i < p->in.cut_count; i++) {
        const mr_shard_plan *cut = &p->in.cuts[i];
        bool new_split = i == 0 || cut->split != p->in.cuts[i - 1].split;
        char name[80];
        number = new_split ? 0 : number + 1;
        first = new_split ? 0 : first + p->in.cuts[i - 1].count;
        snprintf(name, sizeof name, "split%u-%05zu", cut->split, number);
        assert_string_equal(cut->name, name);
        assert_int_equal(cut->begin, at);
        assert_int_equal(cut->first, first);
        assert_true(cut->count > 0);
        for (size_t k = cut->begin; k < cut->begin + cut->count; k++)
            assert_int_equal(p->samples[p->in.order[k]].split, cut->split);
        uint64_t bytes = shard_bytes(p, cut, &images);
        assert_true(bytes <= p->options.shard_size || cut->count == 1);
        assert_int_equal(cut->images, images);
        at += cut->count;
    }
    assert_int_equal(at, p->in.order_count);
}

/* Equal seeds give equal orders, whatever the size of the shards; other seeds give others. */
static void check_order(random_plan *p)
{
    uint32_t order[SAMPLES];
    size_t count = p->in.order_count;
    memcpy(order, p->in.order, count * sizeof *order);
    for (uint64_t seed = p->options.seed; seed <= p->options.seed + 1; seed++) {
        mr_ingest_options options = p->options;
        options.shard_size *= 3;
        options.seed = seed;
        release(p);
        p->in.options = &options;
        plan_shards(p);
        p->in.options = &p->options;
        assert_int_equal(p->in.order_count, count);
        assert_int_equal(memcmp(order, p->in.order, count * sizeof *order) == 0, seed == p->options.seed);
    }
}

static void test_plans_of_random_samples(void **state)
{
    (void)state;
    mr_random random = support_random();
    mr_error err;
    mr_ranks *ranks = NULL;
    random_plan *p = malloc(sizeof *p);
    assert_non_null(p);
    assert_int_equal(mr_ranks_begin(&ranks, &err), MR_OK);
    for (int round = 0; round < 20; round++) {
        draw_plan(p, &random, ranks);
        plan_shards(p);
        check_samples(p);
        check_shards(p);
        check_order(p);
        release(p);
    }
    mr_ranks_end(ranks);
    free(p);
}

/* For 240 TB, the default becomes a size with which the manifest stays short; a size that is given stays. */
static void test_shards_grow_with_the_source(void **state)
{
    (void)state;
    mr_random random = support_random();
    mr_error err;
    mr_ranks *ranks = NULL;
    random_plan *p = malloc(sizeof *p);
    assert_non_null(p);
    assert_int_equal(mr_ranks_begin(&ranks, &err), MR_OK);
    draw_plan(p, &random, ranks);
    for (uint32_t i = 0; i < FILES; i++)
        p->entries[i].size = (uint64_t)240000000000000 / SAMPLES;
    const uint64_t sizes[] = {256 << 20, (uint64_t)4 << 30, (uint64_t)8 << 30};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        p->options.shard_size = sizes[i];
        plan_shards(p);
        assert_int_equal(p->in.shard_size, sizes[i] > (uint64_t)4 << 30 ? sizes[i] : (uint64_t)8 << 30);
        release(p);
    }
    p->options.shard_size_given = true;
    plan_shards(p);
    assert_int_equal(p->in.shard_size, p->options.shard_size);
    release(p);
    p->options.shard_size = 4096;
    plan_shards(p); /* each sample is larger than a shard, so that there are few */
    assert_int_equal(p->in.shard_size, 4096);
    release(p);
    mr_ranks_end(ranks);
    free(p);
}

/* ---- through the program ----------------------------------------------------------------------------------------- */

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
    support_result r = ingest(tree, target, "--shard-size=4KiB", "--quiet");
    support_assert_status(&r, 2);
    if (!strstr(r.err,
                "--shard-size 4096: makes more than 100000 shards, the limit for split 'train'; use 1MiB or more"))
        fail_msg("%s", r.err);
    support_result_free(&r);
    assert_false(support_exists(parent));
    r = ingest(tree, target, "--shard-size=1MiB", "--dry-run");
    support_assert_status(&r, 0);
    support_result_free(&r);
    draw_rows(tree, ROWS_AT_THE_LIMIT);
    support_expect(0, "ingest", tree, target, "--shard-size=4KiB", "--quiet", "--dry-run", (char *)NULL);
}

static void test_shuffle_is_the_seeds_alone(void **state)
{
    IN(source, "source");
    support_expect(0, "sample", source, "--layout", "imagenette", "--images", "40", "--seed", "7", "--quiet",
                   (char *)NULL);
    uint64_t hashes[3];
    static const char *const seeds[] = {"1", "1", "2"};
    for (size_t i = 0; i < 3; i++) {
        char *target = support_path("%s/shuffled-%zu", (char *)*state, i);
        support_expect(0, "ingest", source, target, "--shuffle", seeds[i], "--quiet", (char *)NULL);
        hashes[i] = support_dataset_hash(target);
        free(target);
    }
    assert_true(hashes[0] == hashes[1]);
    assert_true(hashes[0] != hashes[2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans_of_random_samples),
        cmocka_unit_test(test_shards_grow_with_the_source),
        IN_TMPDIR(test_more_shards_than_readers_take),
        IN_TMPDIR(test_shuffle_is_the_seeds_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
