/* test_changes.c - colours changed as a plain computation in double precision changes them, and what is drawn.
 * Invariant tested: changes depend on seed, epoch, sample and options alone, and every kind of output has the same.
 * Covers loader/augment/colour.c, loader/order/stream.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/random.h"
#include "loader/augment/changes.h"
#include "tests/support/shards/loader.h"
#include "tests/support/support.h"

enum { SIDE = 32, PIXELS = SIDE * SIDE, DRAWS = 4000 };

static double grey(const double *p)
{
    return 0.2989 * p[0] + 0.587 * p[1] + 0.114 * p[2];
}

static double limited(double x)
{
    return fmin(fmax(x, 0), 255);
}

/* colorsys.rgb_to_hsv and hsv_to_rgb of Python, in place. */
static void turn_hue(double *p, double share)
{
    double most = fmax(fmax(p[0], p[1]), p[2]), least = fmin(fmin(p[0], p[1]), p[2]), range = most - least;
    if (range == 0)
        return;
    double r = (most - p[0]) / range, g = (most - p[1]) / range, b = (most - p[2]) / range;
    double h = (p[0] == most ? b - g : p[1] == most ? 2 + r - b : 4 + g - r) / 6 + share, s = range / most;
    h -= floor(h);
    int i = (int)(h * 6);
    double f = h * 6 - i, x = most * (1 - s), q = most * (1 - s * f), t = most * (1 - s * (1 - f));
    const double all[6][3] = {{most, t, x}, {q, most, x}, {x, most, t}, {x, q, most}, {t, x, most}, {most, x, q}};
    memcpy(p, all[i % 6], sizeof all[0]);
}

static void plainly(int what, double amount, const uint8_t *from, double *to)
{
    double mean = 0;
    for (int i = 0; i < 3 * PIXELS; i++)
        to[i] = from[i];
    for (int i = 0; i < PIXELS; i++)
        mean += floor(grey(to + 3 * i)) / PIXELS;
    for (int i = 0; i < PIXELS; i++) {
        double *p = to + 3 * i, own = floor(grey(p));
        for (int k = 0; k < 3 && what != MR_HUE; k++)
            p[k] = limited(amount * p[k] +
                           (what == MR_BRIGHTNESS ? 0 : (1 - amount) * (what == MR_CONTRAST ? mean : own)));
        if (what == MR_HUE)
            turn_hue(p, amount);
    }
}

static void colours_are_those_of_plain_arithmetic(void **state)
{
    (void)state;
    static const float amounts[MR_JITTERS][4] = {
        {0, 0.5f, 1, 1.7f}, {0, 0.5f, 1, 1.7f}, {0, 0.5f, 1, 1.7f}, {-0.5f, -0.1f, 0, 0.3f}};
    mr_random r = support_random();
    for (int n = 0; n < 4 * MR_JITTERS; n++) {
        uint8_t before[3 * PIXELS], after[3 * PIXELS];
        double want[3 * PIXELS];
        int what = n / 4;
        float amount = amounts[what][n % 4];
        for (int i = 0; i < 3 * PIXELS; i++)
            before[i] = after[i] = (uint8_t)(i % 9 < 3 ? mr_random_below(&r, 4) * 80 : mr_random_below(&r, 256));
        mr_jitter(what, amount, after, PIXELS);
        plainly(what, (double)amount, before, want);
        for (int i = 0; i < 3 * PIXELS; i++)
            assert_true(fabs(after[i] - want[i]) <= 1.01); /* cut to a byte */
        if (amount == (what == MR_HUE ? 0 : 1) && what != MR_HUE)
            assert_memory_equal(before, after, sizeof before);
        memcpy(after, before, sizeof after);
        mr_grey(after, PIXELS);
        for (int i = 0; i < 3 * PIXELS; i += 3)
            assert_true(after[i] == after[i + 1] && after[i] == after[i + 2] &&
                        after[i] == (int)(0.2989f * before[i] + 0.587f * before[i + 1] + 0.114f * before[i + 2]));
    }
}

static void draws_are_even(void **state)
{
    (void)state;
    static const float mean[3] = {0.5f, 0, 1};
    const mr_augment a = {
        .brightness = {0.6f, 1.4f}, .saturation = {0.5f, 1.5f}, .hue = {-0.1f, 0.1f}, .grey = 0.2f, .erase = 0.25f};
    double sum = 0, area = 0;
    unsigned grey_ones = 0, erased = 0, hue_first = 0;
    for (uint64_t i = 0; i < DRAWS; i++) {
        mr_changes c = mr_changes_draw(&a, 3, 1, i, SIDE, SIDE, mean),
                   again = mr_changes_draw(&a, 3, 1, i, SIDE, SIDE, mean);
        assert_memory_equal(c.order, again.order, sizeof c.order);
        assert_memory_equal(c.amount, again.amount, sizeof c.amount);
        assert_true(c.grey == again.grey && c.left == again.left && c.top == again.top && c.width == again.width &&
                    c.height == again.height);
        assert_int_equal(c.jitters, 3); /* no contrast */
        for (unsigned k = 0; k < c.jitters; k++)
            assert_true(c.order[k] != MR_CONTRAST);
        assert_true(c.amount[MR_BRIGHTNESS] >= 0.6f && c.amount[MR_BRIGHTNESS] <= 1.4f);
        assert_true(c.width == 0 || (c.left + c.width <= SIDE && c.top + c.height <= SIDE && c.height));
        assert_true(c.fill[0] == 128 && c.fill[1] == 0 && c.fill[2] == 255);
        sum += (double)c.amount[MR_BRIGHTNESS] / DRAWS;
        area += (double)c.width * c.height / PIXELS;
        grey_ones += c.grey;
        erased += c.width > 0;
        hue_first += c.order[0] == MR_HUE;
    }
    assert_true(fabs(sum - 1) < 0.02 && fabs(grey_ones / (double)DRAWS - 0.2) < 0.03);
    assert_true(fabs(erased / (double)DRAWS - 0.25) < 0.04 && fabs(area / erased - 0.175) < 0.02);
    assert_true(fabs(hue_first / (double)DRAWS - 1 / 3.0) < 0.04);
    assert_false(mr_augment_is_set(&(mr_augment){.grey = 0}));
}

static mr_loader_options options(mr_delivery deliver)
{
    mr_loader_options o = usual_options(deliver, MR_TAIL_DROP);
    o.struct_size = sizeof o;
    o.augment = (mr_augment){.brightness = {0.6f, 1.4f}, .contrast = {0.6f, 1.4f}, .hue = {-0.2f, 0.2f}, .erase = 0.5f};
    return o;
}

/* The bytes of one batch are the floats of another before they were normalised, and other than without an augment. */
static void every_output_has_the_same(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    make_pictures(dir, 20, 7, NULL);
    mr_dataset *ds = open_dataset_at(dir);
    mr_loader_options bytes = options(MR_DELIVER_U8_NHWC), floats = options(MR_DELIVER_F32_NCHW), plain = bytes;
    plain.augment = (mr_augment){.grey = 0};
    mr_loader *of_bytes = open_loader(ds, &bytes), *of_floats = open_loader(ds, &floats),
              *as_is = open_loader(ds, &plain);
    const mr_batch *b, *f, *p;
    const size_t area = (size_t)bytes.transform.size * bytes.transform.size;
    while (mr_loader_next(of_bytes, &b, NULL) == MR_OK) {
        assert_int_equal(mr_loader_next(of_floats, &f, NULL), MR_OK);
        assert_int_equal(mr_loader_next(as_is, &p, NULL), MR_OK);
        assert_true(memcmp(b->data, p->data, b->data_bytes) != 0);
        for (size_t i = 0; i < b->count * area * 3; i++) {
            size_t sample = i / (3 * area), pixel = i / 3 % area, colour = i % 3;
            float value = ((const float *)f->data)[(3 * sample + colour) * area + pixel];
            float want = ((float)((const uint8_t *)b->data)[i] / 255 - 0.5f) / 0.5f;
            assert_true(fabsf(value - want) < 1e-6f);
        }
        mr_batch_release(of_bytes, b);
        mr_batch_release(of_floats, f);
        mr_batch_release(as_is, p);
    }
    mr_loader_free(of_bytes);
    mr_loader_free(of_floats);
    mr_loader_free(as_is);
    mr_loader_options o = options(MR_DELIVER_BF16_NCHW);
    seen_list one = run_ranks(ds, o, 1, 0, 0), four = run_ranks(ds, o, 4, 2, 0);
    assert_same_seen(&one, 0, &four);
    seen_free(&one);
    seen_free(&four);
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    make_pictures(dir, 8, 7, NULL);
    mr_dataset *ds = open_dataset_at(dir);
    mr_loader_options o = options(MR_DELIVER_ENCODED);
    expect_no_loader(ds, &o, MR_MISUSE, "augment: changes pixels");
    o = options(MR_DELIVER_F32_NCHW);
    o.transform.unrounded = 1;
    expect_no_loader(ds, &o, MR_MISUSE, "unrounded");
    o = options(MR_DELIVER_F32_NCHW);
    o.augment.hue[1] = 0.7f;
    expect_no_loader(ds, &o, MR_MISUSE, "hue -0.2 to 0.7");
    o = options(MR_DELIVER_F32_NCHW);
    o.augment.grey = 2;
    expect_no_loader(ds, &o, MR_MISUSE, "grey 2");
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colours_are_those_of_plain_arithmetic),
        cmocka_unit_test(draws_are_even),
        cmocka_unit_test(every_output_has_the_same),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
