/* policy.c - draws the operations of RandAugment and TrivialAugment, and does them; see policy.h.
 * Invariant: each operation takes the same count of random numbers. */
#include "loader/augment/policy.h"

#include <math.h>

#include "loader/augment/changes.h"

typedef struct space { /* a range of amounts, from bin 0 to the last one */
    bool has_sign;
    float first, last[2]; /* the last for RandAugment, and for TrivialAugment */
} space;

/* Translations of RandAugment are shares of the side, those of TrivialAugment pixels. */
static const space spaces[MR_POLICY_KINDS] = {
    [MR_POLICY_SHEAR_X] = {true, 0, {0.3f, 0.99f}},
    [MR_POLICY_SHEAR_Y] = {true, 0, {0.3f, 0.99f}},
    [MR_POLICY_TRANSLATE_X] = {true, 0, {150.0f / 331, 32}},
    [MR_POLICY_TRANSLATE_Y] = {true, 0, {150.0f / 331, 32}},
    [MR_POLICY_ROTATE] = {true, 0, {30, 135}},
    [MR_POLICY_BRIGHTEN] = {true, 0, {0.9f, 0.99f}},
    [MR_POLICY_COLOUR] = {true, 0, {0.9f, 0.99f}},
    [MR_POLICY_CONTRAST] = {true, 0, {0.9f, 0.99f}},
    [MR_POLICY_SHARPEN] = {true, 0, {0.9f, 0.99f}},
    [MR_POLICY_POSTERIZE] = {false, 8, {4, 2}},
    [MR_POLICY_SOLARIZE] = {false, 255, {0, 0}},
};

static float amount_of(mr_policy_kind kind, bool trivial, uint32_t bin, bool negative, uint32_t width, uint32_t height)
{
    const space *s = &spaces[kind];
    float last = s->last[trivial];
    if (kind == MR_POLICY_TRANSLATE_X || kind == MR_POLICY_TRANSLATE_Y)
        last *= trivial ? 1.0f : (float)(kind == MR_POLICY_TRANSLATE_X ? width : height);
    float amount = s->first + (last - s->first) * (float)bin / (MR_POLICY_BINS - 1);
    if (kind == MR_POLICY_TRANSLATE_X || kind == MR_POLICY_TRANSLATE_Y)
        amount = truncf(amount);
    if (kind == MR_POLICY_POSTERIZE)
        amount = rintf(amount);
    return s->has_sign && negative ? -amount : amount;
}

unsigned mr_policy_draw(const mr_augment *a, mr_stream *numbers, uint32_t width, uint32_t height,
                        mr_policy_op out[MR_POLICY_MOST])
{
    unsigned count = a->trivial ? 1 : a->randaugment;
    for (unsigned i = 0; i < count; i++) {
        mr_policy_kind kind = (mr_policy_kind)mr_stream_upto(numbers, MR_POLICY_KINDS - 1);
        uint32_t bin = mr_stream_upto(numbers, MR_POLICY_BINS - 1);
        bool negative = mr_stream_unit(numbers) < 0.5;
        out[i] =
            (mr_policy_op){kind, amount_of(kind, a->trivial, a->trivial ? bin : a->magnitude, negative, width, height)};
    }
    return count;
}

/* From the upper left corner: torchvision's centre of [0, 0]. */
static void shear(bool across, float by, uint8_t *rgb, uint32_t width, uint32_t height, uint8_t *scratch)
{
    float half = by * (float)(across ? height : width) / 2;
    const float x[6] = {1, by, half, 0, 1, 0}, y[6] = {1, 0, 0, by, 1, half};
    mr_warp(across ? x : y, rgb, width, height, scratch);
}

static void rotate(float degrees, uint8_t *rgb, uint32_t width, uint32_t height, uint8_t *scratch)
{
    double angle = (double)degrees * acos(-1.0) / 180;
    float c = (float)cos(angle), s = (float)sin(angle);
    mr_warp((const float[]){c, -s, 0, s, c, 0}, rgb, width, height, scratch);
}

void mr_policy_apply(const mr_policy_op *op, uint8_t *rgb, uint32_t width, uint32_t height, uint8_t *scratch)
{
    size_t pixels = (size_t)width * height;
    switch (op->kind) {
    case MR_POLICY_SHEAR_X:
    case MR_POLICY_SHEAR_Y:
        shear(op->kind == MR_POLICY_SHEAR_X, op->amount, rgb, width, height, scratch);
        break;
    case MR_POLICY_TRANSLATE_X:
        mr_warp((const float[]){1, 0, -op->amount, 0, 1, 0}, rgb, width, height, scratch);
        break;
    case MR_POLICY_TRANSLATE_Y:
        mr_warp((const float[]){1, 0, 0, 0, 1, -op->amount}, rgb, width, height, scratch);
        break;
    case MR_POLICY_ROTATE:
        rotate(op->amount, rgb, width, height, scratch);
        break;
    case MR_POLICY_BRIGHTEN:
        mr_jitter(MR_BRIGHTNESS, 1 + op->amount, rgb, pixels);
        break;
    case MR_POLICY_COLOUR:
        mr_jitter(MR_SATURATION, 1 + op->amount, rgb, pixels);
        break;
    case MR_POLICY_CONTRAST:
        mr_jitter(MR_CONTRAST, 1 + op->amount, rgb, pixels);
        break;
    case MR_POLICY_SHARPEN:
        mr_sharpen(1 + op->amount, rgb, width, height, scratch);
        break;
    case MR_POLICY_POSTERIZE:
        mr_posterize((unsigned)op->amount, rgb, pixels);
        break;
    case MR_POLICY_SOLARIZE:
        mr_solarize(op->amount, rgb, pixels);
        break;
    case MR_POLICY_AUTOCONTRAST:
        mr_autocontrast(rgb, pixels);
        break;
    case MR_POLICY_EQUALIZE:
        mr_equalize(rgb, pixels);
        break;
    case MR_POLICY_IDENTITY:
    case MR_POLICY_KINDS:
        break;
    }
}
