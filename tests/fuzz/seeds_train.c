/* seeds_train.c - the first inputs of the trainer's fuzz targets: OUT/npz, OUT/checkpoint, OUT/safetensors,
 * OUT/tensors_json, OUT/config, OUT/facts, OUT/journal, OUT/run, OUT/kernels. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "train/model/bridgetower/parts.h"
#include "train/checkpoint/parts.h"
#include "train/files/safetensors.h"
#include "train/setup/settings.h"
#include "tests/fuzz/seeds.h"
#include "tests/support/sources/archive.h"
#include "tests/support/training/checkpoint.h"

static const char *const headers[] = {
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n",
    "{'shape': (3L,), 'fortran_order': False, 'descr': '|u1'}",
    "{\"descr\": \"<i8\", 'fortran_order': False, 'shape': ()}",
    "{'descr': '>f4', 'fortran_order': True, 'shape': (2, 3)}",
    "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3)}",
};

/* A .npy of version 2 with its first header, and as many zeros as that asks for. */
static size_t make_npy(uint8_t *npy)
{
    size_t words = strlen(headers[0]);
    memcpy(npy, "\x93NUMPY\2", 8);
    npy[8] = (uint8_t)words;
    memcpy(npy + 12, headers[0], words);
    return 12 + words + 24;
}

static void seed_npz(const char *tmp)
{
    char *path = support_path("%s/a.npz", tmp);
    uint8_t npy[200] = {0}, zeros[64] = {0};
    size_t len = make_npy(npy);
    for (size_t i = 0; i < MR_COUNT(headers); i++) {
        char name[16];
        snprintf(name, sizeof name, "header-%zu", i);
        seed("npz", name, headers[i], strlen(headers[i]));
    }
    const support_entry entries[] = {{.path = "a.npy", .bytes = npy, .len = len},
                                     {.path = "b/c.npy", .bytes = npy, .len = len}};
    support_archive(path, "zip-deflate", entries, 2);
    seed_file("npz", "deflated", path);
    support_archive(path, "zip", entries, 2);
    seed_file("npz", "stored", path);

    static const mr_npz_array arrays[] = {{"cls", MR_NPZ_F32, 3, {1, 1, 8}, 8},
                                          {"y", MR_NPZ_I64, 1, {2}, 2},
                                          {"a/pixels", MR_NPZ_U8, 0, {0}, 1},
                                          {"none", MR_NPZ_F32, 2, {0, 3}, 0}};
    mr_npz_writer *w;
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    assert_int_equal(mr_npz_create(fd, path, &w, NULL), MR_OK);
    for (size_t i = 0; i < MR_COUNT(arrays); i++)
        assert_int_equal(mr_npz_add(w, &arrays[i], zeros, NULL), MR_OK);
    assert_int_equal(mr_npz_finish(w, NULL, NULL), MR_OK);
    close(fd);
    seed_file("npz", "ours", path);
    free(path);
}

static void seed_state(const char *name, mr_checkpoint c, double best_accuracy, uint64_t tokenizer)
{
    const mr_digest digests[MR_FILES] = {{.bytes = 1000}, {.bytes = 2000}, {.bytes = 300}, {.bytes = tokenizer}};
    mr_buf text = {0};
    c.best_accuracy = best_accuracy;
    assert_int_equal(mr_state_write(&c, digests, &text, NULL), MR_OK);
    seed("checkpoint", name, text.data, text.len);
    mr_buf_free(&text);
    mr_checkpoint_release(&c);
}

static void seed_checkpoint(void)
{
    seed_state("sgd", make_checkpoint(100, MR_SGD), -1, 0);
    seed_state("adamw", make_checkpoint(100, MR_ADAMW), 0.5, 0);
    seed_state("pairs", make_pair_checkpoint(100, MR_ADAMW), 0.5, 4000);
    seed("checkpoint", "name", "step-00000200", 13);
}

/* Facts as train writes them, of a run with standard options; and a log of two runs. */
static void seed_run(void)
{
    static const char few[] =
        "{\"options\":{\"lr\":\"0.1\",\"flip\":\"yes\",\"split\":\"a\\\\x41\"},\"classes\":[\"a\"]}";
    static const char log[] = "{\"step\": 1, \"loss\": 2.5}\n{\"step\": 2}\n{\"step\": 1}\n{\"step\": 2}\n{\"step\": 3,"
                              " \"eval_loss\": null}\nnote\n{\"step\": 4}\n{\"step\": 5";
    static const char labels[] = "{\"step\": 1, \"split\": \"val\", \"sample\": 3, \"label\": \"a\", \"predicted\": "
                                 "\"b\", \"probability\": 0.5, \"loss\": 1}\n";
    static const char searches[] = "{\"step\": 1, \"split\": \"val\", \"sample\": 3, \"words\": \"two\", \"found\": "
                                   "[[1, 0.5, true], [2, 0.25, false]]}\n";
    /* One record: step 5, x = 1. */
    static const uint8_t events[] = {0x17, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xE7, 0xCE, 0xF8, 0x1E, 0x09,
                                     0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xF0, 0x3F, 0x10, 0x05, 0x2A, 0x0A, 0x0A,
                                     0x08, 0x0A, 0x01, 0x78, 0x15, 0x00, 0x00, 0x80, 0x3F, 0xBE, 0x3D, 0x17, 0xC8};
    mr_settings s;
    assert_int_equal(mr_settings_begin(&s, NULL), MR_OK);
    json_t *facts = json_pack("{s:[s,s], s:{s:s, s:i, s:s}, s:o, s:s, s:i}", "classes", "a", "caf\xC3\xA9", "transform",
                              "eval", "square", "size", 224, "orientation", "apply", "options", mr_settings_json(&s),
                              "text_column", "captions", "global_batch", 32);
    char *text = json_dumps(facts, JSON_INDENT(1));
    assert_non_null(text);
    seed("facts", "standard", text, strlen(text));
    seed("facts", "few", few, sizeof few - 1);
    seed("journal", "log", log, sizeof log - 1);
    seed("run", "labels", labels, sizeof labels - 1);
    seed("run", "searches", searches, sizeof searches - 1);
    seed("run", "events", events, sizeof events);
    free(text);
    json_decref(facts);
}

/* A header alone, and followed by that many zeros. */
static void seed_tensors(const char *name, const char *header, size_t data)
{
    uint8_t file[600] = {(uint8_t)strlen(header), (uint8_t)(strlen(header) >> 8)};
    assert_true(8 + strlen(header) + data <= sizeof file);
    memcpy(file + 8, header, strlen(header));
    seed("tensors_json", name, header, strlen(header));
    seed("safetensors", name, file, 8 + strlen(header) + data);
}

static void seed_safetensors(const char *tmp)
{
    static const char index[] = "{\"metadata\":{\"total_size\":8},\"weight_map\":{\"a\":\"1.safetensors\","
                                "\"b.c\":\"2.safetensors\"}}";
    const float values[6] = {1, -2, 3e30f};
    const mr_tensor_source tensors[] = {
        {"a.weight", 2, {2, 3}, values}, {"b", 0, {0}, values}, {"none", 3, {4, 0, 1}, values}};
    char *path = support_path("%s/a.safetensors", tmp);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    assert_int_equal(mr_safetensors_write(fd, path, tensors, MR_COUNT(tensors), NULL, NULL), MR_OK);
    close(fd);
    seed_file("safetensors", "ours", path);
    free(path);
    seed_tensors("types",
                 "{\"h\":{\"dtype\":\"F16\",\"shape\":[3],\"data_offsets\":[0,6]},\"b\":{\"dtype\":\"BF16\","
                 "\"shape\":[1,1],\"data_offsets\":[6,8]},\"position_ids\":{\"dtype\":\"I64\",\"shape\":[1,2],"
                 "\"data_offsets\":[8,24]}}",
                 24);
    seed_tensors("wide", "{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,2],\"data_offsets\":[0,2]}} ", 2);
    seed_tensors("empty", "{}", 0);
    seed("tensors_json", "index", index, strlen(index));
}

static void seed_config(void)
{
    static const char bare[] = "{\"contrastive_hidden_size\":8,\"logit_scale_init_value\":2.5,\"text_config\":null}";
    mr_model_config tiny = {.image = 16,
                            .patch = 8,
                            .hidden = 64,
                            .layers = 2,
                            .heads = 2,
                            .mlp = 32,
                            .cross_layers = 1,
                            .vocab = 100,
                            .positions = 20,
                            .embed = 8,
                            .text = 16,
                            .norm_eps = 1e-5,
                            .logit_scale = 2.5};
    const mr_model_config *configs[] = {&tiny, &mr_bt_presets[0]};
    for (size_t i = 0; i < MR_COUNT(configs); i++) {
        mr_buf text = {0};
        assert_int_equal(mr_bt_describe(configs[i], &text, NULL), MR_OK);
        seed("config", i ? "preset" : "tiny", text.data, text.len);
        mr_buf_free(&text);
    }
    seed("config", "bare", bare, strlen(bare));
}

/* Numbers as in training, and any bytes; what is run follows from the first of them. */
static void seed_kernels(void)
{
    mr_random r;
    mr_random_seed(&r, 1);
    for (unsigned i = 0; i < 32; i++) {
        float numbers[64];
        char name[16];
        for (size_t k = 0; k < MR_COUNT(numbers); k++)
            numbers[k] = (float)mr_random_real(&r, -2, 2);
        if (i % 2)
            mr_random_bytes(&r, numbers, sizeof numbers);
        snprintf(name, sizeof name, "%u", i);
        seed("kernels", name, numbers, sizeof numbers);
    }
}

void seed_train(const char *tmp)
{
    seed_npz(tmp);
    seed_checkpoint();
    seed_run();
    seed_safetensors(tmp);
    seed_config();
    seed_kernels();
}
