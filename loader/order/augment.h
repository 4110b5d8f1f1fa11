/* augment.h - the part of an image that is shown, and whether it is mirrored.
 * Invariant: a pure function of (seed, epoch, sample, size of the image, options): the same for any world.
 * Source: torchvision's RandomResizedCrop.get_params, Resize, CenterCrop (ViT-style transforms), with other random
 * numbers. */
#ifndef MR_AUGMENT_H
#define MR_AUGMENT_H

#include <stdbool.h>

#include "millrace.h"

/* A box in pixels of the image as seen (after applying the orientation, if the options ask for it). */
typedef struct mr_view {
    uint32_t left, top, width, height; /* the source box, at least 1 x 1, inside the image */
    uint32_t out_width, out_height;    /* what it is resized to */
    uint32_t crop_left, crop_top;      /* where the size x size part that is kept begins in the resized image */
    uint32_t pad_left, pad_top;        /* where all of the resized image is in a larger result, before it is mirrored */
    bool flip;
} mr_view;

/* RandomResizedCrop: up to 10 tries of area W*H*U(scale) and ratio exp(U(ln ratio)), each side round-half-even;
 * otherwise the central box of the nearest allowed ratio.  Mirrored with probability t->flip. */
mr_view mr_view_train(const mr_transform *t, uint64_t seed, uint64_t epoch, uint64_t sample, uint32_t width,
                      uint32_t height);

/* MR_TRANSFORM_SQUARE: the whole image to size x size.  MR_TRANSFORM_CENTER: short side to t->resize, the long one
 * truncated, then the central size x size part (round half to even); the source box is the whole image.  There is no
 * padding: a `resize` below `size` counts as `size`.  A long side above UINT32_MAX is UINT32_MAX. */
mr_view mr_view_eval(const mr_transform *t, uint32_t width, uint32_t height);

/* MR_TRANSFORM_LETTERBOX: as large as fits into size x out_height, each side rounded half to even, at least 1. */
mr_view mr_view_letterbox(const mr_transform *t, uint32_t out_height, uint32_t width, uint32_t height);

/* MR_TRANSFORM_PATCH: any size x out_height part of the image with t->resize pixels around it, each equally likely; if
 * that is smaller, the middle, with more around it.  The source box is what of the image is in it.  Mirrored with
 * probability t->flip.  Source: torchvision's RandomCrop. */
mr_view mr_view_patch(const mr_transform *t, uint32_t out_height, uint64_t seed, uint64_t epoch, uint64_t sample,
                      uint32_t width, uint32_t height);

/* Is the result larger than what the box is resized to? */
bool mr_view_is_framed(mr_transform_kind kind);

/* MR_BAD_SAMPLE: the resized image has a side longer than MR_RESIZE_LONGEST.  The message does not name the sample. */
mr_status mr_view_check(const mr_view *v, mr_error *err);

#endif
