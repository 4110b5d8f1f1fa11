/* test_checkpoint_hostile.c - checkpoints that were damaged, or edited and sealed anew.
 * Invariant: each is refused by MR_BAD_DATA, and the sentence names the file, and the key where there is one. */
#include "support_checkpoint.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint_parts.h"
#include "manifest.h"

static const char *const files[] = {"weights.npz", "optimizer.npz", "state.json"};

/* Expects a refusal that has these words in it. */
static void refused(const char *dir, const char *a, const char *b)
{
    mr_checkpoint c = {0};
    mr_error err = {0};
    char *found = NULL;
    mr_status status = mr_checkpoint_read(dir, false, true, &c, &found, &err);
    if (status != MR_BAD_DATA || err.status != MR_BAD_DATA || !strstr(err.text, a) || !strstr(err.text, b))
        fail_msg("%s, %s: status %d: %s", a, b, status, err.text);
    assert_null(found);
    assert_null(c.values);
}

static void test_damage(void **state)
{
    mr_random rnd = support_random();
    for (size_t f = 0; f < MR_COUNT(files); f++) {
        char *out = support_path("%s/run", (char *)*state), *dir = support_path("%s/step-00000010", out);
        char *path = support_path("%s/%s", dir, files[f]), *away = support_path("%s/away", (char *)*state);
        size_t len;
        put_step(out, 10, 0, 0.5, 10);
        uint8_t *bytes = support_read(path, &len);
        for (int i = 0; i < 300; i++) {
            size_t at = i < 40 ? (size_t)i : i < 80 ? len - 1 - (size_t)(i - 40) : mr_random_below(&rnd, len);
            uint8_t bit = (uint8_t)(1u << mr_random_below(&rnd, 8));
            bytes[at] ^= bit;
            support_write(path, bytes, len);
            refused(out, files[f], "damaged");
            bytes[at] ^= bit;
        }
        const size_t cuts[] = {0, 1, len / 2, len - 1};
        for (size_t i = 0; i < MR_COUNT(cuts); i++) {
            support_write(path, bytes, cuts[i]);
            refused(out, files[f], "damaged");
        }
        uint8_t *more = realloc(bytes, len + 1);
        assert_non_null(more);
        support_write(path, more, len + 1);
        refused(out, files[f], "damaged");
        support_write(path, more, len);
        mr_checkpoint c = read_checkpoint(out);
        mr_checkpoint_release(&c);
        assert_int_equal(rename(path, away), 0);
        refused(out, files[f], "missing");
        refused(dir, files[f], "missing");
        assert_int_equal(symlink(away, path), 0);
        refused(out, files[f], "link");
        unlink(path);
        free(more);
        free(away);
        free(path);
        free(dir);
        free(out);
    }
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

/* The text of a state with `from` replaced by `to`, sealed anew. */
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

static void test_edited_state(void **state)
{
    static const struct {
        const char *from, *to, *file, *why;
    } edits[] = {
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
        {"\"optimizer\": \"sgd\"", "\"optimizer\": \"adamw\"", "optimizer.npz", "'momentum/cls' is nothing"},
        {"\"accuracy\": 0.333", "\"accuracy\": 7.333", "state.json", "\"accuracy\""},
        {"\"best_accuracy\": null", "\"best_accuracy\": \"none\"", "state.json", "\"best_accuracy\""},
        {"\"best_update\": 0", "\"best_update\": 11", "state.json", "\"best_update\""},
        {"\"card\": \"vit\"", "\"card\": \"ViT-B_16\"", "state.json", "\"card\""},
        {"\"name\": \"vit\"", "\"name\": \"a model by a name of much too many letters\"", "state.json", "\"name\""},
        {"\"hidden\": 8", "\"hidden\": 0", "state.json", "\"model\" makes no sense"},
        {"\"hidden\": 8", "\"hidden\": 4294967296", "state.json", "\"hidden\""},
        {"\"hidden\": 8", "\"hidden\": 4294967288", "state.json", "\"model\" makes no sense"},
        {"\"hidden\": 8", "\"hidden\": 1048576", "weights.npz", "too small"},
        {"\"hidden\": 8", "\"hidden\": 6", "weights.npz", "'cls' has the shape [1, 1, 8], the model needs [1, 1, 6]"},
        {"\"heads\": 2", "\"heads\": 4", "weights.npz",
         "query/kernel' has the shape [8, 2, 4], the model needs [8, 4, 2]"},
        {"\"layers\": 2", "\"layers\": 4000", "state.json", "\"layers\""},
        {"\"layers\": 2", "\"layers\": 1", "weights.npz", "nothing that this model has"},
        {"\"layers\": 2", "\"layers\": 3", "weights.npz", "encoderblock_2/LayerNorm_0/scale' is missing"},
        {"\"classes\": 3", "\"classes\": 4", "weights.npz", "head/kernel"},
        {"\"dropout\": 0.1", "\"dropout\": 1.5", "state.json", "dropout"},
        {"\"compute\": \"float32\"", "\"compute\": \"float8\"", "state.json", "\"compute\""},
        {"\"every_token\": false", "\"every_token\": 0", "state.json", "\"every_token\""},
        {"\"weights.npz\": {", "\"weights.npz.\": {", "state.json", "\"weights.npz\""},
        {"\"bytes\": ", "\"bytes\": 9", "weights.npz", "bytes"},
        {"\"xxh3_128\": \"", "\"xxh3_128\": \"0", "state.json", "32 hex digits"},
        {"\"facts\": {", "\"facts\": [], \"fact\": {", "state.json", "\"facts\""},
        {"\"facts\": {", "\"facts\": {}, \"facts\": {", "state.json", "duplicate"},
        {"{\n", "[\n", "state.json", "line"},
    };
    char *dir = support_path("%s/step-00000010", (char *)*state), *path = support_path("%s/state.json", dir);
    size_t len;
    put_step(*state, 10, 0, -1, 0);
    char *text = (char *)support_read(path, &len);
    for (size_t i = 0; i < MR_COUNT(edits); i++) {
        mr_buf bad = edited(text, len, edits[i].from, edits[i].to);
        support_write(path, bad.data, bad.len);
        refused(*state, edits[i].file, edits[i].why);
        mr_buf_free(&bad);
    }
    mr_buf same = edited(text, len, "\"update\"", "\"update\"");     /* the edit alone is no fault */
    support_write(path, same.data, same.len);
    mr_checkpoint c = read_checkpoint(*state);
    mr_checkpoint_release(&c);
    mr_buf_free(&same);
    free(text);
    free(path);
    free(dir);
}

/* A checkpoint's name without what belongs in it is damage, not "none here": a run must not begin anew over it. */
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
    static const char *const bad[] = {"step-0000001", "step-000000001", "step-", "step-0000000x", "step-+0000001",
                                      "step-00000001 ", "step-99999999999999999999", "steps-00000001",
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
        IN_TMPDIR(test_damage),
        IN_TMPDIR(test_without_optimizer),
        IN_TMPDIR(test_edited_state),
        IN_TMPDIR(test_empty_step),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests_name("checkpoint_hostile", tests, NULL, NULL);
}
