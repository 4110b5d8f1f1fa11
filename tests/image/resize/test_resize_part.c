/* test_resize_part.c - a resizer that is given no more of a picture than the kept part is made of.
 * Invariant tested: not a bit of any delivery depends on whether the rest of the picture was there, and hardly a pixel
 * more than is needed is asked for. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "tests/support/images/resize.h"

static const float mean[3] = {0.48145466f, 0.4578275f, 0.40821073f}, std[3] = {0.26862954f, 0.26130258f, 0.27577711f};

typedef enum way { U8, F32, BF16, F32_UNROUNDED, BF16_UNROUNDED, WAYS } way;

static const size_t value_bytes[WAYS] = {1, 4, 2, 4, 2};

static void *take(size_t n) /* no byte longer: a sanitizer sees reads after it */
{
    void *p = malloc(n);
    assert_non_null(p);
    return p;
}

static mr_status resize(mr_resizer *z, mr_resize_job j, way to, void *out, mr_error *err)
{
    j.unrounded = to == F32_UNROUNDED || to == BF16_UNROUNDED;
    if (to == U8)
        return mr_resize_u8(z, &j, out, err);
    return value_bytes[to] == 4 ? mr_resize_f32(z, &j, mean, std, out, err)
                                : mr_resize_bf16(z, &j, mean, std, out, err);
}

static size_t bytes_of(const mr_resize_job *j, way to)
{
    return (size_t)j->crop_width * j->crop_height * 3 * value_bytes[to];
}

/* Heap. */
static void *resized(mr_resizer *z, const mr_resize_job *j, way to)
{
    mr_error err;
    void *out = take(bytes_of(j, to));
    if (resize(z, *j, to, out, &err) != MR_OK)
        fail_msg("%s", err.text);
    return out;
}

/* 1 to `most`, and often very short. */
static uint32_t draw_side(mr_random *r, uint32_t most)
{
    return 1 + (uint32_t)mr_random_below(r, mr_random_below(r, 4) ? most : 3);
}

static mr_resize_job draw(mr_random *r, uint32_t most)
{
    mr_resize_job j = {.in_width = draw_side(r, most), .in_height = draw_side(r, most)};
    j.out_width = mr_random_below(r, 5) ? draw_side(r, 60) : j.in_width;
    j.out_height = mr_random_below(r, 5) ? draw_side(r, 60) : j.in_height;
    j.crop_width = 1 + (uint32_t)mr_random_below(r, j.out_width);
    j.crop_height = 1 + (uint32_t)mr_random_below(r, j.out_height);
    j.crop_left = (uint32_t)mr_random_below(r, j.out_width - j.crop_width + 1);
    j.crop_top = (uint32_t)mr_random_below(r, j.out_height - j.crop_height + 1);
    j.flip = mr_random_below(r, 2);
    j.bicubic = mr_random_below(r, 2);
    return j;
}

static void fail_job(const mr_resize_job *j, const char *format, ...)
{
    char why[200];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    fail_msg("%u x %u, of it %u x %u at %u, %u, to %u x %u, kept %u x %u at %u, %u, flip %d, bicubic %d: %s",
             j->in_width, j->in_height, j->columns.count, j->rows.count, j->columns.from, j->rows.from, j->out_width,
             j->out_height, j->crop_width, j->crop_height, j->crop_left, j->crop_top, j->flip, j->bicubic, why);
}

/* A few more at both ends, or not. */
static mr_resize_span widened(mr_random *r, mr_resize_span s, uint32_t in)
{
    uint32_t before = (uint32_t)mr_random_below(r, s.from + 1), behind = in - s.from - s.count;
    behind = (uint32_t)mr_random_below(r, behind + 1);
    return mr_random_below(r, 3) ? s : (mr_resize_span){s.from - before, before + s.count + behind};
}

static uint8_t *cut(const uint8_t *rgb, uint32_t width, mr_resize_span columns, mr_resize_span rows)
{
    size_t line = (size_t)columns.count * 3;
    uint8_t *out = take(line * rows.count);
    for (size_t y = 0; y < rows.count; y++)
        memcpy(out + line * y, rgb + ((size_t)width * (rows.from + y) + columns.from) * 3, line);
    return out;
}

static mr_resize_job part_of(mr_random *r, const mr_resize_job *all)
{
    mr_resize_job part = *all;
    mr_resize_needs(all, &part.columns, &part.rows);
    part.columns = widened(r, part.columns, all->in_width);
    part.rows = widened(r, part.rows, all->in_height);
    part.rgb = cut(all->rgb, all->in_width, part.columns, part.rows);
    return part;
}

/* To a long and narrow picture, of whose output the last pixels are kept: their windows are as large as can be, but cut
 * off by the picture's end. */
static void stretch(mr_random *r, mr_resize_job *j)
{
    j->in_width = 300 + (uint32_t)mr_random_below(r, 2000);
    j->in_height = j->out_height = 1 + (uint32_t)mr_random_below(r, 12);
    j->out_width = 3 + (uint32_t)mr_random_below(r, 30);
    j->crop_width = 1 + (uint32_t)mr_random_below(r, j->out_width);
    j->crop_left = j->out_width - j->crop_width;
    j->crop_height = j->out_height;
    j->crop_top = 0;
}

/* New ones have no room left from larger jobs: a sanitizer sees what reaches out of the next one's. */
static void renew(support_resizers *all)
{
    support_resizers_free(all);
    *all = support_resizers_new();
}

static void a_part_gives_what_the_whole_gives(void **state)
{
    mr_random r = support_random();
    support_resizers sets = {.count = 0};
    (void)state;
    for (int i = 0; i < 1200; i++) {
        mr_resize_job all = draw(&r, 90);
        if (i % 5 == 0) {
            stretch(&r, &all);
            renew(&sets);
        }
        size_t pixels = (size_t)all.in_width * all.in_height;
        uint8_t *rgb = take(pixels * 3);
        mr_random_bytes(&r, rgb, pixels * 3);
        all.rgb = rgb;
        mr_resize_job part = part_of(&r, &all);
        for (int k = 0; k < (int)sets.count * WAYS; k++) {
            way to = (way)(k % WAYS);
            mr_resizer *z = sets.of[k / WAYS];
            void *got = resized(z, &part, to), *want = resized(z, &all, to);
            if (memcmp(want, got, bytes_of(&all, to)) != 0)
                fail_job(&part, "way %d, %s: the part gives other pixels than the whole", (int)to,
                         sets.set[k / WAYS]->name);
            free(want);
            free(got);
        }
        free((uint8_t *)(uintptr_t)part.rgb);
        free(rgb);
    }
    support_resizers_free(&sets);
}

/* ---- no more than is needed -------------------------------------------------------------------------------------- */

static const float no_mean[3] = {0, 0, 0}, unit_std[3] = {1, 1, 1};

/* Whether pixel `at` of a line has a weight in any kept output: it alone is lit. */
static bool counts(mr_resizer *z, mr_resize_job j, uint32_t at, uint8_t *line, float *out)
{
    size_t values = (size_t)j.crop_width * j.crop_height * 3;
    mr_error err;
    bool lit = false;
    line[at * 3] = 255;
    j.rgb = line;
    j.unrounded = true;
    if (mr_resize_f32(z, &j, no_mean, unit_std, out, &err) != MR_OK)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < values; i++)
        lit |= out[i] != 0;
    line[at * 3] = 0;
    return lit;
}

/* The outermost pixels of a window may have a weight of exactly 0: where they stand 1 or 2 sizes of the kernel from the
 * centre. */
static void expect_tight(const mr_resize_job *j, mr_resize_span got, uint32_t first, uint32_t last)
{
    bool wider = j->bicubic && j->in_width <= j->out_width && j->in_height <= j->out_height;
    uint32_t slack = wider ? 2 : 1, end = got.from + got.count - 1;
    if (got.from > first || end < last || first - got.from > slack || end - last > slack)
        fail_job(j, "%u to %u is asked for, %u to %u counts", got.from, end, first, last);
}

static void no_more_is_asked_for_than_counts(void **state)
{
    mr_random r = support_random();
    mr_resizer *z = mr_resizer_new();
    (void)state;
    for (int i = 0; i < 400; i++) {
        mr_resize_job j = draw(&r, i % 40 ? 70 : 700);
        mr_resize_span columns, rows;
        if (i % 2) { /* a line across, or one down */
            j.in_height = j.out_height = j.crop_height = 1;
            j.crop_top = 0;
        } else {
            j.in_width = j.out_width = j.crop_width = 1;
            j.crop_left = 0;
        }
        uint32_t n = i % 2 ? j.in_width : j.in_height, first = n, last = 0;
        uint8_t *line = calloc(n, 3);
        float *out = take((size_t)j.crop_width * j.crop_height * 3 * sizeof *out);
        for (uint32_t at = 0; at < n; at++)
            if (counts(z, j, at, line, out)) {
                first = at < first ? at : first;
                last = at;
            }
        mr_resize_needs(&j, &columns, &rows);
        expect_tight(&j, i % 2 ? columns : rows, first, last);
        free(line);
        free(out);
    }
    mr_resizer_free(z);
}

enum { TIMES = 256, KEPT = 24, HELD = 40 };

/* The middle of a line of `side` pixels, enlarged so much that all of them would be millions; `held` are there. */
static mr_resize_job middle_of(const uint8_t *held, uint32_t side, bool column, bool bicubic)
{
    const mr_resize_span part = {(side - HELD) / 2, HELD}, one = {0, 1};
    uint32_t out = side * TIMES, from = (out - KEPT) / 2;
    return (mr_resize_job){.rgb = held,
                           .in_width = column ? 1 : side,
                           .in_height = column ? side : 1,
                           .columns = column ? one : part,
                           .rows = column ? part : one,
                           .out_width = column ? TIMES : out,
                           .out_height = column ? out : TIMES,
                           .crop_left = column ? 0 : from,
                           .crop_top = column ? from : 0,
                           .crop_width = KEPT,
                           .crop_height = KEPT,
                           .bicubic = bicubic};
}

/* However long a picture is, its middle is what it is without its ends. */
static void a_middle_knows_no_ends(void **state)
{
    static const uint32_t sides[] = {66000, 1000000, (1 << 24) - 2};
    mr_random r = support_random();
    support_resizers all = support_resizers_new();
    uint8_t *held = take(HELD * 3);
    (void)state;
    mr_random_bytes(&r, held, HELD * 3);
    for (size_t i = 0; i < 4 * MR_COUNT(sides); i++) {
        mr_resize_job j = middle_of(held, sides[i / 4], i & 1, i & 2), alone = middle_of(held, HELD, i & 1, i & 2);
        for (size_t k = 0; k < all.count * WAYS; k++) {
            void *got = resized(all.of[k / WAYS], &j, k % WAYS), *want = resized(all.of[k / WAYS], &alone, k % WAYS);
            assert_memory_equal(got, want, bytes_of(&alone, k % WAYS));
            free(got);
            free(want);
        }
    }
    free(held);
    support_resizers_free(&all);
}

static void a_part_that_is_too_small_is_refused(void **state)
{
    static const mr_resize_span bad[] = {{3, 5}, {2, 5}, {2, 9}, {8, 0}, {0, 7}, {UINT32_MAX, 2}, {1, UINT32_MAX}};
    uint8_t rgb[10 * 10 * 3] = {0}, out[4 * 4 * 4 * 3];
    mr_error err;
    mr_resizer *z = mr_resizer_new();
    mr_resize_job good = {.rgb = rgb,
                          .in_width = 10,
                          .in_height = 10,
                          .out_width = 10,
                          .out_height = 10,
                          .crop_left = 2,
                          .crop_top = 2,
                          .crop_width = 4,
                          .crop_height = 4},
                  j;
    (void)state;
    mr_resize_needs(&good, &good.columns, &good.rows);
    assert_true(good.columns.from == 2 && good.columns.count == 4 && good.rows.from == 2 && good.rows.count == 4);
    for (way to = 0; to < WAYS; to++) {
        assert_int_equal(resize(z, good, to, out, &err), MR_OK);
        for (size_t i = 0; i < 2 * MR_COUNT(bad); i++) {
            j = good;
            *(i % 2 ? &j.columns : &j.rows) = bad[i / 2];
            bool enough = bad[i / 2].from <= 2 && bad[i / 2].from + (uint64_t)bad[i / 2].count >= 6 &&
                          bad[i / 2].from + (uint64_t)bad[i / 2].count <= 10;
            assert_int_equal(resize(z, j, to, out, &err), enough ? MR_OK : MR_MISUSE);
        }
    }
    mr_resizer_free(z);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_gives_what_the_whole_gives),
        cmocka_unit_test(no_more_is_asked_for_than_counts),
        cmocka_unit_test(a_middle_knows_no_ends),
        cmocka_unit_test(a_part_that_is_too_small_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
