/* changes.c - draws what happens to a sample, and does it; see changes.h.
 * Invariant: every number is drawn whether it is used or not, so that an option does not change what others draw. */
#include "loader/augment/changes.h"

#include <math.h>
#include <string.h>

#include "loader/order/stream.h"

#define PURPOSE        UINT64_C(0x636F6C6F75727321)
#define PURPOSE_POLICY UINT64_C(0x706F6C6963792121)
#define PURPOSE_BLUR   UINT64_C(0x626C757272656421)

enum { TRIES = 10 };

static const float *range_of(const mr_augment *a, int what)
{
    const float *const ranges[MR_JITTERS] = {a->brightness, a->contrast, a->saturation, a->hue};
    return ranges[what];
}

/* All zero means "unchanged", as in all of millrace's options; for the hue, 0 means that anyway. */
static bool changes(const mr_augment *a, int what)
{
    return range_of(a, what)[0] != 0 || range_of(a, what)[1] != 0;
}

bool mr_augment_is_set(const mr_augment *a)
{
    bool set = a->grey > 0 || a->erase > 0 || a->blur > 0 || a->randaugment || a->trivial;
    for (int i = 0; i < MR_JITTERS; i++)
        set |= changes(a, i);
    return set;
}

static void draw_jitter(const mr_augment *a, mr_stream *numbers, mr_changes *c)
{
    uint8_t all[MR_JITTERS] = {MR_BRIGHTNESS, MR_CONTRAST, MR_SATURATION, MR_HUE};
    for (uint32_t i = MR_JITTERS - 1; i; i--) {
        uint32_t other = mr_stream_upto(numbers, i);
        uint8_t moved = all[i];
        all[i] = all[other];
        all[other] = moved;
    }
    for (int i = 0; i < MR_JITTERS; i++)
        c->amount[i] = (float)mr_stream_between(numbers, (double)range_of(a, i)[0], (double)range_of(a, i)[1]);
    for (int i = 0; i < MR_JITTERS; i++)
        if (changes(a, all[i]))
            c->order[c->jitters++] = all[i];
}

/* RandomErasing's: 2 % to 33 % of the image, from 0.3 to 3.3 times as high as it is wide. */
static void draw_erasing(mr_stream *numbers, uint32_t most_width, uint32_t most_height, mr_changes *c)
{
    double area = (double)most_width * most_height;
    for (int i = 0; i < TRIES; i++) {
        double part = area * mr_stream_between(numbers, 0.02, 0.33);
        double ratio = exp(mr_stream_between(numbers, log(0.3), log(3.3)));
        double height = floor(sqrt(part * ratio) + 0.5), width = floor(sqrt(part / ratio) + 0.5);
        if (width < 1 || height < 1 || width >= most_width || height >= most_height)
            continue;
        c->width = (uint32_t)width;
        c->height = (uint32_t)height;
        c->top = mr_stream_upto(numbers, most_height - c->height);
        c->left = mr_stream_upto(numbers, most_width - c->width);
        return;
    }
}

static void draw_blur(const mr_augment *a, mr_stream numbers, mr_changes *c)
{
    bool given = a->sigma[0] != 0 || a->sigma[1] != 0, drawn = mr_stream_unit(&numbers) < (double)a->blur;
    double sigma = mr_stream_between(&numbers, given ? (double)a->sigma[0] : 0.1, given ? (double)a->sigma[1] : 2);
    c->sigma = drawn ? (float)sigma : 0;
}

mr_changes mr_changes_draw(const mr_augment *a, uint64_t seed, uint64_t epoch, uint64_t sample, uint32_t width,
                           uint32_t height, const float mean[3])
{
    mr_stream numbers = mr_stream_of(PURPOSE, seed, epoch, sample);
    mr_stream policy = mr_stream_of(PURPOSE_POLICY, seed, epoch, sample);
    mr_changes c = {.width = 0};
    c.op_count = mr_policy_draw(a, &policy, width, height, c.ops);
    draw_blur(a, mr_stream_of(PURPOSE_BLUR, seed, epoch, sample), &c);
    draw_jitter(a, &numbers, &c);
    c.grey = mr_stream_unit(&numbers) < (double)a->grey;
    if (mr_stream_unit(&numbers) < (double)a->erase)
        draw_erasing(&numbers, width, height, &c);
    for (int i = 0; i < 3; i++)
        c.fill[i] = mr_byte_of(mean[i] * 255 + 0.5f);
    return c;
}

size_t mr_changes_scratch(const mr_changes *c, uint32_t width, uint32_t height)
{
    size_t bytes = 3 * (size_t)width * height;
    return c->sigma > 0 ? bytes * sizeof(float) : c->op_count ? bytes : 0;
}

void mr_changes_apply(const mr_changes *c, uint8_t *rgb, uint32_t width, uint32_t height, void *scratch)
{
    size_t pixels = (size_t)width * height;
    for (unsigned i = 0; i < c->op_count; i++)
        mr_policy_apply(&c->ops[i], rgb, width, height, scratch);
    for (unsigned i = 0; i < c->jitters; i++)
        mr_jitter(c->order[i], c->amount[c->order[i]], rgb, pixels);
    if (c->grey)
        mr_grey(rgb, pixels);
    if (c->sigma > 0)
        mr_blur(c->sigma, rgb, width, height, scratch);
    for (uint32_t y = 0; y < c->height && c->width; y++)
        for (uint32_t x = 0; x < c->width; x++)
            memcpy(rgb + 3 * ((size_t)(c->top + y) * width + c->left + x), c->fill, 3);
}
