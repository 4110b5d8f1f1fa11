/* policy.h - RandAugment and TrivialAugment: operations drawn from a table, on bytes.
 * Invariant: an operation is torchvision's function of a uint8 tensor, to one level; what moves samples the nearest
 * pixel, and what comes in from outside is black.
 *
 *   mr_augment -> up to MR_POLICY_MOST of (operation, amount), drawn -> one after another, in place
 * Sources: torchvision's transforms v2, RandAugment and TrivialAugmentWide (31 bins), with other random numbers;
 * Cubuk et al. 2019, Müller and Hutter 2021. */
#ifndef MR_POLICY_H
#define MR_POLICY_H

#include <stdbool.h>

#include "loader/order/stream.h"
#include "millrace.h"

enum { MR_POLICY_MOST = 16, MR_POLICY_BINS = 31 };

#define MR_POLICY_OPS(X)                                                                                               \
    X(IDENTITY)                                                                                                        \
    X(SHEAR_X)                                                                                                         \
    X(SHEAR_Y)                                                                                                         \
    X(TRANSLATE_X)                                                                                                     \
    X(TRANSLATE_Y)                                                                                                     \
    X(ROTATE)                                                                                                          \
    X(BRIGHTEN)                                                                                                        \
    X(COLOUR)                                                                                                          \
    X(CONTRAST)                                                                                                        \
    X(SHARPEN)                                                                                                         \
    X(POSTERIZE)                                                                                                       \
    X(SOLARIZE)                                                                                                        \
    X(AUTOCONTRAST)                                                                                                    \
    X(EQUALIZE)

typedef enum mr_policy_kind {
#define X(name) MR_POLICY_##name,
    MR_POLICY_OPS(X)
#undef X
        MR_POLICY_KINDS
} mr_policy_kind;

/* Cut, not rounded, as torchvision converts floats to uint8. */
static inline uint8_t mr_byte_of(float value)
{
    value = value > 0 ? value : 0;
    return (uint8_t)(int)(value < 255 ? value : 255);
}

typedef struct mr_policy_op {
    mr_policy_kind kind;
    float amount; /* a shear, pixels, degrees, 1 + factor, bits or a threshold of bytes */
} mr_policy_op;

/* The operations of a sample of width x height pixels; their number. */
unsigned mr_policy_draw(const mr_augment *a, mr_stream *numbers, uint32_t width, uint32_t height,
                        mr_policy_op out[MR_POLICY_MOST]);
/* In place; `scratch`: as many bytes as the image has. */
void mr_policy_apply(const mr_policy_op *op, uint8_t *rgb, uint32_t width, uint32_t height, uint8_t *scratch);

/* ---- warp.c, tone.c: one operation, as in mr_policy_apply() ------------------------------------------------------ */

/* Output pixel (x, y), from the centre, shows input pixel (x, y, 1) * matrix, rows of three. */
void mr_warp(const float matrix[6], uint8_t *rgb, uint32_t width, uint32_t height, uint8_t *scratch);
void mr_sharpen(float factor, uint8_t *rgb, uint32_t width, uint32_t height, uint8_t *scratch);
void mr_posterize(unsigned bits, uint8_t *rgb, size_t pixels);
void mr_solarize(float threshold, uint8_t *rgb, size_t pixels);
void mr_autocontrast(uint8_t *rgb, size_t pixels);
void mr_equalize(uint8_t *rgb, size_t pixels);

#endif
