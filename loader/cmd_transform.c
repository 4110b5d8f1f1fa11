/* cmd_transform.c - the part of a command line that says how pictures are shown. */
#include "loader/cmd_transform.h"

#include <string.h>

void mr_transform_begin(mr_transform *t)
{
    *t = (mr_transform){.kind = MR_TRANSFORM_TRAIN, .flip = 0.5f};
}

static void augment(mr_transform *t, const char *arg, struct argp_state *state)
{
    if (strcmp(arg, "train") == 0) {
        t->kind = MR_TRANSFORM_TRAIN;
        t->flip = 0.5f;
        return;
    }
    t->flip = 0;
    if (strcmp(arg, "eval") == 0)
        t->kind = MR_TRANSFORM_SQUARE;
    else if (strcmp(arg, "center") == 0)
        t->kind = MR_TRANSFORM_CENTER;
    else
        mr_cli_misuse(state, "--augment %s: use train, eval or center", arg);
}

static void orientation(mr_transform *t, const char *arg, struct argp_state *state)
{
    t->apply_orientation = strcmp(arg, "apply") == 0;
    if (!t->apply_orientation && strcmp(arg, "ignore") != 0)
        mr_cli_misuse(state, "--orientation %s: use apply or ignore", arg);
}

static void decoder(mr_transform *t, const char *arg, struct argp_state *state)
{
    t->libjpeg = strcmp(arg, "libjpeg") == 0;
    if (!t->libjpeg && strcmp(arg, "auto") != 0)
        mr_cli_misuse(state, "--decoder %s: use auto or libjpeg", arg);
}

bool mr_transform_option(int key, char *arg, struct argp_state *state, mr_transform *t)
{
    switch (key) {
    case MR_OPT_AUGMENT:
        augment(t, arg, state);
        break;
    case MR_OPT_ORIENTATION:
        orientation(t, arg, state);
        break;
    case MR_OPT_BICUBIC:
        t->bicubic = 1;
        break;
    case MR_OPT_DECODER:
        decoder(t, arg, state);
        break;
    default:
        return false;
    }
    return true;
}
