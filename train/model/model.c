/* model.c - the table of models.
 * Invariant: a new model is one interface and one word in MR_MODELS; its presets are found here automatically. */
#include "train/model/model.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

static const mr_model_iface *const models[] = {
#define X(word) &mr_model_##word,
    MR_MODELS(X)
#undef X
};

enum { MAX_WORDS = 64 }; /* among which the nearest is searched */

static void set_shape(mr_model_config *out, const mr_model_iface *iface, const char *name, const mr_model_config *shape)
{
    const mr_model_config old = *out;
    *out = *shape;
    out->iface = iface;
    snprintf(out->name, sizeof out->name, "%s", name);
    out->classes = old.classes;
    out->dropout = iface->text ? shape->dropout : old.dropout;
    out->compute = old.compute;
    out->every_token = old.every_token;
    out->recompute = old.recompute;
    out->frozen = old.frozen;
    out->frozen_layers = old.frozen_layers;
}

mr_status mr_model_find(const char *word, mr_model_config *out, mr_error *err)
{
    const mr_model_config none = {0};
    const char *words[MAX_WORDS + 1] = {0};
    size_t count = 0;
    for (size_t i = 0; i < MR_COUNT(models); i++) {
        if (strcmp(models[i]->name, word) == 0) {
            set_shape(out, models[i], word, &none);
            return MR_OK;
        }
        if (count < MAX_WORDS)
            words[count++] = models[i]->name;
        for (const mr_model_config *p = models[i]->presets; p->name[0]; p++) {
            if (strcmp(p->name, word) == 0) {
                set_shape(out, models[i], word, p);
                return MR_OK;
            }
            if (count < MAX_WORDS)
                words[count++] = p->name;
        }
    }
    const char *near = mr_text_nearest(word, words);
    if (near)
        return mr_fail(err, MR_MISUSE, "--model: unknown model '%s'; did you mean '%s'?", word, near);
    char known[200] = "";
    for (size_t i = 0; i < MR_COUNT(models); i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s'%s' ('%s' ...)", i ? ", " : "",
                 models[i]->name, models[i]->presets[0].name);
    return mr_fail(err, MR_MISUSE, "--model: unknown model '%s'; choose one of %s", word, known);
}
