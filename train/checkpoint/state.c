/* state.c - state.json: everything in a checkpoint that is not an array, and the digests of the other files.
 * Invariant: what is written is read back as the same state; numbers that do not fit JSON's integers (a seed may have
 * all 64 bits) are written as text. */
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "base/scope.h"
#include "train/checkpoint/parts.h"
#include "shards/manifest/manifest.h"

static const char *const optimizers[] = {[MR_SGD] = "sgd", [MR_ADAMW] = "adamw"};
static const char *const prefixes[][2] = {[MR_SGD] = {"momentum/", NULL}, [MR_ADAMW] = {"m/", "v/"}};

/* Without and with a config.json, which belongs to the hub's format of weights. */
static const char *const files[2][MR_FILES] = {
    {"weights.npz", "optimizer.npz", NULL, "tokenizer.json"},
    {"model.safetensors", "optimizer.npz", "config.json", "tokenizer.json"},
};

const char *mr_checkpoint_file(const mr_model_iface *iface, size_t file)
{
    return files[iface->describe != NULL][file];
}

bool mr_checkpoint_has_weights(const char *path)
{
    MR_AUTO(mr_scope_close) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool has = false;
    for (size_t i = 0; i < MR_COUNT(files) && fd >= 0; i++)
        has |= faccessat(fd, files[i][MR_FILE_WEIGHTS], F_OK, 0) == 0;
    return has;
}

unsigned mr_checkpoint_slots(mr_optimizer_kind kind, bool ema)
{
    return (prefixes[kind][1] ? 2 : 1) + ema;
}

const char *mr_checkpoint_prefix(mr_optimizer_kind kind, unsigned slot)
{
    return slot < mr_checkpoint_slots(kind, false) ? prefixes[kind][slot] : "weights/";
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static mr_status check(const mr_checkpoint *c, mr_error *err)
{
    const mr_model_config *m = &c->model;
    if (!m->iface || (unsigned)c->optimizer >= MR_COUNT(optimizers) || (unsigned)m->compute > MR_BF16 ||
        m->frozen > (MR_FROZEN_IMAGES | MR_FROZEN_TEXT))
        return mr_fail(err, MR_MISUSE, "checkpoint: no model, or an unknown optimizer, type or frozen part");
    if (!isfinite(m->dropout) || !isfinite(m->attention_dropout) || !isfinite(m->norm_eps) || !isfinite(m->logit_scale))
        return mr_fail(err, MR_MISUSE, "checkpoint: a rate of the model is not a number");
    if (!(c->ema >= 0 && c->ema < 1))
        return mr_fail(err, MR_MISUSE, "checkpoint: a mean's decay of %g must be at least 0 and below 1", c->ema);
    if (c->slots != mr_checkpoint_slots(c->optimizer, c->ema > 0))
        return mr_fail(err, MR_MISUSE, "checkpoint: %s keeps %u buffers, not %u", optimizers[c->optimizer],
                       mr_checkpoint_slots(c->optimizer, c->ema > 0), c->slots);
    if (c->update > INT64_MAX || c->cursor.epoch > INT64_MAX || c->cursor.position > INT64_MAX ||
        c->best_update > c->update)
        return mr_fail(err, MR_MISUSE,
                       "checkpoint: update %" PRIu64 ", best update %" PRIu64 " and the cursor do not "
                       "fit together",
                       c->update, c->best_update);
    for (int best = 0; best < 2; best++) {
        double a = best ? c->best_accuracy : c->accuracy;
        if (!(a == -1 || (a >= 0 && a <= 1)))
            return mr_fail(err, MR_MISUSE, "checkpoint: an accuracy of %g is not within 0 to 1", a);
    }
    if (!(c->threshold >= 0 && c->threshold <= 1))
        return mr_fail(err, MR_MISUSE, "checkpoint: a threshold of %g is not within 0 to 1", c->threshold);
    if (c->tokenizer.len > MR_TOKENIZER_MAX)
        return mr_fail(err, MR_MISUSE, "checkpoint: the tokenizer is more than %d MiB", MR_TOKENIZER_MAX >> 20);
    if (c->facts && !json_is_object(c->facts))
        return mr_fail(err, MR_MISUSE, "checkpoint: the facts are not a JSON object");
    return MR_OK;
}

static json_t *accuracy_json(double accuracy)
{
    return accuracy < 0 ? json_null() : json_real(accuracy);
}

static json_t *files_json(const mr_model_iface *iface, const mr_digest digests[MR_FILES])
{
    json_t *doc = json_object();
    for (size_t i = 0; i < MR_FILES; i++) {
        const char *name = mr_checkpoint_file(iface, i);
        char hex[33];
        if (!name || (i == MR_FILE_TOKENIZER && digests[i].bytes == 0))
            continue;
        mr_hex(digests[i].xxh3_128, sizeof digests[i].xxh3_128, hex);
        json_t *file = json_pack("{s:I, s:s}", "bytes", (json_int_t)digests[i].bytes, "xxh3_128", hex);
        if (json_object_set_new(doc, name, file) != 0) {
            json_decref(doc);
            return NULL;
        }
    }
    return doc;
}

mr_status mr_state_write(const mr_checkpoint *c, const mr_digest digests[MR_FILES], mr_buf *out, mr_error *err)
{
    char seed[24];
    size_t start = out->len;
    MR_TRY(check(c, err));
    snprintf(seed, sizeof seed, "%" PRIu64, c->seed);
    MR_AUTO(json_decrefp)
    json_t *doc = json_pack("{s:s, s:i, s:s, s:I, s:{s:I, s:I}, s:s, s:s, s:o, s:o, s:I, s:b, s:o, s:o, s:o}",
                            "millrace", "checkpoint", "format", MR_CHECKPOINT_FORMAT, "version", MILLRACE_VERSION,
                            "update", (json_int_t)c->update, "cursor", "epoch", (json_int_t)c->cursor.epoch, "position",
                            (json_int_t)c->cursor.position, "seed", seed, "optimizer", optimizers[c->optimizer],
                            "accuracy", accuracy_json(c->accuracy), "best_accuracy", accuracy_json(c->best_accuracy),
                            "best_update", (json_int_t)c->best_update, "evaluation_due", (int)c->evaluation_due,
                            "model", mr_state_model(&c->model), "files", files_json(c->model.iface, digests), "facts",
                            c->facts ? json_incref(c->facts) : json_object());
    if (doc && c->ema > 0 && json_object_set_new(doc, "ema", json_real(c->ema)) != 0)
        return mr_fail_memory(err, "writing the checkpoint's state");
    if (doc && c->threshold > 0 && json_object_set_new(doc, "threshold", json_real(c->threshold)) != 0)
        return mr_fail_memory(err, "writing the checkpoint's state");
    if (!doc && !mr_utf8_valid(c->model.name, strlen(c->model.name)))
        return mr_fail(err, MR_MISUSE, "checkpoint: the model's name is not UTF-8");
    if (!doc)
        return mr_fail_memory(err, "writing the checkpoint's state");
    MR_TRY(mr_json_dump(doc, out, err));
    MR_TRY(mr_manifest_seal(out, start, err));
    if (out->len - start > MR_STATE_MAX)
        return mr_fail(err, MR_MISUSE, "checkpoint: the facts are more than %d MiB", MR_STATE_MAX >> 20);
    return MR_OK;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static mr_status get_accuracy(const json_t *doc, const char *key, const char *name, double *out, mr_error *err)
{
    const json_t *value = json_object_get(doc, key);
    *out = json_is_null(value) ? -1 : json_number_value(value);
    if (json_is_null(value) || (json_is_number(value) && *out >= 0 && *out <= 1))
        return MR_OK;
    return mr_fail(err, MR_BAD_DATA, "%s: \"%s\" is neither null nor a number from 0 to 1", name, key);
}

static mr_status get_digest(const json_t *file, const char *called, const char *name, mr_digest *out, mr_error *err)
{
    const char *hex;
    MR_TRY(mr_json_get_u64(file, "bytes", name, &out->bytes, err));
    MR_TRY(mr_json_get_string(file, "xxh3_128", name, &hex, err));
    if (!mr_unhex(hex, out->xxh3_128, sizeof out->xxh3_128))
        return mr_fail(err, MR_BAD_DATA, "%s: \"xxh3_128\" of %s is not 32 hex digits", name, called);
    return MR_OK;
}

static mr_status get_files(const json_t *doc, const mr_model_iface *iface, const char *name,
                           mr_digest digests[MR_FILES], mr_error *err)
{
    memset(digests, 0, MR_FILES * sizeof *digests);
    for (size_t i = 0; i < MR_FILES; i++) {
        const char *called = mr_checkpoint_file(iface, i);
        json_t *file;
        if (!called || (i == MR_FILE_TOKENIZER && !json_object_get(doc, called)))
            continue;
        MR_TRY(mr_json_get(doc, called, JSON_OBJECT, name, &file, err));
        MR_TRY(get_digest(file, called, name, &digests[i], err));
    }
    if (digests[MR_FILE_TOKENIZER].bytes > MR_TOKENIZER_MAX)
        return mr_fail(err, MR_BAD_DATA, "%s: \"tokenizer.json\" has more than %d MiB", name, MR_TOKENIZER_MAX >> 20);
    return MR_OK;
}

/* It is printed, so only letters, digits and the marks of Debian's versions count. */
static void get_version(const json_t *doc, char out[MR_VERSION_TEXT])
{
    const char *said = json_string_value(json_object_get(doc, "version"));
    size_t len = said ? strlen(said) : 0;
    size_t plain = said ? strspn(said, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.+~-") : 0;
    bool fine = len > 0 && plain == len && len < MR_VERSION_TEXT;
    snprintf(out, MR_VERSION_TEXT, "%s", fine ? said : "?");
}

static mr_status get_counts(const json_t *doc, const char *name, mr_checkpoint *out, mr_error *err)
{
    json_t *cursor;
    const char *seed;
    get_version(doc, out->version);
    MR_TRY(mr_json_get_u64(doc, "update", name, &out->update, err));
    MR_TRY(mr_json_get(doc, "cursor", JSON_OBJECT, name, &cursor, err));
    MR_TRY(mr_json_get_u64(cursor, "epoch", name, &out->cursor.epoch, err));
    MR_TRY(mr_json_get_u64(cursor, "position", name, &out->cursor.position, err));
    MR_TRY(mr_json_get_string(doc, "seed", name, &seed, err));
    if (!mr_text_parse_u64(seed, &out->seed))
        return mr_fail(err, MR_BAD_DATA, "%s: \"seed\" is not a number", name);
    MR_TRY(get_accuracy(doc, "accuracy", name, &out->accuracy, err));
    MR_TRY(get_accuracy(doc, "best_accuracy", name, &out->best_accuracy, err));
    if (json_object_get(doc, "threshold"))
        MR_TRY(get_accuracy(doc, "threshold", name, &out->threshold, err));
    out->threshold = out->threshold > 0 ? out->threshold : 0;
    const json_t *ema = json_object_get(doc, "ema");
    out->ema = json_number_value(ema); /* NULL: 0 */
    if (ema && !(json_is_number(ema) && out->ema > 0 && out->ema < 1))
        return mr_fail(err, MR_BAD_DATA, "%s: \"ema\" is not a number between 0 and 1", name);
    MR_TRY(mr_json_get_u64(doc, "best_update", name, &out->best_update, err));
    out->evaluation_due = json_is_true(json_object_get(doc, "evaluation_due"));
    if (out->best_update > out->update)
        return mr_fail(err, MR_BAD_DATA, "%s: \"best_update\" is past \"update\"", name);
    return MR_OK;
}

static mr_status check_format(const json_t *doc, const char *name, mr_error *err)
{
    const char *what = json_string_value(json_object_get(doc, "millrace"));
    uint64_t format = 0;
    if (!what || strcmp(what, "checkpoint") != 0)
        return mr_fail(err, MR_BAD_DATA, "%s: is not a checkpoint's state", name);
    MR_TRY(mr_json_get_u64(doc, "format", name, &format, err));
    if (format != MR_CHECKPOINT_FORMAT)
        return mr_fail(err, MR_BAD_DATA,
                       "%s: has format %" PRIu64 ", and this millrace (" MILLRACE_VERSION ") reads format %d", name,
                       format, MR_CHECKPOINT_FORMAT);
    return MR_OK;
}

mr_status mr_state_parse(const void *bytes, size_t len, const char *name, mr_checkpoint *out,
                         mr_digest digests[MR_FILES], mr_error *err)
{
    MR_AUTO(json_decrefp) json_t *doc = NULL;
    json_t *model, *listed, *facts;
    mr_checkpoint made = {0};
    unsigned optimizer = 0;
    mr_status sealed = mr_manifest_check_seal(bytes, len, name, NULL);
    if (sealed == MR_SYSTEM)
        return mr_fail_memory(err, name);
    if (sealed != MR_OK)
        return mr_fail(err, MR_BAD_DATA, "%s: its seal does not match its text: it was edited or damaged", name);
    MR_TRY(mr_json_bounded(bytes, len, 2 * (uint64_t)MR_STATE_MAX, name, err));
    MR_TRY(mr_json_parse(bytes, len, name, &doc, err));
    MR_TRY(check_format(doc, name, err));
    MR_TRY(get_counts(doc, name, &made, err));
    MR_TRY(mr_state_word(doc, "optimizer", name, optimizers, MR_COUNT(optimizers), &optimizer, err));
    MR_TRY(mr_json_get(doc, "model", JSON_OBJECT, name, &model, err));
    MR_TRY(mr_state_model_parse(model, name, &made.model, err));
    MR_TRY(mr_json_get(doc, "files", JSON_OBJECT, name, &listed, err));
    MR_TRY(get_files(listed, made.model.iface, name, digests, err));
    MR_TRY(mr_json_get(doc, "facts", JSON_OBJECT, name, &facts, err));
    made.optimizer = (mr_optimizer_kind)optimizer;
    made.slots = mr_checkpoint_slots(made.optimizer, made.ema > 0);
    made.facts = json_incref(facts);
    *out = made;
    return MR_OK;
}
