/* checkpoint_state.c - state.json: everything of a checkpoint that is no array, and the digests of the arrays' files.
 * Invariant: what is written is read back as the same state; numbers that JSON's integers cannot hold (a seed may have
 * all 64 bits) are written as text. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "checkpoint_parts.h"
#include "manifest.h"
#include "text.h"

const char *const mr_checkpoint_files[MR_FILES] = {"weights.npz", "optimizer.npz"};

static const char *const optimizers[] = {[MR_SGD] = "sgd", [MR_ADAMW] = "adamw"};
static const char *const types[] = {[MR_F32] = "float32", [MR_BF16] = "bfloat16"};
static const char *const prefixes[][2] = {[MR_SGD] = {"momentum/", NULL}, [MR_ADAMW] = {"m/", "v/"}};

unsigned mr_checkpoint_slots(mr_optimizer_kind kind)
{
    return prefixes[kind][1] ? 2 : 1;
}

const char *mr_checkpoint_prefix(mr_optimizer_kind kind, unsigned slot)
{
    return prefixes[kind][slot];
}

/* The members of "model" that are plain numbers, in the order of mr_model_config. */
static const struct {
    const char *key;
    size_t offset;
} sizes[] = {
#define X(member) {#member, offsetof(mr_model_config, member)},
    X(image) X(patch) X(hidden) X(layers) X(heads) X(mlp) X(classes)
#undef X
};

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static mr_status check(const mr_checkpoint *c, mr_error *err)
{
    if (!c->model.card || (unsigned)c->optimizer >= MR_COUNT(optimizers) ||
        (unsigned)c->model.compute >= MR_COUNT(types))
        return mr_fail(err, MR_MISUSE, "checkpoint: no model, or an unknown optimizer or type");
    if (c->slots != mr_checkpoint_slots(c->optimizer))
        return mr_fail(err, MR_MISUSE, "checkpoint: %s keeps %u buffers, not %u", optimizers[c->optimizer],
                       mr_checkpoint_slots(c->optimizer), c->slots);
    if (c->update > INT64_MAX || c->cursor.epoch > INT64_MAX || c->cursor.position > INT64_MAX ||
        c->best_update > c->update)
        return mr_fail(err, MR_MISUSE, "checkpoint: update %" PRIu64 ", best update %" PRIu64 " and the cursor do not "
                       "go together", c->update, c->best_update);
    for (int best = 0; best < 2; best++) {
        double a = best ? c->best_accuracy : c->accuracy;
        if (!(a == -1 || (a >= 0 && a <= 1)))
            return mr_fail(err, MR_MISUSE, "checkpoint: an accuracy of %g is not within 0 to 1", a);
    }
    if (c->facts && !json_is_object(c->facts))
        return mr_fail(err, MR_MISUSE, "checkpoint: the facts are no JSON object");
    return MR_OK;
}

static json_t *accuracy_json(double accuracy)
{
    return accuracy < 0 ? json_null() : json_real(accuracy);
}

static json_t *model_json(const mr_model_config *m)
{
    json_t *doc = json_object();
    bool ok = json_object_set_new(doc, "card", json_string(m->card->name)) == 0 &&
              json_object_set_new(doc, "name", json_string(m->name)) == 0;
    for (size_t i = 0; i < MR_COUNT(sizes); i++) {
        uint32_t value;
        memcpy(&value, (const char *)m + sizes[i].offset, sizeof value);
        ok = ok && json_object_set_new(doc, sizes[i].key, json_integer(value)) == 0;
    }
    ok = ok && json_object_set_new(doc, "dropout", json_real(m->dropout)) == 0 &&
         json_object_set_new(doc, "compute", json_string(types[m->compute])) == 0 &&
         json_object_set_new(doc, "every_token", json_boolean(m->every_token)) == 0;
    if (ok)
        return doc;
    json_decref(doc);
    return NULL;
}

static json_t *files_json(const mr_digest files[MR_FILES])
{
    json_t *doc = json_object();
    for (size_t i = 0; i < MR_FILES; i++) {
        char hex[33];
        mr_hex(files[i].xxh3_128, sizeof files[i].xxh3_128, hex);
        json_t *file = json_pack("{s:I, s:s}", "bytes", (json_int_t)files[i].bytes, "xxh3_128", hex);
        if (json_object_set_new(doc, mr_checkpoint_files[i], file) != 0) {
            json_decref(doc);
            return NULL;
        }
    }
    return doc;
}

mr_status mr_state_write(const mr_checkpoint *c, const mr_digest files[MR_FILES], mr_buf *out, mr_error *err)
{
    char seed[24];
    size_t start = out->len;
    mr_status status = check(c, err);
    if (status != MR_OK)
        return status;
    snprintf(seed, sizeof seed, "%" PRIu64, c->seed);
    json_t *doc = json_pack("{s:s, s:i, s:s, s:I, s:{s:I, s:I}, s:s, s:s, s:o, s:o, s:I, s:o, s:o, s:o}",
                            "millrace", "checkpoint", "format", MR_CHECKPOINT_FORMAT, "version", MILLRACE_VERSION,
                            "update", (json_int_t)c->update,
                            "cursor", "epoch", (json_int_t)c->cursor.epoch, "position", (json_int_t)c->cursor.position,
                            "seed", seed, "optimizer", optimizers[c->optimizer],
                            "accuracy", accuracy_json(c->accuracy), "best_accuracy", accuracy_json(c->best_accuracy),
                            "best_update", (json_int_t)c->best_update,
                            "model", model_json(&c->model), "files", files_json(files),
                            "facts", c->facts ? json_incref(c->facts) : json_object());
    if (doc)
        status = mr_json_dump(doc, out, err);
    else if (mr_utf8_valid(c->model.name, strlen(c->model.name)))
        status = mr_fail_memory(err, "writing the checkpoint's state");
    else
        status = mr_fail(err, MR_MISUSE, "checkpoint: the model's name is no UTF-8");
    json_decref(doc);
    if (status == MR_OK)
        status = mr_manifest_seal(out, start, err);
    if (status == MR_OK && out->len - start > MR_STATE_MAX)
        status = mr_fail(err, MR_MISUSE, "checkpoint: the facts are more than %d MiB", MR_STATE_MAX >> 20);
    return status;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static mr_status get_word(const json_t *obj, const char *key, const char *name, const char *const *words, size_t count,
                          unsigned *out, mr_error *err)
{
    const char *word;
    mr_status status = mr_json_get_string(obj, key, name, &word, err);
    if (status != MR_OK)
        return status;
    for (unsigned i = 0; i < count; i++)
        if (strcmp(words[i], word) == 0) {
            *out = i;
            return MR_OK;
        }
    return mr_fail(err, MR_BAD_DATA, "%s: \"%s\" is a word that this millrace does not know", name, key);
}

static mr_status get_accuracy(const json_t *doc, const char *key, const char *name, double *out, mr_error *err)
{
    const json_t *value = json_object_get(doc, key);
    *out = json_is_null(value) ? -1 : json_number_value(value);
    if (json_is_null(value) || (json_is_number(value) && *out >= 0 && *out <= 1))
        return MR_OK;
    return mr_fail(err, MR_BAD_DATA, "%s: \"%s\" is neither null nor a number from 0 to 1", name, key);
}

/* The card by its own word (not by a preset's), and the fixed-size name. */
static mr_status get_names(const json_t *doc, const char *name, mr_model_config *m, mr_error *err)
{
    const char *card, *called;
    mr_status status = mr_json_get_string(doc, "card", name, &card, err);
    if (status == MR_OK)
        status = mr_json_get_string(doc, "name", name, &called, err);
    if (status != MR_OK)
        return status;
    if (mr_model_find(card, m, NULL) != MR_OK || strcmp(m->card->name, card) != 0)
        return mr_fail(err, MR_BAD_DATA, "%s: \"card\" is a model that this millrace does not know", name);
    if (strlen(called) >= sizeof m->name)
        return mr_fail(err, MR_BAD_DATA, "%s: \"name\" of the model is too long", name);
    snprintf(m->name, sizeof m->name, "%s", called);
    return MR_OK;
}

static mr_status get_model(const json_t *doc, const char *name, mr_model_config *m, mr_error *err)
{
    json_t *dropout, *every = json_object_get(doc, "every_token");
    unsigned type = 0;
    mr_status status = get_names(doc, name, m, err);
    for (size_t i = 0; i < MR_COUNT(sizes) && status == MR_OK; i++) {
        uint64_t wide = 0;
        status = mr_json_get_u64(doc, sizes[i].key, name, &wide, err);
        if (status == MR_OK && wide > UINT32_MAX)
            status = mr_fail(err, MR_BAD_DATA, "%s: \"%s\" is too large", name, sizes[i].key);
        uint32_t value = (uint32_t)wide;
        memcpy((char *)m + sizes[i].offset, &value, sizeof value);
    }
    if (status == MR_OK)
        status = mr_json_get(doc, "dropout", JSON_REAL, name, &dropout, err);
    if (status == MR_OK)
        status = get_word(doc, "compute", name, types, MR_COUNT(types), &type, err);
    if (status == MR_OK && !json_is_boolean(every))
        status = mr_fail(err, MR_BAD_DATA, "%s: \"every_token\" is neither true nor false", name);
    if (status != MR_OK)
        return status;
    m->dropout = json_real_value(dropout);
    m->compute = (mr_type)type;
    m->every_token = json_is_true(every);
    mr_error why;
    status = m->card->check(m, &why);
    return status == MR_OK ? MR_OK : mr_fail(err, MR_BAD_DATA, "%s: \"model\" makes no sense: %.800s", name, why.text);
}

static mr_status get_files(const json_t *doc, const char *name, mr_digest files[MR_FILES], mr_error *err)
{
    mr_status status = MR_OK;
    for (size_t i = 0; i < MR_FILES && status == MR_OK; i++) {
        json_t *file;
        const char *hex = "";
        memset(&files[i], 0, sizeof files[i]);
        status = mr_json_get(doc, mr_checkpoint_files[i], JSON_OBJECT, name, &file, err);
        if (status == MR_OK)
            status = mr_json_get_u64(file, "bytes", name, &files[i].bytes, err);
        if (status == MR_OK)
            status = mr_json_get_string(file, "xxh3_128", name, &hex, err);
        if (status == MR_OK && !mr_unhex(hex, files[i].xxh3_128, sizeof files[i].xxh3_128))
            status = mr_fail(err, MR_BAD_DATA, "%s: \"xxh3_128\" of %s is not 32 hex digits", name,
                             mr_checkpoint_files[i]);
    }
    return status;
}

static mr_status get_counts(const json_t *doc, const char *name, mr_checkpoint *out, mr_error *err)
{
    json_t *cursor;
    const char *seed;
    mr_status status = mr_json_get_u64(doc, "update", name, &out->update, err);
    if (status == MR_OK)
        status = mr_json_get(doc, "cursor", JSON_OBJECT, name, &cursor, err);
    if (status == MR_OK)
        status = mr_json_get_u64(cursor, "epoch", name, &out->cursor.epoch, err);
    if (status == MR_OK)
        status = mr_json_get_u64(cursor, "position", name, &out->cursor.position, err);
    if (status == MR_OK)
        status = mr_json_get_string(doc, "seed", name, &seed, err);
    if (status == MR_OK && !mr_text_parse_u64(seed, &out->seed))
        status = mr_fail(err, MR_BAD_DATA, "%s: \"seed\" is no number", name);
    if (status == MR_OK)
        status = get_accuracy(doc, "accuracy", name, &out->accuracy, err);
    if (status == MR_OK)
        status = get_accuracy(doc, "best_accuracy", name, &out->best_accuracy, err);
    if (status == MR_OK)
        status = mr_json_get_u64(doc, "best_update", name, &out->best_update, err);
    if (status == MR_OK && out->best_update > out->update)
        status = mr_fail(err, MR_BAD_DATA, "%s: \"best_update\" is behind \"update\"", name);
    return status;
}

static mr_status check_format(const json_t *doc, const char *name, mr_error *err)
{
    const char *what = json_string_value(json_object_get(doc, "millrace"));
    uint64_t format = 0;
    if (!what || strcmp(what, "checkpoint") != 0)
        return mr_fail(err, MR_BAD_DATA, "%s: is not a checkpoint's state", name);
    mr_status status = mr_json_get_u64(doc, "format", name, &format, err);
    if (status == MR_OK && format != MR_CHECKPOINT_FORMAT)
        status = mr_fail(err, MR_BAD_DATA, "%s: has format %" PRIu64 ", and this millrace (" MILLRACE_VERSION
                         ") reads format %d", name, format, MR_CHECKPOINT_FORMAT);
    return status;
}

mr_status mr_state_parse(const void *bytes, size_t len, const char *name, mr_checkpoint *out, mr_digest files[MR_FILES],
                         mr_error *err)
{
    json_t *doc = NULL, *model, *digests, *facts;
    mr_checkpoint made = {0};
    unsigned optimizer = 0;
    mr_status status = mr_manifest_check_seal(bytes, len, name, NULL);
    if (status != MR_OK)
        return status == MR_SYSTEM ? mr_fail_memory(err, name)
                                   : mr_fail(err, MR_BAD_DATA, "%s: its seal does not fit its text: it was edited or "
                                             "damaged; name another checkpoint", name);
    status = mr_json_bounded(bytes, len, 2 * (uint64_t)MR_STATE_MAX, name, err);
    if (status == MR_OK)
        status = mr_json_parse(bytes, len, name, &doc, err);
    if (status == MR_OK)
        status = check_format(doc, name, err);
    if (status == MR_OK)
        status = get_counts(doc, name, &made, err);
    if (status == MR_OK)
        status = get_word(doc, "optimizer", name, optimizers, MR_COUNT(optimizers), &optimizer, err);
    if (status == MR_OK)
        status = mr_json_get(doc, "model", JSON_OBJECT, name, &model, err);
    if (status == MR_OK)
        status = get_model(model, name, &made.model, err);
    if (status == MR_OK)
        status = mr_json_get(doc, "files", JSON_OBJECT, name, &digests, err);
    if (status == MR_OK)
        status = get_files(digests, name, files, err);
    if (status == MR_OK)
        status = mr_json_get(doc, "facts", JSON_OBJECT, name, &facts, err);
    if (status == MR_OK) {
        made.optimizer = (mr_optimizer_kind)optimizer;
        made.slots = mr_checkpoint_slots(made.optimizer);
        made.facts = json_incref(facts);
        *out = made;
    }
    json_decref(doc);
    return status;
}
