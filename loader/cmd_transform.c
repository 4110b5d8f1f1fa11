/* cmd_transform.c - the options for how images are shown. */
#include "loader/cmd_transform.h"

#include <string.h>

static const mr_option kind = {
    .name = "augment",
    .kind = MR_ARG_WORD,
    MR_FIELD(mr_transform, kind),
    .words =
        (const char *const[]){
            [MR_TRANSFORM_TRAIN] = "train", [MR_TRANSFORM_SQUARE] = "eval", [MR_TRANSFORM_CENTER] = "center", NULL},
};

static mr_status take_augment(void *field, const char *text, mr_error *err)
{
    mr_transform *t = field;
    t->flip = strcmp(text, "train") == 0 ? 0.5f : 0;
    return mr_option_take(&kind, t, text, err);
}

const mr_option mr_cmd_transform_options[] = {
    {"augment", 0, MR_ARG_OTHER, .take = take_augment, .value = "train|eval|center", .standard = "train",
     .group = "Transform:",
     .help =
         "how images are cropped and flipped; train: a random crop of 0.08 to 1 of the area, ratio 3/4 to 4/3, and "
         "random horizontal flips; eval: the whole image made square; center: the center, as in ImageNet evaluation"},
    {"orientation", 0, MR_ARG_WORD, MR_FIELD(mr_transform, apply_orientation), .words = MR_WORDS("ignore", "apply"),
     .standard = "ignore", .help = "EXIF orientation; the reference trainers ignore it", .rare = true},
    {"bicubic", 0, MR_ARG_FLAG, MR_FIELD(mr_transform, bicubic),
     .help = "resize with the bicubic filter (default: bilinear)", .rare = true},
    {"decoder", 0, MR_ARG_WORD, MR_FIELD(mr_transform, libjpeg), .words = MR_WORDS("auto", "libjpeg"),
     .standard = "auto", .own = true,
     .help = "JPEG decoder; millrace's own where possible, or libjpeg-turbo; the pixels are identical", .rare = true},
    {0},
};
