/* trainer_shape.c - which model a run is about: by its name, the hub's file, the options, or the checkpoint.
 * Invariant: an option that the model has no use for is refused; after this the shape has been checked, and its
 * parameters are known by name. */
#include <stdio.h>
#include <string.h>

#include "run/trainer.h"
#include "text/tokenizer.h"

typedef unsigned long long ull;

enum { DEFAULT_IMAGE = 224 };

/* What the options say of the model's sizes, over what its name or its file says. */
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
            return mr_fail(err, MR_MISUSE, "a model's size of %llu is beyond reason", (ull)sizes[i].asked);
        if (sizes[i].asked)
            *sizes[i].field = (uint32_t)sizes[i].asked;
    }
    return MR_OK;
}

/* What only the other kind of model reads is refused, so that nobody believes it had an effect. */
static mr_status only_its_own(const mr_settings *s, const mr_model_config *c, mr_error *err)
{
    const struct {
        const char *word;
        bool given, text;
    } options[] = {
        {"config", s->given.config, true},
        {"tokenizer", s->given.tokenizer, true},
        {"cross-layers", s->given.cross_layers, true},
        {"embed", s->given.embed, true},
        {"max-text", s->given.max_text, true},
        {"freeze", s->given.freeze, true},
        {"text-column", s->given.text_column, true},
        {"expand-captions", s->given.expand_captions, true},
        {"unique-images", s->given.unique_images, true},
        {"gather-negatives", s->given.gather_negatives, true},
        {"scale-min", s->given.scale_min, false},
        {"flip", s->given.flip, false},
    };
    for (size_t i = 0; i < MR_COUNT(options); i++)
        if (options[i].given && options[i].text != c->card->text)
            return mr_fail(err, MR_MISUSE, "--%s: is for %s, and --model %s learns from %s", options[i].word,
                           options[i].text ? "bridgetower" : "classifiers", s->model,
                           c->card->text ? "whole pictures and their words" : "labels alone");
    return MR_OK;
}

/* A shape of one's own that is not whole yet: names what is missing of it. */
static mr_status whole_shape(const mr_model_config *c, mr_error *err)
{
    const struct {
        const char *option;
        uint32_t size;
        bool text; /* of models of pictures and words alone */
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
        if (!sizes[i].size && (c->card->text || !sizes[i].text))
            snprintf(missing + strlen(missing), sizeof missing - strlen(missing), "%s%s", *missing ? ", " : "",
                     sizes[i].option);
    if (!*missing)
        return MR_OK;
    return mr_fail(err, MR_MISUSE, "--model %s: has no shape of its own; give %s too, or name one that has: %s",
                   c->name, missing, c->card->presets[0].name);
}

/* A shape of one's own has the vocabulary of its tokenizer, and positions for its texts. */
static mr_status fit_words(mr_trainer *t, mr_model_config *c, mr_error *err)
{
    mr_settings *s = t->settings;
    uint32_t vocab = t->pairs.tokenizer ? mr_tokenizer_size(t->pairs.tokenizer) : c->vocab;
    if (s->max_text < 2 || s->max_text > 1 << 16)
        return mr_fail(err, MR_MISUSE, "--max-text %llu: expected 2 to 65536", (ull)s->max_text);
    if (s->given.max_text || !c->text) /* else what the model has positions for, up to the usual number */
        c->text = (uint32_t)s->max_text;
    s->max_text = c->text;
    c->vocab = c->vocab ? c->vocab : vocab;
    c->positions = c->positions ? c->positions : c->text + 2;
    c->embed = c->embed ? c->embed : c->hidden;
    c->norm_eps = c->norm_eps > 0 ? c->norm_eps : 1e-5;
    c->logit_scale = c->logit_scale > 0 ? c->logit_scale : 2.6592; /* of the hub's large configuration */
    if (vocab > c->vocab)
        return mr_fail(err, MR_MISUSE,
                       "--tokenizer: has %u tokens, and the model a vocabulary of %u; take the tokenizer "
                       "that the model was made with",
                       vocab, c->vocab);
    c->frozen = strcmp(s->freeze, "images") == 0 ? MR_FROZEN_IMAGES
                : strcmp(s->freeze, "text") == 0 ? MR_FROZEN_TEXT
                : s->freeze[0] == 'b'            ? MR_FROZEN_IMAGES | MR_FROZEN_TEXT
                                                 : 0;
    return MR_OK;
}

/* The course of the reference's run_bridgetower.py, where the user names no other. */
static mr_status suit_words(mr_settings *s, mr_model_config *c, mr_error *err)
{
    static const char *const course[][2] = {
        {"optimizer", "adamw"},
        {"adam-eps", "1e-6"},
        {"decay", "linear"},
        {"warmup", "0"},
    };
    mr_status status = MR_OK;
    for (size_t i = 0; i < MR_COUNT(course) && status == MR_OK; i++)
        status = mr_settings_suit(s, course[i][0], course[i][1], err);
    if (s->given.dropout || !*s->config)
        c->dropout = c->attention_dropout = s->dropout;
    s->dropout = c->dropout;
    return status;
}

static mr_status new_shape(mr_trainer *t, mr_model_config *c, mr_error *err)
{
    mr_settings *s = t->settings;
    mr_status status = mr_model_find(s->model, c, err);
    if (status == MR_OK)
        status = only_its_own(s, c, err);
    if (status == MR_OK && *s->config && c->card->configure)
        status = c->card->configure(s->config, c, err);
    if (status == MR_OK)
        status = override(s, c, err);
    if (status != MR_OK)
        return status;
    c->dropout = c->card->text ? c->dropout : s->dropout;
    if (!c->card->text)
        c->image = c->image ? c->image : DEFAULT_IMAGE;
    status = whole_shape(c, err);
    if (status != MR_OK)
        return status;
    if (!c->card->text) {
        c->classes = (uint32_t)t->manifest->class_count;
        return MR_OK;
    }
    if (!(s->plan && c->vocab && !*s->tokenizer)) /* a plan needs no more than the vocabulary's size */
        status = mr_pairs_tokenizer(s, &t->pairs, err);
    if (status == MR_OK)
        status = fit_words(t, c, err);
    return status == MR_OK ? suit_words(s, c, err) : status;
}

mr_status mr_trainer_shape(mr_trainer *t, mr_error *err)
{
    mr_status status = MR_OK;
    if (!t->restored)
        status = new_shape(t, &t->config, err);
    else
        t->config = t->restored->model;
    if (status == MR_OK && t->restored && t->config.card->text)
        status = mr_pairs_restore(t->restored, t->settings->output, &t->pairs, err);
    if (status == MR_OK)
        status = t->config.card->check(&t->config, err);
    return status == MR_OK ? t->config.card->params(&t->config, &t->params, err) : status;
}
