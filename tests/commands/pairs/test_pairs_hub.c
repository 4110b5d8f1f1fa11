/* test_pairs_hub.c - a checkpoint of pictures and text is a model of the hub: transformers reads its folder and
 * computes the embeddings that `predict` writes, and the hub's sharded weights are read.
 * Invariant tested: each test is skipped with a message where Python lacks the package (MILLRACE_PYTHON names a
 * Python that has it), and holds no memory where that may happen. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shards/dataset/dataset.h"
#include "train/files/npz.h"
#include "train/run/pairs.h"
#include "tests/support/training/train.h"

enum { COUNT = 6, SIDE = 32, TEXT = 16 }; /* of val */

static int set_up(void **state)
{
    char *dir = support_tmpdir();
    train_make_pairs(dir);
    train_pairs_expect(0, dir, 0, "--steps", "24", "--heads", "2", "--output", "run", (char *)NULL);
    *state = dir;
    return 0;
}

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        if ((call) != MR_OK)                                                                                           \
            fail_msg("%s", err.text);                                                                                  \
    } while (0)

static void add(mr_npz_writer *npz, mr_npz_array array, const void *elements)
{
    mr_error err;
    array.count = 1;
    for (unsigned i = 0; i < array.dims; i++)
        array.count *= array.shape[i];
    MUST(mr_npz_add(npz, &array, elements, &err));
}

/* All of val as a model gets it. */
static void write_input(const mr_feed *feed, const mr_model_input *in, const char *path)
{
    mr_error err;
    mr_npz_writer *npz = NULL;
    int64_t tokens[COUNT * TEXT], seen[COUNT * TEXT];
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    assert_true(fd >= 0);
    assert_int_equal(in->count, COUNT);
    assert_int_equal(feed->batch->count, COUNT);
    for (size_t i = 0; i < COUNT * in->length; i++) {
        tokens[i] = in->tokens[i];
        seen[i] = in->seen[i];
    }
    MUST(mr_npz_create(fd, path, &npz, &err));
    add(npz, (mr_npz_array){.name = "pixels", .type = MR_NPZ_F32, .dims = 4, .shape = {COUNT, 3, SIDE, SIDE}},
        in->images);
    add(npz, (mr_npz_array){.name = "tokens", .type = MR_NPZ_I64, .dims = 2, .shape = {COUNT, in->length}}, tokens);
    add(npz, (mr_npz_array){.name = "seen", .type = MR_NPZ_I64, .dims = 2, .shape = {COUNT, in->length}}, seen);
    MUST(mr_npz_finish(npz, NULL, &err));
    close(fd);
}

static void make_input(const char *dir)
{
    IN(path, "given.npz");
    IN(data, "data");
    IN(words, "run/step-00000024/tokenizer.json");
    mr_error err;
    mr_dataset *ds = NULL;
    mr_device *device = NULL;
    mr_tokenizer *tokenizer = NULL;
    mr_feed feed = {0};
    mr_model_input in;
    double weight;
    MUST(mr_dataset_open(data, &ds, &err));
    MUST(mr_device_open("cpu", &(mr_device_options){.threads = 1}, &device, &err));
    MUST(mr_tokenizer_open(words, &tokenizer, &err));
    mr_loader_options o = {.split = "val",
                           .global_batch = COUNT,
                           .world = 1,
                           .shuffle = MR_SHUFFLE_NONE,
                           .tail = MR_TAIL_PARTIAL,
                           .transform = mr_pairs_transform(SIDE, false)};
    mr_feed_text text = {.tokenizer = tokenizer, .column = "image_description", .most = TEXT};
    MUST(mr_feed_open(ds, &o, &text, COUNT, device, &feed, &err));
    MUST(mr_feed_next(&feed, &in, &weight, &err));
    write_input(&feed, &in, path);
    mr_feed_close(&feed);
    mr_tokenizer_free(tokenizer);
    mr_device_close(device);
    mr_dataset_free(ds);
}

static void transformers_gives_the_same_embeddings(void **state)
{
    const char *dir = *state;
    make_input(dir);
    support_result r =
        train_command(0, dir, 0, "predict", "data", "run", "--embeddings", "ours.npz", "--threads", "1", (char *)NULL);
    support_result_free(&r);
    r = support_python("train/model/bridgetower/bridgetower_hub.py",
                       (const char *[]){"embed", "run/step-00000024", "given.npz", "ours.npz", NULL},
                       &(support_limits){.directory = dir});
    json_t *said = json_loads(strrchr(r.out, '{') ? strrchr(r.out, '{') : r.out, 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(said, "rows")), COUNT);
    double worst = json_number_value(json_object_get(said, "worst"));
    if (!(worst < 1e-5))
        fail_msg("transformers' embeddings are off by %g", worst);
    assert_int_equal(json_array_size(json_object_get(said, "missing")), 0);
    assert_int_equal(json_array_size(json_object_get(said, "unexpected")), 0);
    json_decref(said);
    support_result_free(&r);
}

static void weights_in_parts_are_read(void **state)
{
    const char *dir = *state;
    support_result r = support_python("train/model/bridgetower/bridgetower_hub.py",
                                      (const char *[]){"shard", "run/step-00000024", "parts", NULL},
                                      &(support_limits){.directory = dir});
    support_result_free(&r);
    IN(whole_log, "whole.jsonl");
    IN(parts_log, "parts.jsonl");
    IN(index_log, "index.jsonl");
    static const char *const from[][2] = {
        {"run/step-00000024", "whole.jsonl"},
        {"parts", "parts.jsonl"},
        {"parts/model.safetensors.index.json", "index.jsonl"},
    };
    for (size_t i = 0; i < 3; i++)
        train_pairs_expect(0, dir, 0, "--heads", "2", "--steps", "2", "--pretrained", from[i][0], "--log", from[i][1],
                           (char *)NULL);
    assert_true(train_log_distance(whole_log, parts_log, "loss") == 0);
    assert_true(train_log_distance(whole_log, index_log, "loss") == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transformers_gives_the_same_embeddings),
        cmocka_unit_test(weights_in_parts_are_read),
    };
    return cmocka_run_group_tests(tests, set_up, support_tmpdir_tear_down);
}
