/* test_load.c - weights from other trainers: what is loaded, left out, reported and refused. */
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/training/npz.h"
#include "train/model/vit/vit.h"

enum { CLASSES = 4, THEIR_CLASSES = 21 };

typedef struct folder {
    char *dir, *path; /* of the file */
    mr_model_config config;
    mr_params params; /* of `config` */
    float *values;
    mr_buf said;
    mr_error err;
} folder;

static mr_model_config config_of(uint32_t image, uint32_t classes)
{
    return (mr_model_config){.iface = &mr_model_vit,
                             .name = "vit",
                             .image = image,
                             .patch = 4,
                             .hidden = 8,
                             .layers = 2,
                             .heads = 2,
                             .mlp = 12,
                             .classes = classes};
}

static folder folder_open(void)
{
    folder f = {.dir = support_tmpdir(), .config = config_of(12, CLASSES)};
    f.path = support_path("%s/weights.npz", f.dir);
    assert_int_equal(f.config.iface->params(&f.config, &f.params, &f.err), MR_OK);
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

static mr_status load(folder *f)
{
    mr_buf_clear(&f->said);
    f->err = (mr_error){0};
    memset(f->values, 0xFF, f->params.total * sizeof *f->values);
    return f->config.iface->load(&f->config, &f->params, f->path, f->values, &f->said, &f->err);
}

/* ---- files that the test makes ----------------------------------------------------------------------------------- */

/* How the file differs from a good one. */
typedef struct change {
    const char *drop;        /* a key that is missing */
    const char *rename, *to; /* a key that has another name */
    const char *reshape;     /* a key whose first side is one longer */
    const char *retype;      /* a key of int64 */
    const char *infinite;    /* a key that holds one infinity */
    const char *extra;       /* one more key, [3] */
    bool pre_logits, no_head;
} change;

static float value_of(size_t param, uint64_t k)
{
    return (float)param + (float)k / 1024;
}

static void add(mr_npz_writer *w, mr_npz_array *a, size_t param, const change *c, bool odd)
{
    mr_error err;
    void *elements;
    a->count = 1;
    for (unsigned i = 0; i < a->dims; i++)
        a->count *= a->shape[i];
    elements = mr_alloc(a->count, 8);
    assert_non_null(elements);
    for (uint64_t k = 0; k < a->count && a->type == MR_NPZ_F32; k++)
        ((float *)elements)[k] = odd && c->infinite && k == 1 ? INFINITY : value_of(param, k);
    if (mr_npz_add(w, a, elements, &err))
        fail_msg("%s", err.text);
    free(elements);
}

static bool is(const char *key, const char *name)
{
    return key && strcmp(key, name) == 0;
}

static void add_param(mr_npz_writer *w, const mr_param *p, size_t i, const change *c)
{
    mr_npz_array a = {.dims = p->dims, .type = is(c->retype, p->name) ? MR_NPZ_I64 : MR_NPZ_F32};
    if (is(c->drop, p->name) || (c->no_head && strncmp(p->name, "head/", 5) == 0))
        return;
    snprintf(a.name, sizeof a.name, "%s", is(c->rename, p->name) ? c->to : p->name);
    for (unsigned k = 0; k < p->dims; k++)
        a.shape[k] = p->shape[k] + (k == 0 && is(c->reshape, p->name));
    add(w, &a, i, c, is(c->infinite, p->name));
}

/* The file of a model with `image` pixels and its own head; keys in reverse, since their order must not matter. */
static void make(const folder *f, uint32_t image, const change *c)
{
    mr_model_config theirs = config_of(image, THEIR_CLASSES);
    mr_params p = {0};
    mr_npz_writer *w;
    mr_error err;
    int fd = open(f->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(theirs.iface->params(&theirs, &p, &err), MR_OK);
    assert_int_equal(mr_npz_create(fd, f->path, &w, &err), MR_OK);
    for (size_t i = p.count; i-- > 0;)
        add_param(w, &p.items[i], i, c);
    mr_npz_array more = {.dims = 1, .shape = {3}};
    if (c->extra) {
        snprintf(more.name, sizeof more.name, "%s", c->extra);
        add(w, &more, 0, c, false);
    }
    if (c->pre_logits) {
        snprintf(more.name, sizeof more.name, "pre_logits/kernel");
        add(w, &more, 0, c, false);
        snprintf(more.name, sizeof more.name, "pre_logits/bias");
        add(w, &more, 0, c, false);
    }
    if (mr_npz_finish(w, NULL, &err))
        fail_msg("%s", err.text);
    close(fd);
    mr_params_release(&p);
}

/* ---- what is loaded ---------------------------------------------------------------------------------------------- */

static void assert_taken(const folder *f, bool positions)
{
    uint64_t end = 0;
    for (size_t i = 0; i < f->params.count; i++) {
        const mr_param *p = &f->params.items[i];
        bool head = strncmp(p->name, "head/", 5) == 0, skipped = !positions && strstr(p->name, "pos_embedding");
        for (; end < p->offset; end++)
            assert_true(f->values[end] == 0); /* gaps */
        for (uint64_t k = 0; k < p->count && !skipped; k++)
            assert_true(f->values[p->offset + k] == (head ? 0 : value_of(i, k)));
        end = p->offset + p->count;
    }
}

static void takes_all_but_the_head(void **state)
{
    const change plain = {0}, from_21k = {.pre_logits = true}, headless = {.no_head = true};
    folder f = folder_open();
    (void)state;
    make(&f, 12, &plain);
    assert_int_equal(load(&f), MR_OK);
    assert_taken(&f, true);
    assert_string_equal(mr_buf_text(&f.said),
                        "head not loaded: it has 21 classes; a new head of 4 classes starts from zeros\n");
    make(&f, 12, &from_21k);
    assert_int_equal(load(&f), MR_OK);
    assert_taken(&f, true);
    assert_non_null(strstr(mr_buf_text(&f.said), "pre_logits not loaded"));
    make(&f, 12, &headless);
    assert_int_equal(load(&f), MR_OK);
    assert_taken(&f, true);
    assert_non_null(strstr(mr_buf_text(&f.said), "no head"));
    folder_close(&f);
}

static void resizes_positions(void **state)
{
    const change plain = {0};
    const char *name = "Transformer/posembed_input/pos_embedding";
    folder f = folder_open();
    (void)state;
    make(&f, 20, &plain); /* 5 x 5 patches become 3 x 3 */
    assert_int_equal(load(&f), MR_OK);
    assert_taken(&f, false);
    assert_non_null(strstr(mr_buf_text(&f.said), "position embedding resized from 5 x 5 to 3 x 3 patches\n"));
    const mr_param *p = mr_params_find(&f.params, name);
    float in[(1 + 25) * 8], want[(1 + 9) * 8];
    for (uint64_t k = 0; k < MR_COUNT(in); k++)
        in[k] = value_of((size_t)(p - f.params.items), k);
    mr_vit_resize_positions(in, 5, want, 3, 8);
    assert_int_equal(p->count, MR_COUNT(want));
    assert_memory_equal(f.values + p->offset, want, sizeof want);
    folder_close(&f);
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

static void expect_refusal(folder *f, const change *c, const char *const *words)
{
    make(f, 12, c);
    assert_int_equal(load(f), MR_BAD_DATA);
    if (!strstr(f->err.text, f->path))
        fail_msg("no file in: %s", f->err.text);
    for (; *words; words++)
        if (!strstr(f->err.text, *words))
            fail_msg("no %s in: %s", *words, f->err.text);
}

static void refuses_by_name(void **state)
{
    const char *query = "Transformer/encoderblock_1/MultiHeadDotProductAttention_1/query/kernel";
    const char *norm = "Transformer/encoder_norm/scale", *positions = "Transformer/posembed_input/pos_embedding";
    const struct {
        change c;
        const char *words[4];
    } cases[] = {
        {{.drop = query}, {"has no", query, "[8, 2, 4]"}},
        {{.drop = "cls", .rename = norm, .to = "head/scale"}, {"'cls'", "[1, 1, 8]", "1 more"}},
        {{.rename = norm, .to = "Transformer/encoder_norm/gain"}, {"'Transformer/encoder_norm/gain'", "[8]"}},
        {{.extra = "Transformer/encoderblock_2/LayerNorm_0/scale"}, {"encoderblock_2", "[3]", "--model"}},
        {{.extra = "params/cls"}, {"'params/cls'", "big_vision"}},
        {{.reshape = query}, {query, "[9, 2, 4]", "[8, 2, 4]"}},
        {{.reshape = positions}, {positions, "[2, 10, 8]", "[1, 10, 8]"}},
        {{.retype = norm}, {norm, "int64", "float32"}},
        {{.infinite = norm}, {norm, "inf", "element 1"}},
    };
    folder f = folder_open();
    (void)state;
    for (size_t i = 0; i < MR_COUNT(cases); i++)
        expect_refusal(&f, &cases[i].c, cases[i].words);
    folder_close(&f);
}

/* A file of positions alone: it is refused in the end, as nothing else is in it. */
static void load_positions(folder *f, const uint64_t shape[3])
{
    const change plain = {0};
    mr_npz_array a = {
        .name = "Transformer/posembed_input/pos_embedding", .dims = 3, .shape = {shape[0], shape[1], shape[2]}};
    mr_npz_writer *w;
    int fd = open(f->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(mr_npz_create(fd, f->path, &w, &f->err), MR_OK);
    add(w, &a, 0, &plain, false);
    assert_int_equal(mr_npz_finish(w, NULL, &f->err), MR_OK);
    close(fd);
    assert_int_equal(load(f), MR_BAD_DATA);
}

/* Positions whose number is not a square and one. */
static void refuses_odd_positions(void **state)
{
    const uint64_t shapes[][3] = {{1, 9, 8}, {1, 1, 8}, {1, 17, 9}, {10, 1, 8}};
    folder f = folder_open();
    (void)state;
    for (size_t i = 0; i < MR_COUNT(shapes); i++) {
        char text[64];
        load_positions(&f, shapes[i]);
        mr_shape_text(3, shapes[i], text, sizeof text);
        assert_non_null(strstr(f.err.text, text));
        assert_non_null(strstr(f.err.text, "[1, 10, 8]"));
    }
    folder_close(&f);
}

/* What a table takes to be resized is its file's to say. */
static void refuses_vast_positions(void **state)
{
    enum { MAX = 256 };
    folder f = folder_open();
    (void)state;
    load_positions(&f, (const uint64_t[]){1, 1 + MAX * MAX, 8});
    assert_non_null(strstr(mr_buf_text(&f.said), "position embedding resized from 256 x 256 to 3 x 3 patches"));
    load_positions(&f, (const uint64_t[]){1, 1 + (MAX + 1) * (MAX + 1), 8});
    assert_non_null(strstr(f.err.text, "pos_embedding' is of 257 x 257 patches; up to 256 x 256 are resized"));
    folder_close(&f);
}

/* Whatever is cut off or changed, it ends with a sentence; CRC and directory are checked: hardly a change is taken. */
static void survives_damage(void **state)
{
    const change plain = {0};
    folder f = folder_open();
    mr_random r = support_random();
    size_t len, taken = 0;
    (void)state;
    assert_int_equal(load(&f), MR_SYSTEM); /* there is no file */
    make(&f, 12, &plain);
    uint8_t *good = support_read(f.path, &len);
    for (int i = 0; i < 200; i++) {
        uint8_t *bad = malloc(len);
        size_t n = i % 2 ? len : mr_random_below(&r, len);
        assert_non_null(bad);
        memcpy(bad, good, len);
        bad[mr_random_below(&r, len)] ^= (uint8_t)(1 << mr_random_below(&r, 8));
        support_write(f.path, bad, n);
        mr_status status = load(&f);
        assert_true(status == MR_OK || (status == MR_BAD_DATA && f.err.text[0]));
        assert_true(i % 2 || status != MR_OK);
        taken += status == MR_OK;
        free(bad);
    }
    assert_true(taken < 30);
    free(good);
    folder_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_all_but_the_head), cmocka_unit_test(resizes_positions),
        cmocka_unit_test(refuses_by_name),        cmocka_unit_test(refuses_odd_positions),
        cmocka_unit_test(refuses_vast_positions), cmocka_unit_test(survives_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
