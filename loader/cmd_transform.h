/* cmd_transform.h - the part of a command line that says how pictures are shown: replay and bench read the same words.
 * Invariant: without any of these options the transform is all zero, but for what --size says. */
#ifndef MR_CMD_TRANSFORM_H
#define MR_CMD_TRANSFORM_H

#include <stdbool.h>

#include "base/cli.h"

enum { MR_OPT_AUGMENT = 2048, MR_OPT_ORIENTATION, MR_OPT_BICUBIC, MR_OPT_DECODER };

#define MR_TRANSFORM_OPTIONS(n)                                                                                        \
    {.doc = "How pictures are shown:", .group = n},                                                                    \
        {"augment",                                                                                                    \
         MR_OPT_AUGMENT,                                                                                               \
         "HOW",                                                                                                        \
         0,                                                                                                            \
         "train (default): a random part of 0.08 to 1 of the area, ratio 3/4 to "                                      \
         "4/3, mirrored half of the time; eval: the whole picture made square; center: the middle, as ImageNet is "    \
         "tested",                                                                                                     \
         n},                                                                                                           \
        {"orientation",                                                                                                \
         MR_OPT_ORIENTATION,                                                                                           \
         "HOW",                                                                                                        \
         0,                                                                                                            \
         "EXIF orientation: ignore (default, as the reference trainers do) "                                           \
         "or apply",                                                                                                   \
         n},                                                                                                           \
        {"bicubic", MR_OPT_BICUBIC, 0, 0, "resize with the bicubic filter (default: bilinear)", n},                    \
    {                                                                                                                  \
        "decoder", MR_OPT_DECODER, "NAME", 0,                                                                          \
            "of JPEGs: auto (default; millrace's own where it can) or libjpeg "                                        \
            "(libjpeg-turbo for all): the pixels are the same",                                                        \
            n                                                                                                          \
    }

/* In front of the parsing: what train stands for. */
void mr_transform_begin(mr_transform *t);
/* True if `key` was one of the rows above. */
bool mr_transform_option(int key, char *arg, struct argp_state *state, mr_transform *t);

#endif
