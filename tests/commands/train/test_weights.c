/* test_weights.c - `millrace weights`, and training that starts from what it wrote.
 * Invariant tested: weights that go out and come back have the same bits, the head's columns by the classes' names;
 * what is not this model is refused with a sentence.  Covers train/cmd_weights.c, train/setup/head_hub.c,
 * train/model/vit/hub_config.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "tests/support/faults.h"
#include "tests/support/training/train.h"

/* One update that changes no bit. */
#define STILL "--steps", "1", "--lr", "1e-30", "--eval-every", "0"

static int set_up(void **state)
{
    char *dir = support_tmpdir();
    train_make_dataset(dir, 40);
    train_expect(0, dir, 0, "--steps", "3", "--eval-every", "0", "--output", "first", (char *)NULL);
    support_result r = train_command(0, dir, 0, "weights", "first", "hub", (char *)NULL);
    assert_non_null(strstr(r.out, "hub: vit after update 3, for ViTForImageClassification.from_pretrained()"));
    support_result_free(&r);
    *state = dir;
    return 0;
}

static int tear_down(void **state)
{
    support_tmpdir_remove(*state);
    return 0;
}

/* A file of a copy of "hub", with one text exchanged. */
static void copy_with(const char *dir, const char *name, const char *from, const char *to)
{
    char *command =
        support_path("rm -rf %s && cp -r hub %s && sed -i 's/%s/%s/' %s/config.json", name, name, from, to, name);
    support_shell(dir, command);
    free(command);
}

static void the_way_out_and_back(void **state)
{
    const char *dir = *state;
    support_result r = train_command(0, dir, 0, "train", "data", "--pretrained", "hub", "--batch", "4", "--dropout",
                                     "0.1", STILL, "--output", "second", (char *)NULL);
    assert_non_null(strstr(r.out, "10 of the 10 classes continue from the head of hub, which knows their names"));
    support_result_free(&r);
    support_result quiet = train_command(0, dir, 0, "weights", "second", "again", "--quiet", (char *)NULL);
    assert_string_equal(quiet.out, "");
    support_result_free(&quiet);
    support_shell(dir, "cmp hub/model.safetensors again/model.safetensors && cmp hub/config.json again/config.json && "
                       "cmp hub/preprocessor_config.json again/preprocessor_config.json");
}

static void a_file_alone_and_other_sizes(void **state)
{
    const char *dir = *state;
    support_shell(dir, "mkdir alone && cp hub/model.safetensors alone/");
    train_expect(0, dir, 0, "--pretrained", "alone/model.safetensors", STILL, "--output", "third", (char *)NULL);
    support_result r = train_command(0, dir, 0, "train", "data", "--pretrained", "hub", "--image-size", "64", "--batch",
                                     "4", STILL, "--output", "large", (char *)NULL);
    assert_non_null(strstr(r.out, "position embedding resized from 3 x 3 to 8 x 8 patches"));
    support_result_free(&r);
}

static void classes_of_other_names(void **state)
{
    const char *dir = *state;
    copy_with(dir, "strange", "n0", "m0");
    support_result r = train_command(0, dir, 0, "train", "data", "--pretrained", "strange", "--batch", "4", STILL,
                                     "--output", "fourth", (char *)NULL);
    assert_non_null(
        strstr(r.out, "head not loaded: it does not name classes of the dataset; a new head of 10 classes"));
    support_result_free(&r);
}

static void what_it_is_not(void **state)
{
    static const struct {
        const char *from, *to, *words;
        int status;
    } ways[] = {
        {"\"vit\"", "\"deit\"", "config.json: model_type is deit; this model is vit", 1},
        {"\"gelu\"", "\"relu\"", "hidden_act is relu; only gelu is supported", 1},
        {"\"qkv_bias\": true", "\"qkv_bias\": false", "qkv_bias is false", 1},
        {"\"num_channels\": 3", "\"num_channels\": 1", "num_channels is not 3", 1},
        {"\"hidden_size\": ", "\"hidden_size\": -", "hidden_size is not an integer of at least 1", 1},
        {"\"layer_norm_eps\": ", "\"layer_norm_eps\": -", "layer_norm_eps is not a number above 0", 1},
        {"\"patch_size\": 8", "\"patch_size\": 4", "this model needs [16, 3, 4, 4]", 1},
        {"{", "[", "config.json", 1},
    };
    const char *dir = *state;
    for (size_t i = 0; i < MR_COUNT(ways); i++) {
        copy_with(dir, "other", ways[i].from, ways[i].to);
        support_result r = train_command(ways[i].status, dir, 0, "train", "data", "--pretrained", "other", "--batch",
                                         "4", STILL, (char *)NULL);
        if (!strstr(r.err, ways[i].words))
            fail_msg("%s", r.err);
        support_result_free(&r);
    }
    support_result r = train_command(2, dir, 0, "weights", "first", "hub", (char *)NULL);
    assert_non_null(strstr(r.err, "hub: holds a model already; --force replaces it"));
    support_result_free(&r);
    r = train_command(2, dir, 0, "weights", "data", "nowhere", (char *)NULL);
    support_result_free(&r);
    support_shell(dir, "test ! -e nowhere");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_way_out_and_back),
        cmocka_unit_test(a_file_alone_and_other_sizes),
        cmocka_unit_test(classes_of_other_names),
        cmocka_unit_test(what_it_is_not),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
