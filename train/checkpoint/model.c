/* model.c - "model" in state.json: the shape of the model that the weights are for.
 * Invariant: a shape that is read has passed the check() of the model's interface; a member that an older millrace did
 * not write is 0, which has the meaning that it had then. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/scope.h"
#include "train/checkpoint/parts.h"

static const char *const types[] = {[MR_F32] = "float32", [MR_BF16] = "bfloat16"};

/* The members that are plain numbers, in the order of mr_model_config. */
static const struct member {
    const char *key;
    size_t offset;
    bool later; /* may be missing */
} sizes[] =
    {
#define X(member) {#member, offsetof(mr_model_config, member), false},
        X(image) X(patch) X(hidden) X(layers) X(heads) X(mlp) X(classes)
#undef X
#define X(member) {#member, offsetof(mr_model_config, member), true},
            X(cross_layers) X(vocab) X(positions) X(embed) X(text) X(frozen) X(frozen_layers)
#undef X
},
  rates[] = {
      {"dropout", offsetof(mr_model_config, dropout), false},
      {"attention_dropout", offsetof(mr_model_config, attention_dropout), true},
      {"norm_eps", offsetof(mr_model_config, norm_eps), true},
      {"logit_scale", offsetof(mr_model_config, logit_scale), true},
};
_Static_assert(sizeof((mr_model_config){0}.frozen) == sizeof(uint32_t), "kept like the sizes");

json_t *mr_state_model(const mr_model_config *m)
{
    json_t *doc = json_object();
    bool ok = json_object_set_new(doc, "card", json_string(m->iface->name)) == 0 &&
              json_object_set_new(doc, "name", json_string(m->name)) == 0;
    for (size_t i = 0; i < MR_COUNT(sizes); i++) {
        uint32_t value;
        memcpy(&value, (const char *)m + sizes[i].offset, sizeof value);
        ok = ok && json_object_set_new(doc, sizes[i].key, json_integer(value)) == 0;
    }
    for (size_t i = 0; i < MR_COUNT(rates); i++) {
        double value;
        memcpy(&value, (const char *)m + rates[i].offset, sizeof value);
        ok = ok && json_object_set_new(doc, rates[i].key, json_real(value)) == 0;
    }
    ok = ok && json_object_set_new(doc, "compute", json_string(types[m->compute])) == 0 &&
         json_object_set_new(doc, "every_token", json_boolean(m->every_token)) == 0;
    if (ok)
        return doc;
    json_decref(doc);
    return NULL;
}

mr_status mr_state_word(const json_t *obj, const char *key, const char *name, const char *const *words, size_t count,
                        unsigned *out, mr_error *err)
{
    const char *word;
    MR_TRY(mr_json_get_string(obj, key, name, &word, err));
    for (unsigned i = 0; i < count; i++)
        if (strcmp(words[i], word) == 0) {
            *out = i;
            return MR_OK;
        }
    return mr_fail(err, MR_BAD_DATA, "%s: \"%s\" is not known to this version of millrace", name, key);
}

/* The interface by its own word (not by a preset's), and the fixed-size name. */
static mr_status get_names(const json_t *doc, const char *name, mr_model_config *m, mr_error *err)
{
    const char *word, *called;
    MR_TRY(mr_json_get_string(doc, "card", name, &word, err));
    MR_TRY(mr_json_get_string(doc, "name", name, &called, err));
    if (mr_model_find(word, m, NULL) != MR_OK || strcmp(m->iface->name, word) != 0)
        return mr_fail(err, MR_BAD_DATA, "%s: \"card\" is not known to this version of millrace", name);
    if (strlen(called) >= sizeof m->name)
        return mr_fail(err, MR_BAD_DATA, "%s: \"name\" of the model is too long", name);
    snprintf(m->name, sizeof m->name, "%s", called);
    return MR_OK;
}

static mr_status get_numbers(const json_t *doc, const char *name, mr_model_config *m, mr_error *err)
{
    for (size_t i = 0; i < MR_COUNT(sizes); i++) {
        uint64_t wide = 0;
        if (!sizes[i].later || json_object_get(doc, sizes[i].key))
            MR_TRY(mr_json_get_u64(doc, sizes[i].key, name, &wide, err));
        if (wide > UINT32_MAX)
            return mr_fail(err, MR_BAD_DATA, "%s: \"%s\" is too large", name, sizes[i].key);
        uint32_t value = (uint32_t)wide;
        memcpy((char *)m + sizes[i].offset, &value, sizeof value);
    }
    for (size_t i = 0; i < MR_COUNT(rates); i++) {
        json_t *number = NULL;
        if (!rates[i].later || json_object_get(doc, rates[i].key))
            MR_TRY(mr_json_get(doc, rates[i].key, JSON_REAL, name, &number, err));
        double value = json_real_value(number); /* NULL: 0 */
        memcpy((char *)m + rates[i].offset, &value, sizeof value);
    }
    if (m->frozen > (MR_FROZEN_IMAGES | MR_FROZEN_TEXT))
        return mr_fail(err, MR_BAD_DATA, "%s: \"frozen\" has bits that are not known to this version of millrace",
                       name);
    if (m->frozen_layers > m->layers && m->frozen_layers - m->layers > 1)
        return mr_fail(err, MR_BAD_DATA, "%s: \"frozen_layers\" is more than the model has", name);
    return MR_OK;
}

mr_status mr_state_model_parse(const json_t *doc, const char *name, mr_model_config *m, mr_error *err)
{
    const json_t *every = json_object_get(doc, "every_token");
    unsigned type = 0;
    mr_error why;
    MR_TRY(get_names(doc, name, m, err));
    MR_TRY(get_numbers(doc, name, m, err));
    MR_TRY(mr_state_word(doc, "compute", name, types, MR_COUNT(types), &type, err));
    if (!json_is_boolean(every))
        return mr_fail(err, MR_BAD_DATA, "%s: \"every_token\" is neither true nor false", name);
    m->compute = (mr_type)type;
    m->every_token = json_is_true(every);
    return m->iface->check(m, &why) == MR_OK
               ? MR_OK
               : mr_fail(err, MR_BAD_DATA, "%s: \"model\" is not valid: %.800s", name, why.text);
}
