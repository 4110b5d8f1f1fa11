/* test_checkpoint_hostile.c - checkpoints that were damaged, or edited and resealed.
 * Invariant tested: each is rejected with MR_BAD_DATA, and the message names the file, and the key where there is
 * one. */
#include "tests/support/training/checkpoint.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train/checkpoint/parts.h"
#include "train/files/safetensors.h"
#include "shards/manifest/manifest.h"

/* The files of the two ways in which weights are kept. */
static const char *const files[] = {"weights.npz", "optimizer.npz", "state.json"};
static const char *const pair_files[] = {"model.safetensors", "config.json", "tokenizer.json", "optimizer.npz",
                                         "state.json"};

static void put_pair_step(const char *output, uint64_t update)
{
    mr_checkpoint c = make_pair_checkpoint(update, MR_SGD);
    write_checkpoint(&c, output, 0);
    mr_checkpoint_release(&c);
}

/* Expects a refusal that has these words in it. */
static void refused(const char *dir, const char *a, const char *b)
{
    mr_checkpoint c = {0};
    mr_error err = {0};
    char *found = NULL;
    mr_status status = mr_checkpoint_read(dir, false, true, &c, &found, &err);
    if (status != MR_BAD_DATA || err.status != MR_BAD_DATA || !strstr(err.text, a) || !strstr(err.text, b))
        fail_msg("%s, %s: status %d: %s", a, b, status, err.text);
    assert_non_null(found); /* which one it is, for the way around it */
    free(found);
    assert_null(c.values);
}

/* One file of a whole checkpoint changed in many ways, cut, made longer, taken away. */
static void damage(const char *tmp, const char *out, const char *file, int rounds)
{
    mr_random rnd = support_random();
    char *dir = support_path("%s/step-00000010", out), *path = support_path("%s/%s", dir, file);
    char *away = support_path("%s/away", tmp);
    size_t len;
    uint8_t *bytes = support_read(path, &len);
    for (int i = 0; i < rounds; i++) {
        size_t at = i < 40 ? (size_t)i : i < 80 ? len - 1 - (size_t)(i - 40) : mr_random_below(&rnd, len);
        uint8_t bit = (uint8_t)(1u << mr_random_below(&rnd, 8));
        bytes[at % len] ^= bit;
        support_write(path, bytes, len);
        refused(out, file, "damaged");
        bytes[at % len] ^= bit;
    }
    const size_t cuts[] = {0, 1, len / 2, len - 1};
    for (size_t i = 0; i < MR_COUNT(cuts); i++) {
        support_write(path, bytes, cuts[i]);
        refused(out, file, "damaged");
    }
    uint8_t *more = realloc(bytes, len + 1);
    assert_non_null(more);
    support_write(path, more, len + 1);
    refused(out, file, "damaged");
    support_write(path, more, len);
    mr_checkpoint c = read_checkpoint(out);
    mr_checkpoint_release(&c);
    assert_int_equal(rename(path, away), 0);
    refused(out, file, "missing");
    refused(dir, file, "missing");
    assert_int_equal(symlink(away, path), 0);
    refused(out, file, "link");
    unlink(path);
    assert_int_equal(rename(away, path), 0);
    free(more);
    free(away);
    free(path);
    free(dir);
}

static void test_damage(void **state)
{
    char *out = support_path("%s/run", (char *)*state), *pairs = support_path("%s/pairs", (char *)*state);
    put_step(out, 10, 0, 0.5, 10);
    for (size_t f = 0; f < MR_COUNT(files); f++)
        damage(*state, out, files[f], 300);
    put_pair_step(pairs, 10);
    for (size_t f = 0; f < MR_COUNT(pair_files); f++)
        damage(*state, pairs, pair_files[f], 100);
    free(pairs);
    free(out);
}

static void test_without_optimizer(void **state)
{
    char *path = support_path("%s/step-00000010/optimizer.npz", (char *)*state);
    mr_checkpoint c;
    mr_error err;
    put_step(*state, 10, 0, -1, 0);
    unlink(path);
    if (mr_checkpoint_read(*state, false, false, &c, NULL, &err) != MR_OK)
        fail_msg("%s", err.text);
    assert_null(c.state[0]);
    mr_checkpoint_release(&c);
    free(path);
}

/* The text of a state with `from` replaced by `to`, resealed. */
static mr_buf edited(const char *text, size_t len, const char *from, const char *to)
{
    mr_buf out = {0};
    const char *at = strstr(text, from), *seal = strstr(text, ",\n \"seal\"");
    if (!at || !seal || at > seal)
        fail_msg("%s does not stand in the state", from);
    mr_buf_add(&out, text, (size_t)(at - text));
    mr_buf_add_text(&out, to);
    mr_buf_add(&out, at + strlen(from), (size_t)(seal - at) - strlen(from));
    mr_buf_add_text(&out, "\n}\n");
    assert_int_equal(mr_manifest_seal(&out, 0, NULL), MR_OK);
    assert_true(len > 0);
    return out;
}

typedef struct edit {
    const char *from, *to, *file, *why;
} edit;

/* Each edit alone is refused; none at all is not. */
static void try_edits(const char *out, const edit *edits, size_t count)
{
    char *dir = support_path("%s/step-00000010", out), *path = support_path("%s/state.json", dir);
    size_t len;
    char *text = (char *)support_read(path, &len);
    for (size_t i = 0; i < count; i++) {
        mr_buf bad = edited(text, len, edits[i].from, edits[i].to);
        support_write(path, bad.data, bad.len);
        refused(out, edits[i].file, edits[i].why);
        mr_buf_free(&bad);
    }
    mr_buf same = edited(text, len, "\"update\"", "\"update\""); /* the edit alone is not a fault */
    support_write(path, same.data, same.len);
    mr_checkpoint c = read_checkpoint(out);
    mr_checkpoint_release(&c);
    mr_buf_free(&same);
    free(text);
    free(path);
    free(dir);
}

static void test_edited_state(void **state)
{
    static const edit edits[] = {
        {"\"millrace\": \"checkpoint\"", "\"millrace\": \"dataset\"", "state.json", "not a checkpoint"},
        {"\"format\": 1", "\"format\": 2", "state.json", "has format 2"},
        {"\"update\": 10", "\"update\": -10", "state.json", "\"update\""},
        {"\"update\": 10", "\"update\": 10.5", "state.json", "\"update\""},
        {"\"update\": 10", "\"update\": 18446744073709551616", "state.json", "too big"},
        {"\"cursor\": {", "\"cursors\": {", "state.json", "\"cursor\""},
        {"\"position\": 80", "\"position\": \"80\"", "state.json", "\"position\""},
        {"\"seed\": \"", "\"seed\": \"9", "state.json", "\"seed\""},
        {"\"seed\": \"", "\"seed\": \"-", "state.json", "\"seed\""},
        {"\"optimizer\": \"sgd\"", "\"optimizer\": \"lamb\"", "state.json", "\"optimizer\""},
        {"\"optimizer\": \"sgd\"", "\"optimizer\": \"adamw\"", "optimizer.npz", "'momentum/cls' is not a parameter"},
        {"\"accuracy\": 0.333", "\"accuracy\": 7.333", "state.json", "\"accuracy\""},
        {"\"best_accuracy\": null", "\"best_accuracy\": \"none\"", "state.json", "\"best_accuracy\""},
        {"\"best_update\": 0", "\"best_update\": 11", "state.json", "\"best_update\""},
        {"\"card\": \"vit\"", "\"card\": \"ViT-B_16\"", "state.json", "\"card\""},
        {"\"name\": \"vit\"", "\"name\": \"a model by a name of much too many letters\"", "state.json", "\"name\""},
        {"\"image\": 12", "\"images\": 12", "state.json", "\"image\" is missing"},
        {"\"hidden\": 8", "\"hidden\": 0", "state.json", "\"model\" is not valid"},
        {"\"hidden\": 8", "\"hidden\": 4294967296", "state.json", "\"hidden\""},
        {"\"hidden\": 8", "\"hidden\": 4294967288", "state.json", "\"model\" is not valid"},
        {"\"hidden\": 8", "\"hidden\": 1048576", "weights.npz", "too small"},
        {"\"hidden\": 8", "\"hidden\": 6", "weights.npz", "'cls' has the shape [1, 1, 8], the model needs [1, 1, 6]"},
        {"\"heads\": 2", "\"heads\": 4", "weights.npz",
         "query/kernel' has the shape [8, 2, 4], the model needs [8, 4, 2]"},
        {"\"layers\": 2", "\"layers\": 1000", "state.json", "\"layers\""},
        {"\"layers\": 2", "\"layers\": 1", "weights.npz", "not a parameter of this model"},
        {"\"layers\": 2", "\"layers\": 3", "weights.npz", "encoderblock_2/LayerNorm_0/scale' is missing"},
        {"\"classes\": 3", "\"classes\": 4", "weights.npz", "head/kernel"},
        {"\"dropout\": 0.1", "\"dropout\": 1.5", "state.json", "dropout"},
        {"\"compute\": \"float32\"", "\"compute\": \"float8\"", "state.json", "\"compute\""},
        {"\"every_token\": false", "\"every_token\": 0", "state.json", "\"every_token\""},
        {"\"weights.npz\": {", "\"weights.npz.\": {", "state.json", "\"weights.npz\""},
        {"\"bytes\": ", "\"bytes\": 9", "weights.npz", "bytes"},
        {"\"xxh3_128\": \"", "\"xxh3_128\": \"0", "state.json", "32 hex digits"},
        {"\"facts\": {", "\"facts\": [], \"fact\": {", "state.json", "\"facts\""},
        {"\"facts\": {", "\"facts\": {}, \"facts\": {", "state.json", "duplicate key"},
        {"{\n", "[\n", "state.json", "line"},
        {"\"frozen\": 0", "\"frozen\": 4", "state.json", "\"frozen\""},
        {"\"norm_eps\": 0.0", "\"norm_eps\": 0", "state.json", "\"norm_eps\""},
        {"\"files\": {",
         "\"files\": {\"tokenizer.json\": {\"bytes\": 67108865, \"xxh3_128\": "
         "\"00000000000000000000000000000000\"}, ",
         "state.json", "more than 64 MiB"},
        {"\"files\": {",
         "\"files\": {\"tokenizer.json\": {\"bytes\": 7, \"xxh3_128\": "
         "\"00000000000000000000000000000000\"}, ",
         "tokenizer.json", "missing"},
    };
    put_step(*state, 10, 0, -1, 0);
    try_edits(*state, edits, MR_COUNT(edits));
}

static void test_edited_pair_state(void **state)
{
    static const edit edits[] = {
        {"\"vocab\": 11", "\"vocab\": 0", "state.json", "\"model\" is not valid"},
        {"\"vocab\": 11", "\"vocab\": 12", "model.safetensors", "has the shape [11, 64], the model needs [12, 64]"},
        {"\"vocab\": 11", "\"vocab\": 1000000", "model.safetensors", "too small"},
        {"\"cross_layers\": 1", "\"cross_layers\": -1", "state.json", "\"cross_layers\""},
        {"\"card\": \"bridgetower\"", "\"card\": \"vit\"", "state.json", "\"model\" is not valid"},
        {"\"model.safetensors\": {", "\"weights.npz\": {", "state.json", "\"model.safetensors\""},
        {"\"config.json\": {", "\"config\": {", "state.json", "\"config.json\""},
        {"\"tokenizer.json\": {", "\"tokenizer.json\": [], \"other\": {", "state.json", "\"tokenizer.json\""},
        {"\"logit_scale\": 2", "\"logit_scale\": 1e300, \"other\": 2", "state.json", "\"model\" is not valid"},
    };
    put_pair_step(*state, 10);
    try_edits(*state, edits, MR_COUNT(edits));
}

/* As a millrace before pairs wrote it: without the members that came with them. */
static void test_older_state(void **state)
{
    static const char *const later[] = {"cross_layers",      "vocab",    "positions",  "embed", "text", "frozen",
                                        "attention_dropout", "norm_eps", "logit_scale"};
    char *path = support_path("%s/step-00000010/state.json", (char *)*state);
    put_step(*state, 10, 0, -1, 0);
    for (size_t i = 0; i < MR_COUNT(later); i++) {
        size_t len;
        char *text = (char *)support_read(path, &len), *line = support_path("\n  \"%s\": 0", later[i]);
        char *at = strstr(text, line), *end = at ? strchr(at + 1, '\n') : NULL;
        if (!end)
            fail_msg("%s does not stand in the state as 0", later[i]);
        char *whole = support_path("%.*s", (int)(end - at), at);
        mr_buf without = edited(text, len, whole, "");
        support_write(path, without.data, without.len);
        mr_buf_free(&without);
        free(whole);
        free(line);
        free(text);
    }
    mr_checkpoint c = make_checkpoint(10, MR_SGD), back = read_checkpoint(*state);
    assert_same_checkpoint(&c, &back, true);
    mr_checkpoint_release(&back);
    mr_checkpoint_release(&c);
    free(path);
}

/* Puts the digest of the present bytes into state.json: the file must be refused all the same. */
static void seal_tensors(const char *out)
{
    char *path = support_path("%s/step-00000010/model.safetensors", out);
    char *state = support_path("%s/step-00000010/state.json", out), hex[33];
    size_t len, file_len;
    uint8_t *file = support_read(path, &file_len), hash[16];
    char *text = (char *)support_read(state, &len), *at = strstr(text, "\"model.safetensors\": {");
    assert_non_null(at);
    char *old = support_path("%.*s", (int)(strchr(at, '}') - at), at);
    mr_hash128(file, file_len, hash);
    mr_hex(hash, sizeof hash, hex);
    char *now = support_path("\"model.safetensors\": {\"bytes\": %zu, \"xxh3_128\": \"%s\"", file_len, hex);
    mr_buf sealed = edited(text, len, old, now);
    support_write(state, sealed.data, sealed.len);
    mr_buf_free(&sealed);
    free(now);
    free(old);
    free(text);
    free(file);
    free(state);
    free(path);
}

static void write_tensors(const char *out, const mr_tensor_source *tensors, size_t count)
{
    char *path = support_path("%s/step-00000010/model.safetensors", out);
    int fd = open(path, O_RDWR | O_TRUNC | O_CLOEXEC);
    assert_int_equal(mr_safetensors_write(fd, path, tensors, count, NULL, NULL), MR_OK);
    close(fd);
    free(path);
    seal_tensors(out);
}

/* The first tensor's type becomes another of the same size. */
static void change_type(const char *out)
{
    char *path = support_path("%s/step-00000010/model.safetensors", out);
    size_t len;
    uint8_t *file = support_read(path, &len), *at = memmem(file, len, "\"F32\"", 5);
    assert_non_null(at);
    at[1] = 'I';
    support_write(path, file, len);
    free(file);
    free(path);
    seal_tensors(out);
}

static void test_other_tensors(void **state)
{
    put_pair_step(*state, 10);
    mr_checkpoint c = make_pair_checkpoint(10, MR_SGD);
    const size_t count = c.params.count;
    mr_tensor_source *tensors = calloc(count + 1, sizeof *tensors);
    assert_non_null(tensors);
    for (size_t i = 0; i < count; i++) {
        const mr_param *p = &c.params.items[i];
        tensors[count - 1 - i] = (mr_tensor_source){.name = p->name, .dims = p->dims, .values = c.values + p->offset};
        memcpy(tensors[count - 1 - i].shape, p->shape, p->dims * sizeof *p->shape);
    }
    write_tensors(*state, tensors, count); /* the order means nothing */
    mr_checkpoint back = read_checkpoint(*state);
    assert_same_checkpoint(&c, &back, true);
    mr_checkpoint_release(&back);
    tensors[count] = (mr_tensor_source){.name = "one.more", .values = c.values};
    write_tensors(*state, tensors, count + 1);
    refused(*state, "model.safetensors", "'one.more' is not a parameter of this model");
    const char *name = tensors[3].name;
    tensors[3].name = "renamed";
    write_tensors(*state, tensors, count);
    refused(*state, "model.safetensors", "is missing");
    tensors[3].name = name;
    write_tensors(*state, tensors, count);
    change_type(*state);
    refused(*state, "model.safetensors", "is not float32");
    size_t flat = 0;
    while (tensors[flat].dims != 2)
        flat++;
    tensors[flat].dims = 1;
    write_tensors(*state, tensors, count);
    refused(*state, "model.safetensors", "has the shape");
    tensors[flat].dims = 3;
    tensors[flat].shape[2] = 1;
    write_tensors(*state, tensors, count);
    refused(*state, "model.safetensors", "has the shape");
    mr_checkpoint_release(&c);
    free(tensors);
}

/* A checkpoint's name without what belongs in it is damage, not "none here": a run must not start again over it. */
static void test_empty_step(void **state)
{
    char *dir = support_path("%s/step-00000010", (char *)*state), *path = support_path("%s/x", dir);
    support_write_text(path, "");
    refused(dir, "state.json", "missing");
    refused(*state, "state.json", "missing");
    free(path);
    free(dir);
}

static void test_names(void **state)
{
    static const char *const bad[] = {"step-0000001",
                                      "step-000000001",
                                      "step-",
                                      "step-0000000x",
                                      "step-+0000001",
                                      "step-00000001 ",
                                      "step-99999999999999999999",
                                      "steps-00000001",
                                      ".step-00000001"};
    uint64_t update;
    char name[MR_STEP_NAME];
    (void)state;
    for (size_t i = 0; i < MR_COUNT(bad); i++)
        if (mr_step_parse(bad[i], &update))
            fail_msg("%s is taken for a checkpoint", bad[i]);
    const uint64_t good[] = {0, 1, 99999999, 100000000, UINT64_MAX};
    for (size_t i = 0; i < MR_COUNT(good); i++) {
        mr_step_name(good[i], name);
        assert_true(mr_step_parse(name, &update) && update == good[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(test_damage),       IN_TMPDIR(test_without_optimizer),
        IN_TMPDIR(test_edited_state), IN_TMPDIR(test_edited_pair_state),
        IN_TMPDIR(test_older_state),  IN_TMPDIR(test_other_tensors),
        IN_TMPDIR(test_empty_step),   cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests_name("checkpoint_hostile", tests, NULL, NULL);
}
