/* test_hub.c - tensors of transformers and timm into the flat buffer.
 * Invariant tested: what is written under the names of transformers comes back to the bit under those, without "vit.",
 * and under timm's, whose query, key and value are one tensor.  Covers train/model/vit/hub.c,
 * train/model/vit/hub_names.c. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"
#include "tests/support/support.h"
#include "train/files/safetensors.h"
#include "train/model/vit/hub.h"

enum { HIDDEN = 12, MLP = 20, LAYERS = 2, CLASSES = 3, MOST = 128 };

typedef struct fixture {
    char *dir, *path;
    mr_model_config config;
    mr_params params;
    float *values;
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    mr_error err;
    f->dir = support_tmpdir();
    f->path = support_path("%s/model.safetensors", f->dir);
    f->config = (mr_model_config){.iface = &mr_model_vit,
                                  .image = 8,
                                  .patch = 4,
                                  .hidden = HIDDEN,
                                  .layers = LAYERS,
                                  .heads = 3,
                                  .mlp = MLP,
                                  .classes = CLASSES};
    assert_int_equal(mr_model_vit.params(&f->config, &f->params, &err), MR_OK);
    f->values = calloc(f->params.total, sizeof *f->values);
    for (size_t i = 0; i < f->params.count; i++)
        for (uint64_t k = 0; k < f->params.items[i].count; k++)
            f->values[f->params.items[i].offset + k] = (float)(1000 * i) + (float)k;
    int fd = open(f->path, O_CREAT | O_RDWR | O_TRUNC, 0600);
    assert_int_equal(mr_vit_hub.write(&f->params, f->values, fd, f->path, &err), MR_OK);
    close(fd);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    support_tmpdir_remove(f->dir);
    mr_params_release(&f->params);
    free(f->values);
    free(f->path);
    free(f);
    return 0;
}

/* Everything but the head, which is zero. */
static void check_body(const fixture *f, const char *path)
{
    float *back = malloc(f->params.total * sizeof *back);
    mr_buf said = {0};
    mr_error err;
    if (mr_vit_hub_load(&f->params, path, back, &said, &err) != MR_OK)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < f->params.count; i++) {
        const mr_param *p = &f->params.items[i];
        bool head = strncmp(p->name, "head/", 5) == 0;
        for (uint64_t k = 0; k < p->count; k++)
            if (back[p->offset + k] != (head ? 0 : f->values[p->offset + k]))
                fail_msg("%s[%llu]", p->name, (unsigned long long)k);
    }
    free(back);
    mr_buf_free(&said);
}

static void read_as_written(void **state)
{
    const fixture *f = *state;
    float *kernel = NULL, *bias = NULL;
    uint32_t classes = 0;
    mr_error err;
    check_body(f, f->path);
    check_body(f, f->dir);
    assert_int_equal(mr_vit_hub.head(f->path, HIDDEN, &classes, &kernel, &bias, &err), MR_OK);
    assert_int_equal(classes, CLASSES);
    assert_memory_equal(kernel, f->values + mr_params_find(&f->params, "head/kernel")->offset,
                        HIDDEN * CLASSES * sizeof(float));
    assert_memory_equal(bias, f->values + mr_params_find(&f->params, "head/bias")->offset, CLASSES * sizeof(float));
    free(kernel);
    free(bias);
    assert_int_equal(mr_vit_hub.head(f->path, HIDDEN + 1, &classes, &kernel, &bias, &err), MR_END);
}

/* A file of other tensors, made from those of `f` by name: each of `names` is copied from, or joined of, `parts`. */
typedef struct made {
    mr_tensor_source tensors[MOST];
    char names[MOST][96];
    size_t count;
    mr_safetensors *from;
} made;

static void add(made *m, const char *name, const char *const *parts, size_t count)
{
    mr_error err;
    const mr_tensor *first = mr_safetensors_find(m->from, parts[0]);
    if (!first)
        fail_msg("no %s", parts[0]);
    float *values = malloc(count * first->count * sizeof *values);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(
            mr_safetensors_take(m->from, mr_safetensors_find(m->from, parts[i]), values + i * first->count, &err),
            MR_OK);
    mr_tensor_source *t = &m->tensors[m->count];
    snprintf(m->names[m->count], sizeof m->names[0], "%s", name);
    *t = (mr_tensor_source){.name = m->names[m->count++], .dims = first->dims, .values = values};
    memcpy(t->shape, first->shape, sizeof t->shape);
    t->shape[0] *= count;
}

static void write_made(made *m, const char *path)
{
    mr_error err;
    int fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
    assert_int_equal(mr_safetensors_write(fd, path, m->tensors, m->count, NULL, &err), MR_OK);
    close(fd);
    for (size_t i = 0; i < m->count; i++)
        free((void *)(uintptr_t)m->tensors[i].values);
    mr_safetensors_free(m->from);
}

static void add_timm_block(made *m, unsigned block)
{
    static const struct {
        const char *timm, *parts[3];
    } tensors[] = {
        {"norm1", {"layernorm_before"}},
        {"norm2", {"layernorm_after"}},
        {"attn.qkv", {"attention.attention.query", "attention.attention.key", "attention.attention.value"}},
        {"attn.proj", {"attention.output.dense"}},
        {"mlp.fc1", {"intermediate.dense"}},
        {"mlp.fc2", {"output.dense"}},
    };
    static const char *const kinds[] = {"weight", "bias"};
    for (size_t i = 0; i < MR_COUNT(tensors); i++)
        for (size_t k = 0; k < 2; k++) {
            char name[96], parts[3][96];
            const char *lent[3];
            size_t count = tensors[i].parts[1] ? 3 : 1;
            snprintf(name, sizeof name, "blocks.%u.%s.%s", block, tensors[i].timm, kinds[k]);
            for (size_t p = 0; p < count; p++) {
                snprintf(parts[p], sizeof parts[p], "vit.encoder.layer.%u.%s.%s", block, tensors[i].parts[p], kinds[k]);
                lent[p] = parts[p];
            }
            add(m, name, lent, count);
        }
}

static void add_timm_outside(made *m)
{
    static const char *const tensors[][2] = {
        {"cls_token", "vit.embeddings.cls_token"},
        {"pos_embed", "vit.embeddings.position_embeddings"},
        {"patch_embed.proj.weight", "vit.embeddings.patch_embeddings.projection.weight"},
        {"patch_embed.proj.bias", "vit.embeddings.patch_embeddings.projection.bias"},
        {"norm.weight", "vit.layernorm.weight"},
        {"norm.bias", "vit.layernorm.bias"},
        {"head.weight", "classifier.weight"},
        {"head.bias", "classifier.bias"},
    };
    for (size_t i = 0; i < MR_COUNT(tensors); i++)
        add(m, tensors[i][0], &tensors[i][1], 1);
}

static void names_of_timm(void **state)
{
    const fixture *f = *state;
    made m = {0};
    mr_error err;
    mr_buf said = {0};
    char *path = support_path("%s/timm.safetensors", f->dir);
    float *kernel = NULL, *bias = NULL, *values = malloc(f->params.total * sizeof *values);
    uint32_t classes = 0;
    assert_int_equal(mr_safetensors_open(f->path, &m.from, &err), MR_OK);
    for (unsigned i = 0; i < LAYERS; i++)
        add_timm_block(&m, i);
    add_timm_outside(&m);
    write_made(&m, path);
    check_body(f, path);
    assert_int_equal(mr_vit_hub.head(path, HIDDEN, &classes, &kernel, &bias, &err), MR_OK);
    assert_int_equal(classes, CLASSES);
    free(kernel);
    free(bias);

    /* A tensor too many, as layer scales are. */
    m = (made){0};
    assert_int_equal(mr_safetensors_open(path, &m.from, &err), MR_OK);
    for (size_t i = 0; i < mr_safetensors_count(m.from); i++) {
        const char *name = mr_safetensors_at(m.from, i)->name;
        add(&m, name, &name, 1);
    }
    add(&m, "blocks.0.ls1.gamma", (const char *const[]){"norm.weight"}, 1);
    write_made(&m, path);
    assert_int_equal(mr_vit_hub_load(&f->params, path, values, &said, &err), MR_BAD_DATA);
    assert_non_null(strstr(err.text, "'blocks.0.ls1.gamma' [12] is not a parameter of this model"));
    free(values);
    free(path);
    mr_buf_free(&said);
}

static void names_without_vit(void **state)
{
    const fixture *f = *state;
    made m = {0};
    mr_error err;
    mr_buf said = {0};
    char *path = support_path("%s/bare.safetensors", f->dir);
    float *values = malloc(f->params.total * sizeof *values);
    assert_int_equal(mr_safetensors_open(f->path, &m.from, &err), MR_OK);
    for (size_t i = 0; i < mr_safetensors_count(m.from); i++) {
        const char *name = mr_safetensors_at(m.from, i)->name;
        if (strncmp(name, "vit.", 4) == 0)
            add(&m, name + 4, &name, 1);
    }
    add(&m, "pooler.dense.weight", (const char *const[]){"vit.embeddings.cls_token"}, 1);
    write_made(&m, path);
    check_body(f, path);

    m = (made){0};
    assert_int_equal(mr_safetensors_open(f->path, &m.from, &err), MR_OK);
    add(&m, "other", (const char *const[]){"classifier.bias"}, 1);
    write_made(&m, path);
    assert_int_equal(mr_vit_hub_load(&f->params, path, values, &said, &err), MR_BAD_DATA);
    assert_non_null(strstr(err.text, "not a Vision Transformer of transformers or timm"));
    free(values);
    free(path);
    mr_buf_free(&said);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_as_written),
        cmocka_unit_test(names_of_timm),
        cmocka_unit_test(names_without_vit),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
