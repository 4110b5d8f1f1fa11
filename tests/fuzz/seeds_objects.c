/* seeds_objects.c - seeds of the layouts with objects: YOLO.
 * Invariant: each is small, and taken as it is, so that a fuzzer starts behind the first refusal. */
#include "fuzz/seeds.h"

static const char yaml[] = "path: ../x\ntrain: images/train\nval: [a, b]\nnames:\n  0: cat\n  1: 'd''og'\n"
                           "kpt_shape: [2, 3]\nroboflow: {license: \"CC \\u0042Y\"}\n";
static const char yolo[] =
    ",,val=test,\0data.yaml\0train: ../train/images\nval: val.txt\nnames: [cat, dog]\nnc: 2\n\0val.txt\0"
    "./valid/images/b.jpg\n\0train/images/a.jpg\0\0train/labels/a.txt\0"
    "0 0.5 0.5 0.2 0.4\n1 0.1 0.1 0.5 0.1 0.5 0.6\n\0valid/images/b.jpg\0\0valid/labels/b.txt\0\0";
static const char boxes[] = "\0000 0.5 0.5 0.25 0.125\r\n\n3 .5 1e-1 0.5 1\n1 0.1 0.1 0.5 0.1 0.5 0.6\n";
static const char pose[] = "\0050 0.5 0.5 0.25 0.125 0.1 0.2 2 0 0 0 0.3 0.4 1\n";
static const char text[] = "\012imagesource:x\n1 2 30 2 30 40 1 40 dog 1\n";

void seed_objects(void)
{
    seed("yaml", "data", yaml, sizeof yaml - 1);
    seed("layouts", "small-yolo", yolo, sizeof yolo);
    seed("yolo", "boxes", boxes, sizeof boxes - 1);
    seed("yolo", "pose", pose, sizeof pose - 1);
    seed("yolo", "text", text, sizeof text - 1);
}
