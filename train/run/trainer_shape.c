/* trainer_shape.c - the model of a run: from its name, the hub's config.json, the options, or the checkpoint.
 * Invariant: an option that the model does not use is refused; after this the shape has been checked, all ranks have
 * the same, and its parameters are known by name. */
#include <stdio.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "train/run/trainer.h"
#include "train/setup/head_hub.h"

typedef unsigned long long ull;

enum { DEFAULT_IMAGE = 224 };

/* Sizes given as options take precedence over those of the model's name or file. */
static mr_status override(const mr_settings *s, mr_model_config *c, mr_error *err)
{
    const struct {
        uint64_t asked;
        uint32_t *field;
    } sizes[] = {{s->image_size, &c->image},
                 {s->patch, &c->patch},
                 {s->hidden, &c->hidden},
                 {s->layers, &c->layers},
                 {s->heads, &c->heads},
                 {s->mlp, &c->mlp},
                 {s->cross_layers, &c->cross_layers},
                 {s->embed, &c->embed}};
    for (size_t i = 0; i < MR_COUNT(sizes); i++) {
        if (sizes[i].asked > 1 << 20)
            return mr_fail(err, MR_MISUSE, "a model's size of %llu is too large", (ull)sizes[i].asked);
        if (sizes[i].asked)
            *sizes[i].field = (uint32_t)sizes[i].asked;
    }
    return MR_OK;
}

/* Options that only the other kind of model reads are refused: they would seem to have an effect. */
static mr_status check_options(const mr_settings *s, const mr_model_config *c, mr_error *err)
{
    const struct {
        const char *word;
        bool given, text;
    } options[] = {
        {"tokenizer", s->given.tokenizer, true},
        {"cross-layers", s->given.cross_layers, true},
        {"embed", s->given.embed, true},
        {"max-text", s->given.max_text, true},
        {"text-column", s->given.text_column, true},
        {"expand-captions", s->given.expand_captions, true},
        {"unique-images", s->given.unique_images, true},
        {"gather-negatives", s->given.gather_negatives, true},
        {"scale-min", s->given.scale_min, false},
        {"flip", s->given.flip, false},
        {"pretrained-classes", s->given.pretrained_classes, false},
        {"mixup", s->given.mixup, false},
        {"cutmix", s->given.cutmix, false},
        {"augment", s->given.augment, false},
        {"loss", s->given.loss, false},
        {"label-smoothing", s->given.label_smoothing, false},
        {"class-weights", s->given.class_weights, false},
    };
    for (size_t i = 0; i < MR_COUNT(options); i++)
        if (options[i].given && options[i].text != c->iface->text)
            return mr_fail(err, MR_MISUSE, "--%s: is for %s, but --model %s is trained on %s", options[i].word,
                           options[i].text ? "bridgetower" : "classifiers", s->model,
                           c->iface->text ? "complete images and their texts" : "labels alone");
    return MR_OK;
}

/* Names the sizes of a custom shape that are missing. */
static mr_status check_complete(const mr_model_config *c, mr_error *err)
{
    const struct {
        const char *option;
        uint32_t size;
        bool text; /* only in models of images and texts */
    } sizes[] = {
        {"--image-size", c->image, false},
        {"--patch", c->patch, false},
        {"--hidden", c->hidden, false},
        {"--layers", c->layers, false},
        {"--heads", c->heads, false},
        {"--mlp", c->mlp, false},
        {"--cross-layers", c->cross_layers, true},
    };
    char missing[120] = "";
    for (size_t i = 0; i < MR_COUNT(sizes); i++)
        if (!sizes[i].size && (c->iface->text || !sizes[i].text))
            snprintf(missing + strlen(missing), sizeof missing - strlen(missing), "%s%s", *missing ? ", " : "",
                     sizes[i].option);
    if (!*missing)
        return MR_OK;
    return mr_fail(err, MR_MISUSE, "--model %s: is not a preset; give %s too, or choose one of the presets: %s",
                   c->name, missing, c->iface->presets[0].name);
}

/* The shape of a model of images and texts: the vocabulary of its tokenizer, and positions for its texts. */
static mr_status fit_text(const mr_settings *s, const mr_tokenizer *tokenizer, mr_model_config *c, mr_error *err)
{
    uint32_t vocab = tokenizer ? mr_tokenizer_size(tokenizer) : c->vocab;
    if (s->max_text < 2 || s->max_text > 1 << 16)
        return mr_fail(err, MR_MISUSE, "--max-text %llu: expected 2 to 65536", (ull)s->max_text);
    if (s->given.max_text || !c->text) /* otherwise as many as the model has positions for, up to the usual number */
        c->text = (uint32_t)s->max_text;
    c->vocab = c->vocab ? c->vocab : vocab;
    c->positions = c->positions ? c->positions : c->text + 2;
    c->embed = c->embed ? c->embed : c->hidden;
    c->norm_eps = c->norm_eps > 0 ? c->norm_eps : 1e-5;
    c->logit_scale = c->logit_scale > 0 ? c->logit_scale : 2.6592; /* as in the hub's large configuration */
    if (s->given.dropout || !*s->config)
        c->dropout = c->attention_dropout = s->dropout;
    if (vocab > c->vocab)
        return mr_fail(err, MR_MISUSE,
                       "--tokenizer: has %u tokens, and the model a vocabulary of %u; use the tokenizer "
                       "that the model was made with",
                       vocab, c->vocab);
    return MR_OK;
}

/* --freeze: towers of a model of images and words, blocks of one of images. */
static mr_status freeze(const mr_settings *s, mr_model_config *c, mr_error *err)
{
    static const struct {
        const char *word;
        unsigned towers;
    } towers[] = {{"images", MR_FROZEN_IMAGES}, {"text", MR_FROZEN_TEXT}, {"both", MR_FROZEN_IMAGES | MR_FROZEN_TEXT}};
    uint64_t blocks = 0;
    if (strcmp(s->freeze, "none") == 0)
        return MR_OK;
    for (size_t i = 0; i < MR_COUNT(towers) && c->iface->text; i++)
        if (strcmp(s->freeze, towers[i].word) == 0)
            c->frozen = towers[i].towers;
    if (c->iface->text)
        return c->frozen
                   ? MR_OK
                   : mr_fail(err, MR_MISUSE, "--freeze %s: %s accepts none, images, text or both", s->freeze, s->model);
    bool backbone = strcmp(s->freeze, "backbone") == 0;
    if (!backbone && (!mr_text_parse_u64(s->freeze, &blocks) || blocks < 1 || blocks > c->layers))
        return mr_fail(err, MR_MISUSE, "--freeze %s: %s accepts none, backbone, or a number of blocks from 1 to %u",
                       s->freeze, s->model, c->layers);
    c->frozen_layers = backbone ? c->layers + 1 : (uint32_t)blocks;
    return MR_OK;
}

/* --config, or without --model the config.json beside weights of the hub. */
static mr_status configure(const mr_settings *s, mr_model_config *c, mr_error *err)
{
    char beside[4096];
    if (c->iface->configure)
        return *s->config ? c->iface->configure(s->config, c, err) : MR_OK;
    const mr_model_hub *hub = c->iface->hub;
    if (!hub)
        return MR_OK;
    if (*s->config) {
        mr_status status = hub->configure(s->config, c, err);
        return status == MR_END ? mr_fail(err, MR_BAD_DATA,
                                          "%s: has no model_type; it is not a config.json of transformers", s->config)
                                : status;
    }
    if (s->given.model || !*s->pretrained || !hub->is(s->pretrained) ||
        !mr_hub_beside(s->pretrained, "config.json", beside, sizeof beside))
        return MR_OK;
    mr_status status = hub->configure(beside, c, err);
    return status == MR_END ? MR_OK : status; /* timm's: the sizes are those of --model */
}

static mr_status new_shape(mr_trainer *t, mr_model_config *c, mr_error *err)
{
    const mr_settings *s = t->settings;
    MR_TRY(mr_model_find(s->model, c, err));
    if (c->iface->text && mr_trainer_tail(t) == MR_TAIL_PAD)
        return mr_fail(err, MR_MISUSE,
                       "--tail pad: %s would use the padding as negatives of the other samples; "
                       "choose partial or drop",
                       s->model);
    MR_TRY(check_options(s, c, err));
    MR_TRY(configure(s, c, err));
    MR_TRY(override(s, c, err));
    if (!c->iface->text) {
        c->dropout = s->dropout;
        c->image = c->image ? c->image : DEFAULT_IMAGE;
        if (t->manifest->class_count == 0)
            return mr_fail(err, MR_MISUSE,
                           "%s: has no classes (layout %s), and a classifier needs labels; for captions use --model "
                           "bridgetower",
                           t->settings->dataset, t->manifest->layout);
        c->classes = (uint32_t)t->manifest->class_count;
    }
    MR_TRY(check_complete(c, err));
    MR_TRY(freeze(s, c, err));
    if (c->iface->text) {
        if (!(mr_settings_plans(s) && c->vocab && !*s->tokenizer)) /* a plan needs only the vocabulary's size */
            MR_TRY(mr_pairs_tokenizer(s, &t->pairs, err));
        MR_TRY(fit_text(s, t->pairs.tokenizer, c, err));
    }
    return c->iface->check(c, err);
}

/* The schedule of the reference's run_bridgetower.py, unless the user names another. */
static mr_status suit_text(mr_settings *s, const mr_model_config *c, mr_error *err)
{
    static const char *const schedule[][2] = {
        {"optimizer", "adamw"},
        {"adam-eps", "1e-6"},
        {"decay", "linear"},
        {"warmup", "0"},
    };
    for (size_t i = 0; i < MR_COUNT(schedule); i++)
        MR_TRY(mr_settings_override_default(s, schedule[i][0], schedule[i][1], err));
    s->max_text = c->text;
    s->dropout = c->dropout;
    return MR_OK;
}

/* Rank 0 reads config.json and the tokenizer; both are shared as a checkpoint without arrays. */
static mr_status begin_shape(mr_trainer *t, mr_error *err)
{
    MR_AUTO(mr_checkpoint_release)
    mr_checkpoint begun = {.slots = mr_checkpoint_slots(MR_SGD, false), .accuracy = -1, .best_accuracy = -1};
    bool first = mr_ranks_rank(t->ranks) == 0;
    MR_TRY(mr_ranks_agree(t->ranks, first ? new_shape(t, &begun.model, err) : MR_OK, err));
    begun.tokenizer = t->pairs.file;
    t->pairs.file = (mr_buf){0};
    MR_TRY(mr_checkpoint_share(t->ranks, &begun, err));
    t->config = begun.model;
    mr_status status = MR_OK;
    if (first) {
        t->pairs.file = begun.tokenizer;
        begun.tokenizer = (mr_buf){0};
    } else if (begun.tokenizer.len) {
        status = mr_pairs_restore(&begun, t->settings->model, &t->pairs, err);
    }
    if (status == MR_OK && t->config.iface->text)
        status = suit_text(t->settings, &t->config, err);
    return mr_ranks_agree(t->ranks, status, err);
}

static mr_status resume_shape(mr_trainer *t, mr_error *err)
{
    t->config = t->restored.model;
    if (t->config.iface->text)
        MR_TRY(mr_pairs_restore(&t->restored, t->settings->output, &t->pairs, err));
    return t->config.iface->check(&t->config, err);
}

mr_status mr_trainer_shape(mr_trainer *t, mr_error *err)
{
    MR_TRY(t->resumed ? mr_ranks_agree(t->ranks, resume_shape(t, err), err) : begin_shape(t, err));
    t->config.recompute = t->settings->recompute[0] == 'y';
    t->config.compute = mr_type_of(t->settings->precision);
    return mr_ranks_agree(t->ranks, t->config.iface->params(&t->config, &t->params, err), err);
}

mr_tail mr_trainer_tail(const mr_trainer *t)
{
    return mr_settings_tail(t->settings->tail);
}
