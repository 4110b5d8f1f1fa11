/* config.c - BridgeTower's options from the hub's config.json, and the other way.
 * Invariant: configure() accepts what transformers would build from the same file; a variant that this model does not
 * support is an error with its name and value, never ignored.
 * Source: transformers 4.55.4, models/bridgetower/configuration_bridgetower.py for names and default values. */
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "train/model/bridgetower/parts.h"
#include "base/json/json.h"
#include "base/json/json_memory.h"

enum { USUAL_TEXT = 128 }; /* tokens; the file does not have it */
enum { MAX_FILE = 1 << 20, MAX_DOCUMENT = 32 << 20 };

/* The hub's BridgeTower/bridgetower-large-itm-mlm-itc.  The base models lack the heads for this task. */
const mr_model_config mr_bt_presets[] = {
    {.name = "bridgetower-large",
     .image = 294,
     .patch = 14,
     .hidden = 1024,
     .layers = 24,
     .heads = 16,
     .mlp = 4096,
     .dropout = 0.1,
     .cross_layers = 6,
     .vocab = 50265,
     .positions = 514,
     .embed = 512,
     .text = USUAL_TEXT,
     .attention_dropout = 0.1,
     .norm_eps = 1e-5,
     .logit_scale = 2.6592},
    {.name = ""},
};

/* ---- from config.json ------------------------------------------------------------------------------------------- */

enum section { TOP = 0, TEXT, VISION, SECTIONS };
static const char *const prefixes[] = {"", "text_config.", "vision_config."};

typedef struct hub { /* the contents of the file, per section */
    const char *path;
    json_t *sections[SECTIONS]; /* NULL: absent */
    uint32_t hidden[SECTIONS], layers[SECTIONS], embed, vocab, heads, mlp, positions, image, patch;
    double eps[SECTIONS], dropout, attention_dropout, logit_scale;
} hub;

/* `usual` is transformers' default for an absent member; 0: it is required. */
static const struct {
    enum section section;
    const char *key;
    size_t offset;
    uint32_t usual;
} sizes[] = {
    {TOP, "hidden_size", offsetof(hub, hidden[TOP]), 768},
    {TOP, "num_hidden_layers", offsetof(hub, layers[TOP]), 6},
    {TOP, "contrastive_hidden_size", offsetof(hub, embed), 0},
    {TEXT, "hidden_size", offsetof(hub, hidden[TEXT]), 768},
    {TEXT, "num_hidden_layers", offsetof(hub, layers[TEXT]), 12},
    {TEXT, "num_attention_heads", offsetof(hub, heads), 12},
    {TEXT, "intermediate_size", offsetof(hub, mlp), 3072},
    {TEXT, "vocab_size", offsetof(hub, vocab), 50265},
    {TEXT, "max_position_embeddings", offsetof(hub, positions), 514},
    {VISION, "hidden_size", offsetof(hub, hidden[VISION]), 768},
    {VISION, "num_hidden_layers", offsetof(hub, layers[VISION]), 12},
    {VISION, "patch_size", offsetof(hub, patch), 16},
    {VISION, "image_size", offsetof(hub, image), 288},
};

static const struct {
    enum section section;
    const char *key;
    size_t offset;
    double usual;
} rates[] = {
    {TOP, "layer_norm_eps", offsetof(hub, eps[TOP]), 1e-5},
    {TOP, "logit_scale_init_value", offsetof(hub, logit_scale), 0},
    {TEXT, "layer_norm_eps", offsetof(hub, eps[TEXT]), 1e-5},
    {TEXT, "hidden_dropout_prob", offsetof(hub, dropout), 0.1},
    {TEXT, "attention_probs_dropout_prob", offsetof(hub, attention_dropout), 0.1},
    {VISION, "layer_norm_eps", offsetof(hub, eps[VISION]), 1e-5},
};

/* What this model supports in one variant only, which is also the default of an absent member.  Not here, as nothing
 * depends on it in this task: initial values, the heads of other tasks, stop_gradient, the top level's
 * num_attention_heads. */
static const struct {
    enum section section;
    const char *key, *only;
} fixed[] = {
    {TOP, "model_type", "\"bridgetower\""},
    {TOP, "hidden_act", "\"gelu\""},
    {TOP, "link_tower_type", "\"add\""},
    {TOP, "share_link_tower_layers", "false"},
    {TOP, "share_cross_modal_transformer_layers", "true"},
    {TOP, "init_layernorm_from_vision_encoder", "false"},
    {TEXT, "hidden_act", "\"gelu\""},
    {TEXT, "position_embedding_type", "\"absolute\""},
    {TEXT, "type_vocab_size", "1"},
    {TEXT, "pad_token_id", "1"},
    {TEXT, "bos_token_id", "0"},
    {TEXT, "eos_token_id", "2"},
    {TEXT, "is_decoder", "false"},
    {TEXT, "add_cross_attention", "false"},
    {VISION, "num_channels", "3"},
    {VISION, "share_layernorm", "true"},
    {VISION, "remove_last_layer", "false"},
};

static mr_status lacks(const hub *h, const char *key, mr_error *err)
{
    return mr_fail(err, MR_BAD_DATA,
                   "%s: has no %s: it describes a model for a task other than matching images and texts", h->path, key);
}

static mr_status read_sizes(hub *h, mr_error *err)
{
    for (size_t i = 0; i < MR_COUNT(sizes); i++) {
        const json_t *value = json_object_get(h->sections[sizes[i].section], sizes[i].key);
        json_int_t n = value ? json_integer_value(value) : sizes[i].usual;
        if (!value && !n)
            return lacks(h, sizes[i].key, err);
        if (n < 1 || n > UINT32_MAX)
            return mr_fail(err, MR_BAD_DATA, "%s: %s%s is not an integer of at least 1", h->path,
                           prefixes[sizes[i].section], sizes[i].key);
        uint32_t size = (uint32_t)n;
        memcpy((char *)h + sizes[i].offset, &size, sizeof size);
    }
    return MR_OK;
}

static mr_status read_rates(hub *h, mr_error *err)
{
    for (size_t i = 0; i < MR_COUNT(rates); i++) {
        const json_t *value = json_object_get(h->sections[rates[i].section], rates[i].key);
        double rate = value ? json_number_value(value) : rates[i].usual;
        if (!value && rate == 0)
            return lacks(h, rates[i].key, err);
        if (value && !json_is_number(value))
            return mr_fail(err, MR_BAD_DATA, "%s: %s%s is not a number", h->path, prefixes[rates[i].section],
                           rates[i].key);
        memcpy((char *)h + rates[i].offset, &rate, sizeof rate);
    }
    return MR_OK;
}

/* As JSON writes it; objects and lists may be long and are only named. */
static mr_status value_text(const json_t *value, mr_buf *out, mr_error *err)
{
    if (json_is_object(value) || json_is_array(value)) {
        mr_buf_add_text(out, json_is_object(value) ? "an object" : "a list");
        return mr_buf_status(out, err, "reading a model's configuration");
    }
    MR_TRY(mr_json_dump(value, out, err));
    out->len--; /* the newline */
    return MR_OK;
}

static mr_status check_fixed(const hub *h, mr_error *err)
{
    for (size_t i = 0; i < MR_COUNT(fixed); i++) {
        const json_t *value = json_object_get(h->sections[fixed[i].section], fixed[i].key);
        MR_AUTO(mr_buf_free) mr_buf text = {0};
        if (!value)
            continue;
        MR_TRY(value_text(value, &text, err));
        if (strcmp(mr_buf_text(&text), fixed[i].only) != 0)
            return mr_fail(err, MR_BAD_DATA, "%s: %s%s is %.60s; only %s is supported", h->path,
                           prefixes[fixed[i].section], fixed[i].key, mr_buf_text(&text), fixed[i].only);
    }
    return MR_OK;
}

static mr_status check_equal(const hub *h, mr_error *err)
{
    if (h->hidden[TOP] != h->hidden[TEXT] || h->hidden[TOP] != h->hidden[VISION])
        return mr_fail(err, MR_BAD_DATA,
                       "%s: hidden_size is %u, %u in text_config and %u in vision_config; this model "
                       "needs one for all",
                       h->path, h->hidden[TOP], h->hidden[TEXT], h->hidden[VISION]);
    if (h->layers[TEXT] != h->layers[VISION])
        return mr_fail(err, MR_BAD_DATA,
                       "%s: num_hidden_layers is %u in text_config and %u in vision_config; this "
                       "model needs one for both",
                       h->path, h->layers[TEXT], h->layers[VISION]);
    if (h->eps[TOP] != h->eps[TEXT] || h->eps[TOP] != h->eps[VISION])
        return mr_fail(err, MR_BAD_DATA,
                       "%s: layer_norm_eps is %g, %g in text_config and %g in vision_config; this "
                       "model needs one for all",
                       h->path, h->eps[TOP], h->eps[TEXT], h->eps[VISION]);
    return MR_OK;
}

static mr_status find_sections(hub *h, json_t *doc, mr_error *err)
{
    static const char *const keys[] = {NULL, "text_config", "vision_config"};
    if (!json_is_object(doc))
        return mr_fail(err, MR_BAD_DATA, "%s: is not a JSON object", h->path);
    h->sections[TOP] = doc;
    for (size_t i = TEXT; i < SECTIONS; i++) {
        json_t *value = json_object_get(doc, keys[i]);
        if (value && !json_is_object(value) && !json_is_null(value))
            return mr_fail(err, MR_BAD_DATA, "%s: %s is not an object", h->path, keys[i]);
        h->sections[i] = json_is_object(value) ? value : NULL;
    }
    return MR_OK;
}

/* A preset's, if its shape is this one. */
static const char *name_of(const mr_model_config *c)
{
    for (const mr_model_config *p = mr_bt_presets; p->name[0]; p++)
        if (p->image == c->image && p->patch == c->patch && p->hidden == c->hidden && p->layers == c->layers &&
            p->heads == c->heads && p->mlp == c->mlp && p->cross_layers == c->cross_layers && p->vocab == c->vocab &&
            p->positions == c->positions && p->embed == c->embed)
            return p->name;
    return "bridgetower";
}

static mr_status take(const hub *h, mr_model_config *out, mr_error *err)
{
    mr_model_config c = *out;
    mr_error why;
    c.image = h->image;
    c.patch = h->patch;
    c.hidden = h->hidden[TOP];
    c.layers = h->layers[TEXT];
    c.heads = h->heads;
    c.mlp = h->mlp;
    c.dropout = h->dropout;
    c.cross_layers = h->layers[TOP];
    c.vocab = h->vocab;
    c.positions = h->positions;
    c.embed = h->embed;
    c.text = h->positions >= USUAL_TEXT + MR_BT_FIRST ? USUAL_TEXT : h->positions - MR_BT_FIRST;
    c.attention_dropout = h->attention_dropout;
    c.norm_eps = h->eps[TOP];
    c.logit_scale = h->logit_scale;
    snprintf(c.name, sizeof c.name, "%s", name_of(&c));
    if (mr_bt_check(&c, &why))
        return mr_fail(err, MR_BAD_DATA, "%s: not a valid model: %.800s", h->path, why.text);
    *out = c;
    return MR_OK;
}

mr_status mr_bt_configure(const char *path, mr_model_config *c, mr_error *err)
{
    hub h = {.path = path};
    MR_AUTO(json_decrefp) json_t *doc = NULL;
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    MR_TRY(mr_file_read_all(AT_FDCWD, path, MAX_FILE, &text, err));
    MR_TRY(mr_json_bounded(text.data, text.len, MAX_DOCUMENT, path, err));
    MR_TRY(mr_json_parse(text.data, text.len, path, &doc, err));
    MR_TRY(find_sections(&h, doc, err));
    MR_TRY(check_fixed(&h, err));
    MR_TRY(read_sizes(&h, err));
    MR_TRY(read_rates(&h, err));
    MR_TRY(check_equal(&h, err));
    return take(&h, c, err);
}

/* ---- to config.json --------------------------------------------------------------------------------------------- */

static json_t *text_section(const mr_model_config *c)
{
    return json_pack("{s:s, s:[s], s:f, s:i, s:i, s:s, s:f, s:I, s:I, s:f, s:I, s:I, s:I, s:i, s:s, s:i, s:I}",
                     "model_type", "bridgetower_text_model", "architectures", "BridgeTowerTextModel",
                     "attention_probs_dropout_prob", c->attention_dropout, "bos_token_id", 0, "eos_token_id", 2,
                     "hidden_act", "gelu", "hidden_dropout_prob", c->dropout, "hidden_size", (json_int_t)c->hidden,
                     "intermediate_size", (json_int_t)c->mlp, "layer_norm_eps", c->norm_eps, "max_position_embeddings",
                     (json_int_t)c->positions, "num_attention_heads", (json_int_t)c->heads, "num_hidden_layers",
                     (json_int_t)c->layers, "pad_token_id", (int)MR_BT_PAD, "position_embedding_type", "absolute",
                     "type_vocab_size", 1, "vocab_size", (json_int_t)c->vocab);
}

static json_t *vision_section(const mr_model_config *c)
{
    return json_pack("{s:s, s:[s], s:I, s:I, s:f, s:i, s:I, s:I, s:b, s:b, s:b}", "model_type",
                     "bridgetower_vision_model", "architectures", "BridgeTowerVisionModel", "hidden_size",
                     (json_int_t)c->hidden, "image_size", (json_int_t)c->image, "layer_norm_eps", c->norm_eps,
                     "num_channels", 3, "num_hidden_layers", (json_int_t)c->layers, "patch_size", (json_int_t)c->patch,
                     "remove_last_layer", 0, "share_layernorm", 1, "stop_gradient", 0);
}

/* 17 digits restore every number, but write 0.1 as 0.10000000000000001; 15 usually do, and are what users typed. */
static int digits_for(const mr_model_config *c)
{
    const double numbers[] = {c->dropout, c->attention_dropout, c->norm_eps, c->logit_scale};
    for (size_t i = 0; i < MR_COUNT(numbers); i++) {
        char text[40];
        snprintf(text, sizeof text, "%.15g", numbers[i]);
        if (strtod(text, NULL) != numbers[i])
            return 17;
    }
    return 15;
}

static json_t *describe(const mr_model_config *c)
{
    return json_pack("{s:s, s:[s], s:I, s:s, s:I, s:b, s:f, s:s, s:f, s:I, s:I, s:b, s:b, s:b, s:s, s:o, s:o}",
                     "model_type", "bridgetower", "architectures", "BridgeTowerForContrastiveLearning",
                     "contrastive_hidden_size", (json_int_t)c->embed, "hidden_act", "gelu", "hidden_size",
                     (json_int_t)c->hidden, "init_layernorm_from_vision_encoder", 0, "layer_norm_eps", c->norm_eps,
                     "link_tower_type", "add", "logit_scale_init_value", c->logit_scale, "num_attention_heads",
                     (json_int_t)c->heads, "num_hidden_layers", (json_int_t)c->cross_layers,
                     "share_cross_modal_transformer_layers", 1, "share_link_tower_layers", 0, "tie_word_embeddings", 0,
                     "torch_dtype", "float32", "text_config", text_section(c), "vision_config", vision_section(c));
}

mr_status mr_bt_describe(const mr_model_config *c, mr_buf *out, mr_error *err)
{
    MR_TRY(mr_bt_check(c, err));
    MR_AUTO(json_decrefp) json_t *doc = describe(c);
    MR_AUTO(mr_scope_free)
    char *text = doc ? json_dumps(doc, JSON_INDENT(2) | JSON_REAL_PRECISION(digits_for(c))) : NULL;
    if (!text || mr_json_refused())
        return mr_fail_memory(err, "writing a model's configuration");
    mr_buf_printf(out, "%s\n", text);
    return mr_buf_status(out, err, "writing a model's configuration");
}
