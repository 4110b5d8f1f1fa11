/* seeds_imagenet.c - seeds of the layout ilsvrc: trees, meta.mat, class tars in an archive.
 * Invariant: each is small, and taken as it is, so that a fuzzer starts beyond the first refusal. */
#include <stdlib.h>
#include <unistd.h>

#include "tests/fuzz/seeds.h"
#include "tests/support/sources/archive.h"
#include "tests/support/sources/mat.h"

#define TRAIN "train/n01440764/n01440764_1.JPEG\0\0train/n01443537/n01443537_2.JPEG\0\0"
#define VAL   "val/ILSVRC2012_val_00000001.JPEG\0\0"
static const char kaggle[] =
    ",,test=,\0" TRAIN VAL "LOC_synset_mapping.txt\0n01440764 tench, Tinca tinca\n\0"
    "LOC_val_solution.csv\0ImageId,PredictionString\nILSVRC2012_val_00000001,n01443537 1 2 3.5 "
    "4 n01440764 0 0 9 9 \n\0test/ILSVRC2012_test_00000001.JPEG\0\0";
static const char kit[] = ",,,\0" TRAIN VAL "map_clsloc.txt\0n01443537 1 goldfish\nn01440764 2 tench\n\0"
                          "ILSVRC2012_validation_ground_truth.txt\0"
                          "2\n\0";
static const char tiny[] = ",,,unlisted\0wnids.txt\0n01440764\n\0words.txt\0n01440764\ttench\n\0"
                           "train/n01440764/images/n01440764_0.JPEG\0\0train/n01440764/n01440764_boxes.txt\0"
                           "n01440764_0.JPEG\t0\t10\t63\t58\n\0val/images/val_0.JPEG\0\0val/images/val_1.JPEG\0\0"
                           "val/val_annotations.txt\0val_0.JPEG\tn01440764\t0\t32\t44\t62\n\0test/images/t.JPEG\0\0";

static void seed_mat(void)
{
    static const support_synset synsets[] = {{1, "n02119789", "kit fox"}, {2, "n02100735", ""}};
    static const char *const names[] = {"little", "big", "little-compressed", "big-compressed"};
    mr_buf file = {0};
    for (int i = 0; i < 4; i++) {
        support_mat_write(&(support_mat){.big = i & 1, .compressed = i & 2}, synsets, 2, &file);
        seed("mat", names[i], file.data, file.len);
    }
    mr_buf_free(&file);
}

static void seed_class_tars(const char *tmp)
{
    static const char *const kinds[] = {"tar", "tar.gz", "zip"};
    char *inner = support_path("%s/n01440764.tar", tmp), *outer = support_path("%s/train.tar", tmp);
    const support_entry images[] = {{.path = "n01440764_1.JPEG", .bytes = "one", .len = 3},
                                    {.path = "n01440764_2.JPEG", .bytes = "two", .len = 3}};
    size_t len;
    support_archive(inner, "tar", images, 2);
    uint8_t *bytes = support_read(inner, &len);
    const support_entry tars[] = {{.path = "n01440764.tar", .bytes = bytes, .len = len},
                                  {.path = "n01443537.tar", .bytes = bytes, .len = len}};
    for (size_t i = 0; i < MR_COUNT(kinds); i++) {
        char *name = support_path("class-tars.%s", kinds[i]);
        support_archive(outer, kinds[i], tars, 2);
        seed_file("archive", name, outer);
        assert_int_equal(unlink(outer), 0);
        free(name);
    }
    free(bytes);
    free(inner);
    free(outer);
}

void seed_imagenet(const char *tmp)
{
    seed("layouts", "small-kaggle", kaggle, sizeof kaggle);
    seed("layouts", "small-imagenet-kit", kit, sizeof kit);
    seed("layouts", "small-tiny-imagenet", tiny, sizeof tiny);
    seed_mat();
    seed_class_tars(tmp);
}
