/* hub_config.c - transformers' config.json of a Vision Transformer, read and written, and preprocessor_config.json.
 * Invariant: what is read is accepted only if ViTForImageClassification would build the same model from it.
 * Source: transformers 4.55.4, models/vit/configuration_vit.py for names and default values, and
 * models/vit/image_processing_vit.py. */
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "train/model/vit/hub.h"
#include "train/model/vit/vit.h"

enum {
    MAX_FILE = 16 << 20,
    MAX_DOCUMENT = 256 << 20,
    BILINEAR = 2,
    BICUBIC = 3
}; /* a class is a line; PIL's filters */

/* With transformers' default for an absent member. */
static const struct {
    const char *key;
    size_t offset;
    uint32_t usual;
} sizes[] = {
    {"image_size", offsetof(mr_model_config, image), 224},
    {"patch_size", offsetof(mr_model_config, patch), 16},
    {"hidden_size", offsetof(mr_model_config, hidden), 768},
    {"num_hidden_layers", offsetof(mr_model_config, layers), 12},
    {"num_attention_heads", offsetof(mr_model_config, heads), 12},
    {"intermediate_size", offsetof(mr_model_config, mlp), 3072},
};

/* ---- from config.json -------------------------------------------------------------------------------------------- */

static mr_status check_variant(const json_t *doc, const char *path, mr_error *err)
{
    const char *type = json_string_value(json_object_get(doc, "model_type"));
    const char *activation = json_string_value(json_object_get(doc, "hidden_act"));
    const json_t *channels = json_object_get(doc, "num_channels"), *bias = json_object_get(doc, "qkv_bias");
    if (!type || strcmp(type, "vit") != 0)
        return mr_fail(err, MR_BAD_DATA, "%s: model_type is %s; this model is vit", path, type ? type : "not a text");
    if (activation && strcmp(activation, "gelu") != 0)
        return mr_fail(err, MR_BAD_DATA, "%s: hidden_act is %s; only gelu is supported", path, activation);
    if (channels && json_integer_value(channels) != 3)
        return mr_fail(err, MR_BAD_DATA, "%s: num_channels is not 3", path);
    if (json_is_false(bias))
        return mr_fail(err, MR_BAD_DATA, "%s: qkv_bias is false; only true is supported", path);
    return MR_OK;
}

static mr_status read_sizes(const json_t *doc, const char *path, mr_model_config *c, mr_error *err)
{
    for (size_t i = 0; i < MR_COUNT(sizes); i++) {
        const json_t *value = json_object_get(doc, sizes[i].key);
        json_int_t n = value ? json_integer_value(value) : sizes[i].usual;
        if (n < 1 || n > UINT32_MAX)
            return mr_fail(err, MR_BAD_DATA, "%s: %s is not an integer of at least 1", path, sizes[i].key);
        uint32_t size = (uint32_t)n;
        memcpy((char *)c + sizes[i].offset, &size, sizeof size);
    }
    const json_t *eps = json_object_get(doc, "layer_norm_eps");
    c->norm_eps = eps ? json_number_value(eps) : 1e-12;
    if (!(c->norm_eps > 0 && c->norm_eps < 1))
        return mr_fail(err, MR_BAD_DATA, "%s: layer_norm_eps is not a number above 0 and below 1", path);
    return MR_OK;
}

/* A preset's, if its shape is this one. */
static void name_shape(mr_model_config *c)
{
    snprintf(c->name, sizeof c->name, "vit");
#define X(word, patch_, hidden_, layers_, heads_, mlp_)                                                                \
    if (c->patch == (patch_) && c->hidden == (hidden_) && c->layers == (layers_) && c->heads == (heads_) &&            \
        c->mlp == (mlp_))                                                                                              \
        snprintf(c->name, sizeof c->name, "%s", word);
    MR_VIT_SHAPES(X)
#undef X
}

mr_status mr_vit_hub_configure(const char *path, mr_model_config *c, mr_error *err)
{
    MR_AUTO(json_decrefp) json_t *doc = NULL;
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    mr_model_config found = *c;
    MR_TRY(mr_file_read_all(AT_FDCWD, path, MAX_FILE, &text, err));
    MR_TRY(mr_json_bounded(text.data, text.len, MAX_DOCUMENT, path, err));
    MR_TRY(mr_json_parse(text.data, text.len, path, &doc, err));
    if (json_is_object(doc) && !json_object_get(doc, "model_type"))
        return MR_END;
    MR_TRY(check_variant(doc, path, err));
    MR_TRY(read_sizes(doc, path, &found, err));
    name_shape(&found);
    *c = found;
    return MR_OK;
}

/* ---- to config.json ---------------------------------------------------------------------------------------------- */

static json_t *class_names(const json_t *facts, bool by_name)
{
    const json_t *classes = json_object_get(facts, "classes"), *name;
    json_t *map = json_object();
    size_t i;
    char number[24];
    json_array_foreach(classes, i, name)
    {
        snprintf(number, sizeof number, "%zu", i);
        const char *text = json_string_value(name);
        bool added = text && (by_name ? json_object_set_new(map, text, json_integer((json_int_t)i))
                                      : json_object_set_new(map, number, json_string(text))) == 0;
        if (!added) {
            json_decref(map);
            return NULL;
        }
    }
    return map;
}

static json_t *describe(const mr_model_config *c, const json_t *facts)
{
    const char *loss = json_string_value(json_object_get(facts, "loss"));
    json_t *doc =
        json_pack("{s:s, s:[s], s:s, s:f, s:f, s:b, s:i, s:s, s:f, s:s}", "model_type", "vit", "architectures",
                  "ViTForImageClassification", "hidden_act", "gelu", "hidden_dropout_prob", c->dropout,
                  "attention_probs_dropout_prob", 0.0, "qkv_bias", 1, "num_channels", 3, "torch_dtype", "float32",
                  "layer_norm_eps", c->norm_eps > 0 ? c->norm_eps : MR_VIT_EPS, "problem_type",
                  loss && strcmp(loss, "bce") == 0 ? "multi_label_classification" : "single_label_classification");
    bool ok = doc;
    for (size_t i = 0; i < MR_COUNT(sizes); i++) {
        uint32_t size;
        memcpy(&size, (const char *)c + sizes[i].offset, sizeof size);
        ok = ok && json_object_set_new(doc, sizes[i].key, json_integer(size)) == 0;
    }
    ok = ok && json_object_set_new(doc, "id2label", class_names(facts, false)) == 0 &&
         json_object_set_new(doc, "label2id", class_names(facts, true)) == 0;
    if (ok)
        return doc;
    json_decref(doc);
    return NULL;
}

static json_t *describe_images(const mr_model_config *c, const json_t *facts)
{
    const json_t *transform = json_object_get(facts, "transform");
    const char *filter = json_string_value(json_object_get(transform, "filter"));
    return json_pack("{s:s, s:b, s:b, s:b, s:f, s:i, s:{s:I, s:I}, s:O?, s:O?}", "image_processor_type",
                     "ViTImageProcessor", "do_resize", 1, "do_rescale", 1, "do_normalize", 1, "rescale_factor",
                     1.0 / 255, "resample", filter && strcmp(filter, "bicubic") == 0 ? BICUBIC : BILINEAR, "size",
                     "height", (json_int_t)c->image, "width", (json_int_t)c->image, "image_mean",
                     json_object_get(transform, "mean"), "image_std", json_object_get(transform, "std"));
}

mr_status mr_vit_hub_describe(const mr_model_config *c, const json_t *facts, mr_buf *config, mr_buf *preprocessor,
                              mr_error *err)
{
    MR_AUTO(json_decrefp) json_t *model = describe(c, facts);
    MR_AUTO(json_decrefp) json_t *images = describe_images(c, facts);
    if (!model || !images)
        return mr_fail_memory(err, "writing a model's configuration");
    MR_TRY(mr_json_dump(model, config, err));
    return mr_json_dump(images, preprocessor, err);
}
