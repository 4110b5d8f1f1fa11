/* test_load.c - weights of the hub: what is loaded, left out, reported and refused.
 * Invariant tested: the files are written by this test, not by the writer that belongs to the reader under test. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/model/bridgetower/parts.h"
#include "train/files/safetensors.h"
#include "base/json/json.h"
#include "tests/support/training/npz.h"

#define PLACES "bridgetower.vision_model.visual.embeddings.position_embedding.weight"
#define QUERY  "bridgetower.cross_modal_text_layers.0.crossattention.self.query.weight"
#define NORM   "bridgetower.cross_modal_image_link_tower.0.LayerNorm.weight"

typedef struct folder {
    char *dir, *path; /* of the file */
    mr_model_config config;
    mr_params params; /* of `config` */
    float *values;
    mr_buf said;
    mr_error err;
} folder;

static folder folder_open(void)
{
    folder f = {.dir = support_tmpdir(),
                .config = {.name = "bridgetower",
                           .image = 16,
                           .patch = 8,
                           .hidden = 64,
                           .layers = 2,
                           .heads = 4,
                           .mlp = 8,
                           .cross_layers = 2,
                           .vocab = 10,
                           .positions = 8,
                           .embed = 4,
                           .text = 6,
                           .norm_eps = 1e-5,
                           .logit_scale = 2.6592}};
    f.path = support_path("%s/model.safetensors", f.dir);
    assert_int_equal(mr_bt_params(&f.config, &f.params, &f.err), MR_OK);
    f.values = mr_alloc(f.params.total, sizeof *f.values);
    assert_non_null(f.values);
    return f;
}

static void folder_close(folder *f)
{
    mr_params_release(&f->params);
    mr_buf_free(&f->said);
    free(f->values);
    free(f->path);
    support_tmpdir_remove(f->dir);
}

static mr_status load_from(folder *f, const char *path)
{
    mr_buf_clear(&f->said);
    f->err = (mr_error){0};
    memset(f->values, 0xFF, f->params.total * sizeof *f->values);
    return mr_bt_load(&f->config, &f->params, path, f->values, &f->said, &f->err);
}

static mr_status load(folder *f)
{
    return load_from(f, f->path);
}

/* ---- files that the test makes ---------------------------------------------------------------------------------- */

/* How the file differs from a good one. */
typedef struct change {
    const char *drop[3]; /* beginnings of names that are missing */
    const char *rename, *to;
    const char *reshape, *widen; /* its first side is one longer, its last */
    const char *shape;           /* of PLACES, in place of its own; as many bytes as that takes, rows of 64 */
    const char *integers;        /* a name of type I64 */
    const char *odd;             /* a name whose element 1 is `value` */
    float value;
    const char *extra[6]; /* more names, [2] of I64 each */
} change;

static float value_of(size_t param, uint64_t k)
{
    return (float)param + (float)k / 4096;
}

static bool is(const char *a, const char *b)
{
    return a && strcmp(a, b) == 0;
}

static bool dropped(const change *c, const char *name)
{
    for (size_t i = 0; i < MR_COUNT(c->drop) && c->drop[i]; i++)
        if (strncmp(name, c->drop[i], strlen(c->drop[i])) == 0)
            return true;
    return false;
}

typedef struct file {
    mr_buf header, bytes;
} file;

static void add_tensor(file *f, const char *name, const char *type, const char *shape, const void *bytes, size_t len)
{
    mr_buf_printf(&f->header, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}",
                  f->header.len ? "," : "{", name, type, shape, f->bytes.len, f->bytes.len + len);
    mr_buf_add(&f->bytes, bytes, len);
}

static void add_param(file *f, const mr_param *p, size_t i, const change *c)
{
    bool integers = is(c->integers, p->name);
    const char *name = is(c->rename, p->name) ? c->to : p->name;
    uint64_t shape[MR_PARAM_DIMS], count = p->count;
    char text[64];
    if (dropped(c, p->name))
        return;
    memcpy(shape, p->shape, sizeof shape);
    if (is(c->reshape, p->name) || is(c->widen, p->name)) {
        unsigned side = is(c->widen, p->name) ? p->dims - 1 : 0;
        count += count / shape[side]++;
    }
    mr_shape_text(p->dims, shape, text, sizeof text);
    if (c->shape && strcmp(p->name, PLACES) == 0) {
        snprintf(text, sizeof text, "%s", c->shape);
        count = 64 * strtoull(c->shape + 1, NULL, 10);
    }
    float *values = mr_alloc(count, 8);
    assert_non_null(values);
    for (uint64_t k = 0; k < count && !integers; k++)
        values[k] = is(c->odd, p->name) && k == 1 ? c->value : value_of(i, k);
    add_tensor(f, name, integers ? "I64" : "F32", text, values, count * (integers ? 8 : 4));
    free(values);
}

static void save(file *f, const char *path)
{
    mr_buf whole = {0};
    mr_buf_add_text(&f->header, "}");
    while (f->header.len % 8)
        mr_buf_add_text(&f->header, " ");
    uint64_t len = f->header.len;
    uint8_t size[8];
    for (int i = 0; i < 8; i++)
        size[i] = (uint8_t)(len >> 8 * i);
    mr_buf_add(&whole, size, sizeof size);
    mr_buf_add(&whole, f->header.data, f->header.len);
    mr_buf_add(&whole, f->bytes.data, f->bytes.len);
    assert_false(whole.failed || f->header.failed || f->bytes.failed);
    support_write(path, whole.data, whole.len);
    mr_buf_free(&whole);
    mr_buf_free(&f->header);
    mr_buf_free(&f->bytes);
}

/* Names in reverse, since their order must not matter. */
static void make(const folder *f, const change *c)
{
    static const int64_t two[2] = {1, 2};
    file out = {0};
    for (size_t i = f->params.count; i-- > 0;)
        add_param(&out, &f->params.items[i], i, c);
    for (size_t i = 0; i < MR_COUNT(c->extra) && c->extra[i]; i++)
        add_tensor(&out, c->extra[i], "I64", "[2]", two, sizeof two);
    save(&out, f->path);
}

static void assert_taken(const folder *f)
{
    uint64_t end = 0;
    for (size_t i = 0; i < f->params.count; i++) {
        const mr_param *p = &f->params.items[i];
        for (; end < p->offset; end++)
            assert_true(f->values[end] == 0); /* gaps */
        for (uint64_t k = 0; k < p->count; k++)
            assert_true(f->values[p->offset + k] == value_of(i, k));
        end = p->offset + p->count;
    }
    for (; end < f->params.total; end++)
        assert_true(f->values[end] == 0);
}

/* ---- what is loaded --------------------------------------------------------------------------------------------- */

static void takes_all(void **state)
{
    const change plain = {0};
    folder f = folder_open();
    (void)state;
    make(&f, &plain);
    assert_int_equal(load(&f), MR_OK);
    assert_taken(&f);
    assert_string_equal(mr_buf_text(&f.said), "");
    assert_int_equal(load_from(&f, f.dir), MR_OK);
    assert_taken(&f);
    folder_close(&f);
}

/* A model in two files with an index. */
static void takes_shards(void **state)
{
    const change plain = {0};
    folder f = folder_open();
    json_t *map = json_object(), *index = json_pack("{s:{}, s:O}", "metadata", "weight_map", map);
    (void)state;
    for (size_t part = 0; part < 2; part++) {
        file out = {0};
        char *name = support_path("part-%zu.safetensors", part), *path = support_path("%s/%s", f.dir, name);
        for (size_t i = part; i < f.params.count; i += 2) {
            add_param(&out, &f.params.items[i], i, &plain);
            json_object_set_new(map, f.params.items[i].name, json_string(name));
        }
        save(&out, path);
        free(name);
        free(path);
    }
    char *text = json_dumps(index, 0), *path = support_path("%s/model.safetensors.index.json", f.dir);
    support_write_text(path, text);
    assert_int_equal(load_from(&f, path), MR_OK);
    assert_taken(&f);
    assert_int_equal(load_from(&f, f.dir), MR_OK);
    assert_taken(&f);
    free(text);
    free(path);
    json_decref(index);
    json_decref(map);
    folder_close(&f);
}

static void says_what_is_left_out(void **state)
{
    const change one = {.extra = {"bridgetower.text_model.embeddings.position_ids"}};
    const change many = {.extra = {"zz\\u001b[2J", "mlm_score.decoder.weight", "itm_score.fc.weight", "mlm_score.bias",
                                   "bridgetower.text_model.pooler.dense.weight",
                                   "bridgetower.text_model.pooler.dense.bias"}};
    const change escape = {.extra = {"\\u001b[2J"}};
    folder f = folder_open();
    (void)state;
    make(&f, &one);
    assert_int_equal(load(&f), MR_OK);
    assert_taken(&f);
    assert_string_equal(mr_buf_text(&f.said), "1 tensor not loaded, because this model does not have them: "
                                              "'bridgetower.text_model.embeddings.position_ids'\n");
    make(&f, &many);
    assert_int_equal(load(&f), MR_OK);
    assert_taken(&f);
    assert_string_equal(
        mr_buf_text(&f.said),
        "text_model.pooler not loaded: matching images and texts does not use it\n"
        "4 tensors not loaded, because this model does not have them: 'itm_score.fc.weight', 'mlm_score.bias', "
        "'mlm_score.decoder.weight', ...\n");
    make(&f, &escape);
    mr_status status = load(&f); /* such a name may be refused as well */
    assert_true(status == MR_OK || status == MR_BAD_DATA);
    assert_null(strchr(mr_buf_text(&f.said), '\033'));
    folder_close(&f);
}

/* The parity fixture, as transformers saved it, by its own configuration. */
static void takes_the_fixture(void **state)
{
    char *facts_path = support_parity("bt_a.json"), *path = support_parity("bt_a_weights.safetensors");
    folder f = folder_open();
    (void)state;
    if (!facts_path || !path) {
        print_message("skipped: no bt_a.json and bt_a_weights.safetensors in the parity folder (MILLRACE_PARITY)\n");
        free(facts_path);
        free(path);
        folder_close(&f);
        skip();
    }
    json_t *facts = json_load_file(facts_path, 0, NULL);
    char *config = support_path("%s/config.json", f.dir), *text = json_dumps(json_object_get(facts, "hf_config"), 0);
    mr_safetensors *s;
    assert_non_null(text);
    support_write_text(config, text);
    assert_int_equal(mr_bt_configure(config, &f.config, &f.err), MR_OK);
    mr_params_release(&f.params);
    assert_int_equal(mr_bt_params(&f.config, &f.params, &f.err), MR_OK);
    assert_int_equal(f.params.elements, json_integer_value(json_object_get(facts, "n_params")));
    free(f.values);
    f.values = mr_alloc(f.params.total, sizeof *f.values);
    if (load_from(&f, path))
        fail_msg("%s", f.err.text);
    assert_string_equal(mr_buf_text(&f.said), "");
    assert_int_equal(mr_safetensors_open(path, &s, &f.err), MR_OK);
    assert_int_equal(mr_safetensors_count(s), f.params.count);
    for (size_t i = 0; i < f.params.count; i++) {
        const mr_param *p = &f.params.items[i];
        const mr_tensor *t = mr_safetensors_find(s, p->name);
        float *want = mr_alloc(p->count, sizeof *want);
        assert_true(t && want && t->count == p->count);
        assert_int_equal(mr_safetensors_take(s, t, want, &f.err), MR_OK);
        assert_memory_equal(f.values + p->offset, want, p->count * sizeof *want);
        free(want);
    }
    mr_safetensors_free(s);
    json_decref(facts);
    free(text);
    free(config);
    free(facts_path);
    free(path);
    folder_close(&f);
}

/* ---- what is refused -------------------------------------------------------------------------------------------- */

static void expect_refusal(folder *f, const change *c, const char *const *words)
{
    make(f, c);
    assert_int_equal(load(f), MR_BAD_DATA);
    if (!strstr(f->err.text, f->path))
        fail_msg("no file in: %s", f->err.text);
    for (; *words; words++)
        if (!strstr(f->err.text, *words))
            fail_msg("no %s in: %s", *words, f->err.text);
}

static void refuses_by_name(void **state)
{
    const struct {
        change c;
        const char *words[5];
    } cases[] = {
        {{.drop = {QUERY}}, {"has no '" QUERY "' [64, 64]; use the config.json"}},
        {{.drop = {QUERY, NORM}}, {QUERY, "and 1 more"}},
        {{.drop = {"itc_", "logit_scale"}}, {"'itc_text_head.fc.weight' [4, 64] and 6 more", "another task"}},
        {{.drop = {"logit_scale"}}, {"has no 'logit_scale' []", "another task"}},
        {{.drop = {"itc_", "logit_scale", NORM}}, {NORM, "and 7 more; use the config.json"}},
        {{.drop = {"bridgetower"}}, {"word_embeddings.weight", "use the config.json"}},
        {{.rename = NORM, .to = "bridgetower.link"}, {"has no '" NORM "' [64]"}},
        {{.reshape = QUERY}, {QUERY, "[65, 64], this model needs [64, 64]", "config.json"}},
        {{.widen = QUERY}, {QUERY, "[64, 65], this model needs [64, 64]", "config.json"}},
        {{.shape = "[10,64]"}, {PLACES, "[10, 64], this model needs [5, 64]", "--image-size 24"}},
        {{.shape = "[2,64]"}, {PLACES, "[2, 64]", "--image-size 8"}},
        {{.shape = "[9,64]"}, {PLACES, "[9, 64]", "config.json"}},
        {{.shape = "[10,8,8]"}, {PLACES, "[10, 8, 8]", "config.json"}},
        {{.shape = "[1,64]"}, {PLACES, "[1, 64]", "config.json"}},
        {{.integers = NORM}, {NORM}},
        {{.odd = NORM, .value = INFINITY}, {"'" NORM "' holds inf at element 1"}},
        {{.odd = NORM, .value = NAN}, {"'" NORM "' holds", "nan at element 1"}},
    };
    folder f = folder_open();
    (void)state;
    for (size_t i = 0; i < MR_COUNT(cases); i++)
        expect_refusal(&f, &cases[i].c, cases[i].words);
    folder_close(&f);
}

/* Whatever is cut off or changed, it ends with a sentence or with finite numbers. */
static void survives_damage(void **state)
{
    const change plain = {0};
    folder f = folder_open();
    mr_random r = support_random();
    size_t len;
    (void)state;
    assert_int_equal(load(&f), MR_SYSTEM); /* there is no file */
    make(&f, &plain);
    uint8_t *good = support_read(f.path, &len);
    uint64_t header = 8 + good[0] + 256U * good[1] + 65536U * good[2];
    uint8_t *bad = malloc(len);
    assert_non_null(bad);
    for (int i = 0; i < 150; i++) {
        size_t n = i % 3 ? len : mr_random_below(&r, len);
        memcpy(bad, good, len);
        for (int k = i % 3 ? i % 5 : 0; k >= 0; k--)
            bad[mr_random_below(&r, i % 3 == 1 ? header : len)] ^= (uint8_t)(1 << mr_random_below(&r, 8));
        support_write(f.path, bad, n);
        mr_status status = load(&f);
        assert_true(status == MR_OK || (status == MR_BAD_DATA && f.err.text[0]));
        assert_true(i % 3 || status != MR_OK);
        for (uint64_t k = 0; k < f.params.total && !status; k++)
            assert_true(isfinite(f.values[k]));
    }
    free(bad);
    free(good);
    folder_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_all),         cmocka_unit_test(takes_shards),    cmocka_unit_test(says_what_is_left_out),
        cmocka_unit_test(takes_the_fixture), cmocka_unit_test(refuses_by_name), cmocka_unit_test(survives_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
